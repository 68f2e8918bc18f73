/** The whole main gateway on a free port, in front of vendors that do as they are told, and all that it writes down. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { type Money, money } from '../../core/money.ts';
import type { Usage } from '../../core/usage.ts';
import { accounts, database, ledger } from '../../core/vocabulary.ts';
import { type RunningVendor, startVendor as startSandbox } from '../../plugins/sandbox/vendor.ts';
import { databaseUrl, openDatabase } from '../helpers/database.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { fillDirectory } from '../helpers/template.ts';
import { startVendor as startReplaying, type Vendor } from '../helpers/vendor.ts';
import { type DialectName, dialects, type Question } from './dialects.ts';

export interface Customer {
  readonly accountId: string;
  readonly key: string;
}

export interface Told {
  readonly status: number;
  readonly headers: Headers;
  /** As far as it came. */
  readonly text: string;
  /** The connection broke before the answer's end. */
  readonly broken: boolean;
  /** The gateway's id of the request. */
  readonly id: string;
}

export interface LedgerRow {
  readonly kind: 'CREDIT' | 'HOLD' | 'EXTEND' | 'SETTLE' | 'VOID';
  readonly request_id: string | null;
  readonly amount: bigint;
  readonly balance_after: bigint;
  readonly detail: { readonly reason?: string; readonly usage?: Usage; readonly estimated?: boolean };
}

export interface UsageRow {
  readonly request_id: string;
  readonly model: string;
  readonly provider: string;
  readonly classes: Usage;
  readonly cost: bigint;
  readonly estimated: boolean;
  readonly terminal: boolean;
}

export interface AttemptRow {
  readonly number: number;
  readonly provider: string;
  readonly credential: string;
  readonly result: string;
  readonly status: number | null;
}

/** What one account's calls have left in the database, oldest first. */
export interface Books {
  readonly ledger: readonly LedgerRow[];
  readonly usage: readonly UsageRow[];
  readonly attempts: readonly AttemptRow[];
  /** `kind reason` of each ledger row that ends a call. */
  readonly ends: readonly string[];
}

export interface HouseOptions {
  /** Offers by name; `open` has no limits and is the default. */
  readonly offers?: Record<string, object>;
  readonly providers?: (origins: { sandbox: string; replay: string }) => Record<string, object>;
  readonly models?: Record<string, object>;
  /** Further sections of the gateway's file. */
  readonly more?: Record<string, unknown>;
  /** The vendors' keys, where their text matters. */
  readonly keys?: { readonly sandbox?: string; readonly replay?: string };
  readonly environment?: Record<string, string>;
}

export interface House {
  readonly origin: string;
  readonly gateway: TestGateway;
  /** Serves the model `sandbox`. */
  readonly sandbox: RunningVendor;
  /** Serves the model `replay`. */
  readonly replay: Vendor;
  customer(options?: { nanoUsd?: bigint; plan?: string; models?: readonly string[] }): Promise<Customer>;
  credit(customer: Customer, nanoUsd: bigint): Promise<Money>;
  balance(customer: Customer): Promise<Money>;
  call(customer: Customer | undefined, dialect: DialectName, question: Question, init?: RequestInit): Promise<Told>;
  /** Waits until `ends` calls of this account have ended in the database and none is open. */
  books(customer: Customer, ends?: number): Promise<Books>;
  /** Rows of one table of the gateway's schema. */
  rows<Row>(table: string): Promise<Row[]>;
  /** Fails when an invariant of the money does not hold. */
  audit(): Promise<void>;
  stop(): Promise<void>;
}

export const usdInNano = 1_000_000_000n;
/** What every model here costs, in USD per million tokens; one input token is 1,000 nano-USD. */
export const price = { input: 1, cache_read: 0.1, output: 2 };

/** All four protocols at one origin. */
export const speaks = (origin: string) => ({
  chat: `${origin}/v1`,
  responses: `${origin}/v1`,
  messages: origin,
  gemini: `${origin}/v1beta`,
});
export const modelAt = (...targets: string[]) => ({ owned_by: 'test', targets, context: '100k', price });

export async function startHouse(options: HouseOptions = {}): Promise<House> {
  const keys = { sandbox: 'vendor-key-of-the-sandbox', replay: 'vendor-key-of-the-replay', ...options.keys };
  const sandbox = await startSandbox({ key: keys.sandbox });
  const replay = await startReplaying();
  const providers = {
    sandbox: { keys: keys.sandbox, speaks: speaks(sandbox.origin) },
    replay: { keys: keys.replay, speaks: speaks(replay.origin) },
    ...options.providers?.({ sandbox: sandbox.origin, replay: replay.origin }),
  };
  const models = { sandbox: modelAt('sandbox'), replay: modelAt('replay'), ...options.models };
  const directory = await mkdtemp(join(tmpdir(), 'house-'));
  if (databaseUrl === undefined) await fillDirectory(directory);
  const sections = {
    gateway: 'house',
    schema: `house_${randomBytes(6).toString('hex')}`,
    listen: '127.0.0.1:0',
    plans: { default: 'open', offers: { open: { price: 0 }, ...options.offers } },
    providers,
    models,
    ...options.more,
  };
  const gateway = await startGateway(yamlOf(sections), {
    directory,
    environment: { ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }), ...options.environment },
  });
  return { ...faces(gateway), sandbox, replay, stop: () => stop(gateway, sandbox, replay) };
}

/** The main gateway's file with these sections of its own. */
export function yamlOf(sections: Record<string, unknown>): string {
  const lines = Object.entries(sections).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return ['include: config/main.yaml', ...lines, ''].join('\n');
}

async function stop(gateway: TestGateway, sandbox: RunningVendor, replay: Vendor): Promise<void> {
  const { schema } = gateway.gateway.find(database)!;
  await gateway.stop();
  await Promise.all([sandbox.close(), replay.stop()]);
  await rm(gateway.directory, { recursive: true, force: true });
  await dropSchema(schema);
}

/** Leaves nothing in a real PostgreSQL; an embedded database goes with its directory. */
export async function dropSchema(schema: string): Promise<void> {
  if (databaseUrl === undefined) return;
  const store = await openDatabase({ schema });
  await store.orm.execute(sql`drop schema if exists ${sql.identifier(schema)} cascade`);
  await store.close();
}

/** What can be done with a gateway that runs, whoever its vendors are. */
export function faces(gateway: TestGateway): Omit<House, 'sandbox' | 'replay' | 'stop'> {
  const running = gateway.gateway;
  const book = running.find(ledger)!;
  let grants = 0;
  const credit: House['credit'] = ({ accountId }, nanoUsd) =>
    book.credit(accountId, money(nanoUsd), { kind: 'top-up', reason: 'test', reference: `${accountId}-${++grants}` });
  return {
    origin: gateway.origin,
    gateway,
    async customer({ nanoUsd = 100n * usdInNano, plan = 'open', models } = {}) {
      const account = await running.find(accounts)!.create(`customer-${randomBytes(6).toString('hex')}`, plan);
      const options = { name: 'test', ...(models === undefined ? {} : { models }) };
      const { key } = await running.find(accounts)!.createKey(account.id, options);
      const customer = { accountId: account.id, key };
      if (nanoUsd > 0n) await credit(customer, nanoUsd);
      return customer;
    },
    credit,
    balance: ({ accountId }) => book.balance(accountId),
    call: (customer, dialect, question, init) => ask(gateway.origin, customer, dialect, question, init),
    books: (customer, ends = 1) => readBooks(gateway, customer, ends),
    rows: (table) => rowsOf(gateway, table),
    async audit() {
      const { json } = await running.commands.find(({ name }) => name === 'audit')!.run({});
      assert.deepEqual((json as { violations: unknown[] }).violations, []);
    },
  };
}

async function ask(
  origin: string,
  customer: Customer | undefined,
  name: DialectName,
  question: Question,
  init: RequestInit = {},
): Promise<Told> {
  const dialect = dialects[name];
  const answer = await fetch(origin + dialect.path(question), {
    method: 'POST',
    body: JSON.stringify(dialect.body(question)),
    redirect: 'manual',
    ...init,
    headers: {
      'content-type': 'application/json',
      ...(customer === undefined ? {} : dialect.key(customer.key)),
      ...(init.headers as Record<string, string> | undefined),
    },
  });
  return told(answer);
}

/** Reads an answer to its end, or to where it breaks. */
export async function told(answer: Response): Promise<Told> {
  const decoder = new TextDecoder();
  const { status, headers } = answer;
  const id = (headers.get('x-request-id') ?? '').replace(/^req_/, '');
  let text = '';
  try {
    for await (const chunk of answer.body ?? []) text += decoder.decode(chunk, { stream: true });
    return { status, headers, text, broken: false, id };
  } catch {
    return { status, headers, text, broken: true, id };
  }
}

const endKinds = ['SETTLE', 'VOID', 'EXPIRE'];

async function readBooks(gateway: TestGateway, { accountId }: Customer, ends: number): Promise<Books> {
  const of = <Row>(table: string, order: string) => rowsOf<Row>(gateway, table, accountId, order);
  const deadline = Date.now() + 5_000;
  for (;;) {
    const rows = (await of<LedgerRow>('ledger', 'seq')).map((row) => ({
      ...row,
      amount: BigInt(row.amount),
      balance_after: BigInt(row.balance_after),
    }));
    const ended = rows.filter(({ kind }) => endKinds.includes(kind));
    if (ended.length === ends && rows.filter(({ kind }) => kind === 'HOLD').length === ends) {
      const usage = await of<UsageRow>('usage', 'created_at');
      return {
        ledger: rows,
        usage: usage.map((row) => ({ ...row, cost: BigInt(row.cost) })),
        attempts: await of<AttemptRow>('attempts', 'started_at, number'),
        ends: ended.map(({ kind, detail }) => `${kind} ${detail.reason}`),
      };
    }
    if (Date.now() > deadline)
      assert.fail(`${ended.length} of ${ends} calls have ended: ${JSON.stringify(rows.map(({ kind }) => kind))}`);
    await pause(10);
  }
}

async function rowsOf<Row>(gateway: TestGateway, table: string, accountId?: string, order = '1'): Promise<Row[]> {
  const store = gateway.gateway.find(database)!;
  const where = accountId === undefined ? sql`` : sql`where account_id = ${accountId}`;
  const from = sql`${sql.identifier(store.schema)}.${sql.identifier(table)}`;
  const found = await store.orm.execute(sql`select * from ${from} ${where} order by ${sql.raw(order)}`);
  return [...(found as unknown as Row[])];
}

/** Asks again and again until it is so. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, withinMs = 5_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await isSo())) {
    if (Date.now() > deadline) assert.fail(`${what}: not within ${withinMs} ms`);
    await pause(5);
  }
}
