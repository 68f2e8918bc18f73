/** What a hold sets aside and what a settlement costs, by the price version that was fixed with the hold. Pure. */
import { cost, costBound, type Money, type PieceBounds } from '../../core/money.ts';
import { type PriceContext, type Priced, priceFor, type Services } from '../../core/prices.ts';
import { promptTokens, type Usage } from '../../core/usage.ts';
import type { ModelTarget } from '../../core/vocabulary.ts';
import type { Terms } from './hold.ts';
import type { AttemptNote } from './records.ts';

/** Pieces that a hold covers. */
export type Allowance = PieceBounds;

/** A call's sum, and everything that it can be done again with. */
export interface Charge {
  readonly cost: Money;
  /** What was charged for: the report's usage, and the request itself where that has a price. */
  readonly usage: Usage;
  readonly priced: Priced;
  /** What it cost the operator; undefined: not known. */
  readonly own: Money | undefined;
}

/** What the upstream told beside counts. */
export interface Told {
  readonly services?: Services | undefined;
  readonly media?: readonly string[] | undefined;
}

/** The most that the call can cost when its answer has so many tokens. */
export function boundOf(terms: Terms, outputTokens: number): Money {
  const { prices, at, inputTokens, context, ratio, allowance } = terms;
  return costBound(inputTokens, outputTokens, prices.bound(at, inputTokens, context), ratio, allowance);
}

/** The price as the prompt's estimate has it: what a call that a crash cut off is charged by. */
export function priceAtHold({ prices, at, inputTokens, context }: Terms): Priced {
  return prices.priced(at, { input: inputTokens }, context);
}

/** The sum for a usage: tiers by the true prompt and by what was granted of what was asked for. */
export function chargeFor(terms: Terms, reported: Usage, told: Told, attempts: readonly AttemptNote[]): Charge {
  const context = granted(terms.context, told);
  const priced = terms.prices.priced(terms.at, reported, context);
  const usage = withRequest(reported, priced);
  return { cost: cost(usage, priced.price, terms.ratio), usage, priced, own: ownCost(terms, usage, context, attempts) };
}

/** What a usage comes to at the official price: without any ratio, for the service that was asked for. */
export function officialCost({ prices, at, context }: Pick<Terms, 'prices' | 'at' | 'context'>, usage: Usage): Money {
  const priced = prices.priced(at, usage, context);
  return cost(withRequest(usage, priced), priced.price);
}

/** As `officialCost`, where nobody has told what was made: pieces cost what the dearest of their kind does. */
export function officialBound(terms: Pick<Terms, 'prices' | 'at' | 'context'>, usage: Usage): Money {
  const { prices, at, context } = terms;
  if (usage.image === undefined && usage.second === undefined) return officialCost(terms, usage);
  const priced = prices.priced(at, usage, context);
  const { image, second } = prices.bound(at, promptTokens(usage), context);
  const dearest = { image: image ?? 0n, second: second ?? 0n };
  return cost(withRequest(usage, priced), { ...priced.price, ...dearest });
}

/** The request has a price in few books: the usage is copied for those alone. */
function withRequest(usage: Usage, { price }: Priced): Usage {
  return price.request === undefined ? usage : { ...usage, request: 1 };
}

/** A client pays for the service that it asked for, or for the standard one where it was given that; never for another. */
function granted(asked: PriceContext, { services, media }: Told): PriceContext {
  if (services === undefined && media === undefined) return asked;
  const kept = services === undefined || asked.services === undefined ? asked.services : both(asked.services, services);
  // What was stated beforehand is what is held and charged.
  const made = asked.media ?? media;
  return { ...(kept === undefined ? {} : { services: kept }), ...(made === undefined ? {} : { media: made }) };
}

function both(asked: Services, told: Services): Services {
  return Object.fromEntries(Object.entries(asked).filter(([kind, name]) => (told[kind] ?? name) === name));
}

/** By the book of the target that served it last. */
function ownCost(
  { entry, at }: Terms,
  usage: Usage,
  context: PriceContext,
  attempts: readonly AttemptNote[],
): Money | undefined {
  if (entry === undefined) return undefined;
  const book = targetOf(entry.targets, attempts.at(-1))?.cost ?? entry.cost;
  const priced = book === undefined ? undefined : priceFor(book, at, usage, context);
  return priced === undefined ? undefined : cost(usage, priced.price);
}

function targetOf(targets: readonly ModelTarget[], attempt: AttemptNote | undefined): ModelTarget | undefined {
  if (attempt === undefined) return undefined;
  for (const target of targets) {
    if (target.provider === attempt.provider && target.model === attempt.model) return target;
  }
  return undefined;
}
