/** Where the newest or oldest rows of a filter are, by the rollups: so a list looks into few quarters of an hour, and into none in vain. */
import { sql } from 'drizzle-orm';
import type { Span } from '../common/domain/admin/pages.ts';
import type { RequestFilter } from '../common/domain/admin/requests.ts';
import { readSums } from '../common/rollups/read.ts';
import { quarterMs } from '../common/rollups/table.ts';
import { conditionsOf, type Store } from './sums.ts';

/** The core takes a request's id, which lists go by, and its time of arrival one after the other. */
const slackMs = 1_000;

/** Whether rows that the filter means may be rare: those of all traffic and of an account are found by an index. */
export function isSelective(filter: RequestFilter): boolean {
  const { keyId, keys, personId, projectIds, model, provider, operation, result, cause } = filter;
  return [keyId, keys, personId, projectIds, model, provider, operation, result, cause].some(
    (value) => value !== undefined,
  );
}

export interface Places {
  /** Where the page begins; undefined: it is the first. */
  readonly at: number | undefined;
  readonly rows: number;
  readonly order: 'asc' | 'desc';
}

/** How far the first look goes; each further one goes eight times as far. */
const firstLookMs = 6 * 3_600_000;

/** Spans with `rows` of the filter's rows at least, or all of them, in this order. */
export async function placesOf(
  store: Store,
  filter: RequestFilter,
  { at: start, rows, order }: Places,
): Promise<Span[]> {
  const from = order === 'asc' ? Math.max(filter.from, (start ?? filter.from) - 1) : filter.from;
  const until = order === 'desc' ? Math.min(filter.until, start ?? filter.until) : filter.until;
  if (from >= until) return [];
  const [first, last] = [floor(from - slackMs), floor(until + slackMs + quarterMs - 1)];
  const found: Span[] = [];
  let sure = 0;
  for (const look of looksInto(first, last, order))
    for (const { group, requests } of await quartersOf(store, filter, look, order)) {
      if (sure >= rows) return found;
      const at = Number(group);
      // Some of the page's first quarter may be on the page before.
      if (at + quarterMs + slackMs <= until && at - slackMs >= from) sure += Number(requests);
      add(found, {
        from: Math.max(at - slackMs, filter.from),
        until: Math.min(at + quarterMs + slackMs, filter.until),
      });
    }
  return found;
}

const floor = (at: number) => Math.floor(at / quarterMs) * quarterMs;

/** Parts of a span in this order, ever longer ones: most pages are within the first. */
function* looksInto(first: number, last: number, order: Places['order']): Generator<readonly [number, number]> {
  let length = firstLookMs;
  for (let [from, until] = [first, last]; from < until; length *= 8)
    if (order === 'asc') {
      yield [from, Math.min(from + length, until)];
      from += length;
    } else {
      yield [Math.max(until - length, from), until];
      until -= length;
    }
}

/** Quarters of an hour with such rows, and how many. */
function quartersOf({ orm, schema, sums }: Store, filter: RequestFilter, bounds: readonly number[], order: string) {
  return readSums(orm, schema, sums, {
    bounds,
    conditions: conditionsOf(filter),
    each: 'quarter',
    measures: [{ name: 'requests', of: 'requests', ofKept: sql`sum(requests)`, ofRows: sql`count(*)` }],
    ending: sql`order by "group"::bigint ${sql.raw(order)}`,
  });
}

/** Quarters that follow one another are one span. */
function add(found: Span[], span: Span): void {
  const last = found.at(-1);
  if (last !== undefined && last.from <= span.until && span.from <= last.until)
    found[found.length - 1] = { from: Math.min(span.from, last.from), until: Math.max(span.until, last.until) };
  else if (span.from < span.until) found.push(span);
}
