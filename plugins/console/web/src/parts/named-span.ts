/** Spans of time by name: the last minutes or hours until now, days of the viewer's zone with today as the last, or a day or month of the calendar. */

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const rolling = { '15m': 15 * minuteMs, '1h': hourMs, '6h': 6 * hourMs, '24h': dayMs } as const;
const daily = { today: 1, '7d': 7, '30d': 30, '90d': 90 } as const;
export const calendarNames = ['yesterday', 'month', 'lastMonth'] as const;
export type CalendarName = (typeof calendarNames)[number];
export type SpanName = keyof typeof rolling | keyof typeof daily | CalendarName;

export const isCalendarName = (text: string | undefined): text is CalendarName =>
  (calendarNames as readonly (string | undefined)[]).includes(text);
export const isSpanName = (text: string | undefined): text is SpanName =>
  text !== undefined && (Object.hasOwn(rolling, text) || Object.hasOwn(daily, text) || isCalendarName(text));

/** Midnight of the viewer's zone, so many days or months away: a day has hours as many as it has. */
const dayOf = (now: Date, days: number) => new Date(now.getFullYear(), now.getMonth(), now.getDate() + days);
const monthOf = (now: Date, months: number) => new Date(now.getFullYear(), now.getMonth() + months, 1);

/** Where a span begins; whole minutes, so that the same question is asked, and kept, for a while. */
export function startOf(name: SpanName, now: Date): Date {
  if (isCalendarName(name)) return name === 'yesterday' ? dayOf(now, -1) : monthOf(now, name === 'month' ? 0 : -1);
  if (Object.hasOwn(daily, name)) return dayOf(now, 1 - daily[name as keyof typeof daily]);
  const { [name as keyof typeof rolling]: lengthMs } = rolling;
  if (name !== '24h') return new Date(Math.floor(now.getTime() / minuteMs) * minuteMs - lengthMs);
  // Whole hours of the viewer's clock, this one among them.
  const hour = new Date(now).setMinutes(0, 0, 0);
  return new Date(hour + hourMs - lengthMs);
}

/** Where a span ends; undefined: now. */
export function endOf(name: SpanName, now: Date): Date | undefined {
  if (name === 'yesterday') return dayOf(now, 0);
  return name === 'lastMonth' ? monthOf(now, 0) : undefined;
}

/** The same time one span earlier: of days as many days before, of the running hour as far as it has run, of a month its day in the month before. */
export function before(name: SpanName, moment: Date): Date {
  if (Object.hasOwn(rolling, name)) return new Date(moment.getTime() - rolling[name as keyof typeof rolling]);
  const earlier = new Date(moment);
  if (name === 'month' || name === 'lastMonth') {
    const daysOfMonth = new Date(moment.getFullYear(), moment.getMonth(), 0).getDate();
    earlier.setMonth(earlier.getMonth() - 1, Math.min(earlier.getDate(), daysOfMonth));
  } else earlier.setDate(earlier.getDate() - (isCalendarName(name) ? 1 : daily[name as keyof typeof daily]));
  return earlier;
}

/** Minutes of a bucket: hours of a day or less, else days. undefined: as the API sees fit. */
export function bucketMinutesOf(name: SpanName): number | undefined {
  if (name === 'today' || name === '24h' || name === 'yesterday') return 60;
  return Object.hasOwn(daily, name) || isCalendarName(name) ? 1_440 : undefined;
}

/** Minutes of a bar: a week has finer ones than its rows by day. */
export const barMinutesOf = (name: SpanName): number | undefined => (name === '7d' ? 180 : bucketMinutesOf(name));

type Figure = number | null | undefined;

/** The change of a figure between a span and the one before, as a share: `0.5` is half as much again. undefined: one of them is not known, or there was nothing before to be a share of. */
export function changeOf(now: Figure, before: Figure): number | undefined {
  if (now === null || now === undefined || before === null || before === undefined || before <= 0) return undefined;
  const share = now / before - 1;
  return Number.isFinite(share) ? share : undefined;
}
