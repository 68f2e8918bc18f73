/** The budgets of an account: what is spent and left of each, and what changes them. For clients and operators. */
import { Button, Drawer, Group, Stack, Text } from '@mantine/core';
import { IconWallet } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client.ts';
import type { BudgetRow } from '../../api/types.ts';
import { Meter } from '../bars.tsx';
import { moneyText } from '../format.ts';
import { Money } from '../money.tsx';
import { Panel } from '../page.tsx';
import { type Column, RowsTable } from '../rows-table.tsx';
import { EmptyState, ErrorState } from '../states.tsx';
import { Time } from '../time.tsx';
import { AccountZone } from './account-zone.tsx';
import { leftOf } from './budget-amount.ts';
import { AddToBudget, EndBudget } from './budget-dialogs.tsx';
import { BudgetForm } from './budget-form.tsx';
import { type BudgetPlace, budgetsKey } from './budget-place.ts';
import { type BudgetLine, budgetName, linesOf } from './budget-texts.ts';

export type Edited = BudgetRow | 'new' | undefined;

interface BudgetListProps {
  readonly place: BudgetPlace;
  readonly edited: Edited;
  readonly onEdit: (edited: Edited) => void;
}

export default function BudgetList({ place, edited, onEdit }: BudgetListProps) {
  const { t } = useTranslation();
  const [added, setAdded] = useState<BudgetLine>();
  const [ended, setEnded] = useState<BudgetLine>();
  const answer = useQuery({
    queryKey: budgetsKey(place),
    queryFn: ({ signal }) => get<{ rows: BudgetRow[]; zone: string | null }>(`${place.base}/budgets`, {}, signal),
  });
  const columns = useColumns();
  const actions: Column<BudgetLine> = {
    key: 'actions',
    title: t('shell.word.actions'),
    right: true,
    cell: (line) => <LineActions line={line} place={place} onEdit={onEdit} onAdd={setAdded} onEnd={setEnded} />,
  };
  if (answer.isError) return <ErrorState error={answer.error} onRetry={() => void answer.refetch()} />;
  const lines = answer.data && linesOf(answer.data.rows);
  return (
    <Panel flush>
      {lines?.length === 0 ? (
        <EmptyState icon={IconWallet} title={t('client.budgets.none')} hint={t('client.budgets.noneHint')} />
      ) : (
        <RowsTable
          label={t('client.budgets.title')}
          columns={place.authority === undefined ? columns : [...columns, actions]}
          rows={lines}
          rowKey={({ key }) => key}
        />
      )}
      {answer.data !== undefined && <AccountZone place={place} zone={answer.data.zone} />}
      <Drawer
        opened={edited !== undefined}
        onClose={() => onEdit(undefined)}
        title={t(edited === 'new' ? 'client.budgets.create' : 'client.budgets.edit')}
      >
        {edited !== undefined && <BudgetForm of={edited} place={place} onClose={() => onEdit(undefined)} />}
      </Drawer>
      <AddToBudget line={added} place={place} onClose={() => setAdded(undefined)} />
      <EndBudget line={ended} place={place} onClose={() => setEnded(undefined)} />
    </Panel>
  );
}

function useColumns(): Column<BudgetLine>[] {
  const { t } = useTranslation();
  return [
    {
      key: 'what',
      title: t('client.budgets.what'),
      cell: ({ row, state }) => (
        <Text span inherit title={row.models?.join('\n')}>
          {budgetName(row, state)} · {t(`client.budgets.periods.${row.every}`)}
        </Text>
      ),
      plain: ({ row, state }) => budgetName(row, state),
    },
    { key: 'spent', title: t('client.budgets.spent'), cell: (line) => <Spent {...line} /> },
    {
      key: 'left',
      title: t('client.budgets.left'),
      right: true,
      cell: ({ row, state }) => <Money of={state === undefined ? row.amount : leftOf(state)} />,
    },
    {
      key: 'frees',
      title: t('client.budgets.frees'),
      cell: ({ state }) => <Time at={state?.until} />,
      plain: ({ state }) => state?.until ?? null,
    },
    {
      key: 'passed',
      title: t('client.budgets.passed'),
      minor: true,
      cell: ({ row: { hard, instead, warn } }) =>
        [
          instead ?? t(hard ? 'client.budgets.refused' : 'client.budgets.goesOn'),
          ...warn.map((share) => `${Math.round(share * 100)} %`),
        ].join(', '),
    },
    {
      key: 'by',
      title: t('client.budgets.by'),
      minor: true,
      cell: ({ row }) => t(`client.budgets.${row.setBy}`),
    },
  ];
}

function Spent({ row, state }: BudgetLine) {
  const { i18n } = useTranslation();
  const { spent, ceiling } = state ?? { spent: '0', ceiling: row.amount };
  const words = `${moneyText(spent, i18n.language)} / ${moneyText(ceiling, i18n.language)}`;
  return (
    <Stack gap={2} miw={120}>
      <span className="number">{words}</span>
      <Meter part={Number(spent)} whole={Number(ceiling)} label={words} of="limit" />
    </Stack>
  );
}

interface LineActionsProps {
  readonly line: BudgetLine;
  readonly place: BudgetPlace;
  readonly onEdit: (row: BudgetRow) => void;
  readonly onAdd: (line: BudgetLine) => void;
  readonly onEnd: (line: BudgetLine) => void;
}

/** Operators add to budgets of the settings too. */
function LineActions({ line, place: { authority }, onEdit, onAdd, onEnd }: LineActionsProps) {
  const { t } = useTranslation();
  const { row, state } = line;
  const name = budgetName(row, state);
  const isOwn = row.setBy === authority;
  const mayAdd = state !== undefined && (isOwn || (authority === 'operator' && row.setBy === 'settings'));
  const button = { size: 'compact-xs', variant: 'subtle' } as const;
  return (
    <Group justify="flex-end" gap={4} wrap="nowrap">
      {isOwn && (
        <Button {...button} aria-label={t('client.budgets.editNamed', { name })} onClick={() => onEdit(row)}>
          {t('shell.edit')}
        </Button>
      )}
      {mayAdd && (
        <Button {...button} aria-label={t('client.budgets.addNamed', { name })} onClick={() => onAdd(line)}>
          {t('client.budgets.add')}
        </Button>
      )}
      {isOwn && (
        <Button {...button} color="red" aria-label={t('client.budgets.endNamed', { name })} onClick={() => onEnd(line)}>
          {t('client.budgets.end')}
        </Button>
      )}
    </Group>
  );
}
