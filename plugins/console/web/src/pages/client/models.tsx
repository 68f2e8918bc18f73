/** The models that can be called: what they take, what they cost, how they have done. */
import { SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { modelsQuery, statusQuery } from '../../api/models.ts';
import { useInfo } from '../../api/session.ts';
import type { ModelRow } from '../../api/types.ts';
import { ModelSquare } from '../../parts/model-square.tsx';
import { Page } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows-table.tsx';
import { useSearchState } from '../../parts/search-state.ts';
import { ErrorState } from '../../parts/states.tsx';
import '../../parts/insight-texts.ts';
import { CompareModels } from './compare-models.tsx';
import { ModelDrawer } from './model-drawer.tsx';
import { ModelHealth } from './model-health.tsx';

export default function Models() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const isCompared = search['compare'] !== undefined;
  const isPublic = useInfo()?.public.status === true;
  const models = useQuery({ ...modelsQuery, refetchInterval: 60_000 });
  const status = useQuery({ ...statusQuery, enabled: isPublic });
  const opened = models.data?.rows.find(({ id }) => id === search['open']);
  const health: Column<ModelRow> = {
    key: 'state',
    title: t('client.models.state'),
    right: true,
    cell: (row) => <ModelHealth row={row} />,
  };
  return (
    <Page
      title={t('shell.word.models')}
      hint={t('client.models.hint')}
      actions={
        <SegmentedControl
          size="xs"
          aria-label={t('client.compare.title')}
          data={(['list', 'title'] as const).map((value) => ({ value, label: t(`client.compare.${value}`) }))}
          value={isCompared ? 'title' : 'list'}
          onChange={(value) => change({ compare: value === 'title' ? '1' : undefined })}
        />
      }
    >
      {isCompared && <CompareModels models={models.data?.rows} onOpen={({ id }) => change({ open: id })} />}
      {isCompared ? null : models.isError && models.data === undefined ? (
        <ErrorState error={models.error} onRetry={() => void models.refetch()} />
      ) : (
        <ModelSquare
          models={models.data?.rows}
          status={status.data}
          more={isPublic ? [] : [health]}
          onOpen={({ id }) => change({ open: id })}
        />
      )}
      <ModelDrawer model={opened} onClose={() => change({ open: undefined })} />
    </Page>
  );
}
