/** Calendar periods of a time zone, from a first day on. Pure. */
import '../../../core/tools/temporal.ts';
import type { BudgetPeriod } from '../../common/domain/organizations/budgets.ts';
import type { Period } from '../grants/periods.ts';

export interface Calendar {
  readonly every: BudgetPeriod;
  /** By its IANA name; absent: UTC. */
  readonly zone?: string | undefined;
  /** The first day of some period, as 2026-04-06; absent: periods of the calendar, and weeks from Monday. */
  readonly first?: string | undefined;
}

/** A Monday, and the first day of a year. */
const usualFirst = '2024-01-01';
const months = { month: 1, quarter: 3, year: 12 } as const;
const always: Period = { start: 0, end: Number.POSITIVE_INFINITY };

/**
 * The period that contains `at`. A month that is too short for the first day's number begins on its last day. Days have 23 and 25
 * hours too.
 */
export function periodOf({ every, zone = 'UTC', first = usualFirst }: Calendar, at: number): Period {
  if (every === 'ever') return always;
  const day = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone).toPlainDate();
  const anchor = Temporal.PlainDate.from(first);
  const [start, end] = daysOf(every, anchor, day);
  const startOf = (date: Temporal.PlainDate) => date.toZonedDateTime(zone).epochMilliseconds;
  return { start: startOf(start), end: startOf(end) };
}

/** The first day of the period with this day, and that of the next period. */
function daysOf(
  every: Exclude<BudgetPeriod, 'ever'>,
  anchor: Temporal.PlainDate,
  day: Temporal.PlainDate,
): readonly [Temporal.PlainDate, Temporal.PlainDate] {
  if (every === 'day') return [day, day.add({ days: 1 })];
  if (every === 'week') {
    const since = anchor.until(day, { largestUnit: 'day' }).days;
    const start = anchor.add({ days: Math.floor(since / 7) * 7 });
    return [start, start.add({ days: 7 })];
  }
  const step = months[every];
  const after = (count: number) => anchor.add({ months: count * step });
  let count = Math.floor(((day.year - anchor.year) * 12 + day.month - anchor.month) / step);
  if (Temporal.PlainDate.compare(after(count), day) > 0) count -= 1;
  return [after(count), after(count + 1)];
}
