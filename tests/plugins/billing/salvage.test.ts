/** A damaged journal: what is sound is charged once, what is not is listed by account and kept, and the next start is clean. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { CommandResult } from '../../../core/contract/commands.ts';
import { decodeLine } from '../../../plugins/billing/model/records.ts';
import { fc } from '../../helpers/properties.ts';
import { answer, entered, leaveWorlds, newWorld, send, temporaryDirectory, usd, type World } from './world.ts';

after(leaveWorlds);

const cost = usd('0.0011');

function command(world: World, name: string, values: Record<string, string> = {}): Promise<CommandResult> {
  return world.part.commandLine!.commands!.find((each) => each.name === name)!.run(values);
}

/** Six calls ended, two more sent, all of them in the journal alone; then the process is gone. */
async function brokenOff(): Promise<{ world: World; journal: string; file: string }> {
  const world = await newWorld({ credit: '1' });
  await world.credit('1', 'bob');
  for (let index = 0; index < 6; index += 1) {
    const exchange = await entered(world, { accountId: index < 4 ? 'alice' : 'bob' });
    await answer(exchange, { input: 500, output: 10 });
    await world.tick('sync the journal');
  }
  for (const accountId of ['alice', 'bob']) {
    const exchange = await entered(world, { accountId });
    await send(exchange);
    await world.tick('sync the journal');
  }
  const journal = join(world.directory, 'journal', world.host.schema);
  // The process is gone.
  rmSync(join(journal, 'lock'));
  return { world, journal, file: join(journal, '0000000000000001.journal') };
}

/** What the sound lines of the file charge, by the plainest reading. */
function soundCharges(text: Buffer): bigint {
  let sum = 0n;
  for (let from = 0, end = text.indexOf(0x0a); end !== -1; from = end + 1, end = text.indexOf(0x0a, from)) {
    for (const record of decodeLine(text.subarray(from, end))?.records ?? [])
      if (record.kind === 'SETTLE') sum += BigInt(record.cost);
  }
  return sum;
}

test('a damaged line is refused by one sentence, shown, and salvaged: the rest is charged, and listed calls are not', async () => {
  const { world, journal, file } = await brokenOff();
  const whole = readFileSync(file);
  const second = whole.indexOf(0x0a, whole.length / 3);
  const damaged = Buffer.from(whole);
  damaged[second + 40] = 0x00;
  writeFileSync(file, damaged);
  await assert.rejects(world.crash(), (error) => {
    const { message } = error as Error;
    return /is damaged at byte \d+: restore the file, or apply the sound records with "gateway journal salvage"/.test(
      message,
    );
  });
  const idle = await newWorld({
    directory: world.directory,
    schema: world.host.schema,
    leave: world.leave,
    idle: true,
  });
  const before = readdirSync(journal);
  const { text } = await command(idle, 'journal inspect');
  assert.match(text, /damaged\n.*0000000000000001\.journal: \d+ bytes, \d+ sound records\n/);
  assert.match(text, new RegExp(`Damaged: .*0000000000000001.journal, bytes ${second + 1} to \\d+`));
  assert.match(text, /calls have no end in it, and are not charged; what they held, by account:\n {2}alice .* USD/);
  assert.deepEqual(readdirSync(journal).sort(), before.sort());
  const salvaged = await command(idle, 'journal salvage');
  const { applied, file: rest, directory } = salvaged.json as { applied: number; file: string; directory: string };
  assert.ok(applied >= 4 && !existsSync(journal), salvaged.text);
  const kept = JSON.parse(readFileSync(rest, 'utf8')) as {
    damage: unknown[];
    open: { account: string; held: string }[];
  };
  assert.equal(kept.damage.length, 1);
  assert.deepEqual([...new Set(kept.open.map(({ account }) => account))].sort(), ['alice', 'bob']);
  assert.equal((await idle.balance()) + (await idle.balance('bob')), usd('2') - soundCharges(damaged));
  // Once more changes nothing, and the audit names what was left open.
  assert.equal(((await command(idle, 'journal salvage', { directory })).json as { applied: number }).applied, 0);
  const audit = await command(idle, 'audit');
  assert.equal(audit.exitCode, 0);
  assert.match(audit.text, /0 ended calls that are not charged and \d calls without an end, which held: (?:alice|bob)/);
  await using next = await idle.crash();
  assert.equal((await next.balance()) + (await next.balance('bob')), usd('2') - soundCharges(damaged));
});

test('a whole journal is left to a start; one that was moved away is named by the audit and applied from its directory', async () => {
  const { world, journal } = await brokenOff();
  const idle = await newWorld({
    directory: world.directory,
    schema: world.host.schema,
    leave: world.leave,
    idle: true,
  });
  await assert.rejects(command(idle, 'journal salvage'), /is whole: a start of the gateway applies it/);
  const away = join(world.directory, 'journal.old');
  renameSync(journal, away);
  const { text } = await command(idle, 'audit');
  assert.match(text, /journal\.old: 6 ended calls that are not charged and 2 calls without an end, which held: alice/);
  await command(idle, 'journal salvage', { directory: away });
  assert.deepEqual([await idle.balance(), await idle.balance('bob')], [usd('1') - 4n * cost, usd('1') - 2n * cost]);
  const stranger = await newWorld({ directory: temporaryDirectory(), idle: true });
  await assert.rejects(command(stranger, 'journal salvage', { directory: away }), /does not know journal/);
  await using next = await idle.crash();
  assert.deepEqual((await next.audit()).violations, []);
});

test('with any damaged bytes, exactly the sound ends are charged, and the ledger adds up', async () => {
  const { world, journal } = await brokenOff();
  const aside = temporaryDirectory();
  cpSync(journal, aside, { recursive: true });
  const damage = fc.record({
    place: fc.double({ min: 0, max: 0.999, noNaN: true }),
    bytes: fc.nat({ max: 2_000 }),
    cut: fc.boolean(),
  });
  const idle = await newWorld({
    directory: world.directory,
    schema: world.host.schema,
    leave: world.leave,
    idle: true,
  });
  let charged = 0n;
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(damage, async ({ place, bytes, cut }) => {
      const directory = join(temporaryDirectory(), 'j');
      cpSync(aside, directory, { recursive: true });
      const path = join(directory, '0000000000000001.journal');
      const data = readFileSync(path);
      const from = Math.floor(place * data.length);
      writeFileSync(path, cut ? data.subarray(0, from) : data.fill(0x41, from, Math.min(data.length, from + bytes)));
      for (const line of readFileSync(path, 'latin1').split('\n'))
        for (const record of decodeLine(Buffer.from(line, 'latin1'))?.records ?? []) {
          if (record.kind !== 'SETTLE' || seen.has(record.id)) continue;
          seen.add(record.id);
          charged += BigInt(record.cost);
        }
      await command(idle, 'journal salvage', { directory });
      assert.equal((await idle.balance()) + (await idle.balance('bob')), usd('2') - charged);
    }),
    { numRuns: 8 },
  );
  assert.deepEqual((await idle.audit()).violations, []);
});
