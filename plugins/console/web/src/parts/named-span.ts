/** Spans of time by name: the last minutes or hours until now, or whole days of the viewer's zone with today as the last. */

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const rolling = { '15m': 15 * minuteMs, '1h': hourMs, '6h': 6 * hourMs, '24h': dayMs } as const;
const daily = { today: 1, '7d': 7, '30d': 30, '90d': 90 } as const;
export type SpanName = keyof typeof rolling | keyof typeof daily;

export const isSpanName = (text: string | undefined): text is SpanName =>
  text !== undefined && (Object.hasOwn(rolling, text) || Object.hasOwn(daily, text));

/** Where a span begins; whole minutes, so that the same question is asked, and kept, for a while. A day has hours as many as it has. */
export function startOf(name: SpanName, now: Date): Date {
  if (Object.hasOwn(daily, name)) {
    const days = daily[name as keyof typeof daily];
    return new Date(now.getFullYear(), now.getMonth(), now.getDate() - (days - 1));
  }
  const { [name as keyof typeof rolling]: lengthMs } = rolling;
  if (name !== '24h') return new Date(Math.floor(now.getTime() / minuteMs) * minuteMs - lengthMs);
  // Whole hours of the viewer's clock, this one among them.
  const hour = new Date(now).setMinutes(0, 0, 0);
  return new Date(hour + hourMs - lengthMs);
}

/** The same time one span earlier: of days as many days before, of the running hour as far as it has run. */
export function before(name: SpanName, moment: Date): Date {
  if (!Object.hasOwn(daily, name)) return new Date(moment.getTime() - rolling[name as keyof typeof rolling]);
  const earlier = new Date(moment);
  earlier.setDate(earlier.getDate() - daily[name as keyof typeof daily]);
  return earlier;
}

/** Minutes of a bucket: hours of a day or less, else days. undefined: as the API sees fit. */
export function bucketMinutesOf(name: SpanName): number | undefined {
  if (name === 'today' || name === '24h') return 60;
  return Object.hasOwn(daily, name) ? 1_440 : undefined;
}

/** Minutes of a bar: a week has finer ones than its rows by day. */
export const barMinutesOf = (name: SpanName): number | undefined => (name === '7d' ? 180 : bucketMinutesOf(name));
