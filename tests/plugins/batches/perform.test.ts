/** What a line of a batch gets of an answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headersOf, laterMsOf, lineAnswer } from '../../../plugins/batches/perform.ts';

const answer = (headers: Record<string, string>) =>
  ({
    ...{ status: 200, headers, ended: Promise.resolve('completed') },
    body: (async function* () {
      yield Buffer.from('{}');
    })(),
  }) as unknown as Parameters<typeof lineAnswer>[1];

test('a line names the request under which it is charged, also where its answer is replayed', async () => {
  const batch = { dialect: 'chat' } as unknown as Parameters<typeof lineAnswer>[0];
  const made = await lineAnswer(batch, answer({ 'x-request-id': 'first' }), 100);
  assert.deepEqual([made.requestId, made.answer], ['first', '{}']);
  const replayed = { 'x-request-id': 'second', 'x-original-request-id': 'first' };
  assert.equal((await lineAnswer(batch, answer(replayed), 100)).requestId, 'first');
});

test('a line waits after refusals that time or money ends, as long as they say; other refusals end it', () => {
  const later = (status: number, headers: Record<string, string> = {}) => laterMsOf({ status, headers } as never);
  for (const status of [409, 429, 503]) {
    assert.equal(later(status, { 'retry-after': '7' }), 7_000, `${status}`);
    assert.equal(later(status, { 'retry-after': '0' }), 1_000, `${status}`);
    assert.ok(later(status)! >= 1_000, `${status}`);
    assert.equal(later(status, { 'retry-after': '7', 'x-should-retry': 'false' }), undefined, `${status}`);
  }
  assert.deepEqual(headersOf({ headers: { a: 'b' } }), { a: 'b', 'content-type': 'application/json' });
  const ofMoney = later(402, { 'retry-after': '7', 'x-should-retry': 'false' });
  assert.equal(later(429, { 'retry-after': '999999' }), ofMoney);
  for (const status of [200, 400, 404, 500, 502])
    assert.equal(later(status, { 'retry-after': '7' }), undefined, `${status}`);
});
