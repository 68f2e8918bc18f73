/** Whether an observed value has crossed its threshold, by what was seen before. Pure. */
import type { NoticeKind, NoticeObservation } from '../common/domain/admin/notices.ts';

export interface SeenState {
  readonly period: string;
  readonly isBeyond: boolean;
}

interface Judgement {
  /** What is stored; undefined: it is as it was. */
  readonly state: SeenState | undefined;
  readonly isCrossing: boolean;
}

const billion = 1_000_000_000n;

/** `threshold`: in billionths. No amount is divided. */
export function isBeyond(
  { unit, beyond }: Pick<NoticeKind, 'unit' | 'beyond'>,
  threshold: bigint,
  { value, of }: Pick<NoticeObservation, 'value' | 'of'>,
): boolean {
  if (unit === 'none') return true;
  const [seen, bound] = [value * billion, threshold * of];
  return beyond === 'below' ? seen < bound : seen >= bound;
}

export function judge(
  kind: Pick<NoticeKind, 'unit' | 'beyond' | 'first'>,
  threshold: bigint,
  seen: Pick<NoticeObservation, 'period' | 'value' | 'of'>,
  before: SeenState | undefined,
): Judgement {
  const state = { period: seen.period, isBeyond: isBeyond(kind, threshold, seen) };
  if (before === undefined) {
    const isCrossing = state.isBeyond && kind.first === 'sent';
    // What has always been on the good side needs no row where a first crossing is sent anyway.
    return { state: state.isBeyond || kind.first === 'silent' ? state : undefined, isCrossing };
  }
  const isSamePeriod = before.period === state.period;
  if (isSamePeriod && before.isBeyond === state.isBeyond) return { state: undefined, isCrossing: false };
  return { state, isCrossing: state.isBeyond && !(isSamePeriod && before.isBeyond) };
}
