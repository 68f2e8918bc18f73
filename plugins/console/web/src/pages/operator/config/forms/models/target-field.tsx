/** Where a model is served, in order: names, and targets with settings of their own, which stay as they are. */
import { TagsInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useForms, useMember } from '../context.ts';
import type { FormMap, Path } from '../edit-yaml.ts';
import { formValueOf, namesAt, type Whole, wholeAt } from '../layers.ts';

export function TargetField({ path }: { readonly path: Path }) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const { error, isFixed, set } = useMember(path);
  const [refused, setRefused] = useState(false);
  const written = wholeAt(layers, path);
  const targets = Array.isArray(written) ? (written as readonly Whole[]) : written === undefined ? [] : [written];
  const byName = new Map(targets.map((target) => [nameOf(target), target]));
  const change = (names: readonly string[]) => {
    const values = names.map((name) => {
      const kept = byName.get(name);
      return kept === undefined || typeof kept === 'string' ? name : (formValueOf(kept) as FormMap);
    });
    setRefused(!set(values.length === 0 ? undefined : values));
  };
  return (
    <TagsInput
      label={t('operator.config.forms.targets')}
      description={t('operator.config.forms.targetsHint')}
      inputWrapperOrder={['label', 'input', 'description', 'error']}
      data={[...namesAt(layers, ['providers'])]}
      value={[...byName.keys()]}
      acceptValueOnBlur
      disabled={isFixed}
      error={refused ? t('operator.config.forms.refused') : error}
      onChange={change}
    />
  );
}

/** `azure/gpt-5 …`: the mark says that it has settings that are not shown. */
function nameOf(target: Whole): string {
  if (typeof target === 'string') return target;
  const { provider, model, ...others } = target as Readonly<Record<string, Whole>>;
  const name = [provider, model].filter((part) => typeof part === 'string').join('/');
  return Object.keys(others).length === 0 ? name : `${name} …`;
}
