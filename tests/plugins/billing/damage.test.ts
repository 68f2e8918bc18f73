/** Damage to any file of the journal: the start either has an exact ledger or is refused with a sentence that names the place. */
import assert from 'node:assert/strict';
import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { runsOf, testHistory } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import {
  answer,
  diskFull,
  enter,
  entered,
  leaveWorlds,
  lineOf,
  meterOf,
  newCall,
  newWorld,
  send,
  usd,
  type World,
} from './world.ts';

after(leaveWorlds);

/** What becomes of one call before the process dies. */
type Fate = 'held' | 'sent' | 'running' | 'answered';

interface Step {
  readonly fate: Fate;
  readonly output: number;
  /** The ledger is written behind it. */
  readonly applied: boolean;
  /** Much later, so that segments that are done with go. */
  readonly later: boolean;
}

interface Damage {
  readonly kind: 'truncate' | 'flip' | 'delete';
  /** Which file, and where in it, as parts of the whole. */
  readonly file: number;
  readonly place: number;
  readonly bit: number;
}

const steps = fc.array(
  fc.record({
    fate: fc.constantFrom<Fate>('held', 'sent', 'running', 'answered', 'answered', 'answered'),
    output: fc.integer({ min: 1, max: 100 }),
    applied: fc.boolean(),
    later: fc.boolean(),
  }),
  { minLength: 1, maxLength: 15 },
);
const damages = fc.record({
  kind: fc.constantFrom<Damage['kind']>('truncate', 'flip', 'delete'),
  file: fc.double({ min: 0, max: 0.999, noNaN: true }),
  place: fc.double({ min: 0, max: 0.999, noNaN: true }),
  bit: fc.nat({ max: 7 }),
});

/** Plays a history to the moment at which all of it is safe, and tells what the balance must be after a restart. */
async function play(world: World, history: readonly Step[]): Promise<bigint> {
  let expected = await world.credit('1');
  for (const { fate, output, applied, later } of history) {
    const exchange = await entered(world);
    if (fate === 'answered') await answer(exchange, { input: 1_000, output });
    else if (fate !== 'held') await send(exchange);
    if (fate === 'running') meterOf(exchange).observe(output);
    await world.tick('note progress');
    const shown = fate === 'sent' ? 0 : output;
    if (fate !== 'held') expected = (expected - usd('0.002') - usd('0.00001') * BigInt(shown)) as typeof expected;
    if (applied) await world.tick('write the ledger');
    if (later) world.host.advance(400_000);
  }
  await world.tick('sync the journal');
  await world.tick('sync the journal');
  return expected;
}

const journalOf = (world: World) => join(world.directory, 'journal', world.host.schema);

function harm(directory: string, { kind, file, place, bit }: Damage): string {
  const names = readdirSync(directory).filter((name) => !name.startsWith('lock'));
  const path = join(directory, names[Math.floor(file * names.length)]!);
  const data = readFileSync(path);
  const at = Math.floor(place * data.length);
  if (kind === 'delete') rmSync(path);
  else if (kind === 'truncate') truncateSync(path, at);
  else {
    data[at]! ^= 1 << bit;
    writeFileSync(path, data);
  }
  return path;
}

testHistory(
  'with or without damage to a file of the journal, any history gives an exact ledger, or no start and the named place',
  async () => {
    const outcomes = { exact: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(steps, fc.array(damages, { maxLength: 2 }), async (history, harms) => {
        const world = await newWorld({ section: { journal: { segment: '1KB' } } });
        const expected = await play(world, history);
        for (const damage of harms) harm(journalOf(world), damage);
        let next: World;
        try {
          next = await world.crash();
        } catch (error) {
          assert.ok((error as Error).message.includes(journalOf(world)), (error as Error).message);
          outcomes.refused += 1;
          return;
        }
        assert.equal(await next.balance(), expected);
        assert.deepEqual((await next.audit()).violations, []);
        await next.stop();
        outcomes.exact += 1;
      }),
      { numRuns: runsOf(8, 60) },
    );
    assert.ok(outcomes.refused > runsOf(8, 60) / 8 && outcomes.exact > 0, JSON.stringify(outcomes));
  },
  {
    timeout: 600_000,
  },
);

testHistory('any history without damage has an exact ledger after one restart and after two', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      const world = await newWorld({ section: { journal: { segment: '1KB' } } });
      const expected = await play(world, history);
      const next = await world.crash();
      assert.equal(await next.balance(), expected);
      await using again = await next.crash();
      assert.equal(await again.balance(), expected);
      assert.deepEqual((await again.audit()).violations, []);
    }),
    { numRuns: runsOf(2, 15) },
  );
});

test('records that a power cut left unsafe are cut away, also whole lines after a hole', async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  await send(exchange);
  await world.tick('sync the journal');
  const last = world.journalText().trimEnd().split('\n').length;
  const name = readdirSync(journalOf(world)).find((file) => file.endsWith('.journal'))!;
  const hold = { kind: 'PROGRESS', id: exchange.id, output: 50 } as const;
  const behind = lineOf(last + 1, hold);
  // The first of two lines did not reach the disk, the second did.
  appendFileSync(join(journalOf(world), name), Buffer.concat([Buffer.alloc(behind.length), lineOf(last + 2, hold)]));
  await using next = await world.crash();
  assert.equal(await next.balance(), usd('0.998'));
  assert.match(JSON.stringify(next.host.lines), /was not durable/);
  assert.deepEqual((await next.audit()).violations, []);
});

test('only durable journal records are applied to the database', async () => {
  await using world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  world.faults.disk = diskFull();
  world.faults.diskBytes = Number.POSITIVE_INFINITY; // It writes, but cannot sync.
  await answer(exchange, { input: 1_000, output: 100 });
  await world.tick('write the ledger');
  assert.equal((await world.audit()).rows, 1, 'the credit alone');
  world.faults.disk = undefined;
  world.host.advance(5_000);
  await world.tick('write the ledger');
  assert.equal((await world.audit()).rows, 2);
});

test('an older copy of the journal directory is refused after a newer run', async () => {
  const world = await newWorld({ credit: '1' });
  await enter(world, newCall());
  await world.tick('sync the journal');
  const kept = `${world.directory}-kept`;
  cpSync(journalOf(world), kept, { recursive: true });
  const next = await world.crash();
  await enter(next, newCall());
  await next.tick('sync the journal');
  rmSync(journalOf(world), { recursive: true });
  cpSync(kept, journalOf(world), { recursive: true });
  rmSync(kept, { recursive: true });
  await assert.rejects(next.crash(), (error) => {
    assert.match((error as Error).message, /position is of epoch 1, but the database has seen epoch 2/);
    return true;
  });
});

test('a database that does not know a journal with records, or whose cursor lies before all files, is refused', async () => {
  const world = await newWorld({ credit: '1', section: { journal: { segment: '1KB' } } });
  for (let index = 0; index < 10; index += 1) {
    const exchange = await entered(world);
    await answer(exchange, { input: 1_000, output: 100 });
    await world.tick('write the ledger');
    world.host.advance(400_000);
  }
  await world.tick('write the ledger');
  await world.tick('write the ledger');
  await world.rows(sql`update ${world.table('journal_cursor')} set applied = 0`);
  await assert.rejects(world.crash(), (error) => (error as Error).message.includes(journalOf(world)));
  await world.rows(sql`delete from ${world.table('journal_cursor')}`);
  await assert.rejects(world.crash(), /which this database does not know/);
});

test('a restored database gets the charges again from the journal, and the log says so', async () => {
  const world = await newWorld({ credit: '1' });
  await world.tick('sync the journal');
  const first = await world.crash();
  const [before] = await first.rows<{ epoch: string }>(sql`select epoch::text from ${first.table('journal_cursor')}`);
  const exchange = await entered(first);
  await answer(exchange, { input: 1_000, output: 100 });
  await first.tick('sync the journal');
  await first.rows(sql`update ${first.table('journal_cursor')} set epoch = ${Number(before!.epoch) - 1}`);
  await using next = await first.crash();
  assert.equal(await next.balance(), usd('0.997'));
  assert.match(JSON.stringify(next.host.lines), /the database was put back to an earlier time/);
  assert.deepEqual(
    (await next.audit()).violations.map(({ rule }) => rule),
    ['R1'],
  );
});

test('a read-only disk at the start is reported with the path that cannot be written', async () => {
  await using world = await newWorld({ idle: true });
  world.faults.disk = Object.assign(new Error(`EROFS: read-only file system, open '${journalOf(world)}/name'`), {
    code: 'EROFS',
  });
  await assert.rejects(async () => world.part.lifecycle!.start!(), /EROFS.*journal/);
  world.faults.disk = undefined;
  await world.part.lifecycle!.start!();
  await world.credit('1');
  await enter(world, newCall());
});

test('a disk that turns read-only while settling: 503, the charge waits, and all of it continues by itself', async () => {
  await using world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  await send(exchange);
  await world.tick('sync the journal');
  world.faults.disk = Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' });
  await exchange.end();
  await world.tick('sync the journal');
  await assert.rejects(enter(world, newCall()), (error) => (error as GatewayError).status === 503);
  await world.tick('write the ledger');
  world.faults.disk = undefined;
  await world.tick('sync the journal');
  world.host.advance(5_000);
  await world.tick('write the ledger');
  await enter(world, newCall());
  assert.deepEqual((await world.audit()).violations, []);
});
