/** When the day or month of a time zone began, found by what a clock there shows: of the gateway's calendar nothing is used. */

export type LocalPeriod = 'day' | 'month' | 'ever';

const halfHourMs = 1_800_000;
const dayMs = 48 * halfHourMs;
const clocks = new Map<string, Intl.DateTimeFormat>();
const known = new Map<string, number>();
const mostKnown = 10_000;

/** `2027-01-15` */
function dateAt(zone: string, at: number): string {
  let clock = clocks.get(zone);
  if (clock === undefined) {
    clock = new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' });
    clocks.set(zone, clock);
  }
  return clock.format(at);
}

/** `at`: wall-clock milliseconds. Clocks are set forward and back on half hours. */
export function beginOf(every: LocalPeriod, zone: string, at: number): number {
  if (every === 'ever') return 0;
  const halfHour = Math.floor(at / halfHourMs) * halfHourMs;
  const name = `${every} ${zone} ${halfHour}`;
  const found = known.get(name) ?? search(every, zone, halfHour);
  if (known.size >= mostKnown) known.clear();
  known.set(name, found);
  return found;
}

function search(every: 'day' | 'month', zone: string, halfHour: number): number {
  const nameAt = (at: number) => dateAt(zone, at).slice(0, every === 'day' ? 10 : 7);
  const own = nameAt(halfHour);
  let begin = halfHour;
  if (every === 'month') begin -= (Number(dateAt(zone, halfHour).slice(8)) - 1) * dayMs;
  while (nameAt(begin) !== own) begin += halfHourMs;
  while (nameAt(begin - halfHourMs) === own) begin -= halfHourMs;
  return begin;
}
