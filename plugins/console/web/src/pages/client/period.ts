/** Spans of time as filters: the last hours or days, or from one moment until another. */

export const periods = ['24h', '7d', '30d', 'custom'] as const;
export type Period = (typeof periods)[number];

const hourMs = 3_600_000;
const lengthMs: Record<Exclude<Period, 'custom'>, number> = {
  '24h': 24 * hourMs,
  '7d': 168 * hourMs,
  '30d': 720 * hourMs,
};

export const isPeriod = (text: string | undefined): text is Period => periods.includes(text as Period);

/** From and until as the API takes them. Whole minutes, so that the same question is asked, and kept, for a while. */
export function spanOf(
  period: Period,
  now: number,
  custom: { readonly from?: string | undefined; readonly until?: string | undefined } = {},
): { readonly from: string | undefined; readonly until: string | undefined } {
  if (period === 'custom') return { from: momentOf(custom.from), until: momentOf(custom.until) };
  const minute = Math.floor(now / 60_000) * 60_000;
  return { from: new Date(minute - lengthMs[period]).toISOString(), until: undefined };
}

/** Buckets of an hour where they are few enough to draw: the cost is known by the hour. undefined: as the API sees fit. */
export function bucketMinutesOf(period: Period): number | undefined {
  return period === '24h' ? 60 : undefined;
}

/** A field's local time as ISO 8601 in UTC; what is not a time is no bound. */
function momentOf(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined;
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) ? undefined : moment.toISOString();
}
