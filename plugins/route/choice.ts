/** Which of the targets goes first: the listed order, the draw by weight, the one that answers soonest, a session's own. */
import type { Random } from '../../core/contract.ts';
import { weightedBelonging } from '../../core/rendezvous.ts';
import type { Choosing } from '../../core/vocabulary.ts';
import type { Place, Session } from './affinity.ts';
import type { Candidate, Candidates } from './candidates.ts';

/** One request in this many asks the slower one of two, so that it is known how slow it still is. */
const exploresEvery = 20;

export interface Wish {
  readonly choosing: Choosing;
  readonly streamed: boolean;
  readonly session: Session | undefined;
  /** Where the session was served before. */
  readonly place: Place | undefined;
  readonly random: Random;
}

/** Why the first one is first; for people. */
export type Reason =
  | 'listed'
  | 'by weight'
  | 'by the session'
  | 'where the session was before'
  | 'the fastest'
  | 'pinned';

export interface Order {
  readonly queue: Candidate[];
  readonly reason: Reason;
}

/**
 * All candidates in the order in which they are tried. Those that speak the client's protocol come before the others; a
 * session's earlier place comes before all. Where targets carry weights, those without stay behind as fallbacks.
 */
export function inOrder({ native, foreign }: Candidates, wish: Wish): Order {
  const ofNative = native.length > 1 ? arrange(native, wish) : 'listed';
  const ofForeign = foreign.length > 1 ? arrange(foreign, wish) : 'listed';
  const queue = foreign.length === 0 ? native : native.concat(foreign);
  if (wish.place !== undefined && comesFirst(queue, wish.place))
    return { queue, reason: 'where the session was before' };
  return { queue, reason: native.length > 0 ? ofNative : ofForeign };
}

function arrange(group: Candidate[], wish: Wish): Reason {
  let sum = 0;
  for (const { weight } of group) sum += weight;
  if (wish.choosing === 'fastest') {
    byHaste(group, sum > 0, wish);
    return 'the fastest';
  }
  if (sum === 0) return 'listed';
  const { session } = wish;
  const first = session === undefined ? drawn(group, sum, wish.random) : nearest(group, session);
  fallbacksLast(group);
  toFront(group, group.indexOf(first));
  return session === undefined ? 'by weight' : 'by the session';
}

function drawn(group: readonly Candidate[], sum: number, random: Random): Candidate {
  let left = random.fraction() * sum;
  const found = group.find(({ weight }) => {
    left -= weight;
    return left < 0;
  });
  // None: the sum was rounded, and the draw fell behind the last one.
  return found ?? group.findLast(({ weight }) => weight > 0)!;
}

/** Every process comes to the same one. */
function nearest(group: readonly Candidate[], { hash }: Session): Candidate {
  let best = group[0]!;
  let highest = Number.NEGATIVE_INFINITY;
  for (const candidate of group) {
    const score = weightedBelonging(hash, candidate.health.seed, candidate.weight);
    if (score <= highest) continue;
    highest = score;
    best = candidate;
  }
  return best;
}

/** The sort is stable: the listed order holds on either side. */
function fallbacksLast(group: Candidate[]): void {
  group.sort((one, other) => Number(other.weight > 0) - Number(one.weight > 0));
}

/**
 * The better of two that are drawn goes first, the others follow as they do (the power of two choices: a herd does not run
 * to the one best). Fallbacks take no part.
 */
function byHaste(group: Candidate[], weighted: boolean, { streamed, random }: Wish): void {
  if (weighted) fallbacksLast(group);
  const racing = weighted ? group.filter(({ weight }) => weight > 0).length : group.length;
  if (racing < 2) return;
  const racers = group.splice(0, racing);
  const one = Math.floor(random.fraction() * racing);
  const other = (one + 1 + Math.floor(random.fraction() * (racing - 1))) % racing;
  const isSooner = costOf(racers[one]!, streamed) <= costOf(racers[other]!, streamed);
  const explores = random.fraction() * exploresEvery < 1;
  const first = racers[isSooner === explores ? other : one]!;
  racers.sort((left, right) => costOf(left, streamed) - costOf(right, streamed));
  toFront(racers, racers.indexOf(first));
  group.unshift(...racers);
}

/** Who is not known yet is asked once; while that one is under way the known ones are better. */
function costOf({ health }: Candidate, streamed: boolean): number {
  const expectedMs = health.figures.expectedMs(streamed);
  if (Number.isNaN(expectedMs)) return health.inFlight === 0 ? 0 : Number.MAX_VALUE;
  return expectedMs * (health.inFlight + 1);
}

/** false: none of them is there any more. */
function comesFirst(queue: Candidate[], { provider, model }: Place): boolean {
  const index = queue.findIndex((candidate) => candidate.provider.name === provider && candidate.model === model);
  if (index === -1) return false;
  toFront(queue, index);
  return true;
}

function toFront(group: Candidate[], index: number): void {
  if (index > 0) group.unshift(group.splice(index, 1)[0]!);
}
