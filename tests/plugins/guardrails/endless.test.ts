/** Sessions that go on for ever hold bounded memory: texts that are put back, answers under checks, and sound that waits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionChecks } from '../../../plugins/common/guardrails/sessions.ts';
import { sessionChecks } from '../../../plugins/guardrails/answer/session-checks.ts';
import { localChecks } from '../../../plugins/guardrails/checks/local.ts';
import { type CallTools, GuardedCall } from '../../../plugins/guardrails/guarded-call.ts';
import { Breaker, type OpenCheck } from '../../../plugins/guardrails/open-checks.ts';
import { Placeholders } from '../../../plugins/guardrails/placeholders.ts';
import { realtimeAnswers } from '../../../plugins/websockets/realtime/answer-reader.ts';
import { AnswerGate } from '../../../plugins/websockets/relay/answers/gate.ts';

const clock = { now: () => 0, monotonic: () => 0 };
const nothing = () => {};
const tools: CallTools = { clock, log: { warn: nothing }, broken: nothing, digest: () => '', said: nothing };

test('a session that masks 50,000 texts keeps the newest 10,000 of them, and no more characters than it may', () => {
  const placeholders = new Placeholders(1, true);
  const textOf = (index: number) => `${index} ${'x'.repeat(500)}`;
  for (let index = 0; index < 50_000; index++) {
    placeholders.avoid(`[OTHER-${index}]`);
    placeholders.of('EMAIL', textOf(index), true);
  }
  const { texts, characters, taken } = placeholders.kept;
  assert.ok(texts <= 10_000 && texts > 1_000, String(texts));
  assert.ok(characters <= 4 * 2 ** 20, String(characters));
  assert.ok(taken <= 10_000, String(taken));
  assert.equal(placeholders.restored.size, texts);
  assert.equal(placeholders.restored.get('[EMAIL-50000]'), textOf(49_999));
  assert.equal(placeholders.restored.has('[EMAIL-1]'), false);
  assert.equal(placeholders.of('EMAIL', textOf(0), true), '[EMAIL-50001]');
});

async function gate() {
  const words = localChecks.find(({ name }) => name === 'words')!;
  const parsed = (words.config as unknown as { parse(value: unknown): unknown }).parse({ list: ['banana'] });
  const settings = {
    ...{ on: ['answer'] as ['answer'], do: 'refuse' as const, as: 'error' as const, message: 'No fruit.' },
    ...{ within: 1_000, broken: 'refuse' as const, beside: false, restore: true },
  };
  const check: OpenCheck = {
    ...{ name: 'words', settings, digest: '' },
    check: await words.open(parsed, {} as never),
    breaker: new Breaker(clock),
  };
  const placeholders = new Placeholders(1, true);
  const applied = { checks: [check], allowsUncovered: false, charging: new Set<string>() };
  const release = { mode: 'pieces', release: 20, overlap: 10 } as const;
  const checks: SessionChecks = sessionChecks(applied, release, placeholders.restored, (own) => ({
    call: new GuardedCall(own, { operation: 'realtime', hasNoAnswer: true, placeholders }, tools),
    done: nothing,
  }))!;
  const held = { now: 0, most: 0 };
  const answers = new AnswerGate(checks, realtimeAnswers, (bytes) => {
    held.now += bytes;
    held.most = Math.max(held.most, held.now);
    return true;
  });
  let errors = 0;
  let bytes = 0;
  const send = async (event: object) =>
    answers.deliver(
      { data: Buffer.from(JSON.stringify(event)), isBinary: false },
      ({ data }) => {
        bytes += data.length;
        return undefined;
      },
      async () => void errors++,
    );
  return { send, held, close: () => answers.close(), seen: () => ({ errors, bytes }) };
}

const at = (id: string) => ({ response_id: id, item_id: `item ${id}`, output_index: 0, content_index: 0 });

test('a session of 2,000 answers with text and sound holds nothing of those that have ended, refused ones too', async () => {
  const { send, held, close, seen } = await gate();
  for (let index = 0; index < 2_000; index++) {
    const id = `r${index}`;
    const text = index % 3 === 0 ? 'A banana.' : 'A pear, and more of it.';
    await send({ type: 'response.output_audio.delta', ...at(id), delta: 'AAAA' });
    await send({ type: 'response.output_audio_transcript.delta', ...at(id), delta: text });
    await send({ type: 'response.output_audio_transcript.done', ...at(id), transcript: text });
    await send({ type: 'response.done', response: { id, output: [{ content: [{ transcript: text }] }] } });
    assert.equal(held.now, 0);
  }
  assert.ok(held.most < 1_000, String(held.most));
  assert.equal(seen().errors, 667);
  close();
});

test('an answer that does not end is refused once it is too long, and so are answers beyond a hundred that run at once', async () => {
  const { send, held, close, seen } = await gate();
  const piece = 'some words and more '.repeat(5_000);
  for (let index = 0; index < 120; index++)
    await send({ type: 'response.output_text.delta', ...at('endless'), delta: piece });
  assert.ok(held.most <= 8 * 2 ** 20, String(held.most));
  assert.equal(seen().errors, 1);
  assert.equal(held.now, 0);
  for (let index = 0; index < 200; index++)
    await send({ type: 'response.output_text.delta', ...at(`open ${index}`), delta: 'A pear' });
  assert.equal(seen().errors, 101);
  assert.equal(held.now, 100 * 'A pear'.length);
  close();
  assert.equal(held.now, 0);
});
