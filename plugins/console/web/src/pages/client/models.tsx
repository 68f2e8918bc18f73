/** The models that can be called: what they take, what they cost, how they have done in the last hour. */
import { Badge, Code, Group, SegmentedControl, Text, TextInput } from '@mantine/core';
import { IconCpuOff, IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { modelsQuery } from '../../api/models.ts';
import type { ModelRow } from '../../api/types.ts';
import { CopyButton } from '../../parts/copy-button.tsx';
import { countText } from '../../parts/format.ts';
import { useModalities } from '../../parts/known-words.ts';
import { Page, Panel } from '../../parts/page.tsx';
import { MainPrice } from '../../parts/price.tsx';
import { type Column, RowsTable } from '../../parts/rows-table.tsx';
import { useSearchState } from '../../parts/search-state.ts';
import { EmptyState, ErrorState } from '../../parts/states.tsx';
import { ModelDrawer } from './model-drawer.tsx';
import { ModelHealth } from './model-health.tsx';

const kinds = [
  'all',
  'chat',
  'image',
  'video',
  'embedding',
  'rerank',
  'speech',
  'transcription',
  'moderation',
] as const;

export default function Models() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const models = useQuery({ ...modelsQuery, refetchInterval: 60_000 });
  const columns = useColumns();
  const shown = models.data?.rows.filter((row) => matches(row, search['text'], search['kind']));
  const opened = models.data?.rows.find(({ id }) => id === search['open']);
  return (
    <Page title={t('client.models.title')} hint={t('client.models.hint')}>
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
        <SegmentedControl
          size="sm"
          data={kinds.map((kind) => ({ value: kind, label: t(`client.models.kinds.${kind}`) }))}
          value={search['kind'] ?? 'all'}
          onChange={(kind) => change({ kind: kind === 'all' ? undefined : kind })}
        />
      </Group>
      <Panel flush>
        {models.isError && (
          <div className="pad">
            <ErrorState error={models.error} onRetry={() => void models.refetch()} />
          </div>
        )}
        {shown?.length === 0 ? (
          <EmptyState icon={IconCpuOff} title={t('client.models.none')} hint={t('client.models.noneHint')} />
        ) : (
          <RowsTable
            label={t('client.models.title')}
            rows={shown}
            columns={columns}
            rowKey={({ id }) => id}
            onOpen={({ id }) => change({ open: id })}
          />
        )}
      </Panel>
      <ModelDrawer model={opened} onClose={() => change({ open: undefined })} />
    </Page>
  );
}

function matches({ id, displayName, ownedBy, kind }: ModelRow, text = '', wanted: string | undefined) {
  if (wanted !== undefined && wanted !== kind) return false;
  return `${id} ${displayName} ${ownedBy}`.toLowerCase().includes(text.trim().toLowerCase());
}

function useColumns(): readonly Column<ModelRow>[] {
  const { t, i18n } = useTranslation();
  const modalitiesText = useModalities();
  const tokens = (count: number | null) => (count === null ? '–' : countText(count, i18n.language));
  return [
    {
      key: 'model',
      title: t('client.models.model'),
      cell: (row) => <Name row={row} />,
      plain: ({ id }) => id,
      beside: ({ id }) => <CopyButton text={id} />,
    },
    {
      key: 'takes',
      title: t('client.models.takes'),
      minor: true,
      cell: ({ modalities }) => (
        <Text fz="xs" c="dimmed">
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
    { key: 'price', title: t('client.models.price'), right: true, cell: (model) => <Price model={model} /> },
    { key: 'state', title: t('client.models.state'), right: true, cell: (row) => <ModelHealth row={row} /> },
  ];
}

function Name({ row }: { readonly row: ModelRow }) {
  const { t } = useTranslation();
  return (
    <div>
      <Code className="breaks">{row.id}</Code>
      <Group gap={6} mt={2}>
        <Text fz="xs" c="dimmed">
          {row.displayName} · {row.ownedBy}
        </Text>
        {!row.allowed && (
          <Badge size="xs" color="gray" variant="light" radius="sm" tt="none">
            {t('client.models.notInPlan')}
          </Badge>
        )}
      </Group>
    </div>
  );
}

function Price({ model: { prices, kind } }: { readonly model: ModelRow }) {
  const { t } = useTranslation();
  if (prices !== null) return <MainPrice sheet={prices} kind={kind} />;
  return (
    <Text fz="xs" c="dimmed" span>
      {t('client.models.notSold')}
    </Text>
  );
}
