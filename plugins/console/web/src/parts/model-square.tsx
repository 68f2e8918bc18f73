/** Models to choose from: by maker, kind, what they take, and words, with price and unit, context, and how each has worked. */
import { Badge, Chip, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { IconCpuOff, IconSearch } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import type { PublicModel, PublicStatus } from '../api/types.ts';
import { CopyButton } from './copy-button.tsx';
import { countText } from './format.ts';
import { useModalities } from './known-words.ts';
import { byMaker, makerName } from './makers.ts';
import { Panel } from './page.tsx';
import { CachedPrice, MainPrice, mainAmount } from './price.tsx';
import { type Column, RowsTable } from './rows-table.tsx';
import { type SearchState, useSearchState } from './search-state.ts';
import { EmptyState } from './states.tsx';
import { UptimeStrip } from './uptime.tsx';

/** Required members of a row; signed-in people see more. */
export type SquareModel = Omit<PublicModel, 'prices'> & {
  readonly prices: Pick<PublicModel['prices'], 'lines'> | null;
  readonly ownedBy?: string;
  /** Whether the reader's plan has it. */
  readonly allowed?: boolean;
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

/** What a model can take or make beside text; a chip each. */
const capabilities = ['image', 'document', 'audio', 'video'] as const;
const isCapability = (name: string): name is (typeof capabilities)[number] =>
  (capabilities as readonly string[]).includes(name);

export function ModelSquare<Row extends SquareModel>({ models, status, more = [], onOpen }: ModelSquareProps<Row>) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const columns = useColumns<Row>(status);
  const shown = useShown(models, search);
  const order = orders.find((one) => one === search['order']) ?? 'listed';
  const hasMakers = order === 'listed' && models?.some(({ ownedBy }) => ownedBy !== undefined) === true;
  return (
    <>
      <Stack gap="xs">
        <Group gap="xs">
          <TextInput
            className="grow"
            maw={420}
            aria-label={t('client.models.search')}
            placeholder={t('client.models.search')}
            leftSection={<IconSearch size={15} />}
            value={search['text'] ?? ''}
            onChange={({ currentTarget }) => change({ text: currentTarget.value })}
          />
          <Select
            size="sm"
            w={170}
            aria-label={t('client.models.order.label')}
            data={orders.map((value) => ({ value, label: t(`client.models.order.${value}`) }))}
            value={order}
            allowDeselect={false}
            onChange={(value) => change({ order: value === 'listed' ? undefined : (value ?? undefined) })}
          />
        </Group>
        <Chips models={models ?? []} />
      </Stack>
      <Panel flush>
        {shown?.length === 0 ? (
          <EmptyState icon={IconCpuOff} title={t('client.models.none')} hint={t('client.models.noneHint')} />
        ) : (
          <RowsTable
            label={t('shell.word.models')}
            rows={shown && (hasMakers ? byMaker(shown) : inOrder(shown, order))}
            columns={[...columns, ...more]}
            rowKey={({ id }) => id}
            onOpen={onOpen}
            groupOf={hasMakers ? ({ ownedBy = '' }) => makerName(ownedBy) : undefined}
          />
        )}
      </Panel>
    </>
  );
}

/** Every word that is searched for is in the name, the maker, the kind or what the model takes. */
function useShown<Row extends SquareModel>(models: readonly Row[] | undefined, search: SearchState) {
  const { t } = useTranslation();
  const modalitiesText = useModalities();
  const words = (search['text'] ?? '').trim().toLowerCase().split(/\s+/);
  return models?.filter((row) => {
    const { id, displayName, ownedBy = '', kind, modalities } = row;
    if (search['kind'] !== undefined && search['kind'] !== kind) return false;
    if (search['takes'] !== undefined && !modalities.includes(search['takes'])) return false;
    const kindName = t(`client.models.kinds.${kind}`);
    const text = [id, displayName, ownedBy, makerName(ownedBy), kindName, modalitiesText(modalities)].join(' ');
    return words.every((word) => text.toLowerCase().includes(word));
  });
}

function inOrder<Row extends SquareModel>(rows: readonly Row[], order: (typeof orders)[number]): readonly Row[] {
  if (order === 'name') return rows.toSorted((left, right) => left.id.localeCompare(right.id));
  if (order === 'context')
    return rows.toSorted((left, right) => (right.contextTokens ?? 0) - (left.contextTokens ?? 0));
  if (order === 'price') return rows.toSorted((left, right) => mainAmount(left) - mainAmount(right));
  return rows;
}

/** Kinds that there are, with how many, and what models take; a chip that is pressed again lets all through. */
function Chips({ models }: { readonly models: readonly SquareModel[] }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const counts = new Map<SquareModel['kind'], number>();
  for (const { kind } of models) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const taken = capabilities.filter((name) => models.some(({ modalities }) => modalities.includes(name)));
  const chip = (name: 'kind' | 'takes', value: string, label: string) => (
    <Chip
      key={value}
      size="xs"
      variant="light"
      checked={search[name] === value}
      onChange={(checked) => change({ [name]: checked ? value : undefined })}
    >
      {label}
    </Chip>
  );
  return (
    <Group gap={6}>
      <Group gap={6} role="group" aria-label={t('shell.word.kind')}>
        {counts.size > 1 &&
          [...counts].map(([kind, count]) => chip('kind', kind, `${t(`client.models.kinds.${kind}`)} ${count}`))}
      </Group>
      {taken.length > 0 && (
        <Group gap={6} role="group" aria-label={t('client.models.takes')}>
          <Text fz="xs" c="dimmed" ml="xs">
            {t('client.models.takes')}
          </Text>
          {taken.map((name) => chip('takes', name, t(`shell.modality.${name}`)))}
        </Group>
      )}
    </Group>
  );
}

function NotInPlan() {
  const { t } = useTranslation();
  return (
    <Badge size="sm" color="gray" variant="light" mr={6}>
      {t('client.models.notInPlan')}
    </Badge>
  );
}

function ModelName({ of: { id, displayName } }: { readonly of: SquareModel }) {
  return (
    <span title={displayName}>
      <Text span fz="sm" fw={550}>
        {displayName}
      </Text>
      {displayName !== id && (
        <Text span display="block" fz="xs" c="dimmed" className="mono">
          {id}
        </Text>
      )}
    </span>
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
      cell: (row) => <ModelName of={row} />,
      plain: ({ id }) => id,
      beside: ({ id }) => <CopyButton text={id} />,
    },
    {
      key: 'takes',
      title: t('client.models.takes'),
      minor: true,
      cell: ({ modalities }) => (
        <Group gap={4} wrap="nowrap">
          {modalities.filter(isCapability).map((name) => (
            <Badge key={name} size="sm" variant="default" fw={500}>
              {t(`shell.modality.${name}`)}
            </Badge>
          ))}
        </Group>
      ),
      plain: ({ modalities }) => modalitiesText(modalities),
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
      cell: ({ prices, kind, allowed }) =>
        prices === null ? (
          <Text fz="xs" c="dimmed" span>
            {t('client.models.notSold')}
          </Text>
        ) : (
          <>
            {allowed === false && <NotInPlan />}
            <MainPrice sheet={prices} kind={kind} />
          </>
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
      cell: ({ id }) => <UptimeStrip of={hours.get(id)} at={status.at} ofDay />,
    },
  ];
}
