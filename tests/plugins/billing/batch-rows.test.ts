/** Whatever a batch has, whatever of it is there already: rows, balances and sums are those of an oracle that knows no SQL. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { applyBatch } from '../../../plugins/billing/ledger/batch.ts';
import { callSums } from '../../../plugins/billing/ledger/call-sums.ts';
import type { EndRecord, JournalRecord } from '../../../plugins/billing/model/records.ts';
import { rowsOf } from '../../../plugins/billing/model/sql.ts';
import type { CallFacts } from '../../../plugins/common/domain/call-facts.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { checkSums } from '../../../plugins/common/rollups/check.ts';
import { foldSums } from '../../../plugins/common/rollups/fold.ts';
import { cellOf } from '../../../plugins/common/rollups/sums-in-memory.ts';
import { cellOf as cellInSql } from '../../../plugins/request-log/histogram.ts';
import { requestSumsWith } from '../../../plugins/request-log/request-sums.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { runsOf } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import { lineOf } from './world.ts';

const start = Date.UTC(2026, 4, 3);
const uuid = (time: number, number: number) => {
  const digits = time.toString(16).padStart(12, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8)}-7000-8000-${number.toString(16).padStart(12, '0')}`;
};
const accounts = [1, 2, 3].map((number) => uuid(0, number));
const keys = [undefined, uuid(0, 11), uuid(0, 12)];
const named = fc.constantFrom('m', 'n', '', 'NULL', '{"a",b}', `it's "so" \\ so`, '漢字 🎈', '\t\n');
/** Texts of no dimension may have what parts them. */
const wild = fc.oneof(named, fc.constantFrom('\x1f', '\x1e', 'a\x1fb\x1e', '0!', '\x1f0!\x1e0!'));
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
/** So few that most are met again. */
const place = fc.nat(12);

const end = fc.record({
  place,
  settles: fc.constantFrom(true, true, false),
  took: fc.constantFrom(0, 400, 3_600_000),
  key: fc.constantFrom(...keys),
  model: named,
  plan: maybe(wild),
  person: maybe(named),
  project: maybe(named),
  reason: wild,
  provider: maybe(named),
  isOld: fc.boolean(),
  cost: fc.constantFrom(0n, 1n, 7n, 10n ** 15n),
  own: maybe(fc.constantFrom('0', '3')),
  absorbed: maybe(fc.constantFrom('0', '5')),
  usage: fc.constantFrom({}, { input: 3 }, { input: 0, output: 10 ** 12 }, { image: 2, web_search: 1 }),
  finish: maybe(wild),
  tier: maybe(wild),
});
const facts = fc.record({
  place,
  operation: fc.constantFrom('chat', 'images'),
  asked: maybe(named),
  provider: maybe(named),
  target: maybe(wild),
  streamed: fc.boolean(),
  status: fc.constantFrom(200, 399, 404, 499, 500, 503),
  outcome: fc.constantFrom('complete', 'failed', 'client_left') as fc.Arbitrary<CallFacts['outcome']>,
  errorKind: maybe(named),
  errorCode: maybe(named),
  tries: fc.nat(3),
  firstByteMs: maybe(fc.constantFrom(0, 0.1, 12.34, 99_999.99)),
  totalMs: fc.constantFrom(0.05, 640.25, 7_200_001),
  bytesIn: fc.nat(),
  bytesOut: fc.constantFrom(0, 2 ** 40),
  dropped: maybe(fc.array(wild, { maxLength: 3 })),
  story: maybe(fc.constantFrom('[]', '[[1,2,"a\\"b\\\\u001f"]]', '[["漢",null]]')),
});
const batch = fc.record({
  records: fc.array(fc.oneof(end, facts), { maxLength: 30 }),
  times: fc.constantFrom(1, 1, 2),
  /** With the batch before, as text that an earlier run had half applied. */
  isLonger: fc.boolean(),
  folds: fc.boolean(),
});
type End = typeof end extends fc.Arbitrary<infer T> ? T : never;
type Facts = typeof facts extends fc.Arbitrary<infer T> ? T : never;

/** As earlier versions wrote it. */
const attemptOf = (provider: string, number: number) => {
  const sent = { number, provider, model: 'theirs', credential: 'c', protocol: 'chat', startedAt: start };
  return { ...sent, result: 'answered' } as const;
};

/** A request has one account. */
const accountAt = (at: number) => accounts[at % accounts.length]!;
const arrivalOf = (at: number) => start + at * 400_000;

function recordOf(drawn: End | Facts, number: number): JournalRecord {
  const id = uuid(arrivalOf(drawn.place), drawn.place);
  if (!('settles' in drawn)) {
    const { place: _, ...values } = drawn;
    return { kind: 'FACTS', id, protocol: 'chat', ...values };
  }
  const { place: _, settles, took, isOld, provider, cost, own, usage, finish, tier, ...values } = drawn;
  const at = arrivalOf(drawn.place) + took;
  const target = provider === undefined ? {} : isOld ? {} : { provider, target: 'theirs' };
  const attempts: EndRecord['attempts'] =
    provider === undefined ? [] : [isOld ? attemptOf(provider, number) : [number, 0, 0]];
  const ended = {
    id,
    at,
    ...values,
    held: '9',
    heldAt: isOld ? undefined : at - took,
    attempts,
    ...target,
    account: accountAt(drawn.place),
  };
  if (!settles) return { kind: 'VOID', ...ended, input: undefined };
  const terms = { price: { input: '7' }, ratio: '1/1', version: 'v1', tier, estimated: isOld, terminal: true };
  return {
    kind: 'SETTLE',
    ...ended,
    ...terms,
    key: values.key as string,
    input: 5,
    cost: `${cost}`,
    own,
    usage,
    finish,
  } as EndRecord;
}

// ---------------------------------------------------------------------------------------------------------------- oracle

interface Row {
  readonly end: EndRecord;
  facts: CallFacts | undefined;
}

class Oracle {
  readonly rows = new Map<string, Row>();
  readonly movements: { account: string; id: string; amount: bigint; balance: bigint }[] = [];
  readonly balances = new Map<string, bigint>();

  apply(records: readonly JournalRecord[]): void {
    const ends = records.filter((record) => record.kind === 'SETTLE' || record.kind === 'VOID');
    const first = new Map<string, CallFacts>();
    for (const record of records) if (record.kind === 'FACTS' && !first.has(record.id)) first.set(record.id, record);
    for (const each of ends) {
      if (this.rows.has(each.id)) continue;
      this.rows.set(each.id, { end: each, facts: undefined });
      const cost = each.kind === 'SETTLE' ? BigInt(each.cost) : 0n;
      const balance = (this.balances.get(each.account) ?? 0n) - cost;
      this.balances.set(each.account, balance);
      if (cost > 0n) this.movements.push({ account: each.account, id: each.id, amount: -cost, balance });
    }
    for (const [id, found] of first) {
      const row = this.rows.get(id);
      if (row !== undefined) row.facts ??= found;
    }
  }
}

const orNull = <T>(value: T | undefined): T | null => value ?? null;
const unless = (text: string | undefined, known: string | undefined) => (text === known ? null : orNull(text));
const single = (value: number | undefined) => (value === undefined ? null : Math.fround(value));

function rowOf({ end: ended, facts: its }: Row) {
  const settled = ended.kind === 'SETTLE' ? ended : undefined;
  const last = ended.attempts.at(-1) as { provider?: string; model?: string } | undefined;
  const [provider, model] = [ended.provider ?? last?.provider, ended.target ?? last?.model];
  return {
    ...{
      id: ended.id,
      account_id: ended.account,
      key_id: orNull(ended.key),
      model: ended.model,
      plan: orNull(ended.plan),
      person: orNull(ended.person),
      project: orNull(ended.project),
    },
    ...{
      settled: settled !== undefined,
      reason: ended.reason,
      provider: orNull(provider),
      target_model: orNull(model),
    },
    ...{ classes: orNull(settled?.usage), estimated_input: orNull(ended.input?.toString()), held: ended.held },
    ...{ cost: settled?.cost ?? '0', own_cost: orNull(settled?.own), absorbed: ended.absorbed ?? '0' },
    ...{
      estimated: settled?.estimated ?? false,
      terminal: settled?.terminal ?? false,
      finish: orNull(settled?.finish),
    },
    ...{ price: orNull(settled?.price), price_version: orNull(settled?.version), tier: orNull(settled?.tier) },
    ...{ ratio: orNull(settled?.ratio), attempts: ended.attempts, held_at: `${ended.heldAt ?? ended.at}` },
    ...{ created_at: `${ended.at}`, operation: orNull(its?.operation), protocol: orNull(its?.protocol) },
    requested_model: its === undefined ? null : unless(its.asked, ended.model),
    last_provider: its === undefined ? null : unless(its.provider, provider),
    last_model: its === undefined ? null : unless(its.target, model),
    ...{ streamed: orNull(its?.streamed), status: orNull(its?.status), outcome: orNull(its?.outcome) },
    ...{ error_kind: orNull(its?.errorKind), error_code: orNull(its?.errorCode), tries: orNull(its?.tries) },
    ...{ first_byte_ms: single(its?.firstByteMs), total_ms: single(its?.totalMs), bytes_in: orNull(its?.bytesIn) },
    ...{ bytes_out: orNull(its?.bytesOut?.toString()), dropped: orNull(its?.dropped), story: orNull(its?.story) },
  };
}

// -------------------------------------------------------------------------------------------------------------- database

const requestSums = (schema: string) => requestSumsWith(() => sql`${sql.identifier(schema)}.call_requests`);

async function open(): Promise<TestDatabase> {
  const store = await openDatabase({ plugins: ['request-log', 'billing'] });
  await store.orm.execute(
    sql`insert into ${sql.identifier(store.schema)}.journal_cursor (journal, owner, updated_at) values ('node', 'o', now())`,
  );
  return store;
}

async function compare({ orm, schema }: TestDatabase, oracle: Oracle): Promise<void> {
  const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  const rows = await rowsOf(
    orm,
    sql`select id::text, account_id, key_id, model, plan, person, project, settled, reason, provider, target_model, classes,
          estimated_input::text, held::text, cost::text, own_cost::text, absorbed::text, estimated, terminal, finish, price, price_version,
          tier, ratio, attempts, (extract(epoch from held_at) * 1000)::bigint::text as held_at,
          (extract(epoch from created_at) * 1000)::bigint::text as created_at, operation, protocol, requested_model, last_provider, last_model,
          streamed, status, outcome, error_kind, error_code, tries, first_byte_ms::float8 as first_byte_ms, total_ms::float8 as total_ms,
          bytes_in, bytes_out::text, dropped, coalesce(story, (select stories[calls.timeline] from ${table('call_timelines')} as kept
            where kept.account_id = calls.account_id and kept.id = calls.timelines)) as story
        from ${table('calls')} as calls order by id`,
  );
  const wanted = [...oracle.rows.values()].map(rowOf).sort((one, other) => (one.id < other.id ? -1 : 1));
  assert.deepEqual(JSON.parse(JSON.stringify([...rows])), JSON.parse(JSON.stringify(wanted)));
  const movements = await rowsOf<Record<string, string>>(
    orm,
    sql`select account_id, request_id::text as id, amount::text, balance_after::text as balance, revenue::text from ${table('movements')} order by seq`,
  );
  assert.deepEqual(
    movements.map(({ account_id, id, amount, balance, revenue }) => ({ account_id, id, amount, balance, revenue })),
    oracle.movements.map(({ account, id, amount, balance }) => {
      return { account_id: account, id, amount: `${amount}`, balance: `${balance}`, revenue: `${-amount}` };
    }),
  );
  for (const sums of [callSums, requestSums(schema)]) assert.deepEqual(await checkSums(orm, schema, sums), []);
}

async function write(store: TestDatabase, oracle: Oracle, records: readonly JournalRecord[], applied: number) {
  const touched = new Set(records.flatMap((record) => ('account' in record ? [record.account] : [])));
  const cursor = { journal: 'node', owner: 'o', applied, requestSums: requestSums(store.schema) };
  const text = lineOf(1, ...records).toString();
  const balances = await applyBatch(store, text, new Map([...touched].map((id) => [id, money(0n)])), cursor);
  oracle.apply(records);
  assert.deepEqual(new Map(balances), new Map([...touched].map((id) => [id, oracle.balances.get(id) ?? 0n])));
}

test('batches that come twice, in part, with late and repeated records: rows, balances and sums are the oracle’s', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 5 }), async (batches) => {
      const store = await open();
      const oracle = new Oracle();
      let [number, applied]: [number, number] = [0, 0];
      let before: JournalRecord[] = [];
      for (const { records: drawn, times, isLonger, folds } of batches) {
        const fresh = drawn.map((each) => recordOf(each, ++number));
        const records = isLonger ? [...before, ...fresh] : fresh;
        if (folds)
          for (const sums of [callSums, requestSums(store.schema)])
            await foldSums(store.orm, store.schema, sums, start + 2 * 3_600_000, 1);
        for (let time = 0; time < times; time++) await write(store, oracle, records, ++applied);
        before = records;
      }
      await compare(store, oracle);
      await store.close();
    }),
    { numRuns: runsOf(5, 300), endOnFailure: true },
  );
});

test('cells of durations are those that the database finds, at each edge and beside it', async () => {
  const store = await openDatabase();
  const edges = Array.from({ length: 374 }, (_, cell) => 0.1 * 1.05 ** cell);
  const near = edges.flatMap((edge) => [edge * (1 - 2 ** -23), edge, edge * (1 + 2 ** -23)]).map(Math.fround);
  const durations = [...near, 0, 0.05, 12.34, 1e9];
  const rows = await rowsOf<{ cell: number }>(
    store.orm,
    sql`select ${cellInSql(sql`milliseconds`)} as cell
        from (select value::text::real as milliseconds, place from json_array_elements_text(${JSON.stringify(durations)}::text::json)
          with ordinality as given (value, place)) as given order by place`,
  );
  assert.deepEqual(
    durations.map(cellOf),
    rows.map(({ cell }) => cell),
  );
  await store.close();
});
