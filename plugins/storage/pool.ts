/**
 * A pool of connections, each a driver of its own with one connection that is thrown away when anything happens to it.
 *
 * The driver's own pool is not used, because of what it does when a connection is lost: statements of a broken
 * transaction may run outside of it, on the connection that was made again, and writes to the lost socket end the process
 * (https://github.com/porsager/postgres/issues/1208, https://github.com/porsager/postgres/pull/1155).
 */
import { markUndecided } from '../common/domain/database.ts';
import { marked, unavailable } from './passing.ts';

const maxWaiting = 10_000;
const closeTimeoutSeconds = 5;

export type Rows = readonly unknown[];

export interface Statement {
  readonly text: string;
  readonly parameters: readonly unknown[];
  /** Instead of them: what the driver makes them of. */
  readonly made?: { readonly module: string; readonly input: object };
  readonly prepare: boolean;
  /** Rows as arrays in the order of the columns instead of objects. */
  readonly asArrays: boolean;
}

/** One connection's worth of the driver. */
export interface Driver {
  run(statement: Statement): PromiseLike<Rows>;
  /** Lets running statements end within the time, then closes. */
  end(timeoutSeconds: number): Promise<void>;
}

export interface PoolOptions {
  /** Makes a driver with at most one connection; `onClose` is called when that is gone. */
  readonly open: (onClose: () => void) => Driver;
  readonly maxConnections: number;
  /** Longest wait for a free connection. */
  readonly waitMs: number;
  /** A statement without an answer for so long means a dead network; undefined: statements may take any time. */
  readonly deadlineMs: number | undefined;
  /** The same for a connection's first statement, which waits for the connection to be made. */
  readonly openDeadlineMs: number;
}

/** Where statements of one transaction, or of none, are run. */
export interface Runner {
  run(statement: Statement): Promise<Rows>;
}

export class Pool implements Runner {
  readonly #options: PoolOptions;
  readonly #connections = new Set<Connection>();
  /** The last one used is used next, so that few are kept busy. */
  readonly #idle: Connection[] = [];
  readonly #waiting: ((connection: Connection | undefined) => void)[] = [];
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  run(statement: Statement): Promise<Rows> {
    return this.#use((connection) => connection.run(statement));
  }

  /** Commits what `work` did, or undoes it all when it throws or its connection is lost; what it threw is thrown. */
  transaction<T>(work: (runner: Runner) => Promise<T>): Promise<T> {
    return this.#use(async (connection) => {
      const scope = new TransactionScope(connection);
      await connection.run(plain('begin'));
      let result: T;
      try {
        result = await work(scope);
      } catch (error) {
        scope.end();
        await connection.run(plain('rollback')).catch(() => connection.discard('its transaction could not be undone'));
        throw error;
      }
      scope.end();
      const answer = (await connection.run(plain('commit')).catch((error: unknown) => {
        throw markUndecided(error);
      })) as { command?: string };
      // What Postgres answers when a statement failed and the failure was not undone with a savepoint.
      if (answer.command === 'ROLLBACK') throw scope.firstError ?? new Error('The transaction was undone.');
      return result;
    });
  }

  /** After an outage connections may be dead without a word: idle ones are dropped, others unless they answer within the time. */
  renew(graceMs: number): void {
    for (const connection of [...this.#connections]) {
      if (this.#idle.includes(connection)) connection.discard('the database was away');
      else connection.discardUnlessAnswered(graceMs);
    }
  }

  async close(withinSeconds = closeTimeoutSeconds): Promise<void> {
    this.#closed = true;
    for (const resume of this.#waiting.splice(0)) resume(undefined);
    await Promise.all([...this.#connections].map((connection) => connection.close(withinSeconds)));
  }

  async #use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = this.#take() ?? (await this.#wait());
    try {
      return await work(connection);
    } finally {
      this.#give(connection);
    }
  }

  #take(): Connection | undefined {
    if (this.#closed) throw unavailable('The database connection is closed.');
    for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
      if (!connection.isLost) return connection;
    }
    return this.#connections.size < this.#options.maxConnections ? this.#open() : undefined;
  }

  #open(): Connection {
    const connection = new Connection(this.#options, () => {
      this.#connections.delete(connection);
      this.#serveNext();
    });
    this.#connections.add(connection);
    return connection;
  }

  #wait(): Promise<Connection> {
    if (this.#waiting.length >= maxWaiting) throw unavailable('Too many statements wait for the database.');
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(resume), 1);
        reject(unavailable('No connection to the database became free in time.'));
      }, this.#options.waitMs);
      const resume = (connection: Connection | undefined) => {
        clearTimeout(timer);
        if (connection !== undefined) resolve(connection);
        else reject(unavailable('The database connection is closed.'));
      };
      this.#waiting.push(resume);
    });
  }

  #give(connection: Connection): void {
    if (!connection.isLost) this.#idle.push(connection);
    this.#serveNext();
  }

  #serveNext(): void {
    if (this.#waiting.length === 0 || this.#closed) return;
    const connection = this.#take();
    if (connection !== undefined) this.#waiting.shift()!(connection);
  }
}

function plain(text: string): Statement {
  return { text, parameters: [], prepare: false, asArrays: false };
}

/** Statements run in it until it has ended; a forgotten `await` must not reach the connection's next user. */
class TransactionScope implements Runner {
  firstError: unknown;
  readonly #connection: Connection;
  #ended = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async run(statement: Statement): Promise<Rows> {
    if (this.#ended) throw new Error('The transaction has ended.');
    try {
      return await this.#connection.run(statement);
    } catch (error) {
      this.firstError ??= error;
      throw error;
    }
  }

  end(): void {
    this.#ended = true;
  }
}

/** One connection: runs one statement at a time and is never used again once it was lost. */
class Connection implements Runner {
  isLost = false;
  readonly #options: PoolOptions;
  readonly #driver: Driver;
  readonly #onLost: () => void;
  #opened = false;
  #before: Promise<unknown> = Promise.resolve();
  /** While a statement runs. */
  #fail: ((error: Error) => void) | undefined;
  #answers = 0;

  constructor(options: PoolOptions, onLost: () => void) {
    this.#options = options;
    this.#driver = options.open(() => this.discard('it was closed'));
    this.#onLost = onLost;
  }

  run(statement: Statement): Promise<Rows> {
    const result = this.#before.then(() => this.#run(statement));
    this.#before = result.catch(() => undefined);
    return result;
  }

  /** Running statements fail; nothing is sent any more. */
  discard(reason: string): void {
    if (this.isLost) return;
    this.isLost = true;
    // A moment later, because the driver may be about to say it better.
    setImmediate(() => this.#fail?.(lost(reason)));
    this.#driver.end(0).catch(() => undefined);
    this.#onLost();
  }

  discardUnlessAnswered(withinMs: number): void {
    const before = this.#answers;
    const check = () => {
      if (this.#answers === before && this.#fail !== undefined) this.discard(silence);
    };
    setTimeout(check, withinMs).unref();
  }

  close(withinSeconds: number): Promise<void> {
    return this.#driver.end(withinSeconds);
  }

  async #run(statement: Statement): Promise<Rows> {
    if (this.isLost) throw lost('it was closed');
    const deadlineMs = this.#opened ? this.#options.deadlineMs : this.#options.openDeadlineMs;
    const timer = deadlineMs && setTimeout(() => this.discard(silence), deadlineMs);
    try {
      return await new Promise<Rows>((resolve, reject) => {
        this.#fail = reject;
        this.#driver.run(statement).then(
          (rows) => {
            this.#opened = true;
            resolve(rows);
          },
          (error: unknown) => reject(marked(error)),
        );
      });
    } finally {
      this.#answers += 1;
      this.#fail = undefined;
      clearTimeout(timer);
    }
  }
}

const silence = 'it gave no answer in time';

function lost(reason: string): Error {
  return Object.assign(unavailable(`The connection to the database was lost: ${reason}.`, 'CONNECTION_LOST'), {
    isSilence: reason === silence,
  });
}
