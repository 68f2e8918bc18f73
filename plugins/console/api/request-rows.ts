/** Requests and what they were charged, as a client and as an operator is told. */
import { z } from '@hono/zod-openapi';
import type { RequestFilter, RequestSums, RequestView } from '../../../core/desk.ts';
import type { AttemptView, ChargeView } from '../../../core/desk-money.ts';
import { nothingHere } from './router.ts';
import { countAsked, id, instant, instantAsked, iso, usage, usd, usdOrNull, usdText } from './words.ts';

export const results = ['ok', 'client_error', 'upstream_error', 'left'] as const;
export const operations = ['model', 'provider', 'operation', 'account', 'key'] as const;

const told = {
  id: z.string(),
  receivedAt: instant,
  operation: z.string(),
  protocol: z.string().nullable(),
  keyId: z.string().nullable(),
  model: z.string().nullable(),
  streamed: z.boolean(),
  status: z.number(),
  outcome: z.enum(['complete', 'client_left', 'failed']),
  errorKind: z.string().nullable(),
  errorCode: z.string().nullable(),
  attempts: z.number(),
  firstByteMs: z.number().nullable(),
  totalMs: z.number(),
  bytesIn: z.number(),
  bytesOut: z.number(),
  usage: usage.nullable(),
  usageEstimated: z.boolean().nullable(),
  finish: z.string().nullable(),
  cost: usd.nullable().describe('null: nothing was charged (yet).'),
  refunded: usd.nullable(),
};
export const requestRow = z.object(told).openapi('Request');
export const operatorRequestRow = z
  .object({
    ...told,
    accountId: z.string().nullable(),
    provider: z.string().nullable(),
    upstreamModel: z.string().nullable(),
    upstreamId: z.string().nullable(),
    ownCost: usd.nullable(),
  })
  .openapi('OperatorRequest');

export function tellRequest(row: RequestView, charge: ChargeView | undefined): z.infer<typeof requestRow> {
  return {
    id: row.id,
    receivedAt: iso(row.receivedAt),
    operation: row.operation,
    protocol: row.protocol ?? null,
    keyId: row.keyId ?? null,
    model: row.model ?? null,
    streamed: row.streamed,
    status: row.status,
    outcome: row.outcome,
    errorKind: row.errorKind ?? null,
    errorCode: row.errorCode ?? null,
    attempts: row.attempts,
    firstByteMs: row.firstByteMs ?? null,
    totalMs: row.totalMs,
    bytesIn: row.bytesIn,
    bytesOut: row.bytesOut,
    usage: row.usage ?? charge?.usage ?? null,
    usageEstimated: row.usageEstimated ?? charge?.estimated ?? null,
    finish: row.finish ?? null,
    cost: usdOrNull(charge?.cost),
    refunded: usdOrNull(charge?.refunded),
  };
}

export function tellOperatorRequest(
  row: RequestView,
  charge: ChargeView | undefined,
): z.infer<typeof operatorRequestRow> {
  return {
    ...tellRequest(row, charge),
    accountId: row.accountId ?? null,
    provider: row.provider ?? charge?.provider ?? null,
    upstreamModel: row.upstreamModel ?? null,
    upstreamId: row.upstreamId ?? null,
    ownCost: usdOrNull(charge?.ownCost),
  };
}

const storyLine = z.object({ atMs: z.number(), by: z.string(), text: z.string() });
const charge = z.object({
  at: instant,
  cost: usd,
  refunded: usd,
  held: usd,
  usage,
  estimated: z.boolean(),
  ratio: z.string(),
  priceVersion: z.string(),
  tier: z.string().nullable(),
  formula: z.string().describe('A sum that a person can check.'),
});
const attempt = z.object({
  number: z.number(),
  startedAt: instant,
  result: z.enum(['running', 'not_sent', 'refused', 'unknown', 'answered']),
  status: z.number().nullable(),
  durationMs: z.number().nullable(),
});
const operatorAttempt = attempt.extend({
  provider: z.string(),
  model: z.string(),
  credential: z.string(),
  protocol: z.string(),
  error: z.string().nullable(),
  absorbed: usd,
  borneBy: z.enum(['client', 'operator']).nullable(),
});

/** A request from end to end. Clients are not told who served it, nor in which words the plugins decided. */
export const requestStory = z
  .object({
    request: requestRow,
    dropped: z.array(z.string()).describe('What a translation left out, by the names of the request.'),
    charge: charge.nullable(),
    attempts: z.array(attempt),
  })
  .openapi('RequestStory');
export const operatorRequestStory = z
  .object({
    request: operatorRequestRow,
    dropped: z.array(z.string()),
    story: z.array(storyLine),
    charge: charge.extend({ ownCost: usd.nullable() }).nullable(),
    attempts: z.array(operatorAttempt),
  })
  .openapi('OperatorRequestStory');

export type ChargeWithAttempts = ChargeView & { readonly attempts: readonly AttemptView[] };

export function tellCharge(view: ChargeView): z.infer<typeof charge> {
  return {
    at: iso(view.at),
    cost: usdText(view.cost),
    refunded: usdText(view.refunded),
    held: usdText(view.held),
    usage: view.usage,
    estimated: view.estimated,
    ratio: view.ratio,
    priceVersion: view.priceVersion,
    tier: view.tier ?? null,
    formula: view.formula,
  };
}

export function tellAttempt(view: AttemptView): z.infer<typeof attempt> {
  return {
    number: view.number,
    startedAt: iso(view.startedAt),
    result: view.result,
    status: view.status ?? null,
    durationMs: view.durationMs ?? null,
  };
}

export function tellOperatorAttempt(view: AttemptView): z.infer<typeof operatorAttempt> {
  const { provider, model, credential, protocol } = view;
  return {
    ...tellAttempt(view),
    provider,
    model,
    credential,
    protocol,
    error: view.error ?? null,
    absorbed: usdText(view.absorbed),
    borneBy: view.borneBy ?? null,
  };
}

const percentiles = z.object({ p50: z.number().nullable(), p95: z.number().nullable(), p99: z.number().nullable() });
const sumsTold = {
  requests: z.number(),
  results: z.object({ ok: z.number(), client_error: z.number(), upstream_error: z.number(), left: z.number() }),
  firstByte: percentiles,
  total: percentiles,
};
export const requestSums = z.object(sumsTold).openapi('RequestSums');
export const moneySums = { cost: usd.nullable(), ownCost: usd.nullable() };

export function tellSums({ requests, results, firstByte, total }: RequestSums): z.infer<typeof requestSums> {
  const tell = ({ p50, p95, p99 }: RequestSums['total']) => ({ p50: p50 ?? null, p95: p95 ?? null, p99: p99 ?? null });
  return { requests, results: { ...results }, firstByte: tell(firstByte), total: tell(total) };
}

/** What a list of requests is narrowed by, beside its span. */
export const requestsAsked = z.object({
  from: instantAsked.optional(),
  until: instantAsked.optional(),
  keyId: id.optional(),
  model: id.optional(),
  operation: id.optional(),
  result: z.enum(results).optional(),
});
export const operatorRequestsAsked = requestsAsked.extend({ accountId: id.optional(), provider: id.optional() });

export const bucketAsked = z.object({
  bucketMinutes: countAsked(1, 10_080).optional().describe('Minutes of a bucket; by default what makes about 60.'),
});

/** Whole minutes so that a span has about 60 buckets, and never more than 1,500. */
export function bucketMsOf({ from, until }: RequestFilter, minutes: number | undefined): number {
  const wanted = (minutes ?? 0) * 60_000;
  if (wanted > 0 && (until - from) / wanted <= 1_500) return wanted;
  const steps = [1, 5, 15, 30, 60, 180, 360, 720, 1_440, 10_080].map((step) => step * 60_000);
  return steps.find((step) => (until - from) / step <= 75) ?? steps.at(-1)!;
}

export const noRequest = () => nothingHere('request');
