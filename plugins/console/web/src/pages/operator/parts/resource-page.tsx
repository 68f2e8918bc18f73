/** The page of a list: heading, filters, a table or a sentence when it is empty, and a drawer for one row. */
import { Drawer } from '@mantine/core';
import type { Icon } from '@tabler/icons-react';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Query } from '../../../api/client.ts';
import { DataTable } from '../../../parts/data-table.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import type { Column } from '../../../parts/rows-table.tsx';
import { EmptyState } from '../../../parts/states.tsx';
import { Steady } from '../../../parts/steady.tsx';
import { AllRowsCsv } from './all-rows-csv.tsx';
import { CsvTable } from './csv-table.tsx';
import { FilterBar } from './filters.tsx';
import { Loaded } from './load.tsx';

/** Where a list's own texts are: its title, its introduction, and its text when it is empty. */
type ListTexts =
  | 'operator.alerts'
  | 'operator.batches'
  | 'operator.files'
  | 'operator.people.accounts'
  | 'operator.people.audit'
  | 'operator.people.people'
  | 'operator.people.tokens'
  | 'operator.sales.codes'
  | 'operator.sales.prices'
  | 'operator.traffic.nodes'
  | 'operator.traffic.requests'
  | 'operator.traffic.tasks';

/** A list that the server pages. */
interface PagedSource {
  readonly path: string;
  readonly query?: Query;
  /** Path of the same rows as CSV. */
  readonly csv?: string;
  /** Path of the sums of the same rows, for their number. */
  readonly sums?: string;
  readonly refetchMs?: number | false;
  /** Members of a row for a CSV of all rows, where the server makes none. */
  readonly csvOfAll?: { readonly file: string; readonly columns: readonly string[] };
}
/** A list that comes whole in one answer. */
interface WholeSource<Row> {
  readonly answer: UseQueryResult<{ readonly rows: readonly Row[] }>;
  /** The rows that are shown, in their order. */
  readonly pick?: (rows: readonly Row[]) => readonly Row[];
  /** Name of the CSV, without its ending. */
  readonly file: string;
}

interface ResourceListProps<Row> {
  readonly texts: ListTexts;
  readonly icon?: Icon;
  readonly source: PagedSource | WholeSource<Row>;
  readonly columns: readonly Column<Row>[];
  readonly rowKey?: (row: Row) => string;
  readonly onOpen?: (row: Row) => void;
  readonly groupOf?: (row: Row) => string;
  readonly filters?: ReactNode;
  /** Buttons at the head of the panel. */
  readonly panelActions?: ReactNode;
  /** What to do about an empty list. */
  readonly emptyAction?: ReactNode;
  readonly empty?: ReactNode;
  readonly label?: string;
}

const idOf = (row: object) => String((row as { id?: unknown }).id);

export function ResourceList<Row extends object>(props: ResourceListProps<Row>) {
  const { texts, icon, source, filters, rowKey = idOf, panelActions, emptyAction } = props;
  const { t } = useTranslation();
  const empty = props.empty ?? (
    <EmptyState icon={icon} title={t(`${texts}.empty`)} hint={t(`${texts}.emptyHint`)} action={emptyAction} />
  );
  const table = {
    label: props.label ?? t(`${texts}.title`),
    columns: props.columns,
    rowKey,
    onOpen: props.onOpen,
    groupOf: props.groupOf,
    empty,
  };
  const csvOfAll = 'path' in source ? source.csvOfAll : undefined;
  return (
    <Panel flush actions={panelActions}>
      {(filters !== undefined || csvOfAll !== undefined) && (
        <FilterBar>
          {filters}
          {csvOfAll !== undefined && 'path' in source && <AllRowsCsv {...source} {...csvOfAll} />}
        </FilterBar>
      )}
      {'path' in source ? (
        <DataTable<Row> {...table} {...source} />
      ) : (
        <Loaded of={source.answer}>
          {({ rows }) => <CsvTable {...table} rows={source.pick?.(rows) ?? rows} file={source.file} />}
        </Loaded>
      )}
    </Panel>
  );
}

interface ResourcePageProps<Row> extends ResourceListProps<Row> {
  /** Buttons beside the heading. */
  readonly actions?: ReactNode;
  /** The sentence below the heading, where it is more than a text. */
  readonly hint?: ReactNode;
  /** Stands between the heading and the list. */
  readonly above?: ReactNode;
  /** One row beside the list. */
  readonly drawer?: DrawerProps;
  /** Dialogs. */
  readonly children?: ReactNode;
}

export interface DrawerProps {
  readonly title: string | undefined;
  /** undefined: closed. */
  readonly content: ReactNode | undefined;
  readonly onClose: () => void;
  readonly size?: string;
}

export function ResourcePage<Row extends object>(props: ResourcePageProps<Row>) {
  const { texts, hint, actions, above, drawer, children, ...list } = props;
  const { t } = useTranslation();
  return (
    <Page title={t(`${texts}.title`)} hint={hint ?? t(`${texts}.intro`)} actions={actions}>
      {above}
      <Steady>
        <ResourceList<Row> texts={texts} {...list} />
      </Steady>
      {drawer !== undefined && <SideDrawer {...drawer} />}
      {children}
    </Page>
  );
}

export function SideDrawer({ title, content, onClose, size }: DrawerProps) {
  return (
    <Drawer opened={content !== undefined} onClose={onClose} title={title} size={size}>
      {content}
    </Drawer>
  );
}
