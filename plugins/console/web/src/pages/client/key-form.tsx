/** The form of a key's terms, for a new key and for one that is changed. */
import {
  Autocomplete,
  Button,
  Fieldset,
  Group,
  MultiSelect,
  NumberInput,
  Select,
  Stack,
  TagsInput,
  TextInput,
} from '@mantine/core';
import { useForm } from '@mantine/form';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { ApiError } from '../../api/client.ts';
import { modelsQuery, useOwnProjects } from '../../api/models.ts';
import type { KeyRow, KeyTerms } from '../../api/types.ts';
import { typedAmount } from '../../parts/format.ts';
import { RegionsField } from '../../parts/project-regions.tsx';
import { ErrorState } from '../../parts/states.tsx';
import { useWork } from '../../parts/use-work.ts';
import { fieldsOf, isAmount, termsOf } from './key-terms.ts';

interface KeyFormProps {
  readonly row?: KeyRow;
  /** A proposal for a new one. */
  readonly name?: string;
  /** Only what a person must think of; the rest can be changed under Keys. */
  readonly brief?: boolean;
  readonly button: string;
  /** Beside the button. */
  readonly other?: ReactNode;
  readonly onSend: (terms: KeyTerms) => Promise<void>;
}

function useKeyForm(row: KeyRow | undefined, name: string) {
  const { t } = useTranslation();
  return useForm({
    initialValues: { ...fieldsOf(row), ...(row === undefined && { name }) },
    validate: {
      name: (value) => (value.trim() === '' ? t('client.keys.nameMissing') : null),
      capAmount: (value) => (value.trim() === '' || isAmount(typedAmount(value)) ? null : t('client.keys.capWrong')),
    },
  });
}
type Form = ReturnType<typeof useKeyForm>;

export function KeyForm({ row, name = '', brief = false, button, other, onSend }: KeyFormProps) {
  const { t } = useTranslation();
  const form = useKeyForm(row, name);
  const models = useQuery(modelsQuery).data?.rows.map(({ id }) => id) ?? [];
  const { busy, problem, run } = useWork((error) => {
    const field = error instanceof ApiError ? error.field : undefined;
    if (field !== 'name' && field !== 'project' && field !== 'regions') return error;
    form.setFieldError(field, (error as ApiError).message);
    return undefined;
  });
  const submit = form.onSubmit((fields) => run(() => onSend(termsOf(fields, Date.now()))));
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label={t('shell.word.name')}
          description={t('client.keys.nameHint')}
          maxLength={100}
          data-autofocus
          {...form.getInputProps('name')}
        />
        {!brief && <Project form={form} />}
        <Expiry form={form} />
        <MultiSelect
          label={t('shell.word.models')}
          data={models}
          searchable
          clearable
          placeholder={form.values.models.length === 0 ? t('client.keys.allModels') : ''}
          {...form.getInputProps('models')}
        />
        <Cap form={form} />
        {!brief && <Rest form={form} />}
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end">
          {other}
          <Button type="submit" loading={busy}>
            {button}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function Project({ form }: { readonly form: Form }) {
  const { t } = useTranslation();
  return (
    <Autocomplete
      label={t('shell.word.project')}
      description={t('client.projects.hint')}
      placeholder={t('shell.project.none')}
      data={useOwnProjects()}
      maxLength={100}
      {...form.getInputProps('project')}
    />
  );
}

function Rest({ form }: { readonly form: Form }) {
  const { t } = useTranslation();
  return (
    <>
      <TagsInput
        label={t('client.keys.addresses')}
        description={t('client.keys.addressesHint')}
        placeholder={form.values.addresses.length === 0 ? t('client.keys.anyAddress') : ''}
        splitChars={[',', ' ']}
        acceptValueOnBlur
        {...form.getInputProps('addresses')}
      />
      <TagsInput
        label={t('client.keys.tags')}
        description={t('client.keys.tagsHint')}
        placeholder={form.values.tags.length === 0 ? 'team=search' : ''}
        splitChars={[',', ' ']}
        maxTags={8}
        acceptValueOnBlur
        {...form.getInputProps('tags')}
      />
      <RegionsField {...form.getInputProps('regions')} />
      <OwnLimits form={form} />
      <Images form={form} />
    </>
  );
}

function Expiry({ form }: { readonly form: Form }) {
  const { t } = useTranslation();
  const choices = [
    { value: 'never', label: t('client.keys.neverExpires') },
    ...['7', '30', '90', '365'].map((days) => ({ value: days, label: t('client.keys.inDays', { days }) })),
    { value: 'date', label: t('client.keys.onDate') },
  ];
  return (
    <Group grow align="flex-start">
      <Select label={t('client.keys.expires')} data={choices} allowDeselect={false} {...form.getInputProps('expiry')} />
      {form.values.expiry === 'date' && (
        <TextInput type="datetime-local" label={t('client.keys.date')} required {...form.getInputProps('date')} />
      )}
    </Group>
  );
}

function Cap({ form }: { readonly form: Form }) {
  const { t } = useTranslation();
  const periods = (['day', 'week', 'month', 'ever'] as const).map((value) => ({
    value,
    label: t(`client.keys.every.${value}`),
  }));
  return (
    <Group grow align="flex-start">
      <TextInput
        label={t('client.keys.cap')}
        description={t('client.keys.capHint')}
        leftSection="$"
        inputMode="decimal"
        placeholder="–"
        {...form.getInputProps('capAmount')}
      />
      <Select
        label={t('client.usage.period')}
        description={'\u00a0'}
        data={periods}
        allowDeselect={false}
        disabled={form.values.capAmount.trim() === ''}
        {...form.getInputProps('capEvery')}
      />
    </Group>
  );
}

/** Programs that know OpenAI's interface alone do not poll tasks. */
function Images({ form }: { readonly form: Form }) {
  const { t } = useTranslation();
  const choices = (['task', 'wait'] as const).map((value) => ({ value, label: t(`client.keys.imagesBy.${value}`) }));
  return (
    <Select
      label={t('client.keys.images')}
      description={t('client.keys.imagesHint')}
      data={choices}
      allowDeselect={false}
      {...form.getInputProps('images')}
    />
  );
}

function OwnLimits({ form }: { readonly form: Form }) {
  const { t } = useTranslation();
  const names = ['rpm', 'rpd', 'tpm', 'concurrency'] as const;
  return (
    <Fieldset legend={t('client.keys.limits')} className="limits">
      {names.map((name) => (
        <NumberInput
          key={name}
          label={t(`client.keys.${name}`)}
          min={1}
          allowDecimal={false}
          thousandSeparator=","
          placeholder="–"
          {...form.getInputProps(name)}
        />
      ))}
    </Fieldset>
  );
}
