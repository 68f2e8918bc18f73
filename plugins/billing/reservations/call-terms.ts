/** The terms of a call's charge and hold, fixed at its admission. */
import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { caller, tagsText } from '../../common/domain/accounts.ts';
import { type Call, call, vendorBatch, vendorBatchService } from '../../common/domain/calls.ts';
import { instead, type Model, model } from '../../common/domain/models.ts';
import { one, oneTool, type PieceBounds } from '../../common/domain/money.ts';
import { plan } from '../../common/domain/plans.ts';
import { planRatioOfCall, ratioOf } from '../../common/domain/price-ratio.ts';
import { type PriceContext, versionAt } from '../../common/domain/prices.ts';
import { maxCount } from '../../common/domain/usage.ts';
import type { Terms } from './terms.ts';

/** How much of an answer is held in advance. */
export interface HoldRules {
  /** Output tokens of one step: the first hold covers one step, and so does each extension. */
  readonly stepTokens: number;
  /** A non-streamed answer shows its length only at its end: `max` covers its longest length, `estimate` one step. */
  readonly nonStreaming: 'estimate' | 'max';
}

/** The call's terms, fixed now. A model without a current price cannot be called. */
export function termsOf(
  exchange: Exchange,
  rules: HoldRules,
  at: number,
  entry = exchange.get(model),
  planRatio = planRatioOfCall(exchange),
): Terms {
  const request = exchange.get(call);
  const identity = exchange.get(caller);
  const terms = exchange.find(plan);
  const prices = entry.prices === undefined ? undefined : versionAt(entry.prices, at);
  if (prices === undefined) {
    throw new GatewayError('unsupported', `The model "${entry.id}" has no price yet and cannot be used.`, {
      field: 'model',
      code: 'model_not_priced',
      shouldRetry: false,
    });
  }
  const { media } = request;
  const hasRatio = (planRatio ?? entry.multiplier ?? identity.multiplier) !== undefined;
  const services = exchange.find(vendorBatch) === undefined ? request.services : inVendorBatch;
  return {
    id: exchange.id,
    accountId: identity.accountId,
    keyId: identity.keyId,
    attribution: identity.attribution,
    tags: identity.tags && tagsText(identity.tags),
    model: entry.id,
    prices,
    at,
    context: services === undefined && media === undefined ? standard : { services: services ?? {}, ...given(media) },
    ratio: hasRatio ? ratioOf({ plan: planRatio, model: entry.multiplier, account: identity.multiplier }) : one,
    inputTokens: request.inputTokens,
    outputTokens: Math.min(outputHeld(request, entry, rules), maxCount),
    allowance: allowanceOf(request, entry),
    entry,
    // It was set when the call arrived, and may have ended while the call waited.
    plan: terms && { terms, at: exchange.receivedAt },
    budget: identity.budget,
  };
}

/** The terms of the other models that may serve the call. */
export function otherTerms(exchange: Exchange, rules: HoldRules, at: number): Terms[] {
  const others = exchange.find(instead)?.all() ?? [];
  return others.map((entry) => termsOf(exchange, rules, at, entry));
}

/**
 * A client may request more than the model produces. Of several non-streamed choices only one is held by the step:
 * all of them end at once, so that each of the others could overdraw the account by the same amount again.
 */
function outputHeld(request: Call, entry: Model, { stepTokens, nonStreaming }: HoldRules): number {
  const { stream, maxOutputTokens, choices } = request;
  const longest = entry.maxOutputTokens ?? entry.contextTokens;
  const step = Math.min(maxOutputTokens ?? entry.maxOutputTokens ?? stepTokens, stepTokens);
  if (stream) return step * choices;
  const whole = Math.min(maxOutputTokens ?? longest ?? stepTokens, longest ?? Number.POSITIVE_INFINITY);
  return nonStreaming === 'max' ? whole * choices : step + Math.max(whole, step) * (choices - 1);
}

const standard: PriceContext = {};
const textOnly = { textOnly: true };
const oneToolAndText: PieceBounds = { ...oneTool, ...textOnly };
/** A line that asks for another service is in no vendor's batch. The kind is one that no vendor reports. */
const inVendorBatch = { batch: vendorBatchService };

function given(media: readonly string[] | undefined): Pick<PriceContext, 'media'> {
  return media === undefined ? {} : { media };
}

/** Where an endpoint does not report the tools it offers, one call is covered. */
function allowanceOf({ toolCalls, images, seconds, counted }: Call, { traits }: Model): PieceBounds {
  const isText = traits?.text_only === true;
  if (counted !== undefined) return { tools: 0, images: 0, seconds: 0, others: counted };
  if (toolCalls === undefined && images === undefined && seconds === undefined)
    return isText ? oneToolAndText : oneTool;
  return { tools: toolCalls ?? 1, images: images ?? 0, seconds: seconds ?? 0, ...(isText ? textOnly : undefined) };
}
