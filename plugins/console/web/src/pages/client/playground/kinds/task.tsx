/** How far an order is: waiting or being made, for how long, and where it is found later. */
import { Group, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../../api/session.ts';
import type { ApiCall } from '../../../../calls/call.ts';
import { type Made, order, type Progress } from '../../../../calls/send.ts';
import { Meter } from '../../../../parts/bars.tsx';
import { TextLink } from '../../../../parts/entry-frame.tsx';
import { Panel } from '../../../../parts/page.tsx';
import { useRun } from '../use-run.ts';

/** A run of an order, with its progress. */
export function useOrder(apiKey: string, model: string) {
  const run = useRun<Made>(apiKey, model);
  const [reported, setReported] = useState<{ readonly of: string; readonly progress: Progress }>();
  const place = (call: ApiCall) => {
    setReported(undefined);
    const onProgress = (progress: Progress) => setReported({ of: model, progress });
    return run.start(call, (answer, signal) => order(call, answer, apiKey, signal, onProgress));
  };
  return { run, progress: reported?.of === model ? reported.progress : undefined, place };
}

interface TaskProgressProps {
  readonly busy: boolean;
  readonly progress: Progress | undefined;
  /** Whether there is a result, or an error, in its place. */
  readonly ended: boolean;
}

export function TaskProgress({ busy, progress, ended }: TaskProgressProps) {
  const { t } = useTranslation();
  const me = useMe();
  if (!busy && (progress === undefined || ended)) return null;
  const { isWaiting = true, percent = 0 } = progress ?? {};
  return (
    <Panel>
      <Group justify="space-between" mb="xs" role="status">
        <Text fz="sm">
          {busy ? t(`client.tasks.states.${isWaiting ? 'queued' : 'running'}`) : t('client.playground.goesOn')}
        </Text>
        <Group gap="md">
          {busy && <Elapsed />}
          {progress !== undefined && has(me, 'tasks') && <TextLink to="/tasks">{t('client.tasks.title')}</TextLink>}
        </Group>
      </Group>
      {busy && <Meter part={percent} whole={100} label={t('client.tasks.progress', { percent })} />}
    </Panel>
  );
}

/** Seconds since it stands here. */
function Elapsed() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((now) => now + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <Text fz="xs" c="dimmed" className="number" aria-hidden>
      {seconds} s
    </Text>
  );
}
