/** Codes that bring money or plans: batches, how far they are used, making and revoking them. */

import { Anchor, Button, Modal } from '@mantine/core';
import { IconPlus, IconTicket } from '@tabler/icons-react';
import type { TFunction } from 'i18next';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { prefixColumn, textColumn, timeColumn, useDangerColumn } from '../../../parts/columns.tsx';
import { DataTable, listKey } from '../../../parts/data-table.tsx';
import { moneyText } from '../../../parts/format.ts';
import type { Column } from '../../../parts/rows-table.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { Act, useActs } from '../parts/act.tsx';
import { Word } from '../parts/badges.tsx';
import { ChoiceFilter } from '../parts/filters.tsx';
import { answerKey, useAnswer } from '../parts/load.tsx';
import { AccountLink, RowLink, shortId } from '../parts/names.tsx';
import { ResourcePage } from '../parts/resource-page.tsx';
import type { Batch, Code, Gift, MadeCodes, Redemption } from '../sale-types.ts';
import { MadeDialog } from './made-dialog.tsx';
import { MakeCodes } from './make-codes.tsx';

export default function Codes() {
  const { t } = useTranslation();
  const acts = useActs();
  const [search, change] = useSearchState();
  const [made, setMade] = useState<MadeCodes>();
  const [revoked, setRevoked] = useState<string>();
  const [shown, setShown] = useState<Code>();
  const batches = useAnswer<{ rows: readonly Batch[] }>('/admin/codes/batches').data?.rows ?? [];
  const batch = search['batch'];
  const make = () => change({ make: 'balance' });
  const button = (
    <Button leftSection={<IconPlus size={15} />} onClick={make}>
      {t('operator.sales.codes.make')}
    </Button>
  );
  return (
    <ResourcePage<Code>
      texts="operator.sales.codes"
      icon={IconTicket}
      actions={acts ? button : undefined}
      emptyAction={acts ? button : undefined}
      source={{ path: codesPath, query: { batch }, csv: '/admin/codes.csv' }}
      columns={useCodeColumns(setShown, acts ? setRevoked : undefined)}
      filters={
        <>
          <ChoiceFilter
            name="batch"
            label={t('operator.sales.codes.allBatches')}
            data={batches.map((one) => ({ value: one.batch, label: `${one.batch} (${one.uses}/${one.codes})` }))}
          />
          {acts && batch !== undefined && (
            <Button size="xs" variant="light" color="red" onClick={() => setRevoked(batch)}>
              {t('operator.sales.codes.revokeBatch')}
            </Button>
          )}
        </>
      }
    >
      {acts && search['make'] !== undefined && (
        <MakeCodes
          plan={search['plan']}
          kind={search['make']}
          onClose={() => change({ make: undefined, plan: undefined })}
          onMade={setMade}
        />
      )}
      <MadeDialog made={made} onClose={() => setMade(undefined)} />
      {shown !== undefined && <Redemptions code={shown} onClose={() => setShown(undefined)} />}
      <RevokeDialog named={revoked} onClose={() => setRevoked(undefined)} />
    </ResourcePage>
  );
}

const codesPath = '/admin/codes';

/** `onRevoke` is absent for people who may only look. */
function useCodeColumns(onUses: (code: Code) => void, onRevoke: ((named: string) => void) | undefined): Column<Code>[] {
  const { t, i18n } = useTranslation();
  const revoke = useDangerColumn<Code>(
    t('operator.sales.codes.revoke'),
    ({ id }) => onRevoke?.(id),
    (code) => stateOf(code) === 'live',
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
    { key: 'gift', title: t('operator.column.gift'), cell: ({ gift }) => giftText(gift, t, i18n.language) },
    textColumn('uses', t('operator.column.uses'), {
      right: true,
      cell: (code) => {
        const words = t('operator.sales.codes.usesOf', { uses: code.uses, most: code.maxUses });
        if (code.uses === 0) return words;
        return (
          <Anchor component="button" type="button" fz="inherit" onClick={() => onUses(code)} aria-haspopup="dialog">
            {words}
          </Anchor>
        );
      },
    }),
    { key: 'state', title: t('shell.word.state'), cell: (code) => <CodeWord of={code} /> },
    timeColumn('expiresAt', t('operator.column.expires'), { minor: true }),
    timeColumn('createdAt', t('operator.column.created'), { minor: true }),
    ...(onRevoke === undefined ? [] : [revoke]),
  ];
}

/** What a code brings, in words. */
function giftText(gift: Gift, t: TFunction, language: string): string {
  if (gift.kind === 'balance')
    return t('operator.sales.codes.giftText.balance', { amount: moneyText(gift.amount, language) });
  if (gift.kind === 'plan') return t('operator.sales.codes.giftText.plan', { plan: gift.plan });
  return t('operator.sales.codes.giftText.days', { count: gift.days, plan: gift.plan });
}

function stateOf({ revokedAt, expiresAt, uses, maxUses }: Code): keyof typeof stateColors {
  if (revokedAt !== null) return 'revoked';
  if (uses >= maxUses) return 'usedUp';
  return expiresAt !== null && Date.parse(expiresAt) < Date.now() ? 'expired' : 'live';
}
const stateColors = { live: 'teal', usedUp: 'gray', expired: 'gray', revoked: 'red' } as const;

function CodeWord({ of }: { readonly of: Code }) {
  const { t } = useTranslation();
  const state = stateOf(of);
  return <Word color={stateColors[state]}>{t(`operator.sales.codes.${state}`)}</Word>;
}

interface RevokeDialogProps {
  /** An id or a batch; undefined: shut. */
  readonly named: string | undefined;
  readonly onClose: () => void;
}

function RevokeDialog({ named, onClose }: RevokeDialogProps) {
  const { t } = useTranslation();
  if (named === undefined) return null;
  return (
    <Act
      opened
      onClose={onClose}
      title={t('operator.sales.codes.revokeTitle', { name: shortName(named) })}
      text={t('operator.sales.codes.revokeText')}
      action={t('operator.sales.codes.revoke')}
      danger
      stale={[listKey('/admin/codes'), answerKey('/admin/codes/batches')]}
      act={async (reason) => {
        const { revoked } = await send<{ revoked: number }>('POST', '/admin/codes/revoke', { named, reason });
        return t('operator.sales.codes.revokedCount', { count: revoked });
      }}
    />
  );
}

const shortName = (named: string) => (/^[0-9a-f-]{36}$/.test(named) ? shortId(named) : named);

/** Accounts that have redeemed a code, and when. */
function Redemptions({ code, onClose }: { readonly code: Code; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const title = t('operator.sales.codes.redeemedBy', { prefix: code.prefix });
  return (
    <Modal opened onClose={onClose} title={title}>
      <DataTable<Redemption>
        label={title}
        path={`/admin/codes/${code.id}/redemptions`}
        columns={[
          textColumn('accountId', t('shell.word.account'), { cell: ({ accountId }) => <AccountLink id={accountId} /> }),
          timeColumn('at', t('operator.sales.codes.redeemedAt')),
        ]}
        rowKey={({ accountId, at }) => `${accountId} ${at}`}
        empty={<EmptyState icon={IconTicket} title={t('operator.sales.codes.empty')} />}
      />
    </Modal>
  );
}
