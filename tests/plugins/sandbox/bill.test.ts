/** The vendor's bill, its measure and its cache memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Bill } from '../../../plugins/sandbox/bill.ts';
import { PromptCache } from '../../../plugins/sandbox/cache.ts';
import { addText, newModelRequest } from '../../../plugins/sandbox/script/model-request.ts';
import { cutText, piecesOf, textOfLength, tokensOf } from '../../../plugins/sandbox/script/tokens.ts';
import { fc } from '../../helpers/properties.ts';
import { openai, vendorFor } from './clients.ts';

const entry = {
  at: 1,
  endedAt: 2,
  protocol: 'chat',
  requestId: undefined,
  answerId: 'a',
  outcome: 'complete',
} as const;

test('totals are complete with any number of entries and models', () => {
  const bill = new Bill(10);
  for (let index = 0; index < 5_000; index++) bill.add({ ...entry, model: `model-${index}`, usage: { output: 2 } });
  const report = bill.report();
  assert.equal(report.requests, 5_000);
  assert.equal(report.recent.length, 10);
  assert.equal(report.recent.at(-1)!.number, 5_000);
  assert.ok(Object.keys(report.totals).length <= 1_001);
  assert.equal(
    Object.values(report.totals).reduce((sum, usage) => sum + usage.output!, 0),
    10_000,
  );
});

test('a cut that becomes known after a reset does not count', () => {
  const bill = new Bill();
  const before = bill.add({ ...entry, model: 'm', usage: {} });
  bill.reset();
  bill.turnedOutCut(before);
  assert.deepEqual(bill.report(), { requests: 0, complete: 0, cut: 0, open: 0, totals: {}, recent: [] });
  const after = bill.add({ ...entry, model: 'm', usage: {} });
  bill.turnedOutCut(after);
  bill.turnedOutCut(after);
  assert.equal(bill.report().cut, 1);
});

test('the bill is read and reset over HTTP, with the id that the caller sent', async (context) => {
  const vendor = await vendorFor(context);
  const headers = { 'x-gateway-request-id': 'request-7' };
  const messages = [{ role: 'user' as const, content: 'Bill me' }];
  const answer = await openai(vendor).chat.completions.create({ model: 'm', messages }, { headers });
  const bill = (await (await fetch(`${vendor.origin}/bill`)).json()) as ReturnType<Bill['report']>;
  assert.equal(bill.recent[0]!.requestId, 'request-7');
  assert.equal(`chatcmpl-${bill.recent[0]!.answerId}`, answer.id);
  assert.deepEqual(bill.totals['m'], bill.recent[0]!.usage);
  await fetch(`${vendor.origin}/bill/reset`, { method: 'POST' });
  assert.equal(vendor.bill().requests, 0);
  assert.equal((await fetch(`${vendor.origin}/nothing`)).status, 404);
});

test('a prefix is dropped after its time and when there are too many', () => {
  const requestOf = (text: string) => {
    const one = newModelRequest('chat', 'm');
    addText(one, 'user', text);
    return one;
  };
  const text = 'x'.repeat(8_192);
  const cache = new PromptCache(2);
  assert.equal(cache.count(requestOf(text), 0).cacheWrite5m, 2_048);
  assert.equal(cache.count(requestOf(text), 1_000).cacheRead, 2_048);
  assert.equal(cache.count(requestOf(text), 10_000_000).cacheRead, 0);
  cache.count(requestOf(`a${text}`), 10_000_000);
  cache.count(requestOf(`b${text}`), 10_000_000);
  assert.equal(cache.count(requestOf(text), 10_000_000).cacheRead, 0);
});

test('every prompt token is counted in exactly one class', () => {
  const cache = new PromptCache();
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 6_000 }), { minLength: 1, maxLength: 5 }),
      fc.boolean(),
      (sizes, marks) => {
        const request = newModelRequest(marks ? 'messages' : 'chat', 'm');
        request.marksOnly = marks;
        for (const size of sizes) addText(request, 'user', 'y'.repeat(size + 1), size % 2 === 0 ? '5m' : undefined);
        const counts = cache.count(request, 0);
        const sum = Object.values(counts).reduce((one, other) => one + other, 0);
        assert.equal(
          sum,
          request.prompt.reduce((tokens, segment) => tokens + segment.tokens, 0),
        );
        assert.ok(Object.values(counts).every((count) => count >= 0));
      },
    ),
  );
});

test('pieces join to the text, in the requested number, and no character is cut', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 20 }), (text, count) => {
      assert.equal(piecesOf(text, undefined).join(''), text);
      assert.equal(piecesOf(text, count).join(''), text);
      assert.ok(piecesOf(text, count).length <= count + 1);
      assert.ok(cutText(text, count).isWellFormed());
    }),
  );
  assert.equal(piecesOf('a'.repeat(40), 7).length, 7);
  assert.equal(tokensOf(textOfLength('It begins so', 250).length), 250);
  assert.equal(tokensOf(textOfLength('It begins so', 1).length), 1);
});
