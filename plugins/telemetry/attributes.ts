/**
 * What is said of a request in metrics and spans: the OpenTelemetry semantic conventions for generative AI where they have a
 * name, `gateway.…` where they have none. Nothing of a prompt, an answer, a key or an account is said.
 */

import type { Attributes } from '@opentelemetry/api';
import type { Exchange, Outcome } from '../../core/contract/contract.ts';
import { table } from '../../core/contract/table.ts';
import { type Attempt, attempts, call, usageReport } from '../common/domain/calls.ts';
import { isDelivered, servedBy } from '../common/domain/ledger.ts';
import { model } from '../common/domain/models.ts';

/** The conventions' operation by our protocol; the others are conversations. */
const operations: Readonly<Record<string, string>> = table({ gemini: 'generate_content' });

/** Few values each: they are the series of a metric. */
export function requestAttributes(exchange: Exchange, { kind, status, error }: Outcome): Attributes {
  const asked = exchange.find(call);
  const served = exchange.find(servedBy);
  const isServed = served !== undefined && isDelivered(served, kind);
  const last = isServed ? undefined : exchange.find(attempts)?.at(-1);
  return {
    'gen_ai.operation.name': operationOf(exchange),
    // A name that no catalogue knows is the client's invention.
    'gen_ai.request.model': exchange.find(model)?.id ?? 'unknown',
    'gen_ai.provider.name': last?.provider ?? 'none',
    'gateway.protocol': asked?.protocol ?? 'none',
    'gateway.stream': asked?.stream ?? false,
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

export function operationOf(exchange: Exchange): string {
  const asked = exchange.find(call);
  if (asked === undefined) return exchange.endpoint.operation;
  if (asked.kind !== undefined && asked.kind !== 'chat') return `generate_${asked.kind}`;
  return operations[asked.protocol] ?? 'chat';
}

/** Beyond those of the metrics: what only this one request had. */
export function spanAttributes(exchange: Exchange, outcome: Outcome): Attributes {
  const asked = exchange.find(call);
  const report = exchange.find(usageReport);
  const usage = report?.usage ?? {};
  return {
    ...requestAttributes(exchange, outcome),
    'gateway.request.id': exchange.id,
    'gateway.outcome': outcome.kind,
    'http.request.method': exchange.request.method,
    'http.route': exchange.endpoint.path,
    ...given('gen_ai.request.max_tokens', asked?.maxOutputTokens),
    ...given('gen_ai.response.id', report?.upstreamId),
    ...given('gen_ai.response.finish_reasons', report?.finish === undefined ? undefined : [report.finish]),
    ...given('gen_ai.usage.input_tokens', report && tokensIn(usage)),
    ...given('gen_ai.usage.output_tokens', report && tokensOut(usage)),
    ...given('gen_ai.usage.cache_read.input_tokens', usage.cache_read),
    ...given('gen_ai.usage.reasoning.output_tokens', usage.reasoning),
    ...given('gateway.time_to_first_byte', outcome.firstByteMs && outcome.firstByteMs / 1_000),
  };
}

type Counts = { readonly [name: string]: number | undefined };
const sum = (usage: Counts, names: readonly string[]) => names.reduce((total, name) => total + (usage[name] ?? 0), 0);
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
