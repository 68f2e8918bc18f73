/** The menus below a table: which columns are shown, and by which the rows are sorted where there is no room for headings. */
import { ActionIcon, Menu } from '@mantine/core';
import { IconColumns3, IconSortAscending, IconSortDescending } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';

interface Titled {
  readonly key: string;
  readonly title: string;
  readonly sort?: string;
}

export interface ServerSorting {
  /** As the server calls it. */
  readonly by: string;
  readonly order: 'asc' | 'desc';
  readonly onSort: (by: string) => void;
}

interface ColumnChoiceProps {
  readonly columns: readonly Titled[];
  readonly hidden: readonly string[];
  readonly onChange: (hidden: readonly string[]) => void;
}

/** Which columns are shown, kept in this browser. The first one always is. */
export function ColumnChoice({ columns, hidden, onChange }: ColumnChoiceProps) {
  const { t } = useTranslation();
  const toggle = (key: string) =>
    onChange(hidden.includes(key) ? hidden.filter((other) => other !== key) : [...hidden, key]);
  return (
    <Menu position="top-end" shadow="md">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size={24} aria-label={t('shell.columns')} title={t('shell.columns')}>
          <IconColumns3 size={15} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {columns
          .slice(1)
          .filter(({ title }) => title !== '')
          .map(({ key, title }) => (
            <Menu.CheckboxItem key={key} checked={!hidden.includes(key)} onChange={() => toggle(key)}>
              {title}
            </Menu.CheckboxItem>
          ))}
      </Menu.Dropdown>
    </Menu>
  );
}

interface OrderChoiceProps {
  readonly columns: readonly Titled[];
  readonly sorting: ServerSorting;
}

/** The orders where there is no room for headings. */
export function OrderChoice({ columns, sorting }: OrderChoiceProps) {
  const { t } = useTranslation();
  const Icon = sorting.order === 'asc' ? IconSortAscending : IconSortDescending;
  return (
    <Menu position="top-end" shadow="md">
      <Menu.Target>
        <ActionIcon hiddenFrom="sm" variant="subtle" color="gray" size={24} aria-label={t('shell.sort.by')}>
          <Icon size={15} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {columns.flatMap(({ sort, title }) =>
          sort === undefined ? (
            []
          ) : (
            <Menu.CheckboxItem key={sort} checked={sort === sorting.by} onChange={() => sorting.onSort(sort)}>
              {title}
            </Menu.CheckboxItem>
          ),
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
