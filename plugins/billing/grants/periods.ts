/** Periods and windows of time, counted from an anchor. Pure. */

export const periodNames = ['day', 'week', 'month'] as const;
export const windowNames = ['5h', 'day', 'week', 'month'] as const;
export type PeriodName = (typeof periodNames)[number];
export type WindowName = (typeof windowNames)[number];

/** Wall-clock milliseconds; `end` is exclusive. */
export interface Period {
  readonly start: number;
  readonly end: number;
}

const hourMs = 3_600_000;
const lengthsMs = { '5h': 5 * hourMs, day: 24 * hourMs, week: 7 * 24 * hourMs } as const;

/** A Monday, the first of a month, midnight UTC: periods counted from these are calendar periods. */
export const calendarAnchors: Readonly<Record<PeriodName, number>> = {
  day: Date.UTC(2024, 0, 1),
  week: Date.UTC(2024, 0, 1),
  month: Date.UTC(2024, 0, 1),
};

/**
 * The period of this name that contains `at`, when the first began at `anchor`. A month ends on the anchor's day of
 * the next month, or on that month's last day if it is shorter; all in UTC.
 */
export function periodAt(name: WindowName, anchor: number, at: number): Period {
  if (name === 'month') return monthAt(anchor, at);
  const length = lengthsMs[name];
  const start = anchor + Math.floor((at - anchor) / length) * length;
  return { start, end: start + length };
}

function monthAt(anchor: number, at: number): Period {
  const [from, to] = [new Date(anchor), new Date(at)];
  let months = (to.getUTCFullYear() - from.getUTCFullYear()) * 12 + to.getUTCMonth() - from.getUTCMonth();
  if (monthsAfter(from, months) > at) months -= 1;
  return { start: monthsAfter(from, months), end: monthsAfter(from, months + 1) };
}

function monthsAfter(anchor: Date, months: number): number {
  const first = new Date(anchor);
  first.setUTCDate(1);
  first.setUTCMonth(first.getUTCMonth() + months);
  const days = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
  return first.setUTCDate(Math.min(anchor.getUTCDate(), days));
}
