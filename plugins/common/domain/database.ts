/** The service that a database plugin provides. */
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { defineService } from '../../../core/contract/contract.ts';

/** The gateway's database, by drizzle. Tables live in `schema`: use `pgSchema(database.schema)`. */
export interface Database {
  readonly orm: Orm;
  /**
   * Statements of pages and exports, each by itself: from a replica that may be a little behind, where there is one; absent: from `orm`.
   * Never for a decision about money.
   */
  readonly pages?: Orm;
  /** How the replica is; absent: there is none. */
  replica?(): ReplicaState;
  readonly schema: string;
  /** Applies the numbered SQL files of one plugin, once each, in order. `{schema}` in them is replaced, quoted. */
  migrate(plugin: string, directory: URL): Promise<void>;
  /** Announces a change to every process on this database, this one included, within a second: topic `key`, `account`, `lease …`. */
  announce(topic: string, subject: string): Promise<void>;
  /** Runs `work` and announces it in one transaction; `work` gets its `orm`. */
  change<T>(topic: string, subject: string, work: (orm: Orm) => Promise<T>): Promise<T>;
  /** true: statements may have parameters that are made by the driver (`MadeParameters`). */
  readonly makesParameters?: boolean;
  /** true: other processes may serve from it at the same time, so that balances are spent by leases. */
  readonly shared?: boolean;
  /** How long an outage may be for which known keys and accounts are prepared. */
  readonly bridgeMs?: number;
  /** Called for each announcement. */
  onChange(topic: string, listener: (subject: string) => void): void;
  /** false while statements fail. */
  healthy(): boolean;
  /** For how long statements have failed; 0: they do not. */
  awayMs?(): number;
  /**
   * Only where the gateway itself keeps copies of the database, to go back to when its directory is damaged. `begin` is
   * called before each copy: all that was committed by then will be in it. What it returns is called once it is safe.
   */
  onCopy?(begin: () => () => void): void;
}

/**
 * All parameters of a statement, given as its first one: what the function `parametersOf` of a module (a URL) makes of an input
 * where the driver runs, beside the thread that serves requests.
 */
export class MadeParameters {
  readonly module: string;
  readonly input: object;

  constructor(module: string, input: object) {
    this.module = module;
    this.input = input;
  }
}

export type Orm = PgDatabase<PgQueryResultHKT, Record<string, never>>;

export interface ReplicaState {
  /** false: it is away or too far behind, and pages read the database itself. */
  readonly isUsed: boolean;
  /** How far it was behind at the last look; undefined: not known. */
  readonly lagMs: number | undefined;
}

/** The gateway's own schema of its database. Provided by `storage`. */
export const database = defineService<Database>('database');

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** PostgreSQL refuses to compare a uuid column with any other text. */
export const isUuid = (text: string): boolean => uuidPattern.test(text);

const undecided = new WeakSet<Error>();

/** Marks the error of a transaction with an unanswered commit: it may be committed or rolled back. */
export function markUndecided(error: unknown): unknown {
  if (error instanceof Error) undecided.add(error);
  return error;
}

/** Looks at the error itself and at what caused it. */
export function isUndecided(error: unknown): boolean {
  return error instanceof Error && (undecided.has(error) || isUndecided(error.cause));
}
