/** Kinds of alerts about requests: how many are answered, and how fast, by model and by provider. */
import type { AlertKind, Measurement } from '../../common/domain/admin/alerts.ts';
import type { Span } from '../../common/domain/admin/pages.ts';
import type { RequestCounts, RequestQueries, RequestTimes } from '../../common/domain/admin/requests.ts';

type Queries = () => RequestQueries | undefined;
type By = 'model' | 'provider';
type Counts = RequestCounts & { readonly group: string };

const mostGroups = 100;
/** Requests that no model answers. */
const withoutOperations = ['files', 'payments'];
const common = { windowMs: 600_000, forMs: 60_000, quietMs: 300_000, least: 20 };

export function trafficKinds(queries: Queries): AlertKind[] {
  return (['model', 'provider'] as const).flatMap((by): AlertKind[] => {
    const traffic = new Traffic(queries, by);
    return [
      {
        name: `${by}_success`,
        title: `Share of requests that the ${by} answers`,
        unit: 'share',
        bad: 'below',
        fields: { failed: 'count', answered: 'count' },
        defaults: { ...common, threshold: 0.9, clear: 0.95 },
        measure: async (span) => (await traffic.counts(span)).flatMap((group) => successOf(group) ?? []),
      },
      {
        name: `${by}_first_byte`,
        title: `Time to the first byte of the ${by}, 95th percentile`,
        unit: 'milliseconds',
        bad: 'above',
        fields: { requests: 'count' },
        defaults: { ...common, threshold: 30_000, clear: 20_000 },
        measure: async (span) => {
          const groups = await traffic.counts(span);
          const timesOf = await traffic.times(span, groups);
          return groups.flatMap((group) => firstByteOf(group, timesOf(group.group)) ?? []);
        },
      },
    ];
  });
}

/** What the rules of one evaluation ask of the same span is read once: it is read from the rows of the span. */
class Traffic {
  readonly #queries: Queries;
  readonly #by: By;
  #last: { readonly span: Span; readonly counts: Promise<readonly Counts[]> } | undefined;

  constructor(queries: Queries, by: By) {
    this.#queries = queries;
    this.#by = by;
  }

  counts(span: Span): Promise<readonly Counts[]> {
    if (this.#last?.span.from !== span.from || this.#last.span.until !== span.until)
      this.#last = { span, counts: this.#read(span) };
    return this.#last.counts;
  }

  async #read(span: Span): Promise<readonly Counts[]> {
    const groups = await this.#queries()?.groupCounts({ ...span, withoutOperations }, this.#by, mostGroups);
    return (groups ?? []).filter(({ group }) => group !== '');
  }

  async times(span: Span, groups: readonly Counts[]): Promise<(group: string) => RequestTimes | undefined> {
    const names = groups.map(({ group }) => group);
    const found = await this.#queries()?.groupTimes({ ...span, withoutOperations }, this.#by, names);
    return found ?? (() => undefined);
  }
}

/** Errors of clients, and clients that leave, are not counted. */
function successOf({ group: subject, results }: Counts): Measurement | undefined {
  const { ok: answered, upstream_error: failed } = results;
  const sample = answered + failed;
  return sample === 0 ? undefined : { subject, value: answered / sample, sample, fields: { failed, answered } };
}

function firstByteOf({ group: subject, results }: Counts, times: RequestTimes | undefined): Measurement | undefined {
  const { ok: requests } = results;
  const value = times?.firstByte.p95;
  return value === undefined ? undefined : { subject, value, sample: requests, fields: { requests } };
}
