/**
 * Connections to Postgres: the options of the driver, and what values look like that come back.
 *
 * - int8 comes back as a JS bigint, exact, in raw rows (`orm.execute(sql`…`)`), in arrays and in drizzle's
 *   `bigint({ mode: 'bigint' })` alike; `mode: 'number'` gives a number. `count(*)` is an int8, so a bigint too.
 * - numeric comes back as text: no float ever. A `sum()` of int8 is a numeric; cast it: `sum(amount)::int8`.
 * - timestamps come back as text in raw rows (UTC) and as Date from drizzle's `timestamp()`; a Date may be given as a
 *   parameter in both.
 * - json and jsonb come back parsed; as a raw parameter give `JSON.stringify(value)`.
 */
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import type { Orm } from '../../core/vocabulary.ts';

/** Statements are prepared on each connection, up to so many; it saves a round trip for each call. */
const maxPrepared = 500;
/** Longest time that a statement runs, waits for a lock, or lets its transaction idle; milliseconds. */
const statementTimeoutMs = 30_000;
const lockTimeoutMs = 15_000;
const idleInTransactionTimeoutMs = 15_000;
const connectTimeoutSeconds = 10;
const retryConnectSeconds = 0.2;

type Client = postgres.Sql<{ int8: bigint }>;

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
}

/** Opens nothing yet: the first statement does. */
export function connect({ target, maxConnections, applicationName }: ConnectOptions): Connection {
  const common = {
    max: maxConnections,
    connect_timeout: connectTimeoutSeconds,
    // A statement that finds no server fails soon; it does not wait in a queue for a back-off to end.
    backoff: () => retryConnectSeconds,
    onnotice: () => undefined,
    types: { int8: { to: 20, from: [20], serialize: String, parse: BigInt } },
  };
  const client: Client =
    'url' in target
      ? postgres(target.url, {
          ...common,
          idle_timeout: 60,
          keep_alive: 10,
          connection: {
            application_name: applicationName,
            statement_timeout: statementTimeoutMs,
            lock_timeout: lockTimeoutMs,
            idle_in_transaction_session_timeout: idleInTransactionTimeoutMs,
            TimeZone: 'UTC',
          },
        })
      : postgres({
          ...common,
          path: target.socketPath,
          host: 'localhost',
          port: 5432,
          user: 'postgres',
          pass: '',
          database: 'postgres',
          ssl: false,
          idle_timeout: 0,
          max_lifetime: null,
          connection: { application_name: applicationName },
        });
  const orm = drizzle(client) as unknown as Orm;
  acceptDates(client);
  prepareStatements(client, new Set());
  return { orm, close: () => client.end({ timeout: 5 }) };
}

/** drizzle makes the driver take timestamps as text alone; a Date in a raw statement would fail. */
function acceptDates(client: Client): void {
  const serialize = (value: unknown) => (value instanceof Date ? value.toISOString() : value);
  for (const type of [1082, 1114, 1184]) client.options.serializers[type] = serialize;
}

type Unsafe = Client['unsafe'];

/**
 * Makes drizzle's statements prepared ones. drizzle runs them unprepared, which costs each statement that has parameters
 * a round trip of its own for their types. Texts beyond the first `maxPrepared` stay unprepared, so that neither side
 * grows with statements that are never the same.
 */
function prepareStatements(client: Pick<Client, 'unsafe'>, known: Set<string>): void {
  const unsafe = client.unsafe.bind(client) as Unsafe;
  const prepared: Unsafe = (text, parameters, options) => {
    if (parameters === undefined || parameters.length === 0) return unsafe(text, parameters, options);
    if (known.size < maxPrepared) known.add(text);
    return unsafe(text, parameters, { ...options, prepare: known.has(text) });
  };
  client.unsafe = prepared;
  for (const opener of ['begin', 'savepoint'] as const) {
    const scope = client as { begin?: Opener; savepoint?: Opener };
    const open = scope[opener];
    if (open === undefined) continue;
    scope[opener] = (run) =>
      open((inner) => {
        prepareStatements(inner, known);
        return run(inner);
      });
  }
}

type Opener = (run: (client: Pick<Client, 'unsafe'>) => Promise<unknown>) => Promise<unknown>;

/** `postgres://host:port/name`: what may be logged of a URL. */
export function describeUrl(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
