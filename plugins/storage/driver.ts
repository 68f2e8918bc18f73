/**
 * One connection to Postgres, and what values look like that come back.
 *
 * - int8 comes back as a JS bigint, exact, in raw rows (`orm.execute(sql`…`)`), in arrays and in drizzle's
 *   `bigint({ mode: 'bigint' })` alike; `mode: 'number'` gives a number. `count(*)` is an int8, so a bigint too.
 * - numeric comes back as text: no float ever. A `sum()` of int8 is a numeric; cast it: `sum(amount)::int8`.
 * - timestamps come back as text in raw rows (UTC) and as Date from drizzle's `timestamp()`; a Date may be given as a
 *   parameter in both.
 * - json and jsonb come back parsed; as a raw parameter give `JSON.stringify(value)`.
 * - arrays of one dimension of the types in `arrayItems` come back as arrays; others as Postgres's text.
 */
import postgres, { type Sql } from 'postgres';
import type { Driver, Statement } from './pool.ts';

/** Longest time that a statement runs, waits for a lock, or lets its transaction idle, as the server counts it. */
const statementTimeoutMs = 30_000;
const lockTimeoutMs = 15_000;
const idleInTransactionTimeoutMs = 15_000;
const connectTimeoutSeconds = 10;
const keepAliveSeconds = 10;

/** Plain values: they may cross to another thread. */
export interface DriverOptions {
  /** A `postgres://` URL, or the path of the embedded database's socket. */
  readonly target: { readonly url: string } | { readonly socketPath: string };
  readonly applicationName: string;
  /** Statements may take any time: for migrations. */
  readonly patient?: boolean;
}

export interface LocalDriverOptions extends DriverOptions {
  /** Called for each notification of a channel that the connection listens to. */
  readonly onNotify?: () => void;
}

/** A driver in this thread. `onClose` is called when its connection is gone. */
export function openLocalDriver(
  { target, applicationName, patient = false, onNotify }: LocalDriverOptions,
  onClose: () => void,
): Driver {
  const common = {
    max: 1,
    onclose: onClose,
    idle_timeout: 0,
    max_lifetime: null,
    connect_timeout: connectTimeoutSeconds,
    keep_alive: keepAliveSeconds,
    fetch_types: false,
    onnotice: () => undefined,
    ...(onNotify === undefined ? {} : { onnotify: onNotify }),
    types: { int8: { to: 20, from: [20], serialize: String, parse: BigInt } },
  };
  const limits = {
    statement_timeout: statementTimeoutMs,
    lock_timeout: lockTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionTimeoutMs,
  };
  const session = { application_name: applicationName, TimeZone: 'UTC', ...(patient ? {} : limits) };
  const driver: Sql<{ int8: bigint }> =
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
  setTypes(driver.options);
  return {
    run({ text, parameters, made, prepare, asArrays }) {
      const send = (values: readonly unknown[]) => {
        const query = driver.unsafe(text, values as never[], { prepare });
        return asArrays ? query.values() : query;
      };
      return made === undefined ? send(parameters) : parametersOf(made).then(send);
    },
    end: (timeoutSeconds) => driver.end({ timeout: timeoutSeconds }),
  };
}

async function parametersOf({ module, input }: NonNullable<Statement['made']>): Promise<unknown[]> {
  const maker = (await import(module)) as { parametersOf(input: object): unknown[] };
  return maker.parametersOf(input);
}

/** Dates, times, intervals and arrays of them. */
const timeTypes = [1082, 1083, 1114, 1115, 1182, 1184, 1185, 1231];
const jsonTypes = [114, 3802];

type Conversions = Record<number, (value: never) => unknown>;

/**
 * What drizzle would set on its own driver, since its columns convert by themselves, and what the head of this file says. Not
 * by drizzle: the thread of drivers has no other use for it, and would spend most of its start loading it.
 */
export function setTypes({ parsers, serializers }: { parsers: Conversions; serializers: Conversions }): void {
  for (const type of timeTypes) parsers[type] = asText;
  for (const type of [...timeTypes, ...jsonTypes]) serializers[type] = asText;
  for (const type of [1082, 1114, 1184]) serializers[type] = serializeTime;
  for (const [type, parseItem] of Object.entries(arrayItems)) {
    parsers[Number(type)] = (text: string) => parseArray(text, parseItem);
  }
}

function asText<Value>(value: Value): Value {
  return value;
}

/** drizzle's columns give text; a Date in a raw statement would fail. */
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
