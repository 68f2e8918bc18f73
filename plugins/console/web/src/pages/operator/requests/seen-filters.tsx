/** Filters of requests that offer what there is: models, upstreams and operations of the span, accounts by their person. */
import { Select, type SelectProps } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get, type Query } from '../../../api/client.ts';
import { accountName } from '../../../parts/account-name.ts';
import { useSearchState } from '../../../parts/search-state.ts';
import { shortId } from '../parts/names.tsx';
import type { AccountRow, Group, Page } from '../types.ts';

interface SeenFilterProps {
  /** The dimension, which is also the filter's name in the address bar. */
  readonly name: 'model' | 'provider' | 'operation';
  readonly label: string;
  readonly span: Query;
}

/** Values with requests in the span, those with the most first. */
export function SeenFilter({ name, label, span }: SeenFilterProps) {
  const seen = useQuery({
    queryKey: ['requests', 'seen', name, span],
    queryFn: ({ signal }) =>
      get<{ rows: readonly Group[] }>('/admin/monitor/groups', { ...span, by: name, limit: 200 }, signal),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
  const values = (seen.data?.rows ?? []).map(({ group }) => group).filter((group) => group !== '');
  return <Choice name={name} label={label} data={values.map((value) => ({ value, label: value }))} />;
}

/** Found by the name or mail address of its person, its own name, or its id. */
export function AccountFilter() {
  const { t } = useTranslation();
  const [typed, setTyped] = useState('');
  const [text] = useDebouncedValue(typed.trim(), 250);
  const [search] = useSearchState();
  const requested = search['accountId'];
  const found = useQuery({
    queryKey: ['accounts', 'found', text, requested],
    queryFn: ({ signal }) => get<Page<AccountRow>>('/admin/accounts', { text: text || requested, limit: 20 }, signal),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
  const data = (found.data?.rows ?? []).map(({ id, name, person }) => ({
    value: id,
    label: person === null ? name : `${accountName({ name, person })} · ${shortId(id)}`,
  }));
  return (
    <Choice
      name="accountId"
      label={t('shell.word.account')}
      data={data}
      onSearchChange={setTyped}
      // They are found by more than their shown names.
      filter={({ options }) => options}
    />
  );
}

interface FoundPerson {
  readonly id: string;
  readonly name: string;
  readonly email: string;
}

/** Whom requests were for, found by name or mail address. */
export function PersonFilter() {
  const { t } = useTranslation();
  const [typed, setTyped] = useState('');
  const [text] = useDebouncedValue(typed.trim(), 250);
  const [search] = useSearchState();
  const requested = search['personId'];
  const found = useQuery({
    queryKey: ['people', 'found', text, requested],
    queryFn: ({ signal }) => get<Page<FoundPerson>>('/admin/people', { text: text || requested, limit: 20 }, signal),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
  const data = (found.data?.rows ?? []).map(({ id, name, email }) => ({ value: id, label: `${name} · ${email}` }));
  return (
    <Choice
      name="personId"
      label={t('client.person')}
      data={data}
      onSearchChange={setTyped}
      // They are found by more than their shown names.
      filter={({ options }) => options}
    />
  );
}

type ChoiceProps = Pick<SelectProps, 'onSearchChange' | 'filter'> & {
  readonly name: string;
  readonly label: string;
  readonly data: readonly { readonly value: string; readonly label: string }[];
};

function Choice({ name, label, data, ...more }: ChoiceProps) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const requested = search[name];
  const isKnown = requested === undefined || data.some(({ value }) => value === requested);
  return (
    <Select
      size="xs"
      flex="1 1 140px"
      maw={240}
      aria-label={label}
      placeholder={label}
      clearable
      searchable
      nothingFoundMessage={t('operator.traffic.requests.nothingSeen')}
      data={isKnown ? [...data] : [...data, { value: requested, label: requested }]}
      value={requested ?? null}
      onChange={(value) => change({ [name]: value ?? undefined })}
      {...more}
    />
  );
}
