/** When an alert begins, is repeated and ends. Pure. */
import type { AlertKind, AlertUnit, AlertValue } from '../common/domain/admin/alerts.ts';

/** `between`: neither bad nor good enough to end. */
export type Verdict = 'bad' | 'between' | 'good';

export interface Limits {
  readonly threshold: AlertValue;
  readonly clear: AlertValue;
}
export interface Pace {
  readonly forMs: number;
  readonly quietMs: number;
  readonly repeatMs: number;
}

export interface AlertState {
  /** `pending`: bad, but not for long enough yet. */
  readonly phase: 'pending' | 'running';
  /** When it became bad. */
  readonly since: number;
  /** When a message was sent for the last time. */
  readonly sentAt: number | undefined;
  /** When its value was good again. */
  readonly calmSince: number | undefined;
  readonly acknowledged: boolean;
}

/** One that is pending or running. */
export interface OpenAlert {
  readonly id: string;
  readonly rule: string;
  readonly kind: string;
  readonly title: string;
  readonly unit: AlertUnit;
  readonly subject: string;
  readonly value: AlertValue;
  readonly threshold: AlertValue;
  readonly fields: Readonly<Record<string, string | number>>;
  readonly beganAt: number | undefined;
  readonly state: AlertState;
  readonly version: number;
}

export interface Step {
  /** undefined: the alert is over. */
  readonly state: AlertState | undefined;
  readonly event: 'begin' | 'repeat' | 'end' | undefined;
}

/** Without a value the verdict is good. */
export function verdictOf(bad: AlertKind['bad'], { threshold, clear }: Limits, value: AlertValue | undefined): Verdict {
  if (value === undefined) return 'good';
  const isBeyond = (limit: AlertValue) => (bad === 'above' ? value > limit : value < limit);
  if (isBeyond(threshold)) return 'bad';
  return isBeyond(clear) ? 'between' : 'good';
}

export function advance(state: AlertState | undefined, verdict: Verdict, now: number, pace: Pace): Step {
  if (state === undefined || state.phase === 'pending') return beforeBegin(state, verdict, now, pace);
  if (verdict !== 'good') return repeated({ ...state, calmSince: undefined }, now, pace);
  const calmSince = state.calmSince ?? now;
  if (now - calmSince >= pace.quietMs) return { state: undefined, event: 'end' };
  return { state: { ...state, calmSince }, event: undefined };
}

function beforeBegin(state: AlertState | undefined, verdict: Verdict, now: number, { forMs }: Pace): Step {
  if (verdict !== 'bad') return { state: undefined, event: undefined };
  const since = state?.since ?? now;
  const bare = { since, calmSince: undefined, acknowledged: false };
  if (now - since < forMs) return { state: { ...bare, phase: 'pending', sentAt: undefined }, event: undefined };
  return { state: { ...bare, phase: 'running', sentAt: now }, event: 'begin' };
}

function repeated(state: AlertState, now: number, { repeatMs }: Pace): Step {
  const isDue = !state.acknowledged && now - (state.sentAt ?? now) >= repeatMs;
  return isDue ? { state: { ...state, sentAt: now }, event: 'repeat' } : { state, event: undefined };
}

/** A muted alert begins and ends unsent; one that still runs afterwards is sent at once. */
export function muted(before: AlertState | undefined, { state, event }: Step): Step {
  if (event === 'repeat') return { state: before, event: undefined };
  return event === 'begin' && state !== undefined ? { state: { ...state, sentAt: 0 }, event } : { state, event };
}
