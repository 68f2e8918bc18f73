/** The amounts of holds and settlements, by the price version fixed with the hold. Pure. */

import type { ServedBy } from '../../common/domain/ledger.ts';
import { cost, costBound, type Money, one, type Ratio, timesRatio, zero } from '../../common/domain/money.ts';
import { type PriceContext, type Priced, priceFor, type Services } from '../../common/domain/prices.ts';
import { promptTokens, type Usage } from '../../common/domain/usage.ts';
import type { AttemptNote } from '../model/records.ts';
import type { Terms } from './terms.ts';

/** A call's charge with all values needed to recompute it. */
export interface Charge {
  readonly cost: Money;
  /** The charged usage: the report's, and the request itself where it has a price. */
  readonly usage: Usage;
  readonly priced: Priced;
  readonly ratio: Ratio;
  /** The operator's cost; undefined: unknown. */
  readonly own: Money | undefined;
}

/** What the upstream reported beside counts. */
export interface ReportedTerms {
  readonly services?: Services | undefined;
  readonly media?: readonly string[] | undefined;
  readonly served?: ServedBy | undefined;
}

/** The most that the call can cost with this many output tokens. */
export function boundOf(terms: Terms, outputTokens: number): Money {
  const { prices, at, inputTokens, context, ratio, allowance } = terms;
  return costBound(inputTokens, outputTokens, prices.bound(at, inputTokens, context), ratio, allowance);
}

/** The hold of the call: the most that it can cost with its first output tokens, whichever model serves it. */
export function firstHold(terms: Terms): Money {
  const amount = boundOf(terms, terms.outputTokens);
  if (terms.others === undefined) return amount;
  return terms.others.map(firstHold).reduce((most, other) => (other > most ? other : most), amount);
}

/** The price by the prompt's estimate, which is used for calls interrupted by a crash. */
export function priceAtHold({ prices, at, inputTokens, context }: Terms): Priced {
  return prices.priced(at, { input: inputTokens }, context);
}

/** The charge for a usage: tiers by the actual prompt and by the granted service. */
export function chargeFor(
  terms: Terms,
  reported: Usage,
  reportedTerms: ReportedTerms,
  attempts: readonly AttemptNote[],
): Charge {
  if (reportedTerms.served !== undefined) return chargeForServed(terms, reported, reportedTerms.served);
  const isAsRequested = reportedTerms.services === undefined && reportedTerms.media === undefined;
  const context = isAsRequested ? terms.context : granted(terms.context, reportedTerms);
  const priced = terms.prices.priced(terms.at, reported, context);
  const usage = priced.price.request === undefined ? reported : withRequest(reported, priced);
  const { ratio } = terms;
  return {
    cost: cost(usage, priced.price, ratio),
    usage,
    priced,
    ratio,
    own: ownCost(terms, usage, context, attempts.at(-1)),
  };
}

/** The charge of an answer without an attempt; the operator's own cost is zero. */
function chargeForServed(terms: Terms, reported: Usage, { price: rule }: ServedBy): Charge {
  if (rule === 'free' || 'fixed' in rule) {
    const price = rule === 'free' ? {} : { request: rule.fixed };
    const priced = { price, version: servedVersion, tier: '' };
    const usage = withRequest(reported, priced);
    return { cost: cost(usage, price, one), usage, priced, ratio: one, own: zero };
  }
  const priced = terms.prices.priced(terms.at, reported, terms.context);
  const usage = withRequest(reported, priced);
  const ratio = timesRatio(terms.ratio, rule.ratio);
  return { cost: cost(usage, priced.price, ratio), usage, priced, ratio, own: zero };
}

/** Recorded instead of a price version of the model. */
const servedVersion = 'served';

/** The cost of a usage at the official price: without any ratio, for the requested service. */
export function officialCost({ prices, at, context }: Pick<Terms, 'prices' | 'at' | 'context'>, usage: Usage): Money {
  const priced = prices.priced(at, usage, context);
  return cost(withRequest(usage, priced), priced.price);
}

/** Like `officialCost` where the produced kind is unknown: pieces cost the most expensive of their kind. */
export function officialBound(terms: Pick<Terms, 'prices' | 'at' | 'context'>, usage: Usage): Money {
  const { prices, at, context } = terms;
  if (usage.image === undefined && usage.second === undefined) return officialCost(terms, usage);
  const priced = prices.priced(at, usage, context);
  const { image, second } = prices.bound(at, promptTokens(usage), context);
  const dearest = { image: image ?? 0n, second: second ?? 0n };
  return cost(withRequest(usage, priced), { ...priced.price, ...dearest });
}

/** Few price lists price the request itself: the usage is copied for those alone. */
function withRequest(usage: Usage, { price }: Priced): Usage {
  return price.request === undefined ? usage : { ...usage, request: 1 };
}

/** A client pays for the service it requested, or for the standard one if that was provided; never for another. */
function granted(requested: PriceContext, { services, media }: ReportedTerms): PriceContext {
  const kept =
    services === undefined || requested.services === undefined
      ? requested.services
      : both(requested.services, services);
  // Media stated in the request determine hold and charge.
  const made = requested.media ?? media;
  if (kept === requested.services && made === requested.media) return requested;
  return { ...(kept === undefined ? {} : { services: kept }), ...(made === undefined ? {} : { media: made }) };
}

function both(requested: Services, reported: Services): Services {
  return Object.fromEntries(Object.entries(requested).filter(([kind, name]) => (reported[kind] ?? name) === name));
}

/** Uses the price book of the target that served the call last. */
function ownCost(
  { entry, at }: Pick<Terms, 'entry' | 'at'>,
  usage: Usage,
  context: PriceContext,
  attempt: SentTo | undefined,
): Money | undefined {
  if (entry === undefined) return undefined;
  let book = entry.cost;
  for (const target of entry.targets)
    if (target.provider === attempt?.provider && target.model === attempt.model) {
      book = target.cost ?? book;
      break;
    }
  const priced = book === undefined ? undefined : priceFor(book, at, usage, context);
  return priced === undefined ? undefined : cost(usage, priced.price);
}

type SentTo = Pick<AttemptNote, 'provider' | 'model'>;

/** The operator's cost of a usage at this attempt's target; undefined: unknown, as for pieces of a kind that the vendor chose. */
export function ownBound(
  { entry, at, context }: Partial<Pick<Terms, 'entry'>> & Pick<Terms, 'at' | 'context'>,
  usage: Usage,
  attempt: SentTo,
  estimated: boolean,
): Money | undefined {
  if (estimated && (usage.image !== undefined || usage.second !== undefined)) return undefined;
  return ownCost({ entry, at }, usage, context, attempt);
}
