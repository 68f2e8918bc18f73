/** The embedded database dies or hangs under load: known callers notice nothing, money-in fails cleanly, the ledger catches up. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { GatewayError } from '../../core/contract/errors.ts';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { database } from '../../plugins/common/domain/database.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { money } from '../../plugins/common/domain/money.ts';
import { readOwner } from '../../plugins/storage/embedded/lock.ts';
import { watchDelay } from '../helpers/delay.ts';
import { dialectNames } from './dialects.ts';
import { type Customer, startTestbed, type Testbed, until } from './testbed.ts';

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed({ environment: { DATABASE_URL: 'embedded' } });
});
after(() => testbed.stop());

const databaseProcess = () => readOwner(testbed.gateway.directory)!.pid;
const healthy = () => testbed.gateway.gateway.find(database)!.healthy();
const isBack = () => until('the database is back', async () => healthy() && (await ready()) === 200);
const ready = async () => (await fetch(`${testbed.origin}/readyz`)).status;

/** Calls of one customer, one after the other, until stopped. */
class Caller {
  readonly customer: Customer;
  readonly statuses: number[] = [];
  /** The longest that one call took. */
  slowestMs = 0;
  #running = true;
  readonly #done: Promise<void>;

  constructor(customer: Customer, index: number) {
    this.customer = customer;
    this.#done = this.#call(index);
  }

  async stop(): Promise<void> {
    this.#running = false;
    await this.#done;
  }

  async #call(index: number): Promise<void> {
    for (let turn = index; this.#running; turn++) {
      const dialect = dialectNames[turn % dialectNames.length]!;
      const startedAt = performance.now();
      const prompt = `[[sandbox: tokens=${5 + (turn % 20)} chunk_delay=1ms]]`;
      const answer = await testbed.call(this.customer, dialect, { model: 'sandbox', prompt, stream: turn % 3 === 0 });
      this.statuses.push(answer.status);
      this.slowestMs = Math.max(this.slowestMs, performance.now() - startedAt);
      await pause(5);
    }
  }
}

test('killed twice under load, the database loses no call of a known key, and the ledger agrees with the bill', async () => {
  const delay = watchDelay();
  const customers = await Promise.all(Array.from({ length: 4 }, () => testbed.customer()));
  const billed = testbed.sandbox.bill();
  const callers = customers.map((customer, index) => new Caller(customer, index));
  await until('all have called', () => callers.every(({ statuses }) => statuses.length > 0));
  for (let kill = 0; kill < 2; kill++) {
    const before = databaseProcess();
    process.kill(before, 'SIGKILL');
    await until('it is missed', async () => !healthy());
    assert.equal(await ready(), 503);
    const served = callers.map(({ statuses }) => statuses.length);
    await until('calls go on', () => callers.every(({ statuses }, index) => statuses.length > served[index]!));
    assert.equal(healthy(), false, 'they went on without it');
    await isBack();
    assert.notEqual(databaseProcess(), before);
  }
  await Promise.all(callers.map((caller) => caller.stop()));
  const used = { input: 0, output: 0 };
  for (const { customer, statuses, slowestMs } of callers) {
    assert.deepEqual(new Set(statuses), new Set([200]));
    assert.ok(slowestMs < delay.allowedMs(2_000), `a call took ${slowestMs} ms`);
    const records = await testbed.records(customer, statuses.length);
    assert.deepEqual(new Set(records.ends), new Set(['charged answered']));
    assert.equal(records.charges.length, statuses.length);
    for (const { classes } of records.charges) {
      used.input += classes.input!;
      used.output += classes.output!;
    }
    assert.equal(await testbed.balance(customer), records.ledger.at(-1)!.balance_after);
  }
  const total = testbed.sandbox.bill().totals['sandbox']!;
  const earlier = billed.totals['sandbox'] ?? {};
  assert.deepEqual(used, {
    input: total.input! - (earlier.input ?? 0),
    output: total.output! - (earlier.output ?? 0),
  });
  await testbed.audit();
});

test('while the database is away credits fail without effect, unknown keys get 503, empty accounts stay refused; all recovers by itself', async () => {
  const book = testbed.gateway.gateway.find(ledger)!;
  const known = await testbed.customer();
  const poor = await testbed.customer({ nanoUsd: 1n });
  const unseen = await testbed.customer();
  const hello = { model: 'sandbox', prompt: 'Hello' };
  assert.equal((await testbed.call(known, 'chat', hello)).status, 200);
  assert.equal((await testbed.call(poor, 'chat', hello)).status, 402);
  const grant = { kind: 'top-up', reason: 'test', reference: `fault-${known.accountId}` };
  const credit = () => book.credit(known.accountId, money(5n), grant);

  process.kill(databaseProcess(), 'SIGKILL');
  await until('it is missed', async () => !healthy());
  const [failed, stranger, rich, refused] = await Promise.all([
    credit().then(
      () => undefined,
      (error: unknown) => error,
    ),
    testbed.call(unseen, 'chat', hello),
    testbed.call(known, 'chat', hello),
    testbed.call(poor, 'chat', hello),
  ]);
  assert.ok(failed instanceof Error);
  assert.doesNotMatch(failed instanceof GatewayError ? failed.message : '', /insert|select/);
  assert.equal(stranger.status, 503, stranger.text);
  assert.ok(Number(stranger.headers.get('retry-after')) >= 1);
  assert.equal(rich.status, 200);
  assert.ok(refused.status === 402 || refused.status === 503, `${refused.status}`);
  await assert.rejects(testbed.gateway.gateway.find(accounts)!.create('missing', 'open'));

  await isBack();
  assert.equal((await testbed.call(unseen, 'chat', hello)).status, 200);
  await testbed.records(known, 2);
  const before = await testbed.balance(known);
  assert.deepEqual([await credit(), await credit()], [before + 5n, before + 5n]);
  const records = await testbed.records(known, 2);
  assert.equal(records.ledger.filter(({ kind }) => kind === 'CREDIT').length, 2);
  await testbed.audit();
});

test('while the database hangs calls continue, and are in the ledger afterwards', async () => {
  const customer = await testbed.customer();
  const hello = { model: 'sandbox', prompt: 'Hello' };
  assert.equal((await testbed.call(customer, 'chat', hello)).status, 200);
  const pid = databaseProcess();
  process.kill(pid, 'SIGSTOP');
  let calls = 1;
  const delay = watchDelay();
  try {
    const until = Date.now() + 1_000;
    for (; Date.now() < until; calls++) {
      const startedAt = Date.now();
      assert.equal((await testbed.call(customer, 'chat', hello)).status, 200);
      assert.ok(Date.now() - startedAt < delay.allowedMs(500));
    }
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  const records = await testbed.records(customer, calls);
  assert.equal(records.charges.length, calls);
  await testbed.audit();
});

test('only the database logs an outage, without statements, with one line at its end', async () => {
  const known = await testbed.customer();
  const unseen = await testbed.customer();
  const caller = new Caller(known, 0);
  await until('it has called', () => caller.statuses.length > 0);
  const from = testbed.gateway.lines.length;
  const killed = new Set<number>();
  const killing = setInterval(() => {
    const { pid } = readOwner(testbed.gateway.directory) ?? {};
    if (pid === undefined || killed.has(pid)) return;
    killed.add(pid);
    process.kill(pid, 'SIGKILL');
  }, 50);
  try {
    await until('it is missed', () => !healthy());
    for (const end = Date.now() + 4_000; Date.now() < end; await pause(100)) {
      const refused = await testbed.call(unseen, 'chat', { model: 'sandbox', prompt: 'Hello' });
      if (killed.size > 1) assert.equal(refused.status, 503, refused.text);
    }
  } finally {
    clearInterval(killing);
  }
  await isBack();
  await caller.stop();
  const ends = () => linesOf(from, 'info').filter(({ msg }) => msg === 'the database answers again');
  await until('its end is logged', () => ends().length > 0);
  const lines = [...linesOf(from, 'error'), ...linesOf(from, 'warn')];
  const counts = new Map(
    Object.entries(Object.groupBy(lines, ({ msg }) => msg)).map(([msg, list]) => [msg, list!.length]),
  );
  // Between two kills it may have answered for a moment: then there were two outages. Whatever else asks writes no line of its own.
  assert.equal(counts.get('the database does not answer'), ends().length);
  counts.delete('the database does not answer');
  assert.deepEqual([...counts], []);
  assert.doesNotMatch(JSON.stringify(lines), /\b(select|insert|update|delete|params)\b|"stack"/);
});

/** What was logged at a level from a line on. */
function linesOf(from: number, level: string): LogLine[] {
  const lines = testbed.gateway.lines.slice(from).filter((line) => line.startsWith(`{"level":"${level}"`));
  return lines.map((line) => JSON.parse(line) as LogLine);
}

interface LogLine {
  readonly msg: string;
}

test('every request has its row in the end', async () => {
  const written = () => testbed.gateway.lines.filter((line) => line.includes('"msg":"request"')).length;
  await until('the request rows are written', async () => (await testbed.rows('requests')).length === written());
});
