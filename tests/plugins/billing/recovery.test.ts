/** Crashes, failing databases and full disks: nothing acknowledged is lost, nothing is charged twice. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { applyBatch } from '../../../plugins/billing/ledger/batch.ts';
import { usageReport } from '../../../plugins/common/domain/calls.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import {
  answer,
  diskFull,
  enter,
  entered,
  leaveWorlds,
  meterOf,
  newCall,
  newWorld,
  report,
  send,
  usd,
  type World,
} from './world.ts';

after(leaveWorlds);

/** Some fields of every attempt. */
async function attemptsIn(world: World, ...fields: string[]): Promise<Record<string, unknown>[]> {
  const rows = await world.rows<{ attempts: Record<string, unknown>[] }>(
    sql`select ${world.table('attempts_of')}(attempts, provider, target_model) as attempts from ${world.table('calls')} order by created_at, id`,
  );
  const tried = rows.flatMap((row) => row.attempts);
  return tried.map((attempt) => Object.fromEntries(fields.map((field) => [field, attempt[field]])));
}

async function isRefused(world: World, status: number): Promise<void> {
  await assert.rejects(enter(world, newCall()), (error) => (error as GatewayError).status === status);
}

test('leaked hold: a crash before the request was sent releases all of the hold', async () => {
  const world = await newWorld({ credit: '1' });
  await enter(world, newCall());
  await world.tick('write the ledger');
  await using next = await world.crash();
  assert.equal(await next.balance(), usd('1'));
  assert.deepEqual((await next.audit()).violations, []);
});

test('a crash in mid-stream charges the prompt and the output noted last, marked as an estimate', async () => {
  const world = await newWorld({ credit: '1', section: { hold: { output_tokens: 50 } } });
  const exchange = await entered(world);
  await send(exchange);
  meterOf(exchange).observe(80);
  await world.tick('note progress');
  await world.tick('sync the journal');
  meterOf(exchange).observe(99);
  const next = await world.crash();
  assert.equal(await next.balance(), usd('0.9972'));
  const used = await next.rows(sql`select classes, estimated, provider from ${next.table('calls')}`);
  assert.deepEqual(used, [{ classes: { input: 1_000, output: 80 }, estimated: true, provider: 'vendor' }]);
  const tried = await attemptsIn(next, 'result');
  assert.deepEqual(tried, [{ result: 'unknown' }]);
  await using again = await next.crash();
  assert.equal(await again.balance(), usd('0.9972'));
  assert.deepEqual((await again.audit()).violations, []);
});

test('a crash of a call that is counted beforehand charges its hold: seconds, characters, searches', async () => {
  const world = await newWorld({ credit: '1' });
  const prices = flatBook({ audio: usd('0.36'), character: usd('15'), search: usd('0.002') }, 'v1');
  const counted = { audio: 90, character: 1_000, search: 2 };
  const exchange = await entered(world, { call: { inputTokens: 0, maxOutputTokens: 0, counted }, model: { prices } });
  await send(exchange);
  await world.tick('sync the journal');
  await using next = await world.crash();
  // 90 s at 0.36 an hour, 1,000 characters at 15 a million, two searches.
  assert.equal(await next.balance(), usd('1') - usd('0.009') - usd('0.015') - usd('0.004'));
  const used = await next.rows(sql`select classes, estimated from ${next.table('calls')}`);
  assert.deepEqual(used, [{ classes: { input: 0, output: 0, ...counted }, estimated: true }]);
  assert.deepEqual((await next.audit()).violations, []);
});

test('a settlement in the journal is charged after a crash, though the database never had it', async () => {
  const world = await newWorld({ credit: '1' });
  for (let index = 0; index < 5; index += 1) {
    const exchange = await entered(world);
    await answer(exchange, { input: 500, output: 10 });
    if (index === 2) await world.tick('write the ledger');
  }
  await world.tick('sync the journal');
  await using next = await world.crash();
  assert.equal(await next.balance(), usd('0.9945'));
  assert.deepEqual((await next.audit()).violations, []);
});

test('an answer lost after the commit changes nothing when the batch is repeated, in this process or the next', async () => {
  const world = await newWorld({ credit: '1' });
  for (const crash of [false, true]) {
    const exchange = await entered(world);
    await answer(exchange, { input: 1_000, output: 100 });
    world.faults.afterCommit = true;
    await world.tick('write the ledger');
    if (crash) {
      await using next = await world.crash();
      assert.equal(await next.balance(), usd('0.994'));
      assert.deepEqual((await next.audit()).violations, []);
    } else {
      await world.database.announce('account', 'alice');
      world.host.advance(50);
      await world.tick('write the ledger');
      assert.equal(await world.balance(), usd('0.997'));
    }
  }
});

test('a repeated batch with a new row gives each row its right balance', async () => {
  await using world = await newWorld({ credit: '1' });
  const [first, second] = [newCall(), newCall()];
  for (const exchange of [first, second]) await enter(world, exchange);
  await answer(first, { input: 500, output: 10 });
  world.faults.afterCommit = true;
  await world.tick('write the ledger');
  await answer(second, { input: 500, output: 20 });
  await enter(world, newCall());
  world.host.advance(50);
  await world.tick('write the ledger');
  const rows = await world.rows(
    sql`select amount::text, balance_after::text as balance from ${world.table('movements')} order by seq`,
  );
  assert.deepEqual(rows, [
    { amount: '1000000000', balance: '1000000000' },
    { amount: '-1100000', balance: '998900000' },
    { amount: '-1200000', balance: '997700000' },
  ]);
  assert.deepEqual((await world.audit()).violations, []);
});

test('an account with charges that the database lacks is never evicted', async () => {
  await using world = await newWorld({ credit: '0.004' });
  const exchange = await entered(world);
  await answer(exchange, { input: 1_000, output: 100 });
  world.faults.refusals = 1;
  await world.tick('write the ledger');
  world.host.advance(600_000);
  await world.tick('forget idle accounts');
  await isRefused(world, 402);
});

test('with the database down, calls continue from memory, incoming money and unknown accounts are refused, and all recovers by itself', async () => {
  await using world = await newWorld({ credit: '1' });
  await world.credit('1', 'bob');
  await enter(world, newCall());
  world.faults.down = true;
  for (let index = 0; index < 10; index += 1) {
    const exchange = await entered(world);
    await answer(exchange, { input: 1_000, output: 100 });
    await world.tick('write the ledger');
  }
  await assert.rejects(world.credit('1'), /down/);
  await assert.rejects(enter(world, newCall({ accountId: 'bob' })), (error) => (error as GatewayError).status === 503);
  assert.equal(world.part.health!.ready!(), true);
  world.faults.down = false;
  world.host.advance(5_000);
  await world.tick('write the ledger');
  await enter(world, newCall({ accountId: 'bob' }));
  const [row] = await world.rows<{ count: number }>(sql`select count(*)::int as count from ${world.table('calls')}`);
  assert.equal(row!.count, 10);
  assert.equal(await world.balance(), usd('0.967'));
});

test('fail-open on a database error: a spent account stays refused while the database does not answer', async () => {
  await using world = await newWorld({ credit: '0.003' });
  await enter(world, newCall());
  world.faults.down = true;
  await isRefused(world, 402);
});

test('a backlog that the database does not accept stops admission at its bound', async () => {
  await using world = await newWorld({ credit: '1', section: { journal: { backlog: 3 } } });
  world.faults.refusals = Number.POSITIVE_INFINITY;
  for (let index = 0; index < 3; index += 1) {
    const exchange = await entered(world);
    await answer(exchange, { input: 1_000, output: 100 });
  }
  await isRefused(world, 503);
  assert.equal(world.part.health!.ready!(), false);
  world.faults.refusals = 0;
  await world.tick('write the ledger');
  await enter(world, newCall());
});

test('disk full: admission stops with 503, running calls continue and are charged, and it resumes by itself', async () => {
  await using world = await newWorld({ credit: '1' });
  const [running, waiting] = [newCall(), newCall()];
  await enter(world, running);
  await send(running);
  await enter(world, waiting);
  await world.tick('sync the journal');
  world.faults.disk = diskFull();
  await assert.rejects(send(waiting), (error) => (error as GatewayError).status === 503);
  await waiting.end({ kind: 'failed', status: 503 });
  await isRefused(world, 503);
  assert.equal(world.part.health!.ready!(), false);
  await answer(running, { input: 1_000, output: 100 }).catch(() => running.end());
  await world.tick('write the ledger');
  await world.tick('sync the journal');
  await isRefused(world, 503);
  const ended = sql`select reason from ${world.table('calls')}`;
  assert.deepEqual(await world.rows(ended), [], 'what the journal does not have waits');
  world.faults.disk = undefined;
  await world.tick('sync the journal');
  await world.tick('write the ledger');
  assert.equal(world.part.health!.ready!(), true);
  assert.equal((await world.rows(ended)).length, 2);
  assert.deepEqual((await world.audit()).violations, []);
});

test('an attempt whose record could not be written was not sent, even if the disk accepts it later', async () => {
  await using world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  (await send(exchange)).result = 'refused';
  world.faults.disk = diskFull();
  await assert.rejects(send(exchange), (error) => (error as GatewayError).status === 503);
  world.faults.disk = undefined;
  await world.tick('sync the journal');
  await exchange.end({ kind: 'failed', status: 503 });
  await world.tick('write the ledger');
  assert.equal(await world.balance(), usd('1'));
  const tried = await attemptsIn(world, 'number', 'result');
  assert.deepEqual(tried, [{ number: 1, result: 'refused' }]);
  assert.deepEqual((await world.audit()).violations, []);
});

test('a hold and its sent attempt in one record or in two are charged alike after a crash', async () => {
  const world = await newWorld({ credit: '1' });
  const [atOnce, later] = [newCall(), newCall()];
  await enter(world, later);
  await world.tick('sync the journal');
  await enter(world, atOnce);
  await Promise.all([send(atOnce), send(later)]);
  assert.match(world.journalText(), new RegExp(`"kind":"HOLD","id":"${atOnce.id}"[^}]*}[^}]*"sent":{"number":1`));
  assert.match(world.journalText(), new RegExp(`"kind":"SENT","id":"${later.id}"`));
  await using next = await world.crash();
  assert.equal(await next.balance(), usd('0.996'));
  const tried = await attemptsIn(next, 'number', 'provider', 'result');
  const unknown = { number: 1, provider: 'vendor', result: 'unknown' };
  assert.deepEqual(tried, [unknown, unknown]);
  assert.deepEqual((await next.audit()).violations, []);
});

test('a batch with an account that is not locked fails as a whole, instead of omitting its rows', async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  await answer(exchange, { input: 1_000, output: 100 });
  await world.tick('sync the journal');
  const [cursor] = await world.rows<{ journal: string; owner: string }>(
    sql`select journal, owner from ${world.table('journal_cursor')}`,
  );
  const { orm, schema } = world.database;
  await assert.rejects(applyBatch({ orm, schema }, world.journalText(), new Map(), { ...cursor!, applied: 1 }));
  assert.equal((await world.audit()).rows, 1);
  assert.deepEqual(await world.rows(sql`select id from ${world.table('calls')}`), []);
  await world.stop();
  assert.deepEqual(
    (await world.audit()).violations.map(({ what }) => what),
    [],
  );
});

test("an upstream's text that no column can hold does not stop the ledger", async () => {
  await using world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  Object.assign(await send(exchange), { result: 'answered', status: 200, error: 'NUL \0 and half \ud83d' });
  const spoken = { upstreamId: 'id\0', finish: '"\\u0000"\n' };
  exchange.set(usageReport, report({ input: 1_000, output: 100 }, spoken));
  await exchange.end();
  await world.tick('write the ledger');
  const used = await world.rows(sql`select upstream_id, finish from ${world.table('calls')}`);
  assert.deepEqual(used, [{ upstream_id: 'id\ufffd', finish: '"\\u0000"\n' }]);
  const tried = await attemptsIn(world, 'error');
  assert.deepEqual(tried, [{ error: 'NUL \ufffd and half \ufffd' }]);
});

test('a second process on the same journal is refused, and a fenced one applies nothing more', async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  const second = await newWorld({ schema: world.host.schema, directory: world.directory, idle: true });
  await assert.rejects(async () => second.part.lifecycle!.start!(), /only one process may write this journal/);
  await world.tick('sync the journal');
  await using heir = await world.crash();
  await answer(exchange, { input: 1_000, output: 100 });
  await world.tick('write the ledger');
  assert.match(
    JSON.stringify(world.host.lines.map(({ fields }) => String((fields as { error?: Error }).error))),
    /another process/,
  );
  await isRefused(world, 503);
  // Nothing but a restart helps this run, and an orchestrator is notified; the heir has nothing to be restarted for.
  assert.deepEqual([world.part.health!.alive!(), world.part.health!.ready!()], [false, false]);
  assert.deepEqual([heir.part.health!.alive!(), heir.part.health!.ready!()], [true, true]);
  assert.deepEqual((await heir.audit()).violations, []);
});

test('the start is refused while the database does not accept the journal', async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  await send(exchange);
  world.faults.refusals = 1;
  await assert.rejects(world.crash(), /could not be applied/);
  await using next = await world.crash();
  assert.equal(await next.balance(), usd('0.998'));
});

test('segments are deleted once the database has all of them, and a restart continues after them', async () => {
  let world = await newWorld({ section: { journal: { segment: '1KB' } } });
  await world.credit('1');
  for (let round = 0; round < 3; round += 1) {
    for (let index = 0; index < 10; index += 1) {
      const exchange = await entered(world);
      await answer(exchange, { input: 1_000, output: 100 });
      await world.tick('write the ledger');
    }
    await world.tick('delete applied journal segments');
    world.host.advance(300_000);
    await world.tick('delete applied journal segments');
    assert.ok(world.journalText().length < 3_000, `${world.journalText().length} bytes left`);
    world = await world.crash();
  }
  assert.equal(await world.balance(), usd('0.91'));
  assert.deepEqual((await world.audit()).violations, []);
  await world.stop();
});

for (const jumpedMs of [-40 * 86_400_000, -3_600_000, 3_600_000, 40 * 86_400_000])
  test(`a start over a journal after a clock jump of ${jumpedMs / 3_600_000} hours loses nothing and charges once`, async () => {
    const world = await newWorld({ credit: '1' });
    const [done, cut] = [newCall(), newCall()];
    for (const exchange of [done, cut]) await enter(world, exchange);
    await answer(done, { input: 1_000, output: 50 });
    await send(cut);
    meterOf(cut).observe(80);
    await world.tick('note progress');
    await world.tick('sync the journal');
    const next = await world.crash(jumpedMs);
    assert.equal(await next.balance(), usd('0.9947'));
    const after = await entered(next);
    await answer(after, { input: 1_000, output: 50 });
    await next.tick('sync the journal');
    await next.tick('write the ledger');
    // And back to the right time.
    await using last = await next.crash();
    assert.equal(await last.balance(), usd('0.9922'));
    assert.deepEqual((await last.audit()).violations, []);
    assert.equal((await last.rows(sql`select id from ${last.table('calls')}`)).length, 3);
  });
