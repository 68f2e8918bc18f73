/** Models to choose from: by kind, by words, with price and unit, context, and how each has worked. */
import { Group, SegmentedControl, Select, Text, TextInput } from '@mantine/core';
import { IconCpuOff, IconSearch } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import type { PublicModel, PublicStatus } from '../api/types.ts';
import { CopyButton } from './copy-button.tsx';
import { countText } from './format.ts';
import { useModalities } from './known-words.ts';
import { Panel } from './page.tsx';
import { CachedPrice, MainPrice, mainAmount } from './price.tsx';
import { type Column, RowsTable } from './rows-table.tsx';
import { useSearchState } from './search-state.ts';
import { EmptyState } from './states.tsx';
import { UptimeStrip } from './uptime.tsx';

/** Required members of a row; signed-in people see more. */
export type SquareModel = Omit<PublicModel, 'prices'> & {
  readonly prices: Pick<PublicModel['prices'], 'lines'> | null;
  readonly ownedBy?: string;
};

interface ModelSquareProps<Row extends SquareModel> {
  /** undefined: they are being fetched. */
  readonly models: readonly Row[] | undefined;
  readonly status: PublicStatus | undefined;
  /** More columns, at the end. */
  readonly more?: readonly Column<Row>[];
  readonly onOpen?: (row: Row) => void;
}

const orders = ['listed', 'price', 'context', 'name'] as const;

export function ModelSquare<Row extends SquareModel>({ models, status, more = [], onOpen }: ModelSquareProps<Row>) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const columns = useColumns<Row>(status);
  const shown = models?.filter((row) => isMeant(row, search['text'], search['kind']));
  const order = orders.find((one) => one === search['order']) ?? 'listed';
  return (
    <>
      <Group gap="xs">
        <TextInput
          className="grow"
          maw={320}
          aria-label={t('client.models.search')}
          placeholder={t('client.models.search')}
          leftSection={<IconSearch size={15} />}
          value={search['text'] ?? ''}
          onChange={({ currentTarget }) => change({ text: currentTarget.value })}
        />
        <KindFilter models={models ?? []} />
        <Select
          size="sm"
          w={150}
          aria-label={t('client.models.order.label')}
          data={orders.map((value) => ({ value, label: t(`client.models.order.${value}`) }))}
          value={order}
          allowDeselect={false}
          onChange={(value) => change({ order: value === 'listed' ? undefined : (value ?? undefined) })}
        />
      </Group>
      <Panel flush>
        {shown?.length === 0 ? (
          <EmptyState icon={IconCpuOff} title={t('client.models.none')} hint={t('client.models.noneHint')} />
        ) : (
          <RowsTable
            label={t('shell.word.models')}
            rows={shown && inOrder(shown, order)}
            columns={[...columns, ...more]}
            rowKey={({ id }) => id}
            onOpen={onOpen}
          />
        )}
      </Panel>
    </>
  );
}

function isMeant({ id, displayName, ownedBy = '', kind }: SquareModel, text = '', wanted: string | undefined) {
  if (wanted !== undefined && wanted !== kind) return false;
  return `${id} ${displayName} ${ownedBy}`.toLowerCase().includes(text.trim().toLowerCase());
}

function inOrder<Row extends SquareModel>(rows: readonly Row[], order: (typeof orders)[number]): readonly Row[] {
  if (order === 'name') return rows.toSorted((left, right) => left.id.localeCompare(right.id));
  if (order === 'context')
    return rows.toSorted((left, right) => (right.contextTokens ?? 0) - (left.contextTokens ?? 0));
  if (order === 'price') return rows.toSorted((left, right) => mainAmount(left) - mainAmount(right));
  return rows;
}

/** Only kinds that there are, with how many. */
function KindFilter({ models }: { readonly models: readonly SquareModel[] }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const counts = new Map<SquareModel['kind'], number>();
  for (const { kind } of models) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const data = [
    { value: 'all', label: t('client.models.kinds.all') },
    ...[...counts].map(([kind, count]) => ({ value: kind, label: `${t(`client.models.kinds.${kind}`)} ${count}` })),
  ];
  const pick = (kind: string | null) => change({ kind: kind === 'all' || kind === null ? undefined : kind });
  const label = t('shell.word.kind');
  return (
    <>
      <SegmentedControl
        size="sm"
        visibleFrom="sm"
        aria-label={label}
        data={data}
        value={search['kind'] ?? 'all'}
        onChange={pick}
      />
      <Select
        size="sm"
        w={140}
        hiddenFrom="sm"
        aria-label={label}
        data={data}
        value={search['kind'] ?? 'all'}
        allowDeselect={false}
        onChange={pick}
      />
    </>
  );
}

function useColumns<Row extends SquareModel>(status: PublicStatus | undefined): readonly Column<Row>[] {
  const { t, i18n } = useTranslation();
  const modalitiesText = useModalities();
  const tokens = (count: number | null) => (count === null ? '–' : countText(count, i18n.language, true));
  const columns: Column<Row>[] = [
    {
      key: 'model',
      title: t('shell.word.model'),
      cell: (row) => (
        <span>
          <span className="mono">{row.id}</span>{' '}
          <Text span fz="xs" c="dimmed">
            {row.displayName === row.id ? '' : row.displayName}
          </Text>
        </span>
      ),
      plain: ({ id }) => id,
      beside: ({ id }) => <CopyButton text={id} />,
    },
    {
      key: 'takes',
      title: t('client.models.takes'),
      minor: true,
      cell: ({ modalities }) => (
        <Text span fz="xs" c="dimmed">
          {modalitiesText(modalities)}
        </Text>
      ),
    },
    {
      key: 'context',
      title: t('client.models.context'),
      right: true,
      plain: ({ contextTokens }) => contextTokens,
      cell: ({ contextTokens }) => <span className="number">{tokens(contextTokens)}</span>,
    },
    {
      key: 'cached',
      title: t('client.models.cached'),
      right: true,
      minor: true,
      cell: ({ prices }) => <CachedPrice sheet={prices} />,
    },
    {
      key: 'price',
      title: t('client.models.price'),
      right: true,
      cell: ({ prices, kind }) =>
        prices === null ? (
          <Text fz="xs" c="dimmed" span>
            {t('client.models.notSold')}
          </Text>
        ) : (
          <MainPrice sheet={prices} kind={kind} />
        ),
    },
  ];
  if (status === undefined) return columns;
  const hours = new Map(status.rows.map((row) => [row.id, row]));
  return [
    ...columns,
    {
      key: 'uptime',
      title: t('entry.status.uptime'),
      right: true,
      cell: ({ id }) => <UptimeStrip of={hours.get(id)} at={status.at} last={24} />,
    },
  ];
}
