/** Two vendors requested side by side, one of which reports what no call can have used: charged and written off at possible figures. */
import assert from 'node:assert/strict';
import { after, before as begin, test } from 'node:test';
import {
  before,
  checkCharge,
  costOf,
  nextAnswered,
  nextRequest,
  type Pair,
  send,
  startPair,
  streamed,
  whole,
} from './hedging.ts';

const honest = { input: 7, output: 3 };
/** Cost of a call with at most 100 tokens of output and a short prompt. */
const mostCost = costOf({ input: 200, output: 100 });
const lies = {
  'input tokens': { input: 5_000_000_000, output: 3 },
  'output tokens': { input: 7, output: 4_000_000_000 },
  'tokens beyond exact numbers': { input: 7, output: 1e21 },
  'a negative count': { input: 7, output: -4_000_000 },
};
const more = { max_tokens: 100 };

let pair: Pair;
begin(async () => {
  pair = await startPair(60);
});
after(() => pair.stop());

for (const stream of [false, true]) {
  const form = stream ? streamed : whole;
  const name = stream ? 'streamed' : 'whole';
  for (const [what, counts] of Object.entries(lies)) {
    test(`${name}, the winner of a hedge reports ${what}: the estimate is charged and marked, the loser is written off as usual`, async () => {
      pair.first.play(form('first', honest, { headDelayMs: 10_000 }));
      pair.second.play(form('second', counts));
      const { customer, reply, requested } = await send(pair, 'pair', stream, more);
      assert.deepEqual([reply.status, reply.broken, requested], [200, false, [1, 1]]);
      const { ends, charges } = await pair.testbed.records(customer);
      assert.deepEqual([ends, charges[0]!.provider, charges[0]!.estimated], [['charged answered'], 'second', true]);
      assert.ok(charges[0]!.cost > 0n && charges[0]!.cost <= mostCost, String(charges[0]!.cost));
      const [lost] = await checkCharge(pair, customer, 'second', charges[0]!.cost);
      assert.deepEqual([lost!.provider, lost!.bearer, lost!.estimated], ['first', 'operator', true]);
      assert.ok(lost!.absorbed > 0n && lost!.absorbed <= mostCost, String(lost!.absorbed));
    });

    test(`${name}, the loser of a hedge reports ${what}: the winner is charged exactly, the loser is written off at a possible figure`, async () => {
      // Both are read to their ends, so that the loser's report is seen.
      const answered = nextAnswered(pair.first);
      pair.first.play(form('first', counts, { headDelayMs: 120 }));
      pair.second.play(form('second', honest));
      const { customer, reply, requested } = await send(pair, 'drained', stream, more);
      assert.deepEqual([reply.status, requested], [200, [1, 1]]);
      await answered;
      const [lost] = await checkCharge(pair, customer, 'steady', costOf(honest));
      assert.deepEqual([lost!.provider, lost!.bearer, lost!.estimated], ['patient', 'operator', true]);
      assert.equal(lost!.result, 'answered');
      assert.ok(lost!.absorbed > 0n && lost!.absorbed <= mostCost, String(lost!.absorbed));
    });
  }
}

test('both report impossible usage: one bounded charge, one bounded loss', async () => {
  const counts = lies['output tokens'];
  pair.first.play(whole('first', counts, { after: nextRequest(pair.second) }));
  pair.second.play(whole('second', counts, { headDelayMs: 200 }));
  const { customer } = await send(pair, 'drained', false, more);
  const { charges } = await pair.testbed.records(customer);
  assert.ok(charges[0]!.estimated && charges[0]!.cost <= mostCost);
  assert.equal(before - (await pair.testbed.balance(customer)), charges[0]!.cost);
  for (const { absorbed } of await pair.borne(customer)) assert.ok(absorbed <= mostCost, String(absorbed));
});

test('the ledger passes its audit at the end', () => pair.testbed.audit());
