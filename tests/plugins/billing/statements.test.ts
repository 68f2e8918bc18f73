/** Sealed statements: random months against their rows, late rows, files that were changed. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import '../../../core/tools/temporal.ts';
import { monthAt, monthOf } from '../../../plugins/billing/grants/months.ts';
import { focusColumns } from '../../../plugins/billing/statements/focus.ts';
import type { StatementLines } from '../../../plugins/billing/statements/format.ts';
import { linesIn } from '../../../plugins/billing/statements/lines.ts';
import { verifyStatement } from '../../../plugins/billing/statements/verify.ts';
import { accounts, caller } from '../../../plugins/common/domain/accounts.ts';
import { ledger, pool } from '../../../plugins/common/domain/ledger.ts';
import { centsTogether, formatUsd, money } from '../../../plugins/common/domain/money.ts';
import { budgetAdmin } from '../../../plugins/common/domain/organizations/budgets.ts';
import { statementAdmin } from '../../../plugins/common/domain/organizations/statements.ts';
import { fc } from '../../helpers/properties.ts';
import { Chance } from '../../simulation/chance.ts';
import { answer, enter, leaveWorlds, newCall, newWorld, temporaryDirectory, usd, type World } from './world.ts';

after(leaveWorlds);

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** What the clock of a world shows at first, unless it is set. */
const fakeNow = 1_800_000_000_000;
const directory = temporaryDirectory();
let files = 0;

/** `at`: what its clock shows at first. */
const worldOf = (zone: string, at = fakeNow) =>
  newWorld({
    jumpedMs: at - fakeNow,
    section: { statements: { zone } },
    beside: async (host) => host.provide(accounts, { find: async (id: string) => ({ id, name: id }) } as never),
  });

const command = (world: World, name: string) => world.part.commandLine!.commands!.find((one) => one.name === name)!;

async function seal(world: World): Promise<void> {
  const { work } = world.host.intervals.find(({ name }) => name === 'seal statements')!;
  for (let round = 0; (await work()) !== 'idle'; round++) assert.ok(round < 100, 'sealing has no end');
}

interface Listed {
  readonly number: number;
  readonly month: string;
  readonly opening: string;
  readonly closing: string;
  readonly digest: string;
}

/** Oldest first. */
async function statementsOf(world: World, account = 'alice'): Promise<Listed[]> {
  const { json } = await command(world, 'statements list').run({ account, limit: '100' });
  return (json as Listed[]).toReversed();
}

async function exported(world: World, number: number, form?: string): Promise<string> {
  const out = join(directory, `${files++}.${form ?? 'jsonl'}`);
  const asked = form === undefined ? {} : { as: form };
  await command(world, 'statements export').run({ account: 'alice', number: String(number), out, ...asked });
  return out;
}

const verified = (path: string) => verifyStatement(linesIn(path));

interface Moved {
  readonly seq: string;
  readonly kind: string;
  readonly amount: string;
  readonly at: string;
  readonly model: string | null;
  readonly person: string | null;
  readonly project: string | null;
}

/** The ledger itself, by its own view. */
async function movedIn(world: World): Promise<Moved[]> {
  return world.rows<Moved>(
    sql`select movements.seq::text as seq, kind, amount::text as amount, (extract(epoch from movements.created_at) * 1000)::text as at, model, person, project
        from ${world.table('movements')} as movements left join ${world.table('calls')} as calls on calls.id = movements.request_id
        where movements.account_id = 'alice' and amount <> 0 order by movements.seq`,
  );
}

type Line = {
  kind: string;
  corrects?: string;
  project?: string;
  person?: string;
  model?: string;
  amount: string;
  usd: string;
};
type Last = ReturnType<StatementLines['summary']> & { readonly lines: readonly Line[] };

function contentOf(path: string) {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  const rows = lines.slice(1, -1).map((line) => JSON.parse(line) as Record<string, string>);
  return { head: JSON.parse(lines[0]!) as Record<string, string>, rows, last: JSON.parse(lines.at(-1)!) as Last };
}

const sumOf = (amounts: readonly string[]) => amounts.reduce((sum, amount) => sum + BigInt(amount), 0n);

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('call' as const),
      model: fc.constantFrom('small', 'large'),
      person: fc.option(fc.constantFrom('ann', 'bo'), { nil: undefined }),
      project: fc.option(fc.constantFrom('web', 'é "lab"'), { nil: undefined }),
      input: fc.integer({ min: 1, max: 1_000 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('credit' as const), lasts: fc.constantFrom(undefined, 3, 40) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('refund' as const), which: fc.nat(9) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('wait' as const), hours: fc.constantFrom(0.3, 5, 49, 300, 700) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('write' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('seal' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

/** Calls so far, for refunds. */
async function play(world: World, steps: readonly Step[]): Promise<void> {
  const called: string[] = [];
  let references = 0;
  for (const action of steps) {
    if (action.do === 'wait') world.host.advance(action.hours * hourMs);
    else if (action.do === 'write') await world.tick('write the ledger');
    else if (action.do === 'seal') await seal(world);
    else if (action.do === 'credit') {
      const expiresAt = action.lasts && world.host.clock.now() + action.lasts * dayMs;
      const kind = expiresAt === undefined ? 'top-up' : 'promotion';
      const reference = `credit-${references++}`;
      await world.host.get(ledger).credit('alice', usd('0.5'), { kind, reason: 'test', reference, expiresAt });
    } else if (action.do === 'refund') {
      const id = called[action.which];
      const entry = { reason: 'test', reference: `refund-${references++}` };
      // One that the ledger does not have yet, or that was given back, is refused.
      if (id !== undefined)
        await world.host
          .get(pool)
          .refundRequest('alice', id, money(100n), entry)
          .catch(() => {});
    } else {
      const { person, project, model, input } = action;
      const attribution = person === undefined && project === undefined ? {} : { attribution: { person, project } };
      const who = { accountId: 'alice', keyId: 'key-1', plan: 'free', models: undefined, ...attribution };
      const exchange = newCall({ model: { id: model }, facts: [[caller, who]] });
      const isIn = await enter(world, exchange).then(
        () => true,
        () => false,
      );
      if (!isIn) continue;
      await answer(exchange, { input, output: 7 });
      called.unshift(exchange.id);
    }
  }
}

/** RFC 4180. */
function cellsOf(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain = '', end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end !== ',') rows.push([]);
  }
  return rows.slice(0, -1);
}

/** The cells of a CSV file by their columns. */
function tableOf(path: string): Record<string, string>[] {
  const [first, ...rows] = cellsOf(readFileSync(path, 'utf8'));
  return rows.map((cells) => Object.fromEntries(cells.map((cell, index) => [first![index]!, cell])));
}

/** CSV and FOCUS have the same rows, which come to the same sums to the nano-dollar. */
async function checkForms(world: World, number: number): Promise<void> {
  const { head, rows, last } = contentOf(await exported(world, number));
  const csv = tableOf(await exported(world, number, 'csv'));
  assert.deepEqual(
    csv.map(({ seq, project, usd: text }) => [seq, project, usd(text!)]),
    rows.map(({ seq, project = '', amount }) => [seq, project, BigInt(amount!)]),
  );
  assert.equal(usd(csv.at(-1)!['balance_usd']!), BigInt(last.closing.amount));
  assert.equal(usd(csv[0]!['balance_usd']!) - usd(csv[0]!['usd']!), BigInt(head['opening']!));
  const focus = tableOf(await exported(world, number, 'focus'));
  const costs = rows.filter(({ kind }) => ['CHARGE', 'REFUND', 'DEBIT'].includes(kind!));
  assert.equal(focus.length, costs.length);
  for (const column of ['BilledCost', 'EffectiveCost', 'ContractedCost'])
    assert.equal(
      focus.reduce((sum, row) => sum + usd(row[column]!), 0n),
      -sumOf(costs.map(({ amount }) => amount!)),
    );
  const sums = last.lines.filter(({ kind }) => ['CHARGE', 'REFUND', 'DEBIT'].includes(kind));
  assert.equal(sumOf(sums.map(({ amount }) => amount)), sumOf(costs.map(({ amount }) => amount!)));
}

/** Every statement says what its rows say, all of them together what the ledger says, and each begins where the one before has ended. */
async function checkAll(world: World, zone: string): Promise<void> {
  const listed = await statementsOf(world);
  const moved = new Map((await movedIn(world)).map((row) => [row.seq, row]));
  let closing: string | undefined;
  let previous: string | null = null;
  const seen = new Set<string>();
  for (const [index, { number, month, digest }] of listed.entries()) {
    assert.equal(number, index + 1);
    const path = await exported(world, number);
    const verdict = await verified(path);
    assert.ok(verdict.ok, verdict.text);
    assert.equal(verdict.digest, digest);
    await checkForms(world, number);
    const { head, rows, last } = contentOf(path);
    const shown = (await world.host.get(statementAdmin).find('alice', number))!;
    assert.deepEqual([shown.digest, shown.closingUsd, shown.rows], [digest, last.closing.usd, rows.length]);
    assert.deepEqual(
      shown.lines.map(({ amount, usd: cents }) => [String(amount), cents]),
      last.lines.map(({ amount, usd: cents }) => [amount, cents]),
    );
    assert.equal(head['previous'], previous);
    if (closing !== undefined) assert.equal(head['opening'], closing);
    const { from, until } = monthOf(month, zone);
    const expected = new Map<string, bigint>();
    for (const row of rows) {
      const known = moved.get(row['seq']!)!;
      assert.ok(!seen.has(known.seq), 'a row stands in two statements');
      seen.add(known.seq);
      assert.equal(row['amount'], known.amount);
      const own = monthAt(Number(known.at), zone);
      assert.equal(row['corrects'], own === month ? undefined : own);
      assert.ok(Number(known.at) < until && (own !== month || Number(known.at) >= from));
      const by = known.kind === 'CHARGE' ? [known.project ?? '', known.person ?? '', known.model] : [];
      const key = JSON.stringify([known.kind, ...by, row['corrects'] ?? null]);
      expected.set(key, (expected.get(key) ?? 0n) + BigInt(known.amount));
    }
    const found = new Map<string, bigint>();
    for (const { kind, corrects, project, person, model, amount } of last.lines) {
      const key = JSON.stringify([kind, ...(kind === 'CHARGE' ? [project, person, model] : []), corrects ?? null]);
      found.set(key, (found.get(key) ?? 0n) + BigInt(amount));
    }
    assert.deepEqual(found, expected);
    const cents = [last.opening.usd, ...last.lines.map((line) => line.usd)];
    assert.equal(formatUsd(cents.reduce<bigint>((sum, each) => sum + usd(each), 0n)), last.closing.usd);
    closing = last.closing.amount;
    assert.equal(closing, String(BigInt(head['opening']!) + sumOf(rows.map((row) => row['amount']!))));
    previous = digest;
  }
  const pages = world.host.get(statementAdmin);
  const first = await pages.list('alice', { limit: 1 });
  const others = first.next === undefined ? [] : (await pages.list('alice', { limit: 500, after: first.next })).rows;
  assert.deepEqual(
    [...first.rows, ...others].map(({ number }) => number),
    listed.map(({ number }) => number).toReversed(),
  );
  // Everything of a month that has ended is in one of them.
  assert.equal(seen.size, moved.size);
  if (closing !== undefined) assert.equal(closing, String(sumOf([...moved.values()].map(({ amount }) => amount))));
}

/** Changes one byte of a file, which no longer proves itself then, and puts it back. */
async function changeByte(path: string, place: number): Promise<void> {
  const bytes = readFileSync(path);
  const at = place % bytes.length;
  const changed = Buffer.from(bytes);
  changed[at] = bytes[at]! ^ (1 + (place % 7));
  writeFileSync(path, changed);
  const verdict = await verified(path);
  const line = changed.subarray(0, at).toString('latin1').split('\n').length;
  assert.equal(verdict.ok, false);
  assert.ok(verdict.line === line || verdict.line === line + 1, `${verdict.text} The byte is in line ${line}.`);
  writeFileSync(path, bytes);
}

test('random months with late rows, refunds and expiries in any zone: statements are the ledger, and a changed byte is found', async () => {
  const zones = fc.constantFrom('UTC', 'Europe/Berlin', 'America/Sao_Paulo', 'Australia/Lord_Howe', 'Pacific/Apia');
  await fc.assert(
    fc.asyncProperty(zones, fc.array(step, { minLength: 10, maxLength: 60 }), fc.nat(), async (zone, steps, place) => {
      await using world = await worldOf(zone);
      await seal(world);
      await world.credit('5');
      await play(world, steps);
      for (let round = 0; round < 4; round++) await world.tick('write the ledger');
      // A statement for what came late.
      world.host.advance(32 * dayMs);
      await world.credit('0.01');
      world.host.advance(62 * dayMs);
      await world.tick('book what has expired');
      world.host.advance(62 * dayMs);
      await seal(world);
      await checkAll(world, zone);
      assert.deepEqual((await world.audit()).violations, []);
      await changeByte(await exported(world, 1), place);
    }),
    { numRuns: 12 },
  );
});

/** Clocks of Cairo went forward on the 10th of this month, and back in its last hour. */
const [twiceChanged, cairo] = ['2010-09', 'Africa/Cairo'];

/** Random calls from the first to the last minutes of the month, with credits that expire and parts of charges that are given back; resolves with how often. */
async function playMonth(world: World, chance: Chance, calls: number): Promise<number> {
  const { from, until } = monthOf(twiceChanged, cairo);
  const now = () => world.host.clock.now();
  const called: string[] = [];
  let refunds = 0;
  for (let left = calls; left > 0; left--) {
    const gap = Math.floor(((until - now()) / left) * 2 * chance.fraction());
    world.host.advance(now() < from ? from - now() : Math.min(gap, until - now() - 1));
    const attribution = { person: `p${chance.below(7)}`, project: `t${chance.below(3)}` };
    const who = { accountId: 'alice', keyId: 'key-1', plan: 'free', models: undefined, attribution };
    const exchange = newCall({ facts: [[caller, who]] });
    await enter(world, exchange);
    await answer(exchange, { input: 1 + chance.below(997), output: chance.below(90) });
    called.push(exchange.id);
    if (left % 500 === 0) await world.tick('write the ledger');
    if (left % 400 === 0) {
      const terms = { kind: 'promotion', reason: 'test', reference: `credit-${left}` };
      const expiresAt = now() + chance.between(6, 72) * hourMs;
      await world.host.get(ledger).credit('alice', usd('1'), { ...terms, expiresAt });
    }
    if (left % 80 === 0 && called.length > 1_000) {
      const id = called[chance.below(called.length - 1_000)]!;
      const entry = { reason: 'test', reference: `refund-${left}` };
      await world.host.get(pool).refundRequest('alice', id, money(100n), entry);
      refunds += 1;
    }
  }
  return refunds;
}

test('a month of 10,000 random calls with refunds, expiries and days of 23 and 25 hours: its statement is the ledger and the sum of the calls, and a changed byte is found', async () => {
  const { from, until } = monthOf(twiceChanged, cairo);
  const hours = Array.from(
    { length: 30 },
    (_, day) => Temporal.PlainDate.from(`${twiceChanged}-01`).add({ days: day }).toZonedDateTime(cairo).hoursInDay,
  );
  assert.deepEqual([hours[9], hours[29], new Set(hours).size], [23, 25, 3]);
  await using world = await worldOf(cairo, from - hourMs);
  await seal(world);
  await world.credit('100');
  const chance = new Chance(7);
  const refunds = await playMonth(world, chance, 10_000);
  world.host.advance(until - world.host.clock.now() - 1);
  for (let round = 0; round < 8; round++) await world.tick('write the ledger');
  world.host.advance(3 * hourMs);
  await seal(world);
  await checkAll(world, cairo);
  assert.deepEqual((await world.audit()).violations, []);
  const sealed = (await statementsOf(world)).find((one) => one.month === twiceChanged)!;
  const path = await exported(world, sealed.number);
  const { last, rows } = contentOf(path);
  const countOf = (kind: string) => rows.filter((row) => row['kind'] === kind).length;
  assert.deepEqual([countOf('CHARGE'), countOf('REFUND'), refunds > 100], [10_000, refunds, true]);
  assert.ok(countOf('EXPIRE') > 10, `${countOf('EXPIRE')} expiries`);
  const [sums] = await world.rows<{ n: number; cost: string }>(
    sql`select count(*)::int as n, sum(cost)::text as cost from ${world.table('calls')}`,
  );
  const charges = last.lines.filter(({ kind }) => kind === 'CHARGE');
  assert.deepEqual([sums!.n, -sumOf(charges.map(({ amount }) => amount))], [10_000, BigInt(sums!.cost)]);
  assert.deepEqual([charges.length, last.lines.filter(({ corrects }) => corrects !== undefined)], [21, []]);
  for (let round = 0; round < 2; round++) await changeByte(path, chance.next());
});

test('a call that reached the ledger after its month was sealed is a correction in the next statement, which names the month', async () => {
  await using world = await worldOf('UTC');
  await seal(world);
  await world.credit('5');
  const exchange = newCall();
  await enter(world, exchange);
  await answer(exchange, { input: 10, output: 10 });
  world.host.advance(31 * dayMs);
  await seal(world);
  for (let round = 0; round < 3; round++) await world.tick('write the ledger');
  world.host.advance(28 * dayMs);
  await seal(world);
  const listed = await statementsOf(world);
  assert.deepEqual(
    listed.map(({ month, opening, closing }) => [month, opening, closing]),
    [
      ['2027-01', '0.00', '5.00'],
      ['2027-02', '5.00', '4.99988'],
    ],
  );
  const { lines } = contentOf(await exported(world, 2)).last;
  assert.deepEqual(
    lines.map(({ kind, corrects, amount }) => [kind, corrects, amount]),
    [['CHARGE', '2027-01', '-120000']],
  );
});

test("months of an account with a time zone of its own are that zone's, and a change of it neither loses nor repeats a row", async () => {
  await using world = await worldOf('UTC');
  await seal(world);
  const zoneTo = (zone: string) => world.host.get(budgetAdmin).setZone('alice', zone);
  await zoneTo('America/New_York');
  const at = (text: string) => world.host.advance(Date.parse(text) - world.host.clock.now());
  const callOf = async (accountId: string) => {
    const exchange = newCall({ accountId });
    await enter(world, exchange);
    await answer(exchange, { input: 10, output: 10 });
    for (let round = 0; round < 3; round++) await world.tick('write the ledger');
  };
  for (const account of ['alice', 'bob']) await world.credit('5', account);
  at('2027-02-01T02:00:00Z');
  for (const account of ['alice', 'bob']) await callOf(account);
  at('2027-02-01T05:30:00Z');
  await seal(world);
  assert.deepEqual(await statementsOf(world, 'bob'), [], 'January has not ended everywhere for an hour');
  at('2027-02-01T06:30:00Z');
  await seal(world);
  const closings = async (account: string) =>
    (await statementsOf(world, account)).map(({ month, closing }) => [month, closing]);
  assert.deepEqual(await closings('alice'), [['2027-01', '4.99988']]);
  assert.deepEqual(await closings('bob'), [['2027-01', '5.00']]);
  await zoneTo('Asia/Kathmandu');
  at('2027-02-10T00:00:00Z');
  await callOf('alice');
  at('2027-02-28T20:00:00Z');
  await callOf('alice');
  at('2027-04-01T06:30:00Z');
  await seal(world);
  assert.deepEqual(await closings('alice'), [
    ['2027-01', '4.99988'],
    ['2027-02', '4.99976'],
    ['2027-03', '4.99964'],
  ]);
  const rows: string[] = [];
  for (const number of [1, 2, 3]) {
    const path = await exported(world, number);
    await verified(path);
    rows.push(...contentOf(path).rows.map(({ seq }) => seq!));
  }
  assert.deepEqual(
    rows,
    (await movedIn(world)).map(({ seq }) => seq),
  );
});

/** A file of one account with a credit and two calls. */
async function smallFile(): Promise<{ readonly text: string; readonly path: string }> {
  await using world = await worldOf('UTC');
  await seal(world);
  await world.credit('5');
  for (let count = 0; count < 2; count++) {
    const exchange = newCall();
    await enter(world, exchange);
    await answer(exchange, { input: 10, output: 10 });
  }
  for (let round = 0; round < 3; round++) await world.tick('write the ledger');
  world.host.advance(31 * dayMs);
  await seal(world);
  const path = await exported(world, 1);
  return { path, text: readFileSync(path, 'utf8') };
}

/** The same lines with digests that follow from them, as someone would make them who knows the format. */
function forged(lines: readonly string[]): string {
  let before = '';
  return lines
    .map((line) => {
      const { digest: _, ...value } = JSON.parse(line);
      before = createHash('sha256')
        .update(`${before}\n${JSON.stringify(value)}`)
        .digest('hex');
      return `${JSON.stringify({ ...value, digest: before })}\n`;
    })
    .join('');
}

test('a forged file names its first line that does not follow from the others, although its digests do', async () => {
  const { path, text } = await smallFile();
  const lines = text.trimEnd().split('\n');
  const forgeries: [string, (all: string[]) => string[], line: number, what: RegExp][] = [
    [
      'nothing',
      (all) => all,
      0,
      /^Statement 1 of alice for 2027-01 is as it was sealed: 3 rows, digest [0-9a-f]{64}\.$/,
    ],
    [
      'a charge',
      (all) => all.with(2, all[2]!.replace('"amount":"-120000"', '"amount":"-1000"')),
      3,
      /× ratio is 120000/,
    ],
    ['usage', (all) => all.with(2, all[2]!.replace('"input":10', '"input":11')), 3, /× ratio is 122000/],
    ['no price', (all) => all.with(2, all[2]!.replace('"price"', '"prize"')), 3, /no usage, price and ratio/],
    ['order', (all) => [all[0]!, all[2]!, all[1]!, ...all.slice(3)], 3, /out of order/],
    ['a missing row', (all) => all.toSpliced(3, 1), 4, /the rows come to/],
    [
      'a sum',
      (all) => all.with(4, all[4]!.replace('"amount":"5000000000"', '"amount":"6000000000"')),
      5,
      /the rows come to/,
    ],
    [
      'a balance',
      (all) => all.with(4, all[4]!.replace('"closing":{"amount":"4', '"closing":{"amount":"5')),
      5,
      /other sums/,
    ],
    ['another month', (all) => all.with(0, all[0]!.replace('2027-01"', '2027-02"')), 1, /does not reach/],
    [
      'a month that a row does not say',
      (all) => all.with(1, all[1]!.replace('"at":"2027-01', '"at":"2026-11')),
      2,
      /is of 2026-11/,
    ],
    ['a later row', (all) => all.with(1, all[1]!.replace('"at":"2027-01', '"at":"2027-03')), 2, /is not of 2027-01/],
    ['no end', (all) => all.slice(0, -1), 5, /is missing/],
    ['a row behind the end', (all) => [...all, all[1]!], 6, /behind the sums/],
    ['another format', (all) => all.with(0, all[0]!.replace('statement 1', 'statement 9')), 1, /no head/],
  ];
  for (const [what, forge, line, expected] of forgeries) {
    const all = forge([...lines]);
    if (line > 0) assert.notDeepEqual(all, lines, what);
    writeFileSync(path, forged(all));
    const verdict = await verified(path);
    assert.match(verdict.text, expected, what);
    assert.deepEqual([verdict.ok, verdict.line ?? 0], [line === 0, line], `${what}: ${verdict.text}`);
  }
  writeFileSync(path, forged(lines));
  assert.equal(readFileSync(path, 'utf8'), text);
});

test('the commands: a file is written once, a missing one and a missing statement are named, and a changed one ends with 1', async () => {
  await using world = await worldOf('UTC');
  await seal(world);
  await world.credit('5');
  assert.match((await command(world, 'statements list').run({})).text, /^No statements are sealed/);
  world.host.advance(31 * dayMs);
  await seal(world);
  assert.match(
    (await command(world, 'statements list').run({})).text,
    /^alice {2}1 {2}2027-01 {2}0\.00 → 5\.00 USD {2}[0-9a-f]{64}$/,
  );
  const out = await exported(world, 1);
  await assert.rejects(
    command(world, 'statements export').run({ account: 'alice', number: '1', out }),
    /is there already/,
  );
  const other = join(directory, 'other.jsonl');
  await assert.rejects(
    command(world, 'statements export').run({ account: 'alice', number: '2', out: other }),
    /no statement 2/,
  );
  assert.equal(existsSync(other) && readFileSync(other, 'utf8') !== '', false);
  const verify = (file: string) => command(world, 'statements verify').run({ file });
  assert.equal((await verify(out)).exitCode, 0);
  await assert.rejects(verify(join(directory, 'none')), /There is no file/);
  writeFileSync(out, readFileSync(out, 'utf8').replace('\n', '\r\n'));
  assert.deepEqual((await verify(out)).exitCode, 1);
  await assert.rejects(world.rows(sql`update ${world.table('statements')} set closing = 0`), (error: Error) =>
    /immutable/.test(String(error.cause ?? error)),
  );
});

test('a file for cost tools has the columns and the values that FOCUS asks for, and no payments', async () => {
  await using world = await worldOf('Europe/Berlin');
  await seal(world);
  await world.credit('5');
  const who = { accountId: 'alice', keyId: 'key-1', plan: 'free', models: undefined };
  const exchange = newCall({ facts: [[caller, { ...who, attribution: { project: '=web', person: 'ann' } }]] });
  await enter(world, exchange);
  await answer(exchange, { input: 10, output: 10 });
  await world.tick('write the ledger');
  await world.host.get(pool).refundRequest('alice', exchange.id, money(100n), { reason: 'test', reference: 'sorry' });
  world.host.advance(31 * dayMs);
  await seal(world);
  const [call, refund, ...others] = tableOf(await exported(world, 1, 'focus'));
  assert.deepEqual(others, []);
  assert.equal([...focusColumns].sort().join(), focusColumns.join());
  const { SkuPriceDetails: details, Tags: tags, ...cells } = call!;
  assert.deepEqual(JSON.parse(tags!), { project: '=web', person: 'ann' });
  assert.ok(Object.keys(JSON.parse(details!)).every((name) => name.startsWith('x_')));
  assert.equal(BigInt(Number(cells['PricingQuantity'])) * usd(cells['ListUnitPrice']!), usd(cells['ListCost']!));
  const fixed = ['ChargeCategory', 'BilledCost', 'ChargeClass', 'BillingPeriodStart', 'ConsumedQuantity'] as const;
  assert.deepEqual(
    [...fixed, 'SubAccountId', 'InvoiceIssuerName'].map((name) => cells[name]),
    ['Usage', '0.00012', '', '2026-12-31T23:00:00Z', '20', "'=web", 'test'],
  );
  assert.deepEqual(
    [...fixed, 'x_Reference'].map((name) => refund![name]),
    ['Credit', '-0.0000001', '', '2026-12-31T23:00:00Z', '', 'sorry'],
  );
  await assert.rejects(exported(world, 1, 'pdf'), /--as is one of json, csv, focus/);
  if (process.env['FOCUS_FILE'] !== undefined)
    writeFileSync(process.env['FOCUS_FILE'], readFileSync(await exported(world, 1, 'focus')));
});

test('two processes seal at once: each account has one statement of the month', async () => {
  await using one = await worldOf('UTC');
  await using other = await newWorld({
    section: { statements: { zone: 'UTC' } },
    schema: one.database.schema,
    directory: temporaryDirectory(),
  });
  await seal(one);
  for (const account of ['alice', 'bob', 'carol']) await one.credit('1', account);
  one.host.advance(31 * dayMs);
  other.host.advance(31 * dayMs);
  await Promise.all([seal(one), seal(other)]);
  const rows = await one.rows<{ account_id: string; number: number }>(
    sql`select account_id, number from ${one.table('statements')} order by 1, 2`,
  );
  assert.deepEqual(
    rows.map(({ account_id, number }) => [account_id, number]),
    [
      ['alice', 1],
      ['bob', 1],
      ['carol', 1],
    ],
  );
});

test('any amounts in cents add up to their sum, half up, and each is less than a cent away', () => {
  const amount = fc.bigInt(-(10n ** 18n), 10n ** 18n);
  fc.assert(
    fc.property(fc.array(amount, { minLength: 1, maxLength: 40 }), (amounts) => {
      const cents = centsTogether(amounts);
      const sum = amounts.reduce((total, each) => total + each, 0n);
      const off = cents.reduce((total, each) => total + each, 0n) * 10_000_000n - sum;
      assert.ok(off > -5_000_000n && off <= 5_000_000n, String(off));
      for (const [index, each] of cents.entries()) {
        const away = each * 10_000_000n - amounts[index]!;
        assert.ok(away > -10_000_000n && away <= 10_000_000n);
      }
    }),
  );
});
