/** The order of the candidates: as listed, drawn by weight, fastest first, or the session's target first. */
import type { Exchange } from '../../core/contract/contract.ts';
import type { Random } from '../../core/contract/host-tools.ts';
import { caller } from '../common/domain/accounts.ts';
import { call, conversation, type Pinned } from '../common/domain/calls.ts';
import type { Model } from '../common/domain/models.ts';
import { placedFor, placementOf } from '../common/domain/organizations/placement.ts';
import { plan } from '../common/domain/plans.ts';
import { type TargetStrategy, translations } from '../common/domain/upstreams.ts';
import { weightedAffinity } from '../common/kit/rendezvous.ts';
import { type Session, type SessionTarget, sessionOf } from './affinity.ts';
import {
  type Candidate,
  type Candidates,
  candidatesFor,
  checkPinned,
  endpointsOf,
  hasSeveralKeys,
} from './candidates.ts';
import type { RouteConfig } from './config.ts';
import type { Reason } from './timeline.ts';
import type { Tools } from './tools.ts';

/** One request in this many goes to the slower of two targets, so that its figures stay current. */
const exploreOneIn = 20;

export interface ChoiceInput {
  readonly strategy: TargetStrategy;
  readonly streamed: boolean;
  readonly session: Session | undefined;
  /** The target that served the session last. */
  readonly sessionTarget: SessionTarget | undefined;
  readonly random: Random;
}

export interface Order {
  readonly queue: Candidate[];
  readonly reason: Reason;
}

/**
 * All candidates in the order in which they are tried. Those that speak the client's protocol precede the others; the
 * session's last target precedes all. Where targets have weights, those without are fallbacks.
 */
export function orderCandidates({ native, foreign }: Candidates, input: ChoiceInput): Order {
  const ofNative = native.length > 1 ? arrange(native, input) : 'listed';
  const ofForeign = foreign.length > 1 ? arrange(foreign, input) : 'listed';
  const queue = foreign.length === 0 ? native : native.concat(foreign);
  if (input.sessionTarget !== undefined && moveToFront(queue, input.sessionTarget))
    return { queue, reason: 'where the session was before' };
  return { queue, reason: native.length > 0 ? ofNative : ofForeign };
}

function arrange(group: Candidate[], input: ChoiceInput): Reason {
  let sum = 0;
  for (const { weight } of group) sum += weight;
  if (input.strategy === 'fastest') {
    orderBySpeed(group, sum > 0, input);
    return 'the fastest';
  }
  if (sum === 0) return 'listed';
  const { session } = input;
  const first = session === undefined ? drawByWeight(group, sum, input.random) : hashedCandidate(group, session);
  fallbacksLast(group);
  toFront(group, group.indexOf(first));
  return session === undefined ? 'by weight' : 'by the session';
}

function drawByWeight(group: readonly Candidate[], sum: number, random: Random): Candidate {
  let left = random.fraction() * sum;
  const found = group.find(({ weight }) => {
    left -= weight;
    return left < 0;
  });
  // The sum is rounded, so the draw may fall behind the last one.
  return found ?? group.findLast(({ weight }) => weight > 0)!;
}

/** Rendezvous hashing: every process chooses the same candidate. */
function hashedCandidate(group: readonly Candidate[], { hash }: Session): Candidate {
  let best = group[0]!;
  let highest = Number.NEGATIVE_INFINITY;
  for (const candidate of group) {
    const score = weightedAffinity(hash, candidate.health.seed, candidate.weight);
    if (score <= highest) continue;
    highest = score;
    best = candidate;
  }
  return best;
}

/** The sort is stable, so the listed order holds within both groups. */
function fallbacksLast(group: Candidate[]): void {
  group.sort((one, other) => Number(other.weight > 0) - Number(one.weight > 0));
}

/**
 * The cheaper of two random candidates goes first, the others follow by cost. The power of two choices keeps requests from
 * all going to the one best target. Fallbacks are not drawn.
 */
function orderBySpeed(group: Candidate[], weighted: boolean, { streamed, random }: ChoiceInput): void {
  if (weighted) fallbacksLast(group);
  const drawable = weighted ? group.filter(({ weight }) => weight > 0).length : group.length;
  if (drawable < 2) return;
  const contenders = group.splice(0, drawable);
  const one = Math.floor(random.fraction() * drawable);
  const other = (one + 1 + Math.floor(random.fraction() * (drawable - 1))) % drawable;
  const isSooner = costOf(contenders[one]!, streamed) <= costOf(contenders[other]!, streamed);
  const explores = random.fraction() * exploreOneIn < 1;
  const first = contenders[isSooner === explores ? other : one]!;
  contenders.sort((left, right) => costOf(left, streamed) - costOf(right, streamed));
  toFront(contenders, contenders.indexOf(first));
  group.unshift(...contenders);
}

/** A target without figures gets one request; while it runs, the targets with figures are preferred. */
function costOf({ health }: Candidate, streamed: boolean): number {
  const expectedMs = health.figures.expectedMs(streamed);
  if (Number.isNaN(expectedMs)) return health.inFlight === 0 ? 0 : Number.MAX_VALUE;
  return expectedMs * (health.inFlight + 1);
}

/** false: the session's target is not a candidate any more. */
function moveToFront(queue: Candidate[], { provider, model }: SessionTarget): boolean {
  const index = queue.findIndex((candidate) => candidate.provider.name === provider && candidate.model === model);
  if (index === -1) return false;
  toFront(queue, index);
  return true;
}

function toFront(group: Candidate[], index: number): void {
  if (index > 0) group.unshift(group.splice(index, 1)[0]!);
}

export interface RequestOrder extends Order {
  readonly session?: Session | undefined;
  /** The target that served the session last. */
  readonly sessionTarget?: SessionTarget | undefined;
}

export function orderOf(
  exchange: Exchange,
  wanted: Model,
  tools: Tools,
  config: RouteConfig,
  pin?: Pinned,
): RequestOrder {
  const { host, registry, sessions } = tools;
  const [who, terms] = [exchange.find(caller), exchange.find(plan)];
  const isBound = who?.retention !== undefined || who?.regions !== undefined || terms?.regions !== undefined;
  const providers = isBound
    ? placedFor(placementOf(who, terms)!, tools.providers, wanted, pin?.provider)
    : tools.providers;
  const { protocol, convertsTo, choices, stream } = exchange.get(call);
  if (pin !== undefined) checkPinned(pin, wanted, providers);
  const requested = { protocol: pin?.protocol ?? protocol, convertsTo, choices };
  tools.translations ??= host.find(translations);
  const found = candidatesFor(wanted, requested, providers, tools.translations, registry, () => endpointsOf(host));
  if (pin !== undefined) {
    const own = found.native.concat(found.foreign).filter(({ provider }) => provider.name === pin.provider);
    return { queue: own.slice(0, 1), reason: 'pinned' };
  }
  const { native, foreign } = found;
  const only = native.length + foreign.length === 1 ? (native[0] ?? foreign[0]) : undefined;
  // A single target with a single key needs no session.
  if (only !== undefined && !hasSeveralKeys(only.provider)) return { queue: [only], reason: 'listed' };
  const session = sessionOf(exchange, config.affinity);
  const sessionTarget = session === undefined ? undefined : sessions.targetOf(session);
  const order = orderCandidates(found, {
    strategy: wanted.strategy ?? config.strategy,
    streamed: stream,
    session,
    sessionTarget,
    random: host.random,
  });
  return { ...withMediaFirst(exchange, order), session, sessionTarget };
}

/** Targets that can take what the request shows precede the others. Without media, and where all take the same, nothing is read. */
function withMediaFirst(exchange: Exchange, order: Order): Order {
  const { queue } = order;
  if (!queue.some(({ traits }) => traits.inputs !== undefined)) return order;
  const kinds = exchange.find(conversation)?.mediaKinds?.();
  if (kinds === undefined || kinds.size === 0) return order;
  const takes = ({ traits: { inputs } }: Candidate) =>
    inputs === undefined || [...kinds].every((kind) => inputs.some((one) => one === kind));
  const first = queue[0]!;
  const sorted = queue.filter(takes).concat(queue.filter((candidate) => !takes(candidate)));
  return { queue: sorted, reason: sorted[0] === first ? order.reason : 'takes the media' };
}
