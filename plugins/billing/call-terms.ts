/** What a call is charged by and what is set aside for it, fixed when it is let in. */
import type { Exchange } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { one, oneTool, type PieceBounds, type Ratio, timesRatio } from '../../core/money.ts';
import { type PriceContext, versionAt } from '../../core/prices.ts';
import { maxCount } from '../../core/usage.ts';
import { type Call, type Caller, call, caller, type Model, model, plan, priceRatio } from '../../core/vocabulary.ts';
import type { Terms } from './hold.ts';
import type { StatedPlan } from './terms.ts';

/** How much of an answer is covered before it comes. */
export interface HoldRules {
  /** Output tokens of one step: a hold covers so many at first, and each extension adds as many. */
  readonly stepTokens: number;
  /** An answer that is not streamed shows its length only at its end: `bound` covers all that it can have, `step` one step. */
  readonly wholeAnswers: 'step' | 'bound';
}

/** What the call is charged by, fixed now. A model that has no price now is not sold. */
export function termsOf(exchange: Exchange, rules: HoldRules, at: number): Terms {
  const request = exchange.get(call);
  const entry = exchange.get(model);
  const who = exchange.get(caller);
  const prices = entry.prices === undefined ? undefined : versionAt(entry.prices, at);
  if (prices === undefined) {
    throw new GatewayError('unsupported', `The model "${entry.id}" has no price yet and cannot be used.`, {
      field: 'model',
      code: 'model_not_priced',
      shouldRetry: false,
    });
  }
  const { services, media } = request;
  return {
    id: exchange.id,
    accountId: who.accountId,
    keyId: who.keyId,
    model: entry.id,
    prices,
    at,
    context: services === undefined && media === undefined ? standard : { services: services ?? {}, ...given(media) },
    ratio: ratioOf(exchange, entry, who),
    inputTokens: request.inputTokens,
    outputTokens: Math.min(outputHeld(request, entry, rules), maxCount),
    allowance: allowanceOf(request),
    entry,
    plan: planOf(exchange),
  };
}

/** The plan was stated when the call came, and may have ended while it waited for others. */
function planOf(exchange: Exchange): StatedPlan | undefined {
  const terms = exchange.find(plan);
  return terms && { terms, at: exchange.receivedAt };
}

/**
 * A client may ask for more than the model gives. Of several answers that are not streamed one alone is held by the step:
 * all of them end at once, so that each of the others could put the account as far below zero again.
 */
function outputHeld(request: Call, entry: Model, { stepTokens, wholeAnswers }: HoldRules): number {
  const { stream, maxOutputTokens, choices } = request;
  const longest = entry.maxOutputTokens ?? entry.contextTokens;
  const step = Math.min(maxOutputTokens ?? entry.maxOutputTokens ?? stepTokens, stepTokens);
  if (stream) return step * choices;
  const whole = Math.min(maxOutputTokens ?? longest ?? stepTokens, longest ?? Number.POSITIVE_INFINITY);
  return wholeAnswers === 'bound' ? whole * choices : step + Math.max(whole, step) * (choices - 1);
}

const standard: PriceContext = {};

function given(media: readonly string[] | undefined): Pick<PriceContext, 'media'> {
  return media === undefined ? {} : { media };
}

/** Plan × model × account. The plan's part is a fact where a plugin states it: it may depend on the model too. */
function ratioOf(exchange: Exchange, entry: Model, who: Caller): Ratio {
  const stated = exchange.find(priceRatio) ?? exchange.find(plan)?.multiplier ?? one;
  return timesRatio(timesRatio(stated, entry.multiplier ?? one), who.multiplier ?? one);
}

/** Where an endpoint does not tell what tools it offers, one call is covered. */
function allowanceOf({ toolCalls, images, seconds }: Call): PieceBounds {
  if (toolCalls === undefined && images === undefined && seconds === undefined) return oneTool;
  return { tools: toolCalls ?? 1, images: images ?? 0, seconds: seconds ?? 0 };
}
