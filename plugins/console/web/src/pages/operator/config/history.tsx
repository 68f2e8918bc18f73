/** The configurations that were applied: what any two of them differ in, and the way back to one. */
import { Button, Group, NativeSelect, Stack, Text } from '@mantine/core';
import { IconArrowBackUp, IconHistory } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { textColumn, timeColumn } from '../../../parts/columns.tsx';
import { momentText } from '../../../parts/format.ts';
import { Panel } from '../../../parts/page.tsx';
import { type Column, RowsTable } from '../../../parts/rows-table.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { Steady } from '../../../parts/steady.tsx';
import { useActs } from '../parts/act.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import type { ConfigDifference, ConfigHistory, ConfigVersion } from '../sale-types.ts';
import { Differences } from './differences.tsx';
import { Restore } from './restore.tsx';

const historyPath = '/admin/config/history';
const runs = 'running';

export function History() {
  const answer = useAnswer<ConfigHistory>(historyPath);
  return <Loaded of={answer}>{(data) => <Versions data={data} />}</Loaded>;
}

function Versions({ data: { rows, running } }: { readonly data: ConfigHistory }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const columns = useColumns(running);
  const opened = rows.find(({ version }) => String(version) === search['version']);
  if (rows.length === 0)
    return (
      <Panel>
        <EmptyState
          icon={IconHistory}
          title={t('operator.config.history.empty')}
          hint={t('operator.config.history.emptyHint')}
        />
      </Panel>
    );
  return (
    <Stack gap="sm">
      {opened !== undefined && <Compared version={opened} rows={rows} running={running} />}
      <Steady>
        <Panel title={t('operator.config.history.title')} hint={t('operator.config.history.hint')} flush>
          <RowsTable
            label={t('operator.config.history.title')}
            columns={columns}
            rows={rows}
            rowKey={({ version }) => String(version)}
            onOpen={({ version }) => change({ version: String(version), with: undefined })}
          />
        </Panel>
      </Steady>
    </Stack>
  );
}

function useColumns(running: number | null): Column<ConfigVersion>[] {
  const { t } = useTranslation();
  return [
    textColumn('version', t('operator.config.history.version'), {
      cell: ({ version }) => (
        <span className="nowrap">
          {version}
          {version === running && (
            <Text span fz="xs" c="dimmed">
              {' '}
              {t('operator.config.history.runs')}
            </Text>
          )}
        </span>
      ),
    }),
    timeColumn('at', t('shell.word.time')),
    textColumn('source', t('operator.config.history.source'), {
      cell: ({ source }) => t(`operator.config.history.sources.${source}`),
    }),
    textColumn('actor', t('operator.config.history.who'), { cell: ({ actor, node }) => actor ?? node }),
    textColumn('reason', t('operator.column.reason')),
    {
      key: 'changed',
      title: t('operator.config.history.changed'),
      cell: ({ changed }) => (changed.length === 0 ? '–' : changed.map(nameOf).join(', ')),
      plain: ({ changed }) => changed.join(' '),
    },
  ];
}

interface ComparedProps {
  readonly version: ConfigVersion;
  readonly rows: readonly ConfigVersion[];
  readonly running: number | null;
}

/** One version, beside the one before it or any other. */
function Compared({ version, rows, running }: ComparedProps) {
  const { t } = useTranslation();
  const acts = useActs();
  const [search, change] = useSearchState();
  const [restores, setRestores] = useState(false);
  const before = rows.find((row) => row.version < version.version)?.version;
  const other = search['with'] ?? (before === undefined ? runs : String(before));
  const query = { ...(other === runs ? {} : { from: other }), to: version.version };
  const answer = useAnswer<ConfigDifference>(`${historyPath}/difference`, query);
  return (
    <Panel
      title={t('operator.config.history.opened', { version: version.version })}
      hint={version.reason ?? undefined}
      actions={
        <>
          <OtherVersion
            rows={rows}
            but={version.version}
            value={other}
            onChange={(chosen) => change({ with: chosen })}
          />
          {acts && version.version !== running && (
            <Button
              size="xs"
              variant="default"
              leftSection={<IconArrowBackUp size={15} />}
              onClick={() => setRestores(true)}
            >
              {t('operator.config.history.restore')}
            </Button>
          )}
          <Button size="xs" variant="subtle" onClick={() => change({ version: undefined, with: undefined })}>
            {t('shell.close')}
          </Button>
        </>
      }
    >
      <Loaded of={answer}>{({ files }) => <Differences files={files} />}</Loaded>
      {restores && <Restore version={version.version} onClose={() => setRestores(false)} />}
    </Panel>
  );
}

interface OtherVersionProps {
  readonly rows: readonly ConfigVersion[];
  readonly but: number;
  readonly value: string;
  readonly onChange: (version: string) => void;
}

function OtherVersion({ rows, but, value, onChange }: OtherVersionProps) {
  const { t, i18n } = useTranslation();
  const others = rows.filter(({ version }) => version !== but);
  const data = [
    { value: runs, label: t('operator.config.history.withRunning') },
    ...others.map(({ version, at }) => ({
      value: String(version),
      label: `${t('operator.config.history.opened', { version })}, ${momentText(new Date(at), new Date(), i18n.language)}`,
    })),
  ];
  return (
    <Group gap={6} wrap="nowrap">
      <Text fz="xs" c="dimmed" className="nowrap" aria-hidden>
        {t('operator.config.history.with')}
      </Text>
      <NativeSelect
        size="xs"
        aria-label={t('operator.config.history.with')}
        data={data}
        value={value}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </Group>
  );
}

const nameOf = (path: string) => path.split('/').at(-1)!;
