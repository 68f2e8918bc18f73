/** The instruments of calls of models: by the conventions for generative AI where something is generated, under names of the gateway otherwise. */
import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api';
import type { Exchange, Outcome } from '../../core/contract/contract.ts';
import { type Attempt, attempts, call, usageReport } from '../common/domain/calls.ts';
import {
  isGeneration,
  operationOf,
  others,
  requestAttributes,
  type SpanSettings,
  sum,
  tokensIn,
  tokensOut,
} from './attributes.ts';

/** Seconds and tokens: the bounds that the conventions advise. */
export const durationBounds = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36,
];
const firstTokenBounds = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60];
const tokenBounds = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];

type Usage = Readonly<Record<string, number | undefined>>;
export type ModelMeters = (exchange: Exchange, outcome: Outcome) => void;

/** Records the measurements of a call when its exchange has ended. */
export function modelMeters(meter: Meter, convention: SpanSettings['convention']): ModelMeters {
  const make = instruments(meter);
  const server = serverMeters(make);
  const client = convention === '1.37' ? clientMeters(make) : inferenceMeters(make, meter);
  const plain = otherMeters(make);
  return (exchange, outcome) => {
    const requestedCall = exchange.find(call);
    if (requestedCall === undefined) return;
    const attributes = requestAttributes(exchange, outcome, convention);
    const usage = exchange.find(usageReport)?.usage;
    if (!isGeneration(exchange)) return plain(others(attributes), outcome, usage);
    server(attributes, outcome, requestedCall.stream);
    for (const { of, seconds } of vendorCalls(exchange, outcome, convention)) client.took(of, seconds);
    const last = exchange.find(attempts)?.at(-1);
    if (last !== undefined && requestedCall.stream && outcome.firstByteMs !== undefined)
      client.began(namesOf(exchange, last, convention), secondsSince(exchange, last, outcome.firstByteMs));
    if (usage !== undefined) client.used(attributes, usage);
  };
}

type Make = ReturnType<typeof instruments>;

function instruments(meter: Meter) {
  const histogram = (unit: string, bounds: number[]) => (name: string, description: string) =>
    meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: bounds } });
  return {
    seconds: histogram('s', durationBounds),
    firstSeconds: histogram('s', firstTokenBounds),
    tokens: histogram('{token}', tokenBounds),
  };
}

/** The gateway as the server of models that it is to its clients. */
function serverMeters(make: Make) {
  const duration = make.seconds(
    'gen_ai.server.request.duration',
    'From the arrival of a request for a model to the last byte of its answer.',
  );
  const first = make.firstSeconds(
    'gen_ai.server.time_to_first_token',
    "From arrival to the first byte of a streamed answer's body.",
  );
  return (attributes: Attributes, { totalMs, firstByteMs }: Outcome, stream: boolean) => {
    duration.record(totalMs / 1_000, attributes);
    if (stream && firstByteMs !== undefined) first.record(firstByteMs / 1_000, attributes);
  };
}

/** The gateway as the client of vendors: one call of a vendor is an operation. */
interface ClientMeters {
  took(of: Attributes, seconds: number): void;
  /** Records the time to the first byte of a streamed answer. */
  began(of: Attributes, seconds: number): void;
  used(of: Attributes, usage: Usage): void;
}

const tookText = "From the sending of a request to a vendor to its end, or to the end of the client's answer.";
const usedText = 'Tokens that an answer used, in and out.';

function clientMeters(make: Make): ClientMeters {
  const duration = make.seconds('gen_ai.client.operation.duration', tookText);
  const tokens = make.tokens('gen_ai.client.token.usage', usedText);
  return {
    took: (of, seconds) => duration.record(seconds, of),
    began: () => {},
    used(of, usage) {
      tokens.record(tokensIn(usage), { ...of, 'gen_ai.token.type': 'input' });
      tokens.record(tokensOut(usage), { ...of, 'gen_ai.token.type': 'output' });
    },
  };
}

/** Version 0.1 of the conventions for generative AI alone has instruments by kind of call, and one for each kind of token. */
function inferenceMeters(make: Make, meter: Meter): ClientMeters {
  const duration = make.seconds('gen_ai.client.inference.duration', tookText);
  const first = make.seconds('gen_ai.client.inference.time_to_first_chunk', 'To the first byte of a streamed answer.');
  const embeddings = make.seconds('gen_ai.client.embeddings.duration', tookText);
  const embedded = make.tokens('gen_ai.client.embeddings.operation.input_tokens', 'Tokens in, of a request.');
  const histograms: Record<'input_tokens' | 'output_tokens', Histogram> = {
    input_tokens: make.tokens('gen_ai.client.inference.operation.input_tokens', 'Tokens in, of a request.'),
    output_tokens: make.tokens('gen_ai.client.inference.operation.output_tokens', 'Tokens out, of a request.'),
  };
  const counter = (name: string) =>
    meter.createCounter(`gen_ai.client.inference.usage.${name}`, { unit: '{token}', description: usedText });
  const counters: readonly (readonly [Counter, (usage: Usage) => number])[] = [
    [counter('input_tokens'), tokensIn],
    [counter('output_tokens'), tokensOut],
    [counter('cache_read.input_tokens'), (usage) => usage['cache_read'] ?? 0],
    [counter('cache_write.input_tokens'), (usage) => sum(usage, ['cache_write_5m', 'cache_write_1h'])],
    [counter('reasoning.output_tokens'), (usage) => usage['reasoning'] ?? 0],
  ];
  const isEmbedding = (of: Attributes) => of['gen_ai.operation.name'] === 'embeddings';
  return {
    took: (of, seconds) => (isEmbedding(of) ? embeddings : duration).record(seconds, of),
    began: (of, seconds) => first.record(seconds, of),
    used(of, usage) {
      if (isEmbedding(of)) return embedded.record(tokensIn(usage), of);
      histograms.input_tokens.record(tokensIn(usage), of);
      histograms.output_tokens.record(tokensOut(usage), of);
      for (const [made, countOf] of counters) {
        const count = countOf(usage);
        if (count > 0) made.add(count, of);
      }
    },
  };
}

/** Calls that rank, judge or transcribe, and those of tools, which have no tokens. */
function otherMeters(make: Make) {
  const duration = make.seconds(
    'gateway.request.duration',
    'From the arrival of a request that generates nothing, such as a ranking or the call of a tool, to the last byte of its answer.',
  );
  const tokens = make.tokens('gateway.tokens', 'Tokens of such requests, in and out.');
  return (of: Attributes, { totalMs }: Outcome, usage: Usage | undefined) => {
    duration.record(totalMs / 1_000, of);
    if (usage === undefined || Object.keys(usage).every((name) => name === 'call')) return;
    tokens.record(tokensIn(usage), { ...of, type: 'input' });
    tokens.record(tokensOut(usage), { ...of, type: 'output' });
  };
}

function namesOf(exchange: Exchange, attempt: Attempt, convention: SpanSettings['convention']): Attributes {
  return {
    'gen_ai.operation.name': operationOf(exchange, convention),
    'gen_ai.provider.name': attempt.provider,
    'gen_ai.request.model': attempt.model,
  };
}

/** Each sent attempt; the last one that answered lasts until the client has the answer. */
function vendorCalls(exchange: Exchange, { totalMs, error }: Outcome, convention: SpanSettings['convention']) {
  const list = exchange.find(attempts) ?? [];
  return list.flatMap((attempt) => {
    const { result, status, durationMs, lost } = attempt;
    if (lost === true || result === 'not_sent') return [];
    const isLast = attempt === list.at(-1) && result === 'answered';
    const fault = result === 'answered' ? (isLast ? error?.kind : undefined) : String(status ?? result);
    const of = { ...namesOf(exchange, attempt, convention), ...(fault !== undefined && { 'error.type': fault }) };
    return [{ of, seconds: isLast ? secondsSince(exchange, attempt, totalMs) : (durationMs ?? 0) / 1_000 }];
  });
}

/** Seconds from the attempt's start to this many milliseconds after the arrival; the wall clock may step. */
function secondsSince({ receivedAt }: Exchange, { startedAt }: Attempt, ms: number): number {
  return Math.max(0, Math.min(ms, receivedAt + ms - startedAt)) / 1_000;
}
