/** The whole main gateway on a free port, in front of vendors that follow a script, and all that it writes down. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { Agent, setGlobalDispatcher } from 'undici';
import type { Clock } from '../../core/contract/host-tools.ts';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { database } from '../../plugins/common/domain/database.ts';
import { ledger, pool } from '../../plugins/common/domain/ledger.ts';
import { type Money, money } from '../../plugins/common/domain/money.ts';
import type { Usage } from '../../plugins/common/domain/usage.ts';
import { type RunningVendor, startVendor as startSandbox } from '../../plugins/sandbox/vendor.ts';
import { migrationFolders } from '../../plugins/storage/embedded/fresh.ts';
import { databaseUrl, openDatabase, ownSchema, takeSchema } from '../helpers/database.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { startVendor as startReplaying, type Vendor } from '../helpers/vendor.ts';
import { type DialectName, dialects, type Question } from './dialects.ts';

// On a busy machine the last of hundreds of connections is made long after the usual ten seconds.
setGlobalDispatcher(new Agent({ connectTimeout: 120_000 }));

export interface Customer {
  readonly accountId: string;
  readonly key: string;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  /** As far as it came. */
  readonly text: string;
  /** The connection broke before the answer's end. */
  readonly broken: boolean;
  /** The gateway's id of the request. */
  readonly id: string;
}

interface LedgerRow {
  readonly kind: 'CHARGE' | 'CREDIT' | 'DEBIT' | 'PURCHASE' | 'REFUND' | 'PAYOUT' | 'EXPIRE';
  readonly request_id: string | null;
  readonly amount: bigint;
  readonly balance_after: bigint;
}

export interface CallRow {
  readonly id: string;
  readonly account_id: string;
  readonly model: string;
  readonly plan: string | null;
  /** It was charged; otherwise it cost nothing. */
  readonly settled: boolean;
  readonly reason: string;
  readonly provider: string;
  readonly classes: Usage;
  readonly held: bigint;
  readonly cost: bigint;
  readonly own_cost: bigint | null;
  readonly absorbed: bigint;
  readonly estimated: boolean;
  readonly terminal: boolean;
  readonly tier: string | null;
  readonly ratio: string;
  readonly attempts: readonly AttemptRow[];
}

/** A sent attempt. */
export interface AttemptRow {
  readonly number: number;
  readonly provider: string;
  readonly credential: string;
  readonly result: string;
  readonly status: number | null;
  readonly bearer: 'client' | 'operator' | null;
  readonly absorbed: bigint;
  readonly usage?: Usage;
  readonly estimated: boolean;
}

/** What one account's calls have left in the database, oldest first. */
export interface AccountRecords {
  readonly ledger: readonly LedgerRow[];
  readonly calls: readonly CallRow[];
  /** Those of the calls that were charged. */
  readonly charges: readonly CallRow[];
  readonly attempts: readonly AttemptRow[];
  /** `charged` or `free`, and why, for each call. */
  readonly ends: readonly string[];
}

export interface TestbedOptions {
  /** Offers by name; `open` has no limits and is the default. */
  readonly offers?: Record<string, object>;
  readonly providers?: (origins: { sandbox: string; replay: string }) => Record<string, object>;
  readonly models?: Record<string, object>;
  /** Further sections of the gateway's file. */
  readonly more?: Record<string, unknown>;
  /** The vendors' keys, where their text matters. */
  readonly keys?: { readonly sandbox?: string; readonly replay?: string };
  readonly environment?: Record<string, string>;
  readonly clock?: Clock;
}

export interface Testbed {
  readonly origin: string;
  readonly gateway: TestGateway;
  /** Serves the model `sandbox`. */
  readonly sandbox: RunningVendor;
  /** Serves the model `replay`. */
  readonly replay: Vendor;
  customer(options?: { nanoUsd?: bigint; plan?: string; models?: readonly string[] }): Promise<Customer>;
  credit(customer: Customer, nanoUsd: bigint): Promise<Money>;
  balance(customer: Customer): Promise<Money>;
  call(customer: Customer | undefined, dialect: DialectName, question: Question, init?: RequestInit): Promise<Reply>;
  /** Waits until `ends` calls of this account have ended in the database and nothing is held for others. */
  records(customer: Customer, ends?: number): Promise<AccountRecords>;
  /** Calls that have ended in the database, of one account or of all, oldest first. */
  calls(customer?: Customer): Promise<CallRow[]>;
  /** Rows of one table of the gateway's schema; `requests`: of all requests. */
  rows<Row>(table: string): Promise<Row[]>;
  /** Fails when an invariant of the money does not hold. */
  audit(): Promise<void>;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export const usdInNano = 1_000_000_000n;
/** What every model here costs, in USD per million tokens; one input token is 1,000 nano-USD. */
const price = { input: 1, cache_read: 0.1, output: 2, call: 0 };

/** All four protocols at one origin. */
export const speaks = (origin: string) => ({
  chat: `${origin}/v1`,
  responses: `${origin}/v1`,
  messages: origin,
  gemini: `${origin}/v1beta`,
});
export const modelAt = (...targets: (string | object)[]) => ({ owned_by: 'test', targets, context: '100k', price });

export async function startTestbed(options: TestbedOptions = {}): Promise<Testbed> {
  const keys = { sandbox: 'vendor-key-of-the-sandbox', replay: 'vendor-key-of-the-replay', ...options.keys };
  const sandbox = await startSandbox({ key: keys.sandbox });
  const replay = await startReplaying();
  const providers = {
    sandbox: { keys: keys.sandbox, speaks: speaks(sandbox.origin) },
    replay: { keys: keys.replay, speaks: speaks(replay.origin) },
    ...options.providers?.({ sandbox: sandbox.origin, replay: replay.origin }),
  };
  const models = { sandbox: modelAt('sandbox'), replay: modelAt('replay'), ...options.models };
  const directory = temporaryDirectory('testbed-');
  // Making the tables on a server takes two seconds, emptying those of an earlier gateway a tenth of that.
  const kept = databaseUrl === undefined ? undefined : await takeSchema([...migrationFolders().keys()]);
  const sections = {
    gateway: 'test',
    schema: kept?.schema ?? ownSchema('test'),
    listen: '127.0.0.1:0',
    plans: { default: 'open', offers: { open: { price: 0 }, ...options.offers } },
    providers,
    models,
    ...options.more,
  };
  const gateway = await startGateway(yamlOf(sections), {
    directory,
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    environment: { ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }), ...options.environment },
  });
  const end = async () => {
    await gateway.stop();
    await Promise.all([sandbox.close(), replay.stop()]);
    await rm(directory, { recursive: true, force: true });
    kept?.giveBack();
  };
  return { ...faces(gateway), sandbox, replay, stop: end, [Symbol.asyncDispose]: end };
}

/** Sections by which a gateway of the tests answers errors as the second gateway does. */
export const secondGateway = {
  plugins: [
    ...['storage', 'request-log', 'files', 'error-shape', 'auth', 'plans', 'rate-limit', 'providers', 'models'],
    ...['idempotency', 'billing', 'route', 'protocol-convert'],
  ],
  'error-shape': {},
};

/** The main gateway's file, or another one, with these sections of its own. */
export function yamlOf(sections: Record<string, unknown>, base = 'config/main.yaml'): string {
  const lines = Object.entries(sections).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return [`include: ${base}`, ...lines, ''].join('\n');
}

/** Leaves nothing in a real PostgreSQL; an embedded database goes with its directory. */
export async function dropSchema(schema: string): Promise<void> {
  if (databaseUrl === undefined) return;
  const store = await openDatabase({ schema });
  await store.orm.execute(sql`drop schema if exists ${sql.identifier(schema)} cascade`);
  await store.close();
}

/** What can be done with a gateway that runs, with any vendors. */
export function faces(gateway: TestGateway): Omit<Testbed, 'sandbox' | 'replay' | 'stop' | typeof Symbol.asyncDispose> {
  const running = gateway.gateway;
  const book = running.find(ledger)!;
  let grants = 0;
  const credit: Testbed['credit'] = ({ accountId }, nanoUsd) =>
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
    call: (customer, dialect, question, init) => send(gateway.origin, customer, dialect, question, init),
    records: (customer, ends = 1) => readRecords(gateway, customer, ends),
    calls: (customer) => callsOf(gateway, customer?.accountId),
    rows: (table) => (table === 'requests' ? requestRowsOf(gateway) : rowsOf(gateway, table)),
    async audit() {
      const { json } = await running.commands.find(({ name }) => name === 'audit')!.run({});
      assert.deepEqual((json as { violations: unknown[] }).violations, []);
    },
  };
}

async function send(
  origin: string,
  customer: Customer | undefined,
  name: DialectName,
  question: Question,
  init: RequestInit = {},
): Promise<Reply> {
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
  return readReply(answer);
}

/** Reads an answer to its end, or to where it breaks. */
export async function readReply(answer: Response): Promise<Reply> {
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

async function readRecords(gateway: TestGateway, { accountId }: Customer, ends: number): Promise<AccountRecords> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    // What has ended is in the database then.
    const { held } = await gateway.gateway.find(pool)!.view(accountId);
    const calls = await callsOf(gateway, accountId);
    if (calls.length === ends && held === 0n) {
      const rows = await rowsOf<LedgerRow>(gateway, 'movements', accountId, 'seq');
      return {
        ledger: rows.map((row) => ({
          ...row,
          amount: BigInt(row.amount),
          balance_after: BigInt(row.balance_after),
        })),
        calls,
        charges: calls.filter(({ settled }) => settled),
        attempts: calls.flatMap(({ attempts }) => attempts),
        ends: calls.map(({ settled, reason }) => `${settled ? 'charged' : 'free'} ${reason}`),
      };
    }
    if (Date.now() > deadline) {
      const kinds = JSON.stringify(calls.map(({ settled, reason }) => [settled, reason]));
      assert.fail(`${calls.length} of ${ends} calls have ended, ${held} nano-USD are held: ${kinds}`);
    }
    await pause(10);
  }
}

async function callsOf(gateway: TestGateway, accountId?: string): Promise<CallRow[]> {
  const rows = await rowsOf<CallRow>(gateway, 'calls', accountId, 'created_at, id');
  return rows.map((row) => ({
    ...row,
    held: BigInt(row.held),
    cost: BigInt(row.cost),
    own_cost: row.own_cost === null ? null : BigInt(row.own_cost),
    absorbed: BigInt(row.absorbed),
    attempts: row.attempts.map((attempt) => ({
      ...attempt,
      status: attempt.status ?? null,
      bearer: attempt.bearer ?? null,
      absorbed: BigInt(attempt.absorbed ?? 0),
      estimated: attempt.estimated ?? false,
    })),
  }));
}

/** The attempts of calls, by number. */
export function attemptsByNumber(calls: readonly CallRow[]): AttemptRow[] {
  return calls.flatMap(({ attempts }) => attempts).sort((one, other) => one.number - other.number);
}

/** Requests are rows of their own, or of the calls that they became. */
const requestColumns = sql`id, received_at, operation, protocol, account_id::text as account_id, key_id::text as key_id, model,
  provider, upstream_model, streamed, status, outcome, error_kind, error_code, attempts, first_byte_ms, total_ms, bytes_in,
  bytes_out, usage, usage_estimated, finish, upstream_id, dropped, story::jsonb as story`;

async function rowsOf<Row>(gateway: TestGateway, table: string, accountId?: string, order = '1'): Promise<Row[]> {
  const store = gateway.gateway.find(database)!;
  const where = accountId === undefined ? sql`` : sql`where account_id = ${accountId}`;
  const named = (name: string) => sql`${sql.identifier(store.schema)}.${sql.identifier(name)}`;
  const requests = sql`(select ${requestColumns} from ${named('requests')}
    union all select ${requestColumns} from ${named('call_requests')}) as requests`;
  const from = table === 'requests' ? requests : named(table);
  const attempts = sql`, ${named('attempts_of')}(attempts, provider, target_model) as attempts`;
  const columns = sql`*${table === 'calls' ? attempts : sql``}`;
  const found = await store.orm.execute(sql`select ${columns} from ${from} ${where} order by ${sql.raw(order)}`);
  return [...(found as unknown as Row[])];
}

/** Requests by themselves, and those whose facts are in the row of their call. */
async function requestRowsOf<Row>(gateway: TestGateway): Promise<Row[]> {
  const store = gateway.gateway.find(database)!;
  const rows = (table: string) =>
    sql`select to_jsonb(each) as row from ${sql.identifier(store.schema)}.${sql.identifier(table)} as each`;
  const found = await store.orm.execute(sql`${rows('requests')} union all ${rows('call_requests')}`);
  return (found as unknown as { row: Row }[]).map(({ row }) => row);
}

export interface JournalRecord {
  readonly kind: string;
  readonly id: string;
  readonly reason?: string;
  readonly estimated?: boolean;
  readonly usage?: Readonly<Record<string, number>>;
}

/** Lines of the journal as they are on disk at this moment; each is one write. */
export function journalLines({ directory: home }: TestGateway): JournalRecord[][] {
  const root = join(home, 'journal');
  const [schema] = readdirSync(root);
  const directory = join(root, schema!);
  return readdirSync(directory)
    .filter((name) => /^\d+/.test(name))
    .sort()
    .flatMap((name) => readFileSync(join(directory, name), 'utf8').split('\n'))
    .filter((line) => line.includes('['))
    .map((line) => JSON.parse(line.slice(line.indexOf('['))) as JournalRecord[]);
}

/** How often the hold of a call was extended. */
export function extensionsOf(gateway: TestGateway, { id }: CallRow): number {
  return journalLines(gateway)
    .flat()
    .filter((record) => record.kind === 'EXTEND' && record.id === id).length;
}

export { until } from '../helpers/until.ts';
