/** What bounds hedges: which requests have none, how many do, who has a place, and what is seen of them. */
import assert from 'node:assert/strict';
import { after, before as begin, test } from 'node:test';
import { upstreamHealth } from '../../plugins/common/domain/admin/upstreams.ts';
import { eventsOf } from '../../plugins/request-log/timeline.ts';
import { type Pair, send, startPair, whole } from './hedging.ts';
import { type Reply, until } from './testbed.ts';

const afterMs = 100;
const one = { input: 7, output: 3 };
const two = { input: 8, output: 5 };
const silence = 10_000;
const slow = (milliseconds: number) => ({ headDelayMs: milliseconds });

let pair: Pair;
begin(async () => {
  pair = await startPair(afterMs);
});
after(() => pair.stop());

const says = ({ text }: Reply, words: string) => assert.match(text, new RegExp(words));

test('a call with lasting effects, and a model that turns hedging off, have one attempt', async () => {
  pair.first.play(whole('first', one, slow(300)));
  const requestOf = async (model: string, more: object) => (await send(pair, model, false, more)).requested;
  assert.deepEqual(await requestOf('pair', { store: true }), [1, 0]);
  assert.deepEqual(await requestOf('pair', { tools: [{ type: 'web_search' }] }), [1, 0]);
  assert.deepEqual(await requestOf('plain', {}), [1, 0]);
  assert.deepEqual(await requestOf('pair', { store: false }), [1, 1]);
});

test('a hedge never waits for a slot, and takes none from waiting requests', async () => {
  // Long enough for all three to be under way together, on a slow machine too.
  pair.second.play(whole('second', two, slow(3_000)));
  pair.first.play(whole('first', one, slow(1_500)));
  const requested = await Promise.all([send(pair, 'tight'), send(pair, 'tight'), send(pair, 'tight')]);
  for (const { reply } of requested) says(reply, 'first');
  await Promise.all(requested.map(({ customer }) => pair.testbed.records(customer)));
  const rows = await Promise.all(requested.map(({ customer }) => pair.borne(customer)));
  assert.equal(rows.flat().filter(({ provider }) => provider === 'narrow').length, 1);
});

test('the timeline has both attempts, and the request counts once', async () => {
  pair.first.play(whole('first', one, slow(silence)));
  pair.second.play(whole('second', two));
  const { reply, customer } = await send(pair, 'pair');
  await pair.testbed.records(customer);
  let rows: { id: string; attempts: number; provider: string; story: string }[] = [];
  await until('the row is written', async () => {
    rows = (await pair.testbed.rows<(typeof rows)[number]>('requests')).filter(({ id }) => id === reply.id);
    return rows.length === 1;
  });
  assert.deepEqual([rows[0]!.attempts, rows[0]!.provider], [2, 'second']);
  const lines = eventsOf(rows[0]!.story).map(([, id, ...values]) => [id, ...values]);
  assert.ok(
    lines.some(
      ([id, second, first, waitedMs]) => id === 'route.hedge' && second === 2 && first === 1 && waitedMs === afterMs,
    ),
  );
  assert.ok(lines.some(([id, number, result]) => id === 'route.attempt' && number === 1 && result === 'lost'));
});

test('no more than the set share of requests is hedged, and the timeline gives the reason', async () => {
  const half = await startPair(40, 0.5);
  try {
    half.first.play(whole('first', one, slow(120)));
    half.second.play(whole('second', two));
    const customer = await half.testbed.customer();
    const requested = [];
    for (let count = 0; count < 4; count += 1) {
      const began = half.second.requests.length;
      await half.testbed.call(customer, 'chat', { model: 'pair', prompt: 'Hello' });
      requested.push(half.second.requests.length - began);
    }
    assert.deepEqual(requested, [0, 1, 0, 1]);
    await half.testbed.records(customer, 4);
    const lines = async () =>
      (await half.testbed.rows<{ story: string }>('requests')).flatMap((row) => eventsOf(row.story));
    await until('the rows are written', async () => {
      const refused = (await lines()).filter(([, id, , why]) => id === 'route.no_hedge' && why === 'share');
      return refused.length === 2;
    });
  } finally {
    await half.stop();
  }
});

test('a losing attempt is slow and not failed: it leaves nothing in flight, no circuit counts it, and its time is known', async () => {
  const health = pair.testbed.gateway.gateway.find(upstreamHealth)!;
  health.reset('first');
  pair.first.play(whole('first', one, slow(silence)));
  pair.second.play(whole('second', two));
  const { customer } = await send(pair, 'pair');
  await pair.testbed.records(customer);
  for (const provider of ['first', 'second', 'patient', 'steady', 'narrow', 'twofold'])
    for (const { inFlight } of health.targets(provider)) assert.equal(inFlight, 0, provider);
  const target = health.targets('first').find(({ model }) => model === 'pair')!;
  assert.deepEqual([target.circuit, target.failed, target.recent], ['closed', 0, 0]);
  assert.ok(target.wholeMs! >= 80);
});

test('the ledger passes its audit at the end', () => pair.testbed.audit());
