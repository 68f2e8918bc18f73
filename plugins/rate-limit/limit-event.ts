/** The timeline event of rate limits: the rest of plan and key, and which limit refused the request. */
import { defineEvent, type EventValue } from '../common/domain/timeline.ts';
import type { Demand, Dimension, Verdict } from './limiter.ts';

const units: Readonly<Record<Dimension, string>> = {
  rpm: 'requests per minute',
  rpd: 'requests per day',
  tpm: 'tokens per minute',
  concurrency: 'at a time',
};
const owners = ['plan', 'key'] as const;
type Owner = (typeof owners)[number];

/** Values per limit status. */
const valuesEach = 4;

type LimitValues = [refusedBy: EventValue, ...standings: EventValue[]];

/** The dimension that refused, or null; then owner, dimension, remaining units and limit of each bucket. */
export function limitValues(
  accountId: string,
  demands: readonly Demand[],
  { refusedBy, statuses }: Verdict,
): LimitValues {
  const values = new Array<EventValue>(1 + valuesEach * statuses.length);
  values[0] = refusedBy?.dimension ?? null;
  let at = 1;
  for (let index = 0; index < statuses.length; index++) {
    const { dimension, limit, remaining } = statuses[index]!;
    const owner: Owner = demands[index]!.subject === accountId ? 'plan' : 'key';
    values[at++] = owner;
    values[at++] = dimension;
    values[at++] = remaining;
    values[at++] = limit;
  }
  return values as LimitValues;
}

/** `left of the plan: 59 of 60 requests per minute; of the key: 4 of 5 at a time`. */
export const limitEvent = defineEvent('rate-limit.standing', (...[refusedBy, ...values]: LimitValues) => {
  const left: Record<Owner, string[]> = { plan: [], key: [] };
  for (let index = 0; index + valuesEach <= values.length; index += valuesEach) {
    const [owner, dimension, remaining, limit] = values.slice(index) as [Owner, Dimension, number, number];
    left[owner].push(`${remaining} of ${limit} ${units[dimension]}`);
  }
  const parts = owners
    .filter((owner) => left[owner].length > 0)
    .map((owner) => `of the ${owner}: ${left[owner].join(', ')}`);
  const lead = refusedBy === null ? 'left' : `refused by the limit on ${units[refusedBy as Dimension]}; left`;
  return `${lead} ${parts.join('; ')}`;
});
