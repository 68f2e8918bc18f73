/** Calendar months of a time zone. Pure. */
import '../../../core/tools/temporal.ts';

/** A month with the instants that it begins and ends at, in wall-clock milliseconds. */
export interface Month {
  /** `2026-10` */
  readonly name: string;
  readonly from: number;
  readonly until: number;
}

export function monthAt(at: number, zone: string): string {
  return zoned(at, zone).toPlainDate().toPlainYearMonth().toString();
}

export function monthOf(name: string, zone: string): Month {
  const month = Temporal.PlainYearMonth.from(name);
  return { name, from: startOf(month, zone), until: startOf(month.add({ months: 1 }), zone) };
}

export function monthAfter(name: string): string {
  return Temporal.PlainYearMonth.from(name).add({ months: 1 }).toString();
}

function startOf(month: Temporal.PlainYearMonth, zone: string): number {
  return month.toPlainDate({ day: 1 }).toZonedDateTime({ timeZone: zone }).epochMilliseconds;
}

function zoned(at: number, zone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone);
}
