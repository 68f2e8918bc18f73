/**
 * Attributes of a request in metrics and spans: the OpenTelemetry semantic conventions for generative AI where a request is
 * one and they have a name, `gateway.…` otherwise. Nothing of a prompt or an answer is said, nor a key; accounts by their ids, in spans.
 */

import { hash } from 'node:crypto';
import type { Attributes } from '@opentelemetry/api';
import type { Exchange, Outcome } from '../../core/contract/contract.ts';
import { table } from '../../core/contract/table.ts';
import { type Caller, caller } from '../common/domain/accounts.ts';
import { type Attempt, attempts, call, spendGuard, usageReport } from '../common/domain/calls.ts';
import { isDelivered, servedBy } from '../common/domain/ledger.ts';
import { model } from '../common/domain/models.ts';
import type { TelemetryConfig } from './config.ts';

/** The conventions' operation by our protocol; the others are conversations. */
const operations: Readonly<Record<string, string>> = table({
  gemini: 'generate_content',
  mcp: 'execute_tool',
  'web-search': 'execute_tool',
});

/** Few values each: they are the series of a metric. */
export function requestAttributes(
  exchange: Exchange,
  { kind, status, error }: Outcome,
  convention: SpanSettings['convention'] = '1.37',
): Attributes {
  const requestedCall = exchange.find(call);
  const served = exchange.find(servedBy);
  const isServed = served !== undefined && isDelivered(served, kind);
  const last = isServed ? undefined : exchange.find(attempts)?.at(-1);
  return {
    'gen_ai.operation.name': operationOf(exchange, convention),
    // A name that no catalogue knows is the client's invention.
    'gen_ai.request.model': exchange.find(model)?.id ?? 'unknown',
    'gen_ai.provider.name': last?.provider ?? 'none',
    'gateway.protocol': requestedCall?.protocol ?? 'none',
    'gateway.stream': requestedCall?.stream ?? false,
    'http.response.status_code': status,
    ...(error === undefined ? {} : { 'error.type': error.kind }),
  };
}

/** `hedge`: of attempts that were begun beside a silent one; `result` is `lost` where the other one answered first. */
export function attemptAttributes({ provider, model: name, result, status, hedge, lost }: Attempt): Attributes {
  return {
    'gen_ai.provider.name': provider,
    model: name,
    result: lost === true ? 'lost' : result,
    ...(hedge === true && { hedge }),
    ...(status !== undefined && { status }),
  };
}

export type SpanSettings = Pick<TelemetryConfig, 'convention' | 'identities'>;

/** Kinds of models that judge or rank and generate nothing. */
const judging: ReadonlySet<string> = new Set(['rerank', 'decision', 'moderation', 'transcription']);

/** Whether the request asks a model to make something. */
export function isGeneration(exchange: Exchange): boolean {
  const requestedCall = exchange.find(call);
  if (requestedCall === undefined || exchange.endpoint.operation === 'tool-call') return false;
  return !judging.has(requestedCall.kind ?? 'chat');
}

export function operationOf(exchange: Exchange, convention: SpanSettings['convention'] = '1.37'): string {
  const requestedCall = exchange.find(call);
  if (requestedCall === undefined) return exchange.endpoint.operation;
  if (requestedCall.kind !== undefined && requestedCall.kind !== 'chat') {
    if (convention === '1.37') return `generate_${requestedCall.kind}`;
    return requestedCall.kind === 'embedding' ? 'embeddings' : 'generate_content';
  }
  if (convention !== '1.37' && exchange.endpoint.operation === 'completions') return 'text_completion';
  return operations[requestedCall.protocol] ?? 'chat';
}

/** Beyond those of the metrics: what only this one request had. */
export function spanAttributes(exchange: Exchange, outcome: Outcome, settings: SpanSettings): Attributes {
  const attributes = requestAttributes(exchange, outcome, settings.convention);
  const common = {
    ...(isGeneration(exchange) ? { ...attributes, ...generated(exchange, outcome, settings) } : others(attributes)),
    'gateway.request_id': exchange.id,
    'gateway.outcome': outcome.kind,
    'http.request.method': exchange.request.method,
    'http.route': exchange.endpoint.path,
    ...given('gateway.time_to_first_byte', outcome.firstByteMs && outcome.firstByteMs / 1_000),
  };
  return { ...common, ...identitiesOf(exchange, settings), ...chargeOf(exchange) };
}

/** Without the names for generative AI: the model and the provider under names of the gateway. */
export function others(attributes: Attributes): Attributes {
  const kept = Object.entries(attributes).filter(([name]) => !name.startsWith('gen_ai.'));
  const { 'gen_ai.request.model': id, 'gen_ai.provider.name': provider } = attributes;
  return {
    ...Object.fromEntries(kept),
    ...(id === 'unknown' ? {} : given('gateway.model', id)),
    ...(provider === 'none' ? {} : given('gateway.provider', provider)),
  };
}

function generated(exchange: Exchange, { firstByteMs }: Outcome, { convention }: SpanSettings): Attributes {
  const requestedCall = exchange.find(call);
  const report = exchange.find(usageReport);
  const usage = report?.usage ?? {};
  const common = {
    ...given('gen_ai.request.max_tokens', requestedCall?.maxOutputTokens),
    ...given('gen_ai.response.id', report?.upstreamId),
    ...given('gen_ai.response.finish_reasons', report?.finish === undefined ? undefined : [report.finish]),
    ...given('gen_ai.usage.input_tokens', report && tokensIn(usage)),
    ...given('gen_ai.usage.output_tokens', report && tokensOut(usage)),
    ...given('gen_ai.usage.cache_read.input_tokens', usage.cache_read),
    ...given('gen_ai.usage.reasoning.output_tokens', usage.reasoning),
  };
  if (convention === '1.37') return common;
  const written = sum(usage, ['cache_write_5m', 'cache_write_1h']);
  const isStreamed = requestedCall?.stream === true;
  return {
    ...common,
    ...given('gen_ai.request.stream', isStreamed || undefined),
    ...given('gen_ai.response.time_to_first_chunk', isStreamed ? firstByteMs && firstByteMs / 1_000 : undefined),
    ...given('gen_ai.usage.cache_write.input_tokens', written || undefined),
    ...given('gen_ai.usage.audio.input_tokens', usage.input_audio || undefined),
    ...given('gen_ai.usage.image.input_tokens', usage.input_image || undefined),
    ...given('gen_ai.usage.audio.output_tokens', usage.output_audio || undefined),
    ...given('gen_ai.usage.image.output_tokens', usage.output_image || undefined),
  };
}

const digestLength = 16;

function identitiesOf(exchange: Exchange, settings: SpanSettings): Attributes {
  const who = exchange.find(caller);
  return who === undefined ? {} : identityAttributes(who, settings);
}

type Identities = Partial<Pick<Caller, 'accountId' | 'keyId' | 'project' | 'tags'>>;

export function identityAttributes(
  who: { readonly [Name in keyof Identities]: Identities[Name] | undefined },
  { identities }: SpanSettings,
): Attributes {
  if (identities === 'none') return {};
  const named = (id: string) => (identities === 'plain' ? id : hash('sha256', id, 'hex').slice(0, digestLength));
  return {
    ...given('gateway.account_id', who.accountId && named(who.accountId)),
    ...given('gateway.key_id', who.keyId && named(who.keyId)),
    ...given('gateway.project', who.project && named(who.project)),
    ...(who.tags && Object.fromEntries([...who.tags].map(([name, value]) => [`gateway.tag.${name}`, named(value)]))),
  };
}

/** Whole numbers of this size are exact as doubles up to nine million USD. */
function chargeOf(exchange: Exchange): Attributes {
  const amounts = exchange.find(spendGuard)?.charged?.();
  if (amounts === undefined) return {};
  const own = amounts.own === undefined ? {} : { 'gateway.own_cost.nano_usd': Number(amounts.own) };
  return { 'gateway.charged.nano_usd': Number(amounts.cost), ...own };
}

type Counts = { readonly [name: string]: number | undefined };
export const sum = (usage: Counts, names: readonly string[]) =>
  names.reduce((total, name) => total + (usage[name] ?? 0), 0);
const inClasses = [
  ...['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'input_audio', 'input_image'],
  ...['cache_read_audio', 'cache_read_image'],
];
const outClasses = ['output', 'reasoning', 'output_audio', 'output_image'];

export const tokensIn = (usage: Counts): number => sum(usage, inClasses);
export const tokensOut = (usage: Counts): number => sum(usage, outClasses);

function given(name: string, value: Attributes[string] | undefined): Attributes {
  return value === undefined ? {} : { [name]: value };
}
