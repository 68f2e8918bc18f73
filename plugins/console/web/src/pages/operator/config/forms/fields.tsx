/** Fields of the forms: each is one member of the configuration, changed a moment after the last letter. */
import { type InputWrapperProps, Select, TagsInput, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useForms, useMember } from './context.ts';
import type { Path } from './edit-yaml.ts';
import { nothingAt } from './layers.ts';

/** Hints are below the field, so that fields side by side are aligned. */
const order: InputWrapperProps['inputWrapperOrder'] = ['label', 'input', 'description', 'error'];

interface FieldProps {
  readonly path: Path;
  readonly label: string;
  readonly hint?: string;
  /** The value that applies when the member is not set. */
  readonly usual?: string;
}
interface TextFieldProps extends FieldProps {
  /** At the end of the field. */
  readonly beside?: ReactNode;
}

/** Text or a number, as it is written; empty: the member is removed. */
export function TextField({ path, label, hint, usual, beside }: TextFieldProps) {
  const { t } = useTranslation();
  const { written, error, isFixed, set } = useMember(path);
  const [typed, setTyped] = useState<string>();
  const [refused, setRefused] = useState(false);
  const commit = useDebouncedCallback((text: string) => {
    setRefused(!set(text.trim() === '' ? undefined : text.trim()));
    setTyped(undefined);
  }, 400);
  const isOther = written !== undefined && typeof written !== 'string';
  return (
    <TextInput
      label={label}
      description={hint}
      inputWrapperOrder={order}
      placeholder={isOther ? t('operator.config.forms.inText') : usual}
      value={typed ?? (typeof written === 'string' ? written : '')}
      disabled={isFixed || isOther}
      rightSection={beside}
      error={refused ? t('operator.config.forms.refused') : error}
      onChange={({ currentTarget: { value } }) => {
        setTyped(value);
        commit(value);
      }}
      onBlur={() => commit.flush()}
    />
  );
}

interface ChoiceFieldProps extends FieldProps {
  readonly choices: readonly { readonly value: string; readonly label: string }[];
}

export function ChoiceField({ path, label, hint, usual, choices }: ChoiceFieldProps) {
  const { written, error, isFixed, set } = useMember(path);
  const value = typeof written === 'string' ? written : null;
  const isListed = value === null || choices.some((choice) => choice.value === value);
  return (
    <Select
      label={label}
      description={hint}
      inputWrapperOrder={order}
      placeholder={usual}
      data={isListed ? [...choices] : [...choices, { value, label: value }]}
      value={value}
      clearable
      disabled={isFixed}
      error={error}
      onChange={(chosen) => set(chosen === 'true' ? true : chosen === 'false' ? false : (chosen ?? undefined))}
    />
  );
}

export function YesNoField(props: FieldProps) {
  const { t } = useTranslation();
  const choices = [
    { value: 'true', label: t('shell.yes') },
    { value: 'false', label: t('shell.no') },
  ];
  return <ChoiceField {...props} choices={choices} />;
}

interface ListFieldProps extends FieldProps {
  readonly known?: readonly string[];
}

/** A list of words; one alone may be written without brackets. */
export function ListField({ path, label, hint, usual, known = [] }: ListFieldProps) {
  const { t } = useTranslation();
  const { written, error, isFixed, set } = useMember(path);
  const [refused, setRefused] = useState(false);
  const isOther = typeof written === 'object' && 'other' in written;
  const values = typeof written === 'string' ? [written] : Array.isArray(written) ? [...written] : [];
  return (
    <TagsInput
      label={label}
      description={hint}
      inputWrapperOrder={order}
      placeholder={isOther ? t('operator.config.forms.inText') : values.length === 0 ? usual : undefined}
      data={[...known]}
      value={values}
      acceptValueOnBlur
      disabled={isFixed || isOther}
      error={refused ? t('operator.config.forms.refused') : error}
      onChange={(chosen) => setRefused(!set(chosen.length === 0 ? undefined : chosen))}
    />
  );
}

const variable = /^\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-(?:secret:[\w.-]+)?)?\}$/;
const variableName = /^[A-Z_][A-Z0-9_]*$/;

/** Secrets as names of environment variables; a secret that the file has as text is neither shown nor changed here. */
export function SecretField({ path, label, hint, many = false }: FieldProps & { readonly many?: boolean }) {
  const { t } = useTranslation();
  const { problems, layers } = useForms();
  const { written, error, isFixed, set } = useMember(path);
  const [wrong, setWrong] = useState<string>();
  const texts = [written ?? []].flat().filter((text) => typeof text === 'string' && text !== '') as string[];
  const names = texts.map((text) => variable.exec(text)?.[1]);
  const isText =
    (written !== undefined && typeof written === 'object' && 'other' in written) || names.includes(undefined);
  const unset = problems.find(({ message }) => names.some((name) => message.includes(`variable ${name} is not set`)));
  const change = (chosen: readonly string[]) => {
    if (!chosen.every((name) => variableName.test(name))) return setWrong(t('operator.config.forms.noVariable'));
    const [first, ...others] = chosen.map((name) => `\${${name}:-}`);
    const isDone = set(
      first === undefined ? nothingAt(layers, path) : others.length === 0 ? first : [first, ...others],
    );
    setWrong(isDone ? undefined : t('operator.config.forms.refused'));
  };
  return (
    <TagsInput
      label={label}
      description={hint ?? t('operator.config.forms.secretHint')}
      inputWrapperOrder={order}
      placeholder={isText ? t('operator.config.forms.secretInText') : names.length === 0 ? 'OPENAI_API_KEY' : undefined}
      value={isText ? [] : (names as string[])}
      maxTags={many ? 1_000 : 1}
      acceptValueOnBlur
      disabled={isFixed || isText}
      error={wrong ?? unset?.message ?? error}
      onChange={change}
    />
  );
}
