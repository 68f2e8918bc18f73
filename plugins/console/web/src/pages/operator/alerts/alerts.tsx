/** Alerts that run and that have ended, where they are sent, and acknowledging. */
import { Button, Stack } from '@mantine/core';
import { IconBell } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { textColumn, timeColumn } from '../../../parts/columns.tsx';
import { listKey } from '../../../parts/data-table.tsx';
import { Page } from '../../../parts/page.tsx';
import type { Column } from '../../../parts/rows-table.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { SpanPicker, useSpan } from '../../../parts/span.tsx';
import { Time } from '../../../parts/time.tsx';
import { Act, useActs } from '../parts/act.tsx';
import { Word } from '../parts/badges.tsx';
import { ChoiceFilter, TextFilter } from '../parts/filters.tsx';
import { answerKey } from '../parts/load.tsx';
import { AccountLink } from '../parts/names.tsx';
import { ResourcePage } from '../parts/resource-page.tsx';
import type { Alert } from '../types.ts';
import { alertsPath, useAlertTexts } from './alert-texts.ts';
import { Rules } from './rules.tsx';
import { Sinks } from './sinks.tsx';

const rulesTab = 'rules';

export default function Alerts() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  if (search['tab'] !== rulesTab) return <AlertList />;
  return (
    <Page
      title={t('operator.alerts.setUp')}
      hint={t('operator.alerts.rulesHint')}
      actions={
        <Button variant="default" onClick={() => change({ tab: undefined })}>
          {t('operator.alerts.title')}
        </Button>
      }
    >
      <Stack gap="sm">
        <Sinks />
        <Rules />
      </Stack>
    </Page>
  );
}

function AlertList() {
  const { t } = useTranslation();
  const span = useSpan('30d');
  const [search, change] = useSearchState();
  const [shown, setShown] = useState<Alert>();
  const { state, subject } = search;
  const states = (['running', 'ended'] as const).map((value) => ({
    value,
    label: t(`operator.alerts.state.${value}`),
  }));
  const { tz: _zone, ...times } = span.query;
  return (
    <ResourcePage<Alert>
      texts="operator.alerts"
      icon={IconBell}
      actions={
        <>
          <Button variant="default" onClick={() => change({ tab: rulesTab })}>
            {t('operator.alerts.setUp')}
          </Button>
          <SpanPicker names={['24h', '7d', '30d', '90d']} otherwise="30d" />
        </>
      }
      above={<Sinks />}
      filters={
        <>
          <TextFilter name="subject" label={t('operator.alerts.subject')} />
          <ChoiceFilter name="state" label={t('shell.word.state')} data={states} />
        </>
      }
      source={{ path: alertsPath, query: { ...times, state, subject }, refetchMs: 15_000 }}
      columns={useColumns(setShown)}
    >
      {shown !== undefined && <Acknowledge alert={shown} onClose={() => setShown(undefined)} />}
    </ResourcePage>
  );
}

function useColumns(onAcknowledge: (alert: Alert) => void): Column<Alert>[] {
  const { t } = useTranslation();
  const { title, value } = useAlertTexts();
  const acts = useActs();
  return [
    timeColumn('beganAt', t('operator.alerts.began')),
    textColumn('subject', t('operator.alerts.subject'), {
      cell: (row) => (row.kind === 'spend_spike' ? <AccountLink id={row.subject} /> : row.subject),
    }),
    textColumn('kind', t('operator.alerts.what'), { cell: title }),
    {
      key: 'value',
      title: t('operator.alerts.value'),
      right: true,
      plain: (row) => row.value,
      cell: (row) => (
        <span className="number" title={t('operator.alerts.threshold', { value: value(row.threshold, row.unit) })}>
          {value(row.value, row.unit)}
        </span>
      ),
    },
    timeColumn('endedAt', t('operator.alerts.ended'), {
      cell: ({ endedAt }) =>
        endedAt === null ? <Word color="red">{t('operator.alerts.state.running')}</Word> : <Time at={endedAt} />,
    }),
    {
      key: 'acknowledged',
      title: t('operator.alerts.acknowledged'),
      plain: ({ acknowledged }) => acknowledged?.by ?? null,
      cell: ({ acknowledged, endedAt, ...row }) => {
        if (acknowledged !== null) return <span title={acknowledged.reason}>{acknowledged.by}</span>;
        if (endedAt !== null || !acts) return '–';
        return (
          <Button size="compact-xs" variant="default" onClick={() => onAcknowledge({ acknowledged, endedAt, ...row })}>
            {t('operator.alerts.acknowledge')}
          </Button>
        );
      },
    },
  ];
}

function Acknowledge({ alert, onClose }: { readonly alert: Alert; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const { title } = useAlertTexts();
  return (
    <Act
      opened
      onClose={onClose}
      title={t('operator.alerts.acknowledgeTitle', { subject: alert.subject })}
      text={`${title(alert)}. ${t('operator.alerts.acknowledgeHint')}`}
      action={t('operator.alerts.acknowledge')}
      act={async (reason) => {
        await send('POST', `${alertsPath}/${encodeURIComponent(alert.id)}/acknowledge`, { reason });
        return t('operator.alerts.done');
      }}
      stale={[answerKey(alertsPath), listKey(alertsPath)]}
    />
  );
}
