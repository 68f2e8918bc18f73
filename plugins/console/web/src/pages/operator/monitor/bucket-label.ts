/** How buckets and rates are written beside charts. Pure. */
const hourMs = 3_600_000;
const time = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
const day = { day: 'numeric', month: 'short' } as const;

interface Buckets {
  /** The time zone of the days and hours. */
  readonly tz: string;
  readonly bucketMs: number;
}

/** What a bucket of a chart is called: its time in the zone of the buckets. */
export function bucketLabel(at: Date, { tz, bucketMs }: Buckets, language: string): string {
  return new Intl.DateTimeFormat(language, { ...partsOf(bucketMs), timeZone: tz }).format(at);
}

/** For a spreadsheet: `2026-11-28`, with the time where a bucket is shorter than a day, in the zone of the buckets. */
export function bucketDay(at: Date, { tz, bucketMs }: Buckets): string {
  const short = bucketMs < 24 * hourMs ? time : {};
  const parts = { year: 'numeric', month: '2-digit', day: '2-digit', ...short } as const;
  // Swedish dates are written as ISO 8601 has them.
  return new Intl.DateTimeFormat('sv-SE', { ...parts, timeZone: tz }).format(at);
}

function partsOf(bucketMs: number): Intl.DateTimeFormatOptions {
  if (bucketMs >= 24 * hourMs) return day;
  if (bucketMs >= 6 * hourMs) return { ...day, ...time };
  return bucketMs >= hourMs ? { weekday: 'short', ...time } : time;
}

/** A rate with two digits that mean something, however small: `12`, `3.4`, `0.00032`. */
export function rateText(count: number, ms: number, language = 'en'): string {
  const rate = count / (ms / 1_000);
  const digits = rate === 0 || rate >= 100 ? 0 : Math.min(20, Math.max(0, 1 - Math.floor(Math.log10(rate))));
  const format = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return new Intl.NumberFormat(language, format).format(rate);
}
