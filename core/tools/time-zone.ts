/** Time zones by their IANA names. */
import './temporal.ts';

/** The zone's own name; undefined: there is no such zone. Offsets such as +02:00 are no zones: they know no summer. */
export function zoneOf(name: string): string | undefined {
  if (!/^[A-Za-z][\w+\-/]{0,63}$/.test(name)) return undefined;
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name).timeZoneId;
  } catch {
    return undefined;
  }
}
