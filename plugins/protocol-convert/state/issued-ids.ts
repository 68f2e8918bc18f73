/** Ids that vendors issued to each account: in memory first, in the database where there is one, until they expire. */

import { LRUCache } from 'lru-cache';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import type { Database } from '../../common/domain/database.ts';
import { type IssuedId, IssuedRows } from './issued-rows.ts';
import { WriteQueue } from './writes.ts';

/** Memory for writes that wait for a slow or unavailable database. */
const queueBytes = 16 * 2 ** 20;
/** Per account; beyond it the oldest are dropped. */
const mostPerAccount = 20_000;

export interface IssuedIdsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly memoryBytes: number;
  /** Per account, in the database. */
  readonly mostPerAccount?: number;
}

export class IssuedIds {
  readonly #options: IssuedIdsOptions;
  readonly #memory: LRUCache<string, IssuedId>;
  #rows: IssuedRows | undefined;
  #queue: WriteQueue<IssuedId> | undefined;

  constructor(options: IssuedIdsOptions) {
    this.#options = options;
    this.#memory = new LRUCache<string, IssuedId>({ maxSize: options.memoryBytes, sizeCalculation: sizeOf });
  }

  /** Writes to the database from now on. Its table must exist. */
  useDatabase(database: Database): void {
    const rows = new IssuedRows(database);
    this.#rows = rows;
    this.#queue = new WriteQueue({
      write: (records) => rows.insert(records),
      sizeOf,
      what: 'ids that vendors issued',
      log: this.#options.log,
      maxBytes: queueBytes,
    });
  }

  /** Visible at once in this process, in other processes a moment later. */
  put(record: IssuedId): void {
    const key = keyOf(record.accountId, record.id);
    this.#memory.set(key, record);
    this.#queue?.push(key, record);
  }

  /** By id: the given ids that were issued to the account and have not expired. */
  async find(accountId: string, ids: ReadonlySet<string>): Promise<Map<string, IssuedId>> {
    const found = new Map<string, IssuedId>();
    const now = this.#options.clock.now();
    const missing: string[] = [];
    for (const id of ids) {
      const key = keyOf(accountId, id);
      const near = this.#memory.get(key) ?? this.#queue?.find(key);
      if (near !== undefined && near.expiresAt > now) found.set(id, near);
      else missing.push(id);
    }
    if (missing.length === 0 || this.#rows === undefined) return found;
    for (const record of await this.#stored(this.#rows, accountId, missing, now)) {
      this.#memory.set(keyOf(accountId, record.id), record);
      found.set(record.id, record);
    }
    return found;
  }

  get waits(): boolean {
    return this.#queue?.waits === true;
  }

  /** Writes pending records. */
  async flush(): Promise<void> {
    await this.#queue?.flush();
  }

  /** Deletes expired rows, and the rows above an account's limit. */
  async deleteExpired(): Promise<void> {
    await this.#rows?.deleteExpired(this.#options.clock.now(), this.#options.mostPerAccount ?? mostPerAccount);
  }

  async #stored(rows: IssuedRows, accountId: string, ids: readonly string[], now: number): Promise<IssuedId[]> {
    try {
      return await rows.find(accountId, ids, now);
    } catch (cause) {
      throw new GatewayError('overloaded', 'Ids in the request cannot be looked up at the moment; try again later.', {
        code: 'state_unavailable',
        retryAfterMs: 1_000,
        cause,
      });
    }
  }
}

function sizeOf({ id, provider, credential }: IssuedId): number {
  return 256 + 2 * (id.length + provider.length + credential.length);
}

/** Neither part contains a space: accounts are uuids, ids were checked. */
function keyOf(accountId: string, id: string): string {
  return `${accountId} ${id}`;
}
