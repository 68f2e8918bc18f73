/**
 * Connections to Postgres for drizzle, and what values look like that come back.
 *
 * - int8 comes back as a JS bigint, exact, in raw rows (`orm.execute(sql`…`)`), in arrays and in drizzle's
 *   `bigint({ mode: 'bigint' })` alike; `mode: 'number'` gives a number. `count(*)` is an int8, so a bigint too.
 * - numeric comes back as text: no float ever. A `sum()` of int8 is a numeric; cast it: `sum(amount)::int8`.
 * - timestamps come back as text in raw rows (UTC) and as Date from drizzle's `timestamp()`; a Date may be given as a
 *   parameter in both.
 * - json and jsonb come back parsed; as a raw parameter give `JSON.stringify(value)`.
 * - arrays of one dimension of the types in `arrayItems` come back as arrays; others as Postgres's text.
 */
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import type { Orm } from '../../core/vocabulary.ts';
import { type Driver, Pool, type Rows, type Runner } from './pool.ts';

/** Statements are prepared on each connection, up to so many; it saves a round trip for each call. */
const maxPrepared = 500;
const waitMs = 15_000;
/** Longest time that a statement runs, waits for a lock, or lets its transaction idle, as the server counts it. */
const statementTimeoutMs = 30_000;
const lockTimeoutMs = 15_000;
const idleInTransactionTimeoutMs = 15_000;
/** Beyond the server's own limit: only a dead network is silent for so long. */
const deadlineMs = 45_000;
const connectTimeoutSeconds = 10;
const openDeadlineMs = 12_000;
const keepAliveSeconds = 10;

export interface Connection {
  readonly orm: Orm;
  /** Waits a moment for running statements, then closes. */
  close(): Promise<void>;
}

export interface ConnectOptions {
  /** A `postgres://` URL, or the path of the embedded database's socket. */
  readonly target: { readonly url: string } | { readonly socketPath: string };
  readonly maxConnections: number;
  readonly applicationName: string;
  /** Statements may take any time: for migrations. */
  readonly patient?: boolean;
}

/** Opens nothing yet: the first statement does. */
export function connect(options: ConnectOptions): Connection {
  const pool = new Pool({
    open: (onClose) => openDriver(options, onClose),
    maxConnections: options.maxConnections,
    waitMs,
    deadlineMs: options.patient === true ? undefined : deadlineMs,
    openDeadlineMs,
  });
  const known = new Set<string>();
  const client: DrizzleClient = {
    ...clientOf(pool, known, 0),
    options: { parsers: {}, serializers: {} },
    begin: (work) => pool.transaction((runner) => work(clientOf(runner, known, 0))),
  };
  return { orm: drizzle(client as unknown as Driver) as unknown as Orm, close: () => pool.close() };
}

// --------------------------------------------------------------------------------------------------------------- driver

function openDriver({ target, applicationName, patient = false }: ConnectOptions, onClose: () => void): Driver {
  const common = {
    max: 1,
    onclose: onClose,
    idle_timeout: 0,
    max_lifetime: null,
    connect_timeout: connectTimeoutSeconds,
    keep_alive: keepAliveSeconds,
    fetch_types: false,
    onnotice: () => undefined,
    types: { int8: { to: 20, from: [20], serialize: String, parse: BigInt } },
  };
  const limits = {
    statement_timeout: statementTimeoutMs,
    lock_timeout: lockTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionTimeoutMs,
  };
  const session = { application_name: applicationName, TimeZone: 'UTC', ...(patient ? {} : limits) };
  const driver: Driver =
    'url' in target
      ? postgres(target.url, { ...common, connection: session })
      : postgres({
          ...common,
          path: target.socketPath,
          host: 'localhost',
          port: 5432,
          user: 'postgres',
          pass: '',
          database: 'postgres',
          ssl: false,
          connection: session,
        });
  drizzle(driver); // Sets the parsers and serializers that drizzle's columns expect.
  const { parsers, serializers } = driver.options;
  for (const type of [1082, 1114, 1184]) serializers[type] = serializeTime;
  for (const [type, parseItem] of Object.entries(arrayItems)) {
    parsers[Number(type)] = (text: string) => parseArray(text, parseItem);
  }
  return driver;
}

/** drizzle makes the driver take timestamps as text alone; a Date in a raw statement would fail. */
function serializeTime(value: unknown): unknown {
  return value instanceof Date ? value.toISOString() : value;
}

/** By the oid of the array's type: bool, int2, int4, text, varchar, int8, float8, uuid. */
const arrayItems: Record<number, (item: string) => unknown> = {
  1000: (item) => item === 't',
  1005: Number,
  1007: Number,
  1009: String,
  1015: String,
  1016: BigInt,
  1022: Number,
  2951: String,
};

/** `{1,NULL,"a \"b\""}`: https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO */
function parseArray(text: string, parseItem: (item: string) => unknown): unknown {
  if (!text.startsWith('{') || text.startsWith('{{')) return text;
  return Array.from(text.matchAll(/"((?:[^"\\]|\\.)*)"|([^,{}]+)/gs), ([, quoted, bare]) => {
    if (bare === 'NULL') return null;
    return parseItem(bare ?? quoted!.replace(/\\(.)/gs, '$1'));
  });
}

// -------------------------------------------------------------------------------------------------------------- drizzle

/** The part of the driver's interface that drizzle uses, on a pool or on one transaction of it. */
interface DrizzleScope {
  unsafe(text: string, parameters?: readonly unknown[]): Promise<Rows> & { values(): Promise<Rows> };
  savepoint<T>(work: (client: DrizzleScope) => Promise<T>): Promise<T>;
}

interface DrizzleClient extends DrizzleScope {
  options: { parsers: object; serializers: object };
  begin<T>(work: (client: DrizzleScope) => Promise<T>): Promise<T>;
}

/**
 * Statements with parameters are prepared. drizzle would run them unprepared, which costs a round trip for their types
 * each time. Texts beyond the first `maxPrepared` stay unprepared, so that neither side grows with statements that are
 * never the same.
 */
function clientOf(runner: Runner, known: Set<string>, depth: number): DrizzleScope {
  return {
    unsafe(text, parameters = []) {
      if (parameters.length > 0 && known.size < maxPrepared) known.add(text);
      const prepare = known.has(text);
      let asArrays = false;
      // A moment later: `values` is called, if it is, before anybody waits.
      const rows = Promise.resolve().then(() => runner.run({ text, parameters, prepare, asArrays }));
      const values = () => {
        asArrays = true;
        return rows;
      };
      return Object.assign(rows, { values });
    },
    async savepoint(work) {
      const name = `s${depth}`;
      const run = (text: string) => runner.run({ text, parameters: [], prepare: false, asArrays: false });
      await run(`savepoint ${name}`);
      try {
        return await work(clientOf(runner, known, depth + 1));
      } catch (error) {
        await run(`rollback to savepoint ${name}`);
        throw error;
      }
    },
  };
}

/** `postgres://host:port/name`: what may be logged of a URL. */
export function describeUrl(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
