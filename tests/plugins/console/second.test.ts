/** The console of the second gateway: people, prices and errors of its own. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser } from './browser.ts';
import { clientOf, operatorOf, startDemo, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
let boss: Browser;
before(async () => {
  testbed = await startDemo('demo-alt');
  boss = await operatorOf(testbed);
});
after(() => testbed.stop());

const modelOf = async (browser: Browser, name: string) =>
  (await browser.send('/models')).json.rows.find(({ id }: { id: string }) => id === name);

test("prices are those after the plan's ratio, and fall with the bought plan", async () => {
  const ada = await clientOf(testbed);
  const input = (model: { prices: { lines: { class: string; official: string; yours: string }[] } }) =>
    model.prices.lines.find((line) => line.class === 'input')!;
  const before = await modelOf(ada, 'gpt-5.4-mini');
  assert.equal(before.prices.ratio, '2');
  assert.equal(Number(input(before).yours), 2 * Number(input(before).official));
  const { id } = (await ada.send('/me')).json.account;
  const body = { amount: '30', reason: 'an invoice' };
  await boss.send(`/admin/accounts/${id}/credit`, { body, headers: { 'idempotency-key': 'invoice-1' } });
  const bought = await ada.send('/wallet/plans/saver', {
    method: 'POST',
    headers: { 'idempotency-key': 'saver-once' },
  });
  assert.equal(bought.status, 200, bought.text);
  assert.equal((await modelOf(ada, 'gpt-5.4-mini')).prices.ratio, '1.6');
});

test("errors of the console keep their shape beside the gateway's own", async () => {
  const browser = testbed.browser();
  const refusals = [
    await browser.send('/me'),
    await browser.send('/nothing'),
    await browser.send('/first-operator', { body: 'x'.repeat(70_000) }),
    await browser.send('/auth/nothing'),
  ];
  assert.deepEqual(
    refusals.map(({ status }) => status),
    [401, 404, 413, 404],
  );
  for (const { json } of refusals) assert.equal(typeof json.error.message, 'string');
  const outside = await fetch(`${testbed.origin}/v1/models`);
  assert.deepEqual(Object.keys((await outside.json()) as object), ['code', 'message']);
});
