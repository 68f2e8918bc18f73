/** Crashes, failing databases and full disks: nothing acknowledged is lost, nothing is charged twice. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/errors.ts';
import { decodeLine, type JournalRecord } from '../../../plugins/billing/records.ts';
import { judgeInterrupted, replay } from '../../../plugins/billing/recovery.ts';
import { nodeFiles } from '../../../plugins/billing/segments.ts';
import { answer, closeEngine, diskFull, enter, meterOf, newCall, newWorld, send, usd, type World } from './world.ts';

after(closeEngine);

async function isRefused(world: World, status: number): Promise<void> {
  await assert.rejects(enter(world, newCall()), (error) => (error as GatewayError).status === status);
}

test('leaked hold: a crash before the request was sent gives all of the hold back', async () => {
  const world = await newWorld();
  await world.credit('1');
  await enter(world, newCall());
  await world.tick('write the ledger');
  const next = await world.crash();
  assert.equal(await next.balance(), usd('1'));
  assert.deepEqual((await next.audit()).violations, []);
  await next.stop();
});

test('a crash in mid-stream charges the prompt and the output noted last, marked as an estimate', async () => {
  const world = await newWorld({ section: { hold: { output_tokens: 50 } } });
  await world.credit('1');
  const exchange = newCall();
  await enter(world, exchange);
  await send(exchange);
  meterOf(exchange).observe(80);
  await world.tick('note progress');
  await world.tick('sync the journal');
  meterOf(exchange).observe(99);
  const next = await world.crash();
  assert.equal(await next.balance(), usd('0.9972'));
  const used = await next.rows(sql`select classes, estimated, provider from ${next.table('usage')}`);
  assert.deepEqual(used, [{ classes: { input: 1_000, output: 80 }, estimated: true, provider: 'vendor' }]);
  const tried = await next.rows(sql`select result from ${next.table('attempts')}`);
  assert.deepEqual(tried, [{ result: 'unknown' }]);
  const again = await next.crash();
  assert.equal(await again.balance(), usd('0.9972'));
  assert.deepEqual((await again.audit()).violations, []);
  await again.stop();
});

test('a settlement that the journal has is charged after a crash, though the database never saw it', async () => {
  const world = await newWorld();
  await world.credit('1');
  for (let index = 0; index < 5; index += 1) {
    const exchange = newCall();
    await enter(world, exchange);
    await answer(exchange, { input: 500, output: 10 });
    if (index === 2) await world.tick('write the ledger');
  }
  await world.tick('sync the journal');
  const next = await world.crash();
  assert.equal(await next.balance(), usd('0.9945'));
  assert.deepEqual((await next.audit()).violations, []);
  await next.stop();
});

test('an answer lost after the commit changes nothing when the batch is repeated, in this process or the next', async () => {
  const world = await newWorld();
  await world.credit('1');
  for (const crash of [false, true]) {
    const exchange = newCall();
    await enter(world, exchange);
    await answer(exchange, { input: 1_000, output: 100 });
    world.faults.afterCommit = true;
    await world.tick('write the ledger');
    if (crash) {
      const next = await world.crash();
      assert.equal(await next.balance(), usd('0.994'));
      assert.deepEqual((await next.audit()).violations, []);
      await next.stop();
    } else {
      await world.database.announce('account', 'alice');
      world.host.advance(50);
      await world.tick('write the ledger');
      assert.equal(await world.balance(), usd('0.997'));
    }
  }
});

test('a repeated batch that also carries something new gives each row its right balance', async () => {
  const world = await newWorld();
  await world.credit('1');
  const first = newCall();
  await enter(world, first);
  world.faults.afterCommit = true;
  await world.tick('write the ledger');
  await answer(first, { input: 500, output: 10 });
  await enter(world, newCall());
  world.host.advance(50);
  await world.tick('write the ledger');
  assert.deepEqual((await world.audit()).violations, []);
  await world.stop();
});

test('an account whose charges have not reached the database is never forgotten', async () => {
  const world = await newWorld();
  await world.credit('0.004');
  const exchange = newCall();
  await enter(world, exchange);
  await answer(exchange, { input: 1_000, output: 100 });
  world.faults.refusals = 1;
  await world.tick('write the ledger');
  world.host.advance(600_000);
  await world.tick('forget idle accounts');
  await isRefused(world, 402);
  await world.stop();
});

test('with the database down, calls go on from memory, money-in and unknown accounts are refused, and all of it recovers alone', async () => {
  const world = await newWorld();
  await world.credit('1');
  await world.credit('1', 'bob');
  await enter(world, newCall());
  world.faults.down = true;
  for (let index = 0; index < 10; index += 1) {
    const exchange = newCall();
    await enter(world, exchange);
    await answer(exchange, { input: 1_000, output: 100 });
    await world.tick('write the ledger');
  }
  await assert.rejects(world.credit('1'), /down/);
  await assert.rejects(enter(world, newCall({ accountId: 'bob' })), (error) => (error as GatewayError).status === 503);
  assert.equal(world.part.ready!(), true);
  world.faults.down = false;
  world.host.advance(5_000);
  await world.tick('write the ledger');
  await enter(world, newCall({ accountId: 'bob' }));
  const [row] = await world.rows<{ count: number }>(sql`select count(*)::int as count from ${world.table('usage')}`);
  assert.equal(row!.count, 10);
  assert.equal(await world.balance(), usd('0.967'));
  await world.stop();
});

test('fail-open on a database error: a spent account stays refused while the database cannot be asked', async () => {
  const world = await newWorld();
  await world.credit('0.003');
  await enter(world, newCall());
  world.faults.down = true;
  await isRefused(world, 402);
  await world.stop();
});

test('a backlog that the database does not take stops admission at its bound', async () => {
  const world = await newWorld({ section: { journal: { backlog: 6 } } });
  await world.credit('1');
  world.faults.refusals = Number.POSITIVE_INFINITY;
  for (let index = 0; index < 3; index += 1) {
    const exchange = newCall();
    await enter(world, exchange);
    await answer(exchange, { input: 1_000, output: 100 });
  }
  await isRefused(world, 503);
  assert.equal(world.part.ready!(), false);
  world.faults.refusals = 0;
  await world.tick('write the ledger');
  await enter(world, newCall());
  await world.stop();
});

test('disk full: admission stops with 503, what is in flight goes on and is charged, and it resumes alone', async () => {
  const world = await newWorld();
  await world.credit('1');
  const [running, waiting] = [newCall(), newCall()];
  await enter(world, running);
  await send(running);
  await enter(world, waiting);
  await world.tick('sync the journal');
  world.faults.disk = diskFull();
  await assert.rejects(send(waiting), (error) => (error as GatewayError).status === 503);
  await waiting.end({ kind: 'failed', status: 503 });
  await isRefused(world, 503);
  assert.equal(world.part.ready!(), false);
  await answer(running, { input: 1_000, output: 100 }).catch(() => running.end());
  await world.tick('write the ledger');
  await world.tick('sync the journal');
  await isRefused(world, 503);
  const before = await world.rows(sql`select kind from ${world.table('ledger')} where kind in ('SETTLE', 'VOID')`);
  assert.deepEqual(before, [], 'what the journal does not have waits');
  world.faults.disk = undefined;
  await world.tick('sync the journal');
  await world.tick('write the ledger');
  assert.equal(world.part.ready!(), true);
  const ends = await world.rows(
    sql`select kind, detail->>'reason' as reason from ${world.table('ledger')} where kind in ('SETTLE', 'VOID') order by kind`,
  );
  assert.equal(ends.length, 2);
  assert.deepEqual((await world.audit()).violations, []);
  await world.stop();
});

test('a second process on the same journal is refused, and one that was shut out applies nothing more', async () => {
  const world = await newWorld();
  await world.credit('1');
  const exchange = newCall();
  await enter(world, exchange);
  const second = await newWorld({ schema: world.host.schema, directory: world.directory, idle: true });
  await assert.rejects(async () => second.part.start!(), /only one process may write this journal/);
  await world.tick('sync the journal');
  const heir = await world.crash();
  await answer(exchange, { input: 1_000, output: 100 });
  await world.tick('write the ledger');
  assert.match(
    JSON.stringify(world.host.lines.map(({ fields }) => String((fields as { error?: Error }).error))),
    /another process/,
  );
  await isRefused(world, 503);
  assert.deepEqual((await heir.audit()).violations, []);
  await heir.stop();
});

test('the start is refused while the database cannot take the journal', async () => {
  const world = await newWorld();
  await world.credit('1');
  const exchange = newCall();
  await enter(world, exchange);
  await send(exchange);
  world.faults.refusals = 1;
  await assert.rejects(world.crash(), /could not be applied/);
  const next = await world.crash();
  assert.equal(await next.balance(), usd('0.998'));
  await next.stop();
});

test('segments go once the database has all of them, and a restart goes on behind them', async () => {
  let world = await newWorld({ section: { journal: { segment: '1KB' } } });
  await world.credit('1');
  for (let round = 0; round < 3; round += 1) {
    for (let index = 0; index < 10; index += 1) {
      const exchange = newCall();
      await enter(world, exchange);
      await answer(exchange, { input: 1_000, output: 100 });
      await world.tick('write the ledger');
    }
    world.host.advance(300_000);
    await world.tick('write the ledger');
    await world.tick('write the ledger');
    assert.ok(world.journalText().length < 3_000, `${world.journalText().length} bytes left`);
    world = await world.crash();
  }
  assert.equal(await world.balance(), usd('0.91'));
  assert.deepEqual((await world.audit()).violations, []);
  await world.stop();
});

/** A short history: settled, voided, sent with progress, never sent. */
async function history(): Promise<{ world: World; lines: Buffer[] }> {
  const world = await newWorld({ section: { hold: { output_tokens: 50 } } });
  await world.credit('1');
  const [settled, voided, streaming] = [newCall(), newCall(), newCall()];
  await enter(world, settled);
  await enter(world, voided);
  await answer(settled, { input: 900, output: 20 });
  (await send(voided)).result = 'refused';
  await voided.end();
  await enter(world, streaming);
  await send(streaming);
  meterOf(streaming).observe(60);
  await world.tick('note progress');
  await enter(world, newCall());
  await world.tick('sync the journal');
  const text = Buffer.from(world.journalText());
  const lines: Buffer[] = [];
  for (let from = 0; from < text.length; from = text.indexOf(0x0a, from) + 1) {
    lines.push(text.subarray(from, text.indexOf(0x0a, from) + 1));
  }
  return { world, lines };
}

/** What a journal charges, by the plainest reading of its records. */
function chargesOf(records: JournalRecord[]): Map<string, string> {
  const charges = new Map<string, string>();
  for (const { id } of records.filter(({ kind }) => kind === 'HOLD')) {
    const own = records.filter((record) => record.id === id);
    const end = own.find((record) => record.kind === 'SETTLE' || record.kind === 'VOID');
    const seen = Math.max(0, ...own.map((record) => (record.kind === 'PROGRESS' ? record.output : 0)));
    const sent = own.some(({ kind }) => kind === 'SENT');
    const interrupted = sent ? `settle ${1_000} ${seen}` : 'void';
    charges.set(id, end === undefined ? interrupted : end.kind === 'SETTLE' ? `settle ${end.cost}` : 'void');
  }
  return charges;
}

test('a journal cut at any byte recovers exactly its whole records, from any cursor', async () => {
  const { world, lines } = await history();
  const whole = Buffer.concat(lines);
  const directory = mkdtempSync(join(tmpdir(), 'cut-'));
  const path = join(directory, '0000000000000001.journal');
  for (let length = 0; length <= whole.length; length += 1) {
    let kept = 0;
    for (let bytes = 0; kept < lines.length && bytes + lines[kept]!.length <= length; kept += 1)
      bytes += lines[kept]!.length;
    const records = lines.slice(0, kept).map((line) => decodeLine(line.subarray(0, -1))!.record);
    const applied = kept === 0 ? 0 : length % (kept + 1);
    writeFileSync(path, whole.subarray(0, length));
    const { next, entries, open } = replay(nodeFiles, directory, applied);
    assert.equal(next, kept + 1);
    const charges = new Map<string, string>();
    for (const { kind, hold, end } of entries) {
      if (kind === 'SETTLE' && end?.kind === 'SETTLE') charges.set(hold.terms.id, `settle ${end.cost}`);
      if (kind === 'VOID') charges.set(hold.terms.id, 'void');
    }
    for (const hold of open) {
      const { verdict } = judgeInterrupted(hold);
      const usage = verdict.kind === 'SETTLE' ? verdict.usage : undefined;
      charges.set(hold.terms.id, usage === undefined ? 'void' : `settle ${usage.input} ${usage.output}`);
    }
    const beyond = new Set(
      records.slice(0, applied).flatMap(({ kind, id }) => (kind === 'SETTLE' || kind === 'VOID' ? [id] : [])),
    );
    const expected = [...chargesOf(records)].filter(([id]) => !beyond.has(id)).sort();
    assert.deepEqual([...charges].sort(), expected);
  }
  await world.stop();
});

test('a journal cut after any record recovers to a clean audit, twice over, with the charges of its records', async () => {
  const { world, lines } = await history();
  await world.stop();
  const source = join(world.directory, 'journal', world.host.schema);
  const first = join(source, '0000000000000001.journal');
  const name = readFileSync(join(source, 'name'), 'utf8');
  const prices = [2_000n, 10_000n] as const;
  for (let kept = 0; kept <= lines.length; kept += 1) {
    const directory = mkdtempSync(join(tmpdir(), 'cut-'));
    const fresh = await newWorld({ directory, idle: true });
    const target = join(directory, 'journal', fresh.host.schema);
    cpSync(first, join(target, '0000000000000001.journal'), { recursive: true });
    const torn = lines[kept]?.subarray(0, 30) ?? Buffer.alloc(0);
    writeFileSync(join(target, '0000000000000001.journal'), Buffer.concat([...lines.slice(0, kept), torn]));
    writeFileSync(join(target, 'name'), name);
    await fresh.credit('1');
    await fresh.part.start!();
    const records = lines.slice(0, kept).map((line) => decodeLine(line.subarray(0, -1))!.record);
    let spent = 0n;
    for (const charge of chargesOf(records).values()) {
      const [, left, right] = charge.split(' ');
      if (right !== undefined) spent += BigInt(left!) * prices[0] + BigInt(right) * prices[1];
      else if (left !== undefined) spent += BigInt(left);
    }
    assert.equal(await fresh.balance(), usd('1') - spent, `after ${kept} records`);
    const again = await fresh.crash();
    assert.equal(await again.balance(), usd('1') - spent);
    assert.deepEqual((await again.audit()).violations, []);
    await again.stop();
  }
});
