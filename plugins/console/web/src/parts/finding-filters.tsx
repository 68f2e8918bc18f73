/** Filters of requests by what guardrails have found in them: the verdict, and the check that has said it. */
import { Select, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../api/session.ts';
import './insight-texts.ts';
import { type SearchState, useSearchState } from './search-state.ts';

const verdicts = ['refused', 'masked', 'logged', 'broken'] as const;

/** Lists alone take them: undefined members where nothing is chosen. */
export const findingQuery = ({ verdict, check }: SearchState) => ({ verdict, check });
export const hasFindingFilter = (search: SearchState) =>
  search['verdict'] !== undefined || search['check'] !== undefined;

/** Nothing on a gateway without guardrails. */
export function FindingFilters() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  if (!has(useMe(), 'guardrails')) return null;
  return (
    <>
      <Select
        size="xs"
        w={170}
        aria-label={t('client.findings.verdict')}
        placeholder={t('client.findings.verdict')}
        clearable
        data={verdicts.map((value) => ({ value, label: t(`client.findings.${value}`) }))}
        value={search['verdict'] ?? null}
        onChange={(value) => change({ verdict: value ?? undefined })}
      />
      {hasFindingFilter(search) && <CheckName />}
    </>
  );
}

/** Applied a moment after the last letter. */
function CheckName() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const requested = search['check'] ?? '';
  const [text, setText] = useState(requested);
  useEffect(() => setText(requested), [requested]);
  const apply = useDebouncedCallback((value: string) => change({ check: value.trim() || undefined }), 350);
  return (
    <TextInput
      size="xs"
      w={140}
      aria-label={t('client.findings.check')}
      placeholder={t('client.findings.check')}
      value={text}
      onChange={({ currentTarget: { value } }) => {
        setText(value);
        apply(value);
      }}
    />
  );
}
