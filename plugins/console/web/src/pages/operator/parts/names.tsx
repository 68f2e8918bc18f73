/** Links to what a row is about: accounts by their name, requests by the end of their id. */
import { Anchor, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { get } from '../../../api/client.ts';
import { has, useMe } from '../../../api/session.ts';
import { accountName } from '../../../parts/account-name.ts';
import type { AccountRow, Page } from '../types.ts';

export const accountNamesKey = ['account names'] as const;

/** Names of the first accounts; other accounts are shown by their id. */
export function useAccountNames(wanted = true): ReadonlyMap<string, string> | undefined {
  const known = has(useMe(), 'accounts');
  return useQuery({
    queryKey: accountNamesKey,
    queryFn: ({ signal }) => get<Page<AccountRow>>('/admin/accounts', { limit: 500 }, signal),
    select: ({ rows }) => new Map(rows.map((row) => [row.id, accountName(row)])),
    staleTime: 300_000,
    enabled: known && wanted,
  }).data;
}

export function AccountLink({ id }: { readonly id: string | null }) {
  const name = useAccountNames(id !== null)?.get(id ?? '');
  if (id === null) return <Absent />;
  return (
    <RowLink to={`/admin/accounts/${encodeURIComponent(id)}`} title={id}>
      {name ?? shortId(id)}
    </RowLink>
  );
}

export function RequestLink({ id }: { readonly id: string | null }) {
  if (id === null) return <Absent />;
  return (
    <RowLink to={`/admin/requests/${encodeURIComponent(id)}`} title={id}>
      <span className="mono">{shortId(id)}</span>
    </RowLink>
  );
}

interface RowLinkProps {
  readonly to: string;
  readonly search?: Readonly<Record<string, string>>;
  readonly title?: string;
  readonly children: ReactNode;
}

/** A link inside a row that itself opens something. */
export function RowLink({ to, search = {}, title, children }: RowLinkProps) {
  return (
    <Anchor
      fz="inherit"
      title={title}
      onClick={(event) => event.stopPropagation()}
      renderRoot={(props) => <Link {...props} to={to} search={search} />}
    >
      {children}
    </Anchor>
  );
}

/** Random ids differ at their end. */
export const shortId = (id: string): string => (id.length > 12 ? `…${id.slice(-8)}` : id);

const Absent = () => (
  <Text span c="dimmed" inherit>
    –
  </Text>
);
