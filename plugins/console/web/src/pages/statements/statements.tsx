/** An account's sealed statements: their list, and one of them as it is printed. For clients and operators. */
import { IconReceipt } from '@tabler/icons-react';
import i18next from 'i18next';
import { useTranslation } from 'react-i18next';
import type { StatementRow } from '../../api/types.ts';
import { moneyColumn, textColumn, timeColumn } from '../../parts/columns.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { Panel } from '../../parts/page.tsx';
import { useSearchState } from '../../parts/search-state.ts';
import { EmptyState } from '../../parts/states.tsx';
import english from '../../texts/en/statements.ts';
import { Statement } from './statement.tsx';

/** The English texts come with this page; the other languages have them from the start. */
i18next.addResourceBundle('en', 'translation', { client: english }, true);

/** `path`: of the list, `/statements`. The address bar says which one is open. */
export default function Statements({ path }: { readonly path: string }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const { statement } = search;
  if (statement !== undefined)
    return (
      <Statement path={`${path}/${encodeURIComponent(statement)}`} onBack={() => change({ statement: undefined })} />
    );
  return (
    <Panel flush title={t('client.statements.title')} hint={t('client.statements.hint')}>
      <DataTable<StatementRow>
        label={t('client.statements.title')}
        path={path}
        columns={[
          textColumn('month', t('client.statements.month')),
          moneyColumn('opening', t('client.statements.opening'), ({ opening }) => opening),
          moneyColumn('closing', t('client.statements.closing'), ({ closing }) => closing),
          timeColumn('sealedAt', t('client.statements.sealed'), { minor: true }),
        ]}
        rowKey={({ number }) => String(number)}
        onOpen={({ number }) => change({ statement: String(number), after: undefined, page: undefined })}
        empty={
          <EmptyState icon={IconReceipt} title={t('client.statements.none')} hint={t('client.statements.noneHint')} />
        }
      />
    </Panel>
  );
}
