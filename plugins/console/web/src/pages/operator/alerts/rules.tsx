/** Rules of alerts as they run: tried, muted with an end, changed by their form. */
import { Button, Group, List, Modal, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { textColumn } from '../../../parts/columns.tsx';
import { durationText, localMinute } from '../../../parts/format.ts';
import { Panel } from '../../../parts/page.tsx';
import { type Column, RowsTable } from '../../../parts/rows-table.tsx';
import { Time } from '../../../parts/time.tsx';
import { Act, useActs } from '../parts/act.tsx';
import { Word } from '../parts/badges.tsx';
import { answerKey, Loaded, useAnswer } from '../parts/load.tsx';
import { MomentField, toIso } from '../parts/moment-field.tsx';
import type { AlertRule, AlertTrial } from '../types.ts';
import { alertsPath, useAlertTexts } from './alert-texts.ts';
import { ToForm } from './sinks.tsx';

const rulesPath = `${alertsPath}/rules`;
const pathOf = ({ name }: AlertRule) => `${rulesPath}/${encodeURIComponent(name)}`;
const usualMuteMs = 4 * 3_600_000;

export function Rules() {
  const { t } = useTranslation();
  const rules = useAnswer<{ rows: readonly AlertRule[] }>(rulesPath);
  const [muted, setMuted] = useState<AlertRule>();
  const [tried, setTried] = useState<AlertRule>();
  const columns = useColumns(setMuted, setTried);
  return (
    <Panel title={t('operator.alerts.rules')} actions={<ToForm form="alerts" />} flush>
      <Loaded of={rules} height={400}>
        {({ rows }) => (
          <RowsTable label={t('operator.alerts.rules')} columns={columns} rows={rows} rowKey={({ name }) => name} />
        )}
      </Loaded>
      {muted !== undefined && <Mute rule={muted} onClose={() => setMuted(undefined)} />}
      {tried !== undefined && <Trial rule={tried} onClose={() => setTried(undefined)} />}
    </Panel>
  );
}

function useColumns(onMute: (rule: AlertRule) => void, onTry: (rule: AlertRule) => void): Column<AlertRule>[] {
  const { t } = useTranslation();
  const { title, value } = useAlertTexts();
  const acts = useActs();
  return [
    textColumn('name', t('shell.word.name'), { cell: ({ name }) => <span className="mono">{name}</span> }),
    textColumn('title', t('operator.alerts.what'), { cell: title, minor: true }),
    {
      key: 'threshold',
      title: t('operator.alerts.badWhen'),
      plain: ({ threshold }) => threshold,
      cell: ({ bad, threshold, unit, forMs }) =>
        [
          t(`operator.alerts.${bad}`, { value: value(threshold, unit) }),
          ...(forMs > 0 ? [t('operator.alerts.for', { time: durationText(forMs) })] : []),
        ].join(', '),
    },
    textColumn('isOn', t('shell.word.state'), { cell: (rule) => <State rule={rule} /> }),
    {
      key: 'sinks',
      title: t('operator.alerts.sinks'),
      minor: true,
      plain: ({ sinks }) => sinks.join(' '),
      cell: ({ sinks }) => (sinks.length === 0 ? '–' : sinks.join(', ')),
    },
    {
      key: 'actions',
      title: t('shell.word.actions'),
      right: true,
      cell: (rule) => acts && <Actions rule={rule} onMute={onMute} onTry={onTry} />,
    },
  ];
}

function State({ rule: { isOn, muted } }: { readonly rule: AlertRule }) {
  const { t } = useTranslation();
  if (!isOn) return <Word color="gray">{t('operator.alerts.off')}</Word>;
  if (muted === null) return <Word color="teal">{t('operator.alerts.on')}</Word>;
  return (
    <span title={`${muted.by}: ${muted.reason}`}>
      <Word color="yellow">{t('operator.alerts.mutedUntil')}</Word> <Time at={muted.until} />
    </span>
  );
}

interface ActionsProps {
  readonly rule: AlertRule;
  readonly onMute: (rule: AlertRule) => void;
  readonly onTry: (rule: AlertRule) => void;
}

function Actions({ rule, onMute, onTry }: ActionsProps) {
  const { t } = useTranslation();
  return (
    <Group gap={4} justify="flex-end" wrap="nowrap">
      {rule.isOn && (
        <>
          <Button size="compact-xs" variant="default" onClick={() => onTry(rule)}>
            {t('operator.alerts.tryRule')}
          </Button>
          <Button size="compact-xs" variant="default" onClick={() => onMute(rule)}>
            {rule.muted === null ? t('operator.alerts.mute') : t('operator.alerts.unmute')}
          </Button>
        </>
      )}
      <ToForm form="alerts" entry={rule.name} />
    </Group>
  );
}

function Mute({ rule, onClose }: { readonly rule: AlertRule; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const [until, setUntil] = useState(() => localMinute(new Date(Date.now() + usualMuteMs)));
  const { name, muted } = rule;
  const isMuted = muted !== null;
  return (
    <Act
      opened
      onClose={onClose}
      title={t(isMuted ? 'operator.alerts.unmuteTitle' : 'operator.alerts.muteTitle', { name })}
      action={t(isMuted ? 'operator.alerts.unmute' : 'operator.alerts.mute')}
      withReason={!isMuted}
      missing={!isMuted && until === ''}
      stale={[answerKey(rulesPath)]}
      act={async (reason) => {
        if (isMuted) await send('DELETE', `${pathOf(rule)}/mute`);
        else await send('POST', `${pathOf(rule)}/mute`, { until: toIso(until), reason });
        return t(isMuted ? 'operator.alerts.unmuted' : 'operator.alerts.mutedNow', { name });
      }}
    >
      {!isMuted && (
        <MomentField
          label={t('operator.alerts.muteEnd')}
          description={t('operator.alerts.muteHint')}
          value={until}
          onChange={setUntil}
        />
      )}
    </Act>
  );
}

const verdictColors = { bad: 'red', between: 'yellow', good: 'teal' } as const;

/** What the rule finds now. */
function Trial({ rule, onClose }: { readonly rule: AlertRule; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const { value } = useAlertTexts();
  const found = useQuery({
    queryKey: ['alert rule', rule.name],
    queryFn: () => send<{ rows: readonly AlertTrial[] }>('POST', `${pathOf(rule)}/test`, {}),
    gcTime: 0,
  });
  return (
    <Modal opened onClose={onClose} title={t('operator.alerts.trial', { name: rule.name })}>
      <Loaded of={found} height={80}>
        {({ rows }) =>
          rows.length === 0 ? (
            <Text fz="sm">{t('operator.alerts.trialNothing')}</Text>
          ) : (
            <List fz="sm" spacing={6} listStyleType="none">
              {rows.map(({ subject, value: now, verdict }) => (
                <List.Item key={subject} className="wrap-any">
                  {subject}: <span className="number">{value(now, rule.unit)}</span>{' '}
                  <Word color={verdictColors[verdict]}>{t(`operator.alerts.${verdict}`)}</Word>
                </List.Item>
              ))}
            </List>
          )
        }
      </Loaded>
    </Modal>
  );
}
