/** What a line of a batch gets of an answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lineAnswer } from '../../../plugins/batches/perform.ts';

const answer = (headers: Record<string, string>) =>
  ({
    ...{ status: 200, headers, ended: Promise.resolve('completed') },
    body: (async function* () {
      yield Buffer.from('{}');
    })(),
  }) as unknown as Parameters<typeof lineAnswer>[1];

test('a line names the request under which it is charged, also where its answer is replayed to a later one', async () => {
  const batch = { dialect: 'chat' } as unknown as Parameters<typeof lineAnswer>[0];
  const made = await lineAnswer(batch, answer({ 'x-request-id': 'first' }), 100);
  assert.deepEqual([made.requestId, made.answer], ['first', '{}']);
  const replayed = { 'x-request-id': 'second', 'x-original-request-id': 'first' };
  assert.equal((await lineAnswer(batch, answer(replayed), 100)).requestId, 'first');
});
