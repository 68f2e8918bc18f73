/** Words for results and states. Only abnormal ones have a colour; the word repeats its meaning. */
import { Badge, type MantineColor, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { TaskState } from '../../../api/types.ts';
import { resultOf } from '../../../parts/result-of.ts';
import type { UpstreamState } from '../sums/upstream-state.ts';
import type { OperatorRequest } from '../types.ts';

/** Colours of normal states. */
const quiet: readonly MantineColor[] = ['teal', 'gray'];

export function Word({ color, children }: { readonly color: MantineColor; readonly children: string }) {
  if (quiet.includes(color))
    return (
      <Text span fz="inherit" c={color === 'gray' ? 'dimmed' : undefined} className="nowrap">
        {children}
      </Text>
    );
  return (
    <Badge
      variant="light"
      color={color}
      size="sm"
      radius="sm"
      tt="none"
      fw={550}
      className="word-badge"
      style={{ '--word': `var(--mantine-color-${color}-9)` }}
    >
      {children}
    </Badge>
  );
}

const resultColors = { ok: 'teal', client_error: 'yellow', upstream_error: 'red', left: 'gray' } as const;

export function ResultWord({ request }: { readonly request: Pick<OperatorRequest, 'status' | 'outcome' | 'task'> }) {
  const { t } = useTranslation();
  const result = resultOf(request);
  // The answer was good; what it ordered is not there, or not yet.
  if (result === 'ok' && request.task !== null && request.task !== 'succeeded')
    return <TaskWord state={request.task} />;
  if (result === 'ok') return <Word color="gray">{String(request.status)}</Word>;
  return <Word color={resultColors[result]}>{`${request.status} ${t(`operator.result.${result}`)}`}</Word>;
}

const taskColors = {
  queued: 'gray',
  running: 'blue',
  succeeded: 'teal',
  failed: 'red',
  cancelled: 'gray',
  expired: 'yellow',
} as const;

export function TaskWord({ state }: { readonly state: TaskState }) {
  const { t } = useTranslation();
  return <Word color={taskColors[state]}>{t(`operator.traffic.tasks.state.${state}`)}</Word>;
}

export const upstreamColors = {
  healthy: 'teal',
  cooling: 'yellow',
  broken: 'red',
  failing: 'orange',
  disabled: 'gray',
  keyless: 'gray',
} as const;

export function UpstreamWord({ state }: { readonly state: UpstreamState }) {
  const { t } = useTranslation();
  return <Word color={upstreamColors[state]}>{t(`operator.traffic.upstreams.state.${state}`)}</Word>;
}
