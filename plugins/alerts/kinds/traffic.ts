/** Kinds of alerts about requests: how many are answered, and how fast, by model and by provider. */
import type { AlertKind, Measurement } from '../../common/domain/admin/alerts.ts';
import type { Span } from '../../common/domain/admin/pages.ts';
import type { RequestQueries, RequestSums } from '../../common/domain/admin/requests.ts';

type Queries = () => RequestQueries | undefined;
type Group = RequestSums & { readonly group: string };

const mostGroups = 100;
/** Requests that no model answers. */
const withoutOperations = ['files', 'payments'];
const common = { windowMs: 600_000, forMs: 60_000, quietMs: 300_000, least: 20 };

export function trafficKinds(queries: Queries): AlertKind[] {
  return (['model', 'provider'] as const).flatMap((by): AlertKind[] => [
    {
      name: `${by}_success`,
      title: `Share of requests that the ${by} answers`,
      unit: 'share',
      bad: 'below',
      fields: { failed: 'count', answered: 'count' },
      defaults: { ...common, threshold: 0.9, clear: 0.95 },
      measure: (span) => measured(queries, by, span, successOf),
    },
    {
      name: `${by}_first_byte`,
      title: `Time to the first byte of the ${by}, 95th percentile`,
      unit: 'milliseconds',
      bad: 'above',
      fields: { requests: 'count' },
      defaults: { ...common, threshold: 30_000, clear: 20_000 },
      measure: (span) => measured(queries, by, span, firstByteOf),
    },
  ]);
}

async function measured(
  queries: Queries,
  by: 'model' | 'provider',
  span: Span,
  read: (group: Group) => Measurement | undefined,
): Promise<Measurement[]> {
  const groups = (await queries()?.groups({ ...span, withoutOperations }, by, mostGroups)) ?? [];
  return groups.filter(({ group }) => group !== '').flatMap((group) => read(group) ?? []);
}

/** Errors of clients, and clients that leave, are not counted. */
function successOf({ group: subject, results }: Group): Measurement | undefined {
  const { ok: answered, upstream_error: failed } = results;
  const sample = answered + failed;
  return sample === 0 ? undefined : { subject, value: answered / sample, sample, fields: { failed, answered } };
}

function firstByteOf({ group: subject, firstByte, results }: Group): Measurement | undefined {
  const { ok: requests } = results;
  return firstByte.p95 === undefined
    ? undefined
    : { subject, value: firstByte.p95, sample: requests, fields: { requests } };
}
