/** A running answer against the money held for it: extensions, the end of the pool, progress. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { usageReport } from '../../../plugins/common/domain/calls.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import { enter, entered, leaveWorlds, meterOf, newCall, newWorld, report, send, usd } from './world.ts';

after(leaveWorlds);

const section = { hold: { output_tokens: 100 } };

test('an answer that outgrows its hold extends it by a step, and the settlement releases the rest', async () => {
  const world = await newWorld({ credit: '1', section });
  const exchange = await entered(world);
  const attempt = await send(exchange);
  assert.equal(meterOf(exchange).observe(100), true);
  assert.equal(await world.balance(), usd('0.997'));
  assert.equal(meterOf(exchange).observe(101), true);
  assert.equal(await world.balance(), usd('0.99599'));
  assert.equal(meterOf(exchange).observe(250), true);
  assert.equal(await world.balance(), usd('0.9945'));
  attempt.result = 'answered';
  exchange.set(usageReport, report({ input: 1_000, output: 260 }));
  await exchange.end();
  await world.stop();
  assert.equal(await world.balance(), usd('0.9954'));
  const amounts = [...world.journalText().matchAll(/"kind":"(HOLD|EXTEND)".*?"amount":"(\d+)"/g)].map(
    ([, kind, amount]) => [kind, amount],
  );
  assert.deepEqual(amounts, [
    ['HOLD', '3000000'],
    ['EXTEND', '1010000'],
    ['EXTEND', '1490000'],
  ]);
  const [call] = await world.rows(sql`select held::text, cost::text from ${world.table('calls')}`);
  assert.deepEqual(call, { held: '5500000', cost: '4600000' });
  const rows = await world.rows(
    sql`select kind, amount::text from ${world.table('movements')} where request_id is not null order by seq`,
  );
  assert.deepEqual(rows, [{ kind: 'CHARGE', amount: '-4600000' }], 'what was only set aside has not moved');
  assert.equal((await world.audit()).ok, true);
});

test('long stream past zero: the last of the balance is used in smaller steps, then the answer must end', async () => {
  const world = await newWorld({ credit: '0.0035', section });
  const exchange = await entered(world);
  (await send(exchange)).result = 'answered';
  let seen = 0;
  while (meterOf(exchange).observe(seen)) seen += 1;
  assert.equal(seen, 151);
  assert.equal(await world.balance(), 0n);
  exchange.set(usageReport, report({ input: 1_000, output: seen }, { terminal: false, estimated: true }));
  await exchange.end({ kind: 'failed' });
  await world.stop();
  assert.equal(await world.balance(), -10_000n);
  const extensions = world.journalText().split('"kind":"EXTEND"').length - 1;
  assert.ok(extensions > 0 && extensions <= 12, `${extensions} extensions`);
  assert.equal((await world.audit()).ok, true);
});

test('two streams share the rest of a balance, and neither takes it twice', async () => {
  const world = await newWorld({ credit: '0.007', section });
  const streams = [newCall(), newCall()];
  for (const exchange of streams) await enter(world, exchange);
  for (const exchange of streams) (await send(exchange)).result = 'answered';
  let running = streams;
  for (let seen = 0; running.length > 0; seen += 1) {
    running = running.filter((exchange) => meterOf(exchange).observe(seen));
    assert.ok((await world.balance()) >= 0n);
  }
  for (const exchange of streams) await exchange.end({ kind: 'failed' });
  await world.stop();
  assert.equal((await world.audit()).ok, true);
  const balance = await world.balance();
  assert.ok(balance >= -20_000n && balance <= 0n, `${balance}`);
});

test('an answer of a free model is never stopped and leaves no extension', async () => {
  const world = await newWorld({ section });
  const exchange = await entered(world, { model: { prices: flatBook({}, 'free') } });
  (await send(exchange)).result = 'answered';
  for (let seen = 0; seen < 1_000_000; seen += 997) assert.equal(meterOf(exchange).observe(seen), true);
  await exchange.end();
  await world.stop();
  assert.equal(world.journalText().includes('EXTEND'), false);
});

test('invalid counts neither extend a hold nor stop an answer', async () => {
  const world = await newWorld({ credit: '1', section });
  const exchange = await entered(world);
  for (const count of [Number.NaN, -1, Number.POSITIVE_INFINITY, 1e300]) {
    assert.equal(meterOf(exchange).observe(count), true);
  }
  assert.equal(meterOf(exchange).observe(99.5), true);
  assert.equal(await world.balance(), usd('0.997'));
  await exchange.end();
  await world.stop();
  assert.equal(await world.balance(), usd('1'));
});

test('after the end of an exchange its meter requests no more money', async () => {
  await using world = await newWorld({ credit: '1', section });
  const exchange = await entered(world);
  await exchange.end();
  assert.equal(meterOf(exchange).observe(1_000_000), false);
  assert.equal(await world.balance(), usd('1'));
});

test('progress is noted for streams that moved, and only for those', async () => {
  const world = await newWorld({ credit: '1' });
  const [moving, still] = [newCall(), newCall()];
  for (const exchange of [moving, still]) await enter(world, exchange);
  for (const exchange of [moving, still]) (await send(exchange)).result = 'answered';
  meterOf(moving).observe(40);
  await world.tick('note progress');
  await world.tick('note progress');
  for (const exchange of [moving, still]) await exchange.end();
  await world.tick('note progress');
  await world.stop();
  const noted = world.journalText().match(/\{"kind":"PROGRESS"[^}]*\}/g);
  assert.deepEqual(noted, [`{"kind":"PROGRESS","id":"${moving.id}","output":40}`]);
});
