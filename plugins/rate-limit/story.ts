/** What limits tell of a request: how much was left of plan and key, and which limit refused it. */
import { defineLine, type StoryValue } from '../../core/vocabulary.ts';
import type { Demand, Dimension, Verdict } from './limiter.ts';

const units: Readonly<Record<Dimension, string>> = {
  rpm: 'requests per minute',
  rpd: 'requests per day',
  tpm: 'tokens per minute',
  concurrency: 'at a time',
};
const owners = ['plan', 'key'] as const;
type Owner = (typeof owners)[number];

/** Values of one standing. */
const valuesEach = 4;

type StandingValues = [refusedBy: StoryValue, ...standings: StoryValue[]];

/** The dimension that refused, or null; then owner, dimension, what remains and the limit of each bucket. */
export function standingValues(
  accountId: string,
  demands: readonly Demand[],
  { refusedBy, standings }: Verdict,
): StandingValues {
  const values: StandingValues = [refusedBy?.dimension ?? null];
  standings.forEach(({ dimension, limit, remaining }, index) => {
    const owner: Owner = demands[index]!.subject === accountId ? 'plan' : 'key';
    values.push(owner, dimension, remaining, limit);
  });
  return values;
}

/** `left of the plan: 59 of 60 requests per minute; of the key: 4 of 5 at a time`. */
export const standingLine = defineLine('rate-limit.standing', (...[refusedBy, ...values]: StandingValues) => {
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
