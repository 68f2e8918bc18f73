/** Columns of codes: what they bring, how often they were used, whether they are still valid. */

import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import { prefixColumn, textColumn, timeColumn, useDangerColumn } from '../../../parts/columns.tsx';
import type { Column } from '../../../parts/rows-table.tsx';
import { Word } from '../parts/badges.tsx';
import { RowLink } from '../parts/names.tsx';
import type { Code, Gift } from '../sale-types.ts';

export const codesPath = '/admin/codes';

/** `onRevoke` is absent for people who may only look. */
export function useCodeColumns(onRevoke: ((named: string) => void) | undefined): Column<Code>[] {
  const { t } = useTranslation();
  const revoke = useDangerColumn<Code>(
    t('operator.sales.codes.revoke'),
    ({ id }) => onRevoke?.(id),
    ({ revokedAt }) => revokedAt === null,
  );
  return [
    prefixColumn(t('operator.column.prefix')),
    textColumn('batch', t('operator.column.batch'), {
      cell: ({ batch }) => (
        <RowLink to={codesPath} search={{ batch }}>
          {batch}
        </RowLink>
      ),
    }),
    { key: 'gift', title: t('operator.column.gift'), cell: ({ gift }) => giftText(gift, t) },
    textColumn('uses', t('operator.column.uses'), {
      right: true,
      cell: ({ uses, maxUses }) => t('operator.sales.codes.usesOf', { uses, most: maxUses }),
    }),
    { key: 'state', title: t('shell.word.state'), cell: (code) => <CodeWord of={code} /> },
    timeColumn('expiresAt', t('operator.column.expires'), { minor: true }),
    timeColumn('createdAt', t('operator.column.created'), { minor: true }),
    ...(onRevoke === undefined ? [] : [revoke]),
  ];
}

/** What a code brings, in words. */
function giftText(gift: Gift, t: TFunction): string {
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
