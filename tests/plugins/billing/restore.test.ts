/** A database that was put back: the next start says what is missing, and no money comes in until an operator has accepted it. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { CommandResult } from '../../../core/contract/commands.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { Movement } from '../../../plugins/billing/ledger/entries.ts';
import { Memory } from '../../../plugins/billing/restores/memory.ts';
import { ledger, pool } from '../../../plugins/common/domain/ledger.ts';
import { fc } from '../../helpers/properties.ts';
import { dump } from '../../helpers/put-back.ts';
import { answer, entered, leaveWorlds, newWorld, temporaryDirectory, usd, type World } from './world.ts';

after(leaveWorlds);

const warning = /put back to an earlier time/;

function warnings(world: World) {
  return world.host.lines.filter(({ level, message }) => level === 'warn' && warning.test(message));
}

async function charge(world: World): Promise<void> {
  const exchange = await entered(world);
  await answer(exchange, { input: 500, output: 10 });
  await world.tick('sync the journal');
  await world.tick('write the ledger');
}

async function command(world: World, name: string, values: object = {}): Promise<CommandResult> {
  return world.part.commandLine!.commands!.find((each) => each.name === name)!.run(values as Record<string, string>);
}

async function isRefused(work: () => Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => {
    const { status, code, message } = error as GatewayError;
    assert.match(message, /put back to an earlier time/);
    return status === 503 && code === 'restore_not_accepted';
  });
}

test('dump, credit, calls, stop, restore, start: the start names the missing movements, and incoming money waits for the operator', async () => {
  const world = await newWorld({ credit: '1' });
  await charge(world);
  const putBack = await dump(world.database.orm, world.database.schema);
  world.host.advance(60_000);
  const reference = 'invoice-7';
  await world.host.get(ledger).credit('alice', usd('7'), { kind: 'top-up', reason: "Alice's invoice", reference });
  await charge(world);
  await charge(world);
  await world.stop();
  await putBack();
  const next = await world.crash();
  const [said, ...others] = warnings(next);
  assert.deepEqual(others, []);
  const at = (milliseconds: number) => new Date(milliseconds).toISOString();
  const fields = said!.fields as { since: string; until: string; replayed: number; lost: number };
  assert.deepEqual([fields.replayed, fields.lost, fields.since], [2, 1, at(1_800_000_000_000)]);
  assert.ok(fields.until >= at(1_800_000_060_000));
  // Calls go on, with the journal's charges.
  await charge(next);
  assert.equal(await next.balance(), usd('1') - 4n * usd('0.0011'));
  await isRefused(() => next.credit('5'));
  await isRefused(() => next.host.get(pool).admitMoney());
  const entry = { reason: 'r', reference: 'r-1' };
  await isRefused(() => next.host.get(pool).refundCredit('alice', reference, usd('1'), entry));
  const { json, exitCode } = await command(next, 'audit');
  assert.equal(exitCode, 1);
  assert.deepEqual(
    (json as { violations: { rule: string }[] }).violations.map(({ rule }) => rule),
    ['R1'],
  );
  assert.match(next.part.health!.refuses!()['money_in']!, /audit --accept-restore/);
  assert.notEqual(next.part.health!.ready!(), false);
  const { text, json: answered } = await command(next, 'audit', { acceptRestore: true });
  assert.match(text, /gateway accounts credit alice 7\.00 --reason 'Alice'\\''s invoice' --reference invoice-7/);
  const { missing } = answered as { missing: { reference: string; usd: string }[] };
  assert.deepEqual(
    missing.map((each) => [each.reference, each.usd]),
    [[reference, '7.00']],
  );
  assert.deepEqual((await next.audit()).violations, []);
  next.host.advance(5_000);
  await next.tick('ask for restorations that wait');
  assert.deepEqual(next.part.health!.refuses!(), {});
  // What the command shows can be read again, until it is there.
  assert.match((await command(next, 'audit', { acceptRestore: true })).text, /invoice-7/);
  await next.host.get(ledger).credit('alice', usd('7'), { kind: 'top-up', reason: 'again', reference });
  assert.doesNotMatch((await command(next, 'audit', { acceptRestore: true })).text, /invoice-7/);
  await next.stop();
  await using last = await next.crash();
  assert.deepEqual(warnings(last), []);
  assert.equal(await last.balance(), usd('8') - 4n * usd('0.0011'));
});

test('a restore is noticed by the credit alone, by the calls alone, after a crash, and with the journal moved away', async () => {
  for (const kind of ['credit', 'calls', 'crash', 'moved'] as const) {
    const world = await newWorld({ credit: '1' });
    await charge(world);
    const putBack = await dump(world.database.orm, world.database.schema);
    world.host.advance(60_000);
    if (kind !== 'calls') await world.credit('7');
    if (kind !== 'credit') await charge(world);
    if (kind !== 'crash') await world.stop();
    await putBack();
    if (kind === 'moved') rmSync(join(world.directory, 'journal'), { recursive: true });
    await using next = await world.crash();
    assert.equal(warnings(next).length, 1, kind);
    await isRefused(() => next.credit('5'));
  }
});

test('an ordinary stop, a crash and a start on another database are no restore', async () => {
  const world = await newWorld({ credit: '1' });
  await charge(world);
  await world.stop();
  const second = await world.crash();
  await charge(second);
  const third = await second.crash();
  await third.credit('2');
  assert.deepEqual([...warnings(second), ...warnings(third)], []);
  await third.stop();
  await using other = await newWorld({ directory: world.directory });
  assert.deepEqual(warnings(other), []);
  await other.credit('3');
});

test('readiness names a restore that another process has found, and queries seldom while there is none', async () => {
  await using world = await newWorld();
  assert.deepEqual(world.part.health!.refuses!(), {});
  const { orm, schema } = world.database;
  await orm.execute(
    sql`insert into ${sql.identifier(schema)}.restores (journal, since, until, calls, lost) values ('other', now(), now(), 0, '[]')`,
  );
  const after = async (milliseconds: number) => {
    world.host.advance(milliseconds);
    await world.tick('ask for restorations that wait');
    return Object.keys(world.part.health!.refuses!());
  };
  assert.deepEqual(await after(59_000), []);
  assert.deepEqual(await after(1_000), ['money_in']);
  await command(world, 'audit', { acceptRestore: true });
  assert.deepEqual(await after(5_000), []);
});

test('a command finds the restore before any gateway was started', async () => {
  const world = await newWorld({ credit: '1' });
  const putBack = await dump(world.database.orm, world.database.schema);
  await world.credit('7');
  await world.stop();
  await putBack();
  const idle = await newWorld({
    directory: world.directory,
    schema: world.database.schema,
    leave: world.leave,
    idle: true,
  });
  (idle.host as { mode: string }).mode = 'command';
  await isRefused(() => idle.credit('5'));
  assert.equal((await command(idle, 'audit')).exitCode, 1);
  await command(idle, 'audit', { acceptRestore: true });
  await idle.credit('5');
});

test('movements of other processes are remembered too: either of two nodes notices, and each lists its movements once', async () => {
  const world = await newWorld({ credit: '1' });
  const schema = world.database.schema;
  const beside = await newWorld({ schema, leave: world.leave });
  const putBack = await dump(world.database.orm, schema);
  await beside.credit('7');
  await world.database.announce('account', 'alice');
  await world.host.intervals.find(({ name }) => name === 'remember movements of money')!.work();
  await Promise.all([world.stop(), beside.stop()]);
  await putBack();
  const next = await world.crash();
  assert.equal((warnings(next)[0]!.fields as { lost: number }).lost, 1);
  const other = await beside.crash();
  const { text, json } = await command(other, 'audit', { acceptRestore: true });
  const { restores, missing } = json as { restores: unknown[]; missing: unknown[] };
  assert.deepEqual([restores.length, missing.length], [2, 1], text);
  await Promise.all([next.stop(), other.stop()]);
});

test('the memory has the added movements, whatever a power cut tears', async () => {
  const shape = {
    reference: fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
    account: fc.string(),
    kind: fc.constantFrom('CREDIT', 'DEBIT'),
    amount: fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }).map(String),
    reason: fc.string({ unit: 'binary' }),
    at: fc.nat(),
  };
  const movement = fc.record(shape, { noNullPrototype: true });
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'acknowledged'));
  let turn = 0;
  const tries = fc.asyncProperty(
    fc.array(fc.array(movement, { maxLength: 3 }), { maxLength: 6 }),
    fc.string(),
    async (groups, torn) => {
      const name = String(++turn);
      const memory = new Memory(directory, 'main', name);
      for (const group of groups) {
        await memory.add(group);
        appendFileSync(join(directory, 'acknowledged', `main-${name}.log`), torn);
      }
      const expected: Movement[] = groups.flat();
      assert.deepEqual(new Memory(directory, 'main', name).movements(), expected);
    },
  );
  await fc.assert(tries, { numRuns: 15 });
});
