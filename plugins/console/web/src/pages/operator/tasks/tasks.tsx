/** Images and videos that are made in the background, of all accounts. */
import { IconPhotoCog } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { Page, Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { ChoiceFilter, FilterBar } from '../parts/filters.tsx';
import { TaskTable } from './task-table.tsx';

const kinds = ['image', 'video'] as const;
const states = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired'] as const;

export default function Tasks() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  return (
    <Page title={t('operator.traffic.tasks.title')} hint={t('operator.traffic.tasks.intro')}>
      <Panel flush>
        <FilterBar>
          <ChoiceFilter
            name="kind"
            label={t('operator.traffic.tasks.anyKind')}
            data={kinds.map((value) => ({ value, label: t(`operator.traffic.tasks.kind.${value}`) }))}
          />
          <ChoiceFilter
            name="state"
            label={t('operator.traffic.tasks.anyState')}
            data={states.map((value) => ({ value, label: t(`operator.traffic.tasks.state.${value}`) }))}
          />
        </FilterBar>
        <TaskTable
          query={{ kind: search['kind'], state: search['state'] }}
          empty={
            <EmptyState
              icon={IconPhotoCog}
              title={t('operator.traffic.tasks.empty')}
              hint={t('operator.traffic.tasks.emptyHint')}
            />
          }
        />
      </Panel>
    </Page>
  );
}
