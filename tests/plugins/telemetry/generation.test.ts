/** What is measured of calls of models, under which names. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Attributes, Meter } from '@opentelemetry/api';
import type { ContextKey, Outcome } from '../../../core/contract/contract.ts';
import { type Attempt, attempts, call, usageReport } from '../../../plugins/common/domain/calls.ts';
import type { SpanSettings } from '../../../plugins/telemetry/attributes.ts';
import { modelMeters } from '../../../plugins/telemetry/generation.ts';
import { fakeExchange } from '../../helpers/fakes.ts';

type Measured = readonly [name: string, value: number, attributes: Attributes];

const base = { provider: 'p', model: 'theirs', protocol: 'chat', credential: 'c' };
const first: Attempt = {
  ...base,
  ...{ number: 1, startedAt: 1_800_000_000_100, result: 'refused', status: 503, durationMs: 200, error: 'busy' },
};
const second: Attempt = {
  ...base,
  ...{ number: 2, startedAt: 1_800_000_000_300, result: 'answered', status: 200, durationMs: 50, error: undefined },
};
const usage = { input: 5, cache_read: 2, reasoning: 3, output: 4 };
const outcome: Outcome = { kind: 'complete', status: 200, bytesOut: 1, firstByteMs: 400, totalMs: 800 };

function measured(kind: string | undefined, convention: SpanSettings['convention'], stream = true): Measured[] {
  const list: Measured[] = [];
  const instrument = (name: string) => {
    const note = (value: number, attributes: Attributes) => void list.push([name, value, attributes]);
    return { record: note, add: note };
  };
  const meter = { createHistogram: instrument, createCounter: instrument } as unknown as Meter;
  const facts = [
    [call, { protocol: 'chat', model: 'm', stream, kind }],
    [attempts, [first, second]],
    [usageReport, { usage, estimated: false, terminal: true }],
  ] as [ContextKey<unknown>, unknown][];
  modelMeters(meter, convention)(fakeExchange({ facts }), outcome);
  return list;
}

const namesOf = (list: readonly Measured[]) => list.map(([name, value]) => `${name} ${value}`).toSorted();
const server = ['gen_ai.server.request.duration 0.8', 'gen_ai.server.time_to_first_token 0.4'];

test('by 1.37 a call of a model is measured as its server and, by each attempt, as a client of vendors', () => {
  const list = measured(undefined, '1.37');
  assert.deepEqual(namesOf(list), [
    ...['gen_ai.client.operation.duration 0.2', 'gen_ai.client.operation.duration 0.5'],
    ...['gen_ai.client.token.usage 7', 'gen_ai.client.token.usage 7', ...server],
  ]);
  const of = (name: string) => list.filter(([given]) => given === name).map(([, , attributes]) => attributes);
  const named = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'p', 'gen_ai.request.model': 'theirs' };
  assert.deepEqual(of('gen_ai.client.operation.duration'), [{ ...named, 'error.type': '503' }, named]);
});

test('by 0.1 the instruments are those of inferences, with one for each kind of token, and those of embeddings', () => {
  const usageOf = (name: string, count: number) => `gen_ai.client.inference.usage.${name} ${count}`;
  assert.deepEqual(namesOf(measured(undefined, 'genai-0.1')), [
    ...['gen_ai.client.inference.duration 0.2', 'gen_ai.client.inference.duration 0.5'],
    ...['gen_ai.client.inference.operation.input_tokens 7', 'gen_ai.client.inference.operation.output_tokens 7'],
    'gen_ai.client.inference.time_to_first_chunk 0.1',
    ...[usageOf('cache_read.input_tokens', 2), usageOf('input_tokens', 7), usageOf('output_tokens', 7)],
    ...[usageOf('reasoning.output_tokens', 3), ...server],
  ]);
  assert.deepEqual(namesOf(measured('embedding', 'genai-0.1', false)), [
    ...['gen_ai.client.embeddings.duration 0.2', 'gen_ai.client.embeddings.duration 0.5'],
    ...['gen_ai.client.embeddings.operation.input_tokens 7', server[0]!],
  ]);
});

test('a call that generates nothing is measured under names of the gateway, without attributes for generative AI', () => {
  for (const kind of ['rerank', 'moderation', 'decision', 'transcription'])
    for (const convention of ['1.37', 'genai-0.1'] as const) {
      const list = measured(kind, convention);
      assert.deepEqual(
        namesOf(list),
        ['gateway.request.duration 0.8', 'gateway.tokens 7', 'gateway.tokens 7'],
        `${kind} ${convention}`,
      );
      assert.doesNotMatch(JSON.stringify(list), /gen_ai/);
    }
});
