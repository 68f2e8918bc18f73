/** Kinds of alerts about requests: how many are answered, and how fast, by model and by provider. */
import { type AlertKind, type Measurement, usualLeastShare } from '../../common/domain/admin/alerts.ts';
import type { Span } from '../../common/domain/admin/pages.ts';
import {
  ownCauses,
  type RecentGroup,
  type RecentGroups,
  type RequestQueries,
} from '../../common/domain/admin/requests.ts';

type Queries = () => RequestQueries | undefined;

/** The maximum number of pairs of model and provider. */
const mostPairs = 500;
const mostGroups = 100;
/** Requests that no model answers. */
const withoutOperations = ['files', 'payments'];
const common = { windowMs: 600_000, forMs: 60_000, quietMs: 300_000, least: 20 };

export function trafficKinds(queries: Queries): AlertKind[] {
  const traffic = new Traffic(queries);
  return (['model', 'provider'] as const).flatMap((by): AlertKind[] => {
    const groupsOf = async (span: Span) => (await traffic.groups(span))[by].slice(0, mostGroups);
    return [
      {
        name: `${by}_success`,
        title: `Share of requests that the ${by} answers`,
        unit: 'share',
        bad: 'below',
        fields: { failed: 'count', answered: 'count' },
        defaults: { ...common, threshold: usualLeastShare, clear: 0.95 },
        measure: async (span) => (await groupsOf(span)).flatMap((group) => successOf(group) ?? []),
      },
      {
        name: `${by}_first_byte`,
        title: `Time to the first byte of the ${by}, 95th percentile`,
        unit: 'milliseconds',
        bad: 'above',
        fields: { requests: 'count' },
        defaults: { ...common, threshold: 30_000, clear: 20_000 },
        measure: async (span) => (await groupsOf(span)).flatMap((group) => firstByteOf(group) ?? []),
      },
    ];
  });
}

/** What the rules of one evaluation ask of the same span is read once: it is read from the rows of the span. */
class Traffic {
  readonly #queries: Queries;
  #last: { readonly span: Span; readonly groups: Promise<RecentGroups> } | undefined;

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  groups(span: Span): Promise<RecentGroups> {
    if (this.#last?.span.from !== span.from || this.#last.span.until !== span.until)
      this.#last = { span, groups: this.#read(span) };
    return this.#last.groups;
  }

  async #read(span: Span): Promise<RecentGroups> {
    const groups = await this.#queries()?.recentGroups(
      { ...span, withoutOperations, withoutCauses: ownCauses },
      mostPairs,
    );
    return groups ?? { model: [], provider: [] };
  }
}

/** Errors of clients and of the gateway itself, and clients that leave, are not counted. */
function successOf({ group: subject, results }: RecentGroup): Measurement | undefined {
  const { ok: answered, upstream_error: failed } = results;
  const sample = answered + failed;
  return sample === 0 ? undefined : { subject, value: answered / sample, sample, fields: { failed, answered } };
}

function firstByteOf({ group: subject, results, firstByte }: RecentGroup): Measurement | undefined {
  const { ok: requests } = results;
  const value = firstByte.p95;
  return value === undefined ? undefined : { subject, value, sample: requests, fields: { requests } };
}
