/** Images and videos that are made in the background, of all accounts. */
import { useTranslation } from 'react-i18next';
import { Page } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { ChoiceFilter } from '../parts/filters.tsx';
import { TaskList } from './task-table.tsx';

const kinds = ['image', 'video'] as const;
const states = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired'] as const;

export default function Tasks() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  return (
    <Page title={t('operator.traffic.tasks.title')} hint={t('operator.traffic.tasks.intro')}>
      <TaskList
        query={{ kind: search['kind'], state: search['state'] }}
        filters={
          <>
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
          </>
        }
      />
    </Page>
  );
}
