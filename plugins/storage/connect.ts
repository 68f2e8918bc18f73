/** Connections to Postgres for drizzle, on a pool of drivers; `driver.ts` says what values look like that come back. */
import { drizzle } from 'drizzle-orm/postgres-js';
import type { Sql } from 'postgres';
import type { Outage } from '../../core/contract/outage.ts';
import { MadeParameters, type Orm } from '../common/domain/database.ts';
import { type DriverOptions, openLocalDriver } from './driver.ts';
import { isAway } from './passing.ts';
import { Pool, type Rows, type Runner, type Statement } from './pool.ts';
import { openThreadDriver } from './thread.ts';

/** Statements are prepared on each connection, up to so many; it saves a round trip for each call. */
const maxPrepared = 500;
const waitMs = 15_000;
/** Beyond the server's own limit: only a dead network is silent for so long. */
const deadlineMs = 45_000;
const openDeadlineMs = 12_000;
export interface Connection {
  readonly orm: Orm;
  /** Drops connections that an outage may have left dead: idle ones now, busy ones unless they answer within the time. */
  renew(graceMs: number): void;
  /** Waits a moment for running statements, or so many seconds, then closes. */
  close(withinSeconds?: number): Promise<void>;
}

export interface ConnectOptions extends DriverOptions {
  readonly maxConnections: number;
  /** The driver's work (encoding, sockets, parsing) is done by a thread of its own, beside the one that serves requests. */
  readonly threaded: boolean;
  /** Longest time until a connection's first answer; default 12 s. */
  readonly openDeadlineMs?: number;
  /** Longest time until a later answer; default 45 s. */
  readonly deadlineMs?: number;
  /** What the errors of a database that does not answer belong to. */
  readonly outage?: Outage;
}

/** Opens nothing yet: the first statement does. */
export function connect(options: ConnectOptions): Connection {
  const pool = new Pool({
    open: (onClose) => (options.threaded ? openThreadDriver : openLocalDriver)(driverOptions(options), onClose),
    maxConnections: options.maxConnections,
    waitMs,
    deadlineMs: options.patient === true ? undefined : (options.deadlineMs ?? deadlineMs),
    openDeadlineMs: options.openDeadlineMs ?? openDeadlineMs,
  });
  const known = new Set<string>();
  const noted = <T>(answer: Promise<T>): Promise<T> =>
    answer.catch((error: unknown) => {
      throw isAway(error) ? (options.outage?.mark(error) ?? error) : error;
    });
  // In a transaction each statement too: the query builder wraps what it throws.
  const notedBy = (runner: Runner): Runner => ({ run: (statement) => noted(runner.run(statement)) });
  const client: DrizzleClient = {
    ...clientOf(notedBy(pool), known, 0),
    options: { parsers: {}, serializers: {} },
    begin: (work) => noted(pool.transaction((runner) => work(clientOf(notedBy(runner), known, 0)))),
  };
  return {
    orm: drizzle(client as unknown as Sql) as unknown as Orm,
    renew: (graceMs) => pool.renew(graceMs),
    close: (withinSeconds) => pool.close(withinSeconds),
  };
}

/** What crosses to another thread must be plain. */
function driverOptions({ target, applicationName, patient }: ConnectOptions): DriverOptions {
  return { target, applicationName, ...(patient === undefined ? {} : { patient }) };
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
      const rows = Promise.resolve().then(() => runner.run({ text, ...parametersIn(parameters), prepare, asArrays }));
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

/** Values, or the order to make them, as plain values that can cross to the thread of drivers. */
function parametersIn(parameters: readonly unknown[]): Pick<Statement, 'parameters' | 'made'> {
  const [first] = parameters;
  if (!(first instanceof MadeParameters)) return { parameters };
  return { parameters: [], made: { module: first.module, input: first.input } };
}

/** `postgres://host:port/name`: the part of a URL that may be logged. */
export function describeUrl(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
