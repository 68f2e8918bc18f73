/** Forward and back through a list that is paged by a cursor, and the same rows as CSV. */
import { ActionIcon, Button, Group, Text, Tooltip } from '@mantine/core';
import { IconChevronLeft, IconChevronRight, IconChevronsLeft, IconDownload } from '@tabler/icons-react';
import { useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { countText } from './format.ts';
import { useSearchState } from './search-state.ts';

interface PagerProps {
  readonly next: string | null;
  /** Address of the rows as CSV. */
  readonly csv: string | undefined;
  /** Rows of this page, and at most of any. */
  readonly shown: number;
  readonly limit: number;
  /** Rows of all pages; undefined: not known. */
  readonly total: number | undefined;
}

export function Pager({ next, csv, shown, limit, total }: PagerProps) {
  const { t, i18n } = useTranslation();
  const [search, change] = useSearchState();
  // Cursors of the pages before this one; a page that was opened by its address knows the first one alone.
  const before = useRef<(string | undefined)[]>([]);
  const page = Number(search['page'] ?? 1);
  const first = search['after'] === undefined;
  if (first) before.current = [];
  const alone = first && next === null;
  const count = (rows: number) => countText(rows, i18n.language);
  const from = (page - 1) * limit;
  // Rows added since the first page are not in the sums yet.
  const range = { from: count(from + 1), to: count(from + shown), total: count(Math.max(total ?? 0, from + shown)) };
  const forward = () => {
    before.current.push(search['after']);
    change({ after: next ?? undefined, page: String(page + 1) });
  };
  const back = () => {
    const after = before.current.pop();
    change({ after, page: after === undefined ? undefined : String(page - 1) });
  };
  return (
    <Group justify="space-between" flex={1}>
      {csv === undefined ? <span /> : <CsvButton address={csv} />}
      {!alone && (
        <Group gap={4} role="navigation" aria-label={t('shell.rows')}>
          <Text fz="xs" c="dimmed" mr={4}>
            {total === undefined ? t('shell.page.number', { page }) : t('shell.page.range', range)}
          </Text>
          <Step label={t('shell.page.first')} off={first} onClick={() => change({ after: undefined, page: undefined })}>
            <IconChevronsLeft size={14} />
          </Step>
          <Step label={t('shell.page.previous')} off={first} onClick={back}>
            <IconChevronLeft size={14} />
          </Step>
          <Step label={t('shell.page.next')} off={next === null} onClick={forward}>
            <IconChevronRight size={14} />
          </Step>
        </Group>
      )}
    </Group>
  );
}

export function CsvButton({ address }: { readonly address: string }) {
  const { t } = useTranslation();
  return (
    <Tooltip label={t('shell.csvLabel')}>
      <Button
        component="a"
        href={address}
        download
        size="compact-xs"
        variant="subtle"
        color="gray"
        leftSection={<IconDownload size={14} />}
      >
        {t('shell.csv')}
      </Button>
    </Tooltip>
  );
}

interface StepProps {
  readonly label: string;
  readonly off: boolean;
  readonly onClick: () => void;
  readonly children: React.ReactNode;
}

function Step({ label, off, onClick, children }: StepProps) {
  return (
    <ActionIcon variant="default" size="sm" disabled={off} aria-label={label} onClick={onClick}>
      {children}
    </ActionIcon>
  );
}
