/** A billing plugin on a real embedded database, with files and statements that can be made to fail, and a crash. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { type SQL, sql } from 'drizzle-orm';
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite';
import { drizzle as drizzlePostgres } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import type { ContextKey, PluginInstance } from '../../../core/contract/contract.ts';
import billing, { setUpBilling } from '../../../plugins/billing/index.ts';
import { type Files, nodeFiles } from '../../../plugins/billing/journal/segments.ts';
import { beatMs } from '../../../plugins/billing/ledger/flusher.ts';
import { encodeRecords, type JournalRecord, lineBytes, putLine } from '../../../plugins/billing/model/records.ts';
import { rowsOf } from '../../../plugins/billing/model/sql.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import {
  type Attempt,
  attempts,
  type Call,
  call,
  type SpendGuard,
  spendGuard,
  type UsageReport,
  usageReport,
} from '../../../plugins/common/domain/calls.ts';
import { type Database, database, type Orm } from '../../../plugins/common/domain/database.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { catalog, type Model, model } from '../../../plugins/common/domain/models.ts';
import { type Money, money, parseUsd } from '../../../plugins/common/domain/money.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import type { Price } from '../../../plugins/common/domain/usage.ts';
import { unknownSize } from '../../../plugins/common/wire/possible-usage.ts';
import { type FakeExchange, type FakeHost, fakeExchange, fakeHost, okAnswer } from '../../helpers/fakes.ts';
import { KeptTables } from '../../helpers/kept-tables.ts';
import { openInProcess } from '../../helpers/template.ts';
import { atEnd } from '../../runner/end.ts';

interface Engine {
  readonly orm: Orm;
  /** Runs several statements. */
  exec(text: string): Promise<unknown>;
  close(): Promise<void>;
}

let engine: Promise<{ readonly engine: Engine; readonly tables: KeptTables }> | undefined;
let schemas = 0;
let processes = 0;

const directories: string[] = [];

/** A new directory, gone after the test file. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'billing-'));
  directories.push(directory);
  return directory;
}

process.once('exit', () => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

/** A Postgres server (`TEST_DATABASE_URL`) or an embedded database, one for all test files of this process. */
async function opened() {
  const engine = await openEngine();
  const tables = new KeptTables(engine.orm, async (plugins) => {
    const schema = `world_${process.pid}_${++schemas}`;
    await engine.exec(`create schema "${schema}"; create table "${schema}".migrations (file text)`);
    for (const plugin of plugins)
      await migrate(engine, schema, new URL(`../../../plugins/${plugin}/migrations/`, import.meta.url));
    return schema;
  });
  return { engine, tables };
}

async function openEngine(): Promise<Engine> {
  const url = process.env['TEST_DATABASE_URL'];
  if (url === undefined) {
    const client = await openInProcess();
    const orm = drizzlePglite(client) as unknown as Orm;
    return { orm, exec: (text) => client.exec(text), close: () => client.close() };
  }
  const client = postgres(url, { max: 4, onnotice: () => {} });
  const orm = drizzlePostgres(client) as unknown as Orm;
  return { orm, exec: (text) => client.unsafe(text), close: () => client.end() };
}

atEnd(async () => {
  const { engine: each, tables } = (await engine) ?? {};
  if (process.env['TEST_DATABASE_URL'] !== undefined) await tables?.drop();
  await each?.close();
});

/** The worlds of a test file, each with what lets go of its tables. */
const worlds = new Set<() => void>();

/** Behind the last test of a file. */
export function leaveWorlds(): void {
  for (const leave of worlds) leave();
}

export interface Faults {
  /** Every statement fails. */
  down: boolean;
  /** The next transaction commits, and then fails all the same, as after a time-out. */
  afterCommit: boolean;
  /** The next so many transactions fail before they begin. */
  refusals: number;
  /** What the file functions throw. */
  disk: NodeJS.ErrnoException | undefined;
  /** Bytes that the disk takes before it throws. */
  diskBytes: number;
  /** Statements outside of transactions that run. */
  running?: number;
}

export interface World {
  readonly host: FakeHost;
  readonly part: PluginInstance;
  readonly faults: Faults;
  readonly directory: string;
  readonly database: Database;
  /** The process dies: nothing is flushed, and what was not written is lost. Resolves with the next process, by a wall clock that has jumped. */
  crash(jumpedMs?: number): Promise<World>;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
  /** Its tables are for other worlds from here on; all statements of its processes fail. */
  leave(): void;
  credit(usd: string, accountId?: string): Promise<Money>;
  balance(accountId?: string): Promise<Money>;
  /** Runs the named interval's work once, after the journal had its turn; the ledger's when a batch is due. */
  tick(
    name:
      | 'ask for restorations that wait'
      | 'sync the journal'
      | 'write the ledger'
      | 'note progress'
      | 'read changed budgets'
      | 'book what has expired'
      | 'forget idle accounts'
      | 'delete applied journal segments',
  ): Promise<void>;
  rows<Row>(statement: SQL): Promise<Row[]>;
  table(name: string): SQL;
  audit(): Promise<{ ok: boolean; violations: { rule: string; what: string; subject: string }[]; rows: number }>;
  journalText(): string;
}

export const price: Price = { input: parseUsd('2'), output: parseUsd('10') };

export function modelOf(options: Partial<Model> = {}): Model {
  return {
    id: 'test-model',
    ownedBy: 'tests',
    created: 0,
    displayName: 'Test',
    kind: 'chat',
    targets: [],
    contextTokens: undefined,
    maxOutputTokens: undefined,
    prices: flatBook(price, 'v1'),
    ...options,
  };
}

export interface CallOptions {
  id?: string;
  accountId?: string;
  call?: Partial<Call>;
  model?: Partial<Model>;
  facts?: [ContextKey<unknown>, unknown][];
}

/** A call by default of 1,000 input and 100 output tokens: a hold of 0.003 USD. */
export function newCall(options: CallOptions = {}): FakeExchange {
  const requestedCall: Call = {
    protocol: 'chat',
    model: 'test-model',
    stream: false,
    billable: true,
    inputTokens: 1_000,
    maxOutputTokens: 100,
    choices: 1,
    ...options.call,
  };
  const who = { accountId: options.accountId ?? 'alice', keyId: 'key-1', plan: 'free', models: undefined };
  return fakeExchange({
    ...(options.id === undefined ? {} : { id: options.id }),
    facts: [[call, requestedCall], [caller, who], [model, modelOf(options.model)], ...(options.facts ?? [])],
  });
}

/** Lets the call into billing; rejects as billing does. */
export async function enter(world: World, exchange: FakeExchange): Promise<void> {
  await world.part.handle!(exchange, async () => okAnswer);
}

/** A call that has entered. */
export async function entered(world: World, options?: CallOptions): Promise<FakeExchange> {
  const exchange = newCall(options);
  await enter(world, exchange);
  return exchange;
}

export function attemptOf(result: Attempt['result'], number = 1): Attempt {
  const status = result === 'answered' ? 200 : result === 'refused' ? 429 : undefined;
  const target = { provider: 'vendor', model: 'vendor-model', credential: 'vendor#1', protocol: 'chat' };
  return { number, ...target, startedAt: 1_800_000_000_000, result, status, durationMs: 5, error: undefined };
}

/** Hands the call to a socket, with one more attempt on its list. */
export async function send(exchange: FakeExchange): Promise<Attempt> {
  const list = exchange.find(attempts) ?? [];
  const attempt = attemptOf('running', list.length + 1);
  list.push(attempt);
  exchange.set(attempts, list);
  await exchange.send();
  return attempt;
}

/** What bounds the usage of a call with so many tokens of prompt. */
export function limits(inputTokens: number) {
  return { requested: { inputTokens, maxOutputTokens: undefined, choices: 1 }, size: unknownSize, seenOutput: 0 };
}

export function report(usage: UsageReport['usage'], options: Partial<UsageReport> = {}): UsageReport {
  return { usage, estimated: false, terminal: true, upstreamId: 'up-1', finish: 'stop', ...options };
}

/** Sent, answered and reported: the ordinary call. */
export async function answer(exchange: FakeExchange, usage: UsageReport['usage']): Promise<void> {
  Object.assign(await send(exchange), { result: 'answered', status: 200 });
  exchange.set(usageReport, report(usage));
  await exchange.end();
}

export function meterOf(exchange: FakeExchange): SpendGuard {
  return exchange.get(spendGuard);
}

export interface WorldOptions {
  section?: object;
  directory?: string;
  /** The tables of another world. */
  schema?: string;
  /** Whose tables a world of its own has. */
  plugins?: readonly string[];
  faults?: Faults;
  /** Ends the process before this one. */
  leave?: () => void;
  /** What the catalogue has; without it there is none. */
  entries?: readonly Model[];
  /** Sets up plugins beside it, before it. */
  beside?: (host: FakeHost, database: Database) => Promise<void>;
  /** How far its wall clock is off. */
  jumpedMs?: number;
  /** Other processes may spend from its database, of which outages are bridged for so long. */
  bridgeMs?: number;
  /** Leave the plugin unstarted. */
  idle?: boolean;
  /** US dollars on alice's account. */
  credit?: string | undefined;
}

export async function newWorld(options: WorldOptions = {}): Promise<World> {
  const faults = options.faults ?? { down: false, afterCommit: false, refusals: 0, disk: undefined, diskBytes: 0 };
  engine ??= opened();
  const { engine: shared, tables } = await engine;
  const taken = options.schema === undefined ? await tables.take(options.plugins ?? ['billing']) : undefined;
  const schema = options.schema ?? taken!.schema;
  const leave =
    options.leave ??
    (() => {
      if (!worlds.delete(leave)) return;
      faults.down = true;
      taken?.giveBack();
    });
  worlds.add(leave);
  const directory = options.directory ?? temporaryDirectory();
  const host = fakeHost({ schema, directory });
  host.jump(options.jumpedMs ?? 0);
  // Two processes draw different numbers.
  host.random.bytes(++processes);
  const store = { ...storeOf(shared, schema, faults), ...bridgeOf(options, faults, host) };
  host.provide(database, store);
  const { entries } = options;
  if (entries !== undefined)
    host.provide(catalog, { find: (id) => entries.find((entry) => entry.id === id), list: () => entries });
  await options.beside?.(host, store);
  const parse = (section: object) => (billing.config as unknown as { parse(value: object): never }).parse(section);
  const part = await setUpBilling(host, parse(options.section ?? {}), failingFiles(faults));
  if (options.idle !== true) await part.lifecycle!.start!();
  const book = host.get(ledger);
  const journal = join(directory, 'journal', schema);
  let references = 0;
  const stop = async () => part.lifecycle!.stop!();
  const world: World = {
    host,
    part,
    faults,
    directory,
    database: store,
    crash: async (jumpedMs = 0) => {
      rmSync(join(journal, 'lock'), { force: true });
      part.health!.ready = () => false;
      return newWorld({ ...options, directory, schema, faults, leave, jumpedMs, idle: false, credit: undefined });
    },
    leave,
    stop,
    [Symbol.asyncDispose]: stop,
    credit: (usd, accountId = 'alice') => {
      const reference = `${schema}-${host.random.fraction()}-${++references}`;
      return book.credit(accountId, parseUsd(usd), { kind: 'top-up', reason: 'test', reference });
    },
    balance: (accountId = 'alice') => book.balance(accountId),
    tick: async (name) => {
      await setImmediate();
      if (name === 'write the ledger') host.advance(beatMs);
      await host.intervals.find((interval) => interval.name === name)!.work();
    },
    // The driver's own kind of array is no plain list of rows.
    rows: async <Row>(statement: SQL) => [...(await rowsOf<Row>(store.orm, statement))],
    table: (name) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`,
    audit: async () => {
      const command = part.commandLine!.commands!.find(({ name }) => name === 'audit')!;
      return (await command.run({})).json as Awaited<ReturnType<World['audit']>>;
    },
    journalText: () =>
      readdirSync(journal)
        .filter((name) => name.endsWith('.journal'))
        .sort()
        .map((name) => readFileSync(join(journal, name), 'utf8'))
        .join(''),
  };
  if (options.credit !== undefined) await world.credit(options.credit);
  return world;
}

/** The database service on the embedded engine, with faults. */
function storeOf(shared: Engine, schema: string, faults: Faults): Database {
  const listeners = new Map<string, ((subject: string) => void)[]>();
  const orm = failingOrm(shared.orm, faults);
  const announce: Database['announce'] = async (topic, subject) => {
    for (const listener of listeners.get(topic) ?? []) listener(subject);
  };
  return {
    orm,
    schema,
    migrate: (_plugin, folder) => migrate(shared, schema, folder),
    announce,
    change: async (topic, subject, work) => {
      const result = await orm.transaction((transaction) => work(transaction as unknown as Orm));
      await announce(topic, subject);
      return result;
    },
    onChange: (topic, listener) => void listeners.set(topic, [...(listeners.get(topic) ?? []), listener]),
    healthy: () => !faults.down,
  };
}

/** How long the database is away: since somebody has looked first. */
function bridgeOf({ bridgeMs }: WorldOptions, faults: Faults, { clock }: FakeHost): Partial<Database> {
  if (bridgeMs === undefined) return {};
  let since: number | undefined;
  const awayMs = () => {
    since = faults.down ? (since ?? clock.monotonic()) : undefined;
    return since === undefined ? 0 : clock.monotonic() - since;
  };
  return { shared: true, bridgeMs, awayMs };
}

async function migrate({ orm, exec }: Engine, schema: string, folder: URL): Promise<void> {
  const migrations = sql`${sql.identifier(schema)}.migrations`;
  const known = await rowsOf<{ file: string }>(orm, sql`select file from ${migrations}`);
  for (const path of readdirSync(folder).sort()) {
    // The first file of each plugin has the same name.
    const name = `${basename(dirname(folder.pathname))} ${path}`;
    if (known.some(({ file }) => file === name)) continue;
    await exec(readFileSync(new URL(path, folder), 'utf8').replaceAll('{schema}', `"${schema}"`));
    await orm.execute(sql`insert into ${migrations} values (${name})`);
  }
}

function failingOrm(orm: Orm, faults: Faults): Orm {
  const check = () => {
    if (faults.down) throw new Error('the database is down');
  };
  return new Proxy(orm, {
    get(target, name) {
      if (name === 'execute') {
        return async (statement: SQL) => {
          check();
          faults.running = (faults.running ?? 0) + 1;
          try {
            return await target.execute(statement);
          } finally {
            faults.running -= 1;
          }
        };
      }
      if (name !== 'transaction') return Reflect.get(target, name);
      return async (...parameters: Parameters<Orm['transaction']>) => {
        check();
        if (faults.refusals > 0) {
          faults.refusals -= 1;
          throw new Error('the transaction was refused');
        }
        const result = await target.transaction(...parameters);
        if (faults.afterCommit) {
          faults.afterCommit = false;
          throw new Error('no answer after the commit');
        }
        return result;
      };
    },
  });
}

export function failingFiles(faults: Faults): Files {
  const check = () => {
    if (faults.disk !== undefined) throw faults.disk;
  };
  return {
    ...nodeFiles,
    create: (path) => {
      if (faults.diskBytes === 0) check();
      return nodeFiles.create(path);
    },
    write: (descriptor, data) => {
      if (faults.disk === undefined) return nodeFiles.write(descriptor, data);
      if (faults.diskBytes === 0) throw faults.disk;
      const taken = data.subarray(0, faults.diskBytes);
      faults.diskBytes -= taken.length;
      return nodeFiles.write(descriptor, taken);
    },
    sync: async (descriptor) => {
      check();
      return nodeFiles.sync(descriptor);
    },
  };
}

/** The line of a journal that carries these records. */
export function lineOf(first: number, ...records: JournalRecord[]): Buffer {
  const json = encodeRecords(records);
  const line = Buffer.alloc(lineBytes(json));
  return line.subarray(0, putLine(line, 0, first, json));
}

export function diskFull(): NodeJS.ErrnoException {
  return Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
}

export function usd(text: string): Money {
  return money(parseUsd(text));
}
