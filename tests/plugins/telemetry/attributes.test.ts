/** How attempts are distinguished in metrics. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContextKey, Exchange, Outcome } from '../../../core/contract/contract.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { type Attempt, attempts, call, spendGuard, usageReport } from '../../../plugins/common/domain/calls.ts';
import { attemptAttributes, type SpanSettings, spanAttributes } from '../../../plugins/telemetry/attributes.ts';

const attempt = { provider: 'p', model: 'm', result: 'unknown', status: undefined } as Attempt;
const base = { 'gen_ai.provider.name': 'p', model: 'm' };

test('an attempt is counted by its end, a hedge as such, and a slower one as lost', () => {
  assert.deepEqual(attemptAttributes(attempt), { ...base, result: 'unknown' });
  assert.deepEqual(attemptAttributes({ ...attempt, result: 'answered', status: 200, hedge: true }), {
    ...base,
    result: 'answered',
    status: 200,
    hedge: true,
  });
  assert.deepEqual(attemptAttributes({ ...attempt, lost: true }), { ...base, result: 'lost' });
});

const outcome: Outcome = { kind: 'complete', status: 200, bytesOut: 1, firstByteMs: 250, totalMs: 500 } as Outcome;

/** What the span of a request says, with these context values. */
function said(values: readonly (readonly [ContextKey<never>, unknown])[], settings: Partial<SpanSettings> = {}) {
  const context = new Map<unknown, unknown>(values);
  const exchange = {
    id: 'id-1',
    receivedAt: 0,
    endpoint: { operation: 'files', path: '/v1/files' },
    request: { method: 'POST' },
    find: (key: unknown) => context.get(key),
  } as unknown as Exchange;
  return spanAttributes(exchange, outcome, { convention: '1.37', identities: 'hashed', ...settings });
}

const of = (key: unknown, value: unknown) => [key as ContextKey<never>, value] as const;
const requestOf = (kind: string | undefined) => of(call, { protocol: 'chat', model: 'm', stream: true, kind });
const usage = { input: 5, cache_write_5m: 2, input_audio: 3, output: 7, output_image: 4 };
const report = of(usageReport, { usage, estimated: false, terminal: true });
const namesOf = (attributes: object) => Object.keys(attributes).filter((name) => name.startsWith('gen_ai.'));

test('names for generative AI are used only for requests that generate', () => {
  const tried = of(attempts, [attempt]);
  for (const kind of ['rerank', 'decision', 'moderation', 'transcription']) {
    const attributes = said([requestOf(kind), tried]);
    assert.deepEqual(namesOf(attributes), [], kind);
    assert.equal(attributes['gateway.provider'], 'p');
  }
  assert.deepEqual(namesOf(said([])), []);
  for (const kind of [undefined, 'image', 'video', 'embedding', 'speech'])
    assert.equal(said([requestOf(kind), tried])['gen_ai.provider.name'], 'p', String(kind));
});

test('the convention decides the names of operations and of tokens by kind', () => {
  const old = said([requestOf('image'), report]);
  assert.equal(old['gen_ai.operation.name'], 'generate_image');
  assert.equal(old['gen_ai.usage.cache_write.input_tokens'], undefined);
  const fresh = said([requestOf('image'), report], { convention: 'genai-0.1' });
  assert.deepEqual(
    namesOf(fresh)
      .filter((name) => !(name in old))
      .toSorted(),
    [
      'gen_ai.request.stream',
      'gen_ai.response.time_to_first_chunk',
      'gen_ai.usage.audio.input_tokens',
      'gen_ai.usage.cache_write.input_tokens',
      'gen_ai.usage.image.output_tokens',
    ],
  );
  assert.equal(fresh['gen_ai.operation.name'], 'generate_content');
  assert.equal(said([requestOf('embedding')], { convention: 'genai-0.1' })['gen_ai.operation.name'], 'embeddings');
  assert.deepEqual([fresh['gen_ai.usage.input_tokens'], fresh['gen_ai.usage.output_tokens']], [10, 11]);
});

test('account, key and project are a digest, plain or absent, as set; the charge is there', () => {
  const who = of(caller, { accountId: 'account-1', keyId: 'key-1', project: 'launch' });
  const paid = of(spendGuard, { charged: () => ({ cost: 1_500n, own: 700n }) });
  const found = (identities: SpanSettings['identities']) => {
    const attributes = said([requestOf(undefined), who, paid], { identities });
    assert.deepEqual([attributes['gateway.charged.nano_usd'], attributes['gateway.own_cost.nano_usd']], [1_500, 700]);
    return ['account_id', 'key_id', 'project'].map((name) => attributes[`gateway.${name}`]);
  };
  assert.deepEqual(found('plain'), ['account-1', 'key-1', 'launch']);
  assert.deepEqual(found('none'), [undefined, undefined, undefined]);
  const digests = found('hashed');
  assert.match(digests.join(' '), /^[0-9a-f]{16} [0-9a-f]{16} [0-9a-f]{16}$/);
  assert.equal(new Set(digests).size, 3);
});
