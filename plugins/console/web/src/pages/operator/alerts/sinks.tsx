/** Sinks of alerts: what came of the last message of each, a test message, the way to its form. */
import { Button, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../../api/again.ts';
import { send } from '../../../api/client.ts';
import { has, useMe } from '../../../api/session.ts';
import { textColumn } from '../../../parts/columns.tsx';
import { faultWords } from '../../../parts/delivery-fault.ts';
import { Panel } from '../../../parts/page.tsx';
import { type Column, RowsTable } from '../../../parts/rows-table.tsx';
import { useErrorText } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { useWork } from '../../../parts/use-work.ts';
import { useActs } from '../parts/act.tsx';
import { Word } from '../parts/badges.tsx';
import { answerKey, Loaded, useAnswer } from '../parts/load.tsx';
import type { AlertSink } from '../types.ts';
import { alertsPath } from './alert-texts.ts';

const sinksPath = `${alertsPath}/sinks`;

export function Sinks() {
  const { t } = useTranslation();
  const sinks = useAnswer<{ rows: readonly AlertSink[] }>(sinksPath, {}, 30_000);
  const columns = useColumns();
  return (
    <Panel title={t('operator.alerts.sinks')} actions={<ToForm form="sinks" />} flush>
      <Loaded of={sinks} height={40}>
        {({ rows }) =>
          rows.length === 0 ? (
            <Text fz="sm" c="dimmed" px="md" pb="md">
              {t('operator.alerts.noSinks')}
            </Text>
          ) : (
            <RowsTable label={t('operator.alerts.sinks')} columns={columns} rows={rows} rowKey={({ name }) => name} />
          )
        }
      </Loaded>
    </Panel>
  );
}

function useColumns(): Column<AlertSink>[] {
  const { t } = useTranslation();
  const acts = useActs();
  return [
    textColumn('name', t('shell.word.name')),
    textColumn('type', t('shell.word.kind')),
    {
      key: 'last',
      title: t('shell.word.result'),
      cell: (sink) => <Last sink={sink} />,
      plain: ({ fault }) => fault,
    },
    {
      key: 'actions',
      title: t('shell.word.actions'),
      right: true,
      cell: ({ name }) =>
        acts && (
          <Group gap={4} justify="flex-end" wrap="nowrap">
            <TestSink name={name} />
            <ToForm form="sinks" entry={name} />
          </Group>
        ),
    },
  ];
}

function Last({ sink: { lastAt, fault, waiting } }: { readonly sink: AlertSink }) {
  const { t } = useTranslation();
  return (
    <span className="wrap-any">
      {fault !== null ? (
        <Word color="red">{`${t('operator.alerts.fault')}: ${faultWords(fault, t)}`}</Word>
      ) : lastAt === null ? (
        <Word color="gray">{t('operator.alerts.neverSent')}</Word>
      ) : (
        t('operator.alerts.taken')
      )}{' '}
      {lastAt !== null && <Time at={lastAt} relative />}
      {waiting > 0 && ` · ${t('operator.alerts.waiting', { count: waiting })}`}
    </span>
  );
}

function TestSink({ name }: { readonly name: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const textOf = useErrorText();
  const { busy, run } = useWork((error) => notifications.show({ message: textOf(error), color: 'red' }));
  const test = async () => {
    const { fault } = await send<{ fault: string | null }>('POST', `${sinksPath}/${encodeURIComponent(name)}/test`, {});
    const message =
      fault === null
        ? t('operator.alerts.testTaken', { name })
        : t('operator.alerts.testRefused', { name, fault: faultWords(fault, t) });
    notifications.show({ message, color: fault === null ? 'teal' : 'red' });
    await askAgain(client, answerKey(sinksPath));
  };
  return (
    <Button size="compact-xs" variant="default" loading={busy} onClick={() => void run(test)}>
      {t('operator.alerts.test')}
    </Button>
  );
}

/** The way to a form of the configuration. */
export function ToForm({ form, entry }: { readonly form: 'alerts' | 'sinks'; readonly entry?: string }) {
  const { t } = useTranslation();
  const acts = useActs();
  if (!has(useMe(), 'config') || !acts) return null;
  const search = { form, ...(entry === undefined ? { add: '1' } : { entry }) };
  return (
    <Group gap={4}>
      <Button
        size={entry === undefined ? 'xs' : 'compact-xs'}
        variant="default"
        renderRoot={(props) => <Link {...props} to="/admin/config" search={search} />}
      >
        {entry === undefined
          ? t(form === 'sinks' ? 'operator.alerts.addSink' : 'operator.alerts.addRule')
          : t('shell.edit')}
      </Button>
    </Group>
  );
}
