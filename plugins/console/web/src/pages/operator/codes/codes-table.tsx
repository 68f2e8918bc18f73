/** Rows of codes: what they bring, how often they were used, whether they still hold. */
import { Button } from '@mantine/core';
import type { TFunction } from 'i18next';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { type Column, DataTable } from '../../../parts/data-table.tsx';
import { Time } from '../../../parts/time.tsx';
import { Word } from '../parts/badges.tsx';
import { RowLink } from '../parts/names.tsx';
import type { Code, Gift } from '../sale-types.ts';

export const codesPath = '/admin/codes';

interface CodesTableProps {
  readonly batch: string | undefined;
  readonly empty: ReactNode;
  /** Absent: whoever looks may not. */
  readonly onRevoke: ((named: string) => void) | undefined;
}

export function CodesTable({ batch, empty, onRevoke }: CodesTableProps) {
  const { t } = useTranslation();
  const act: Column<Code> = {
    key: 'actions',
    title: t('operator.column.actions'),
    right: true,
    cell: ({ id, revokedAt }) =>
      revokedAt === null && (
        <Button size="compact-xs" variant="subtle" color="red" onClick={() => onRevoke?.(id)}>
          {t('operator.sales.codes.revoke')}
        </Button>
      ),
  };
  const columns = useColumns();
  return (
    <DataTable<Code>
      label={t('operator.sales.codes.title')}
      path={codesPath}
      query={{ batch }}
      columns={onRevoke === undefined ? columns : [...columns, act]}
      rowKey={({ id }) => id}
      csv="/admin/codes.csv"
      empty={empty}
    />
  );
}

function useColumns(): Column<Code>[] {
  const { t } = useTranslation();
  return [
    {
      key: 'prefix',
      title: t('operator.column.prefix'),
      cell: ({ prefix }) => <span className="mono">{prefix}…</span>,
    },
    {
      key: 'batch',
      title: t('operator.column.batch'),
      cell: ({ batch }) => (
        <RowLink to={codesPath} search={{ batch }}>
          {batch}
        </RowLink>
      ),
    },
    { key: 'gift', title: t('operator.column.gift'), cell: ({ gift }) => giftText(gift, t) },
    {
      key: 'uses',
      title: t('operator.column.uses'),
      right: true,
      cell: ({ uses, maxUses }) => t('operator.sales.codes.usesOf', { uses, most: maxUses }),
    },
    { key: 'state', title: t('operator.column.state'), cell: (code) => <CodeWord of={code} /> },
    {
      key: 'expires',
      title: t('operator.column.expires'),
      minor: true,
      cell: ({ expiresAt }) => <Time at={expiresAt} />,
    },
    {
      key: 'created',
      title: t('operator.column.created'),
      minor: true,
      cell: ({ createdAt }) => <Time at={createdAt} />,
    },
  ];
}

/** What a code brings, in words. */
export function giftText(gift: Gift, t: TFunction): string {
  if (gift.kind === 'balance') return t('operator.sales.codes.giftText.balance', { amount: `$${gift.amount}` });
  if (gift.kind === 'plan') return t('operator.sales.codes.giftText.plan', { plan: gift.plan });
  return t('operator.sales.codes.giftText.days', { days: gift.days, plan: gift.plan });
}

function CodeWord({ of: { revokedAt, expiresAt, uses, maxUses } }: { readonly of: Code }) {
  const { t } = useTranslation();
  if (revokedAt !== null) return <Word color="red">{t('operator.sales.codes.revoked')}</Word>;
  if (uses >= maxUses) return <Word color="gray">{t('operator.sales.codes.usedUp')}</Word>;
  const isOver = expiresAt !== null && Date.parse(expiresAt) < Date.now();
  return isOver ? (
    <Word color="gray">{t('operator.sales.codes.expired')}</Word>
  ) : (
    <Word color="teal">{t('operator.sales.codes.live')}</Word>
  );
}
