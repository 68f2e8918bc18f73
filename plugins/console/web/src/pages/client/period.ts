/** Periods as filters: a named span, or from one moment until another. */
import { type SpanName, startOf } from '../../parts/named-span.ts';

export const periods = ['today', '24h', '7d', '30d', 'custom'] as const satisfies readonly (SpanName | 'custom')[];
export type Period = (typeof periods)[number];

export const isPeriod = (text: string | undefined): text is Period => periods.includes(text as Period);

/** From and until as the API takes them. */
export function spanOf(
  period: Period,
  now: Date,
  custom: { readonly from?: string | undefined; readonly until?: string | undefined } = {},
): { readonly from: string | undefined; readonly until: string | undefined } {
  if (period === 'custom') return { from: momentOf(custom.from), until: momentOf(custom.until) };
  return { from: startOf(period, now).toISOString(), until: undefined };
}

/** A field's local time as ISO 8601 in UTC; what is not a time is no bound. */
function momentOf(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined;
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) ? undefined : moment.toISOString();
}
