/** Stored answers of each account: in memory first, in the database where there is one, until they expire. */
import { LRUCache } from 'lru-cache';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import type { Database } from '../../common/domain/database.ts';
import { isStorableId, type ResponseRecord, sizeOf } from './record.ts';
import { ResponseRows } from './rows.ts';
import { WriteQueue } from './writes.ts';

const topic = 'response';
/** Memory for writes that wait for a slow or unavailable database. */
const queueBytes = 64 * 2 ** 20;
const keySeparator = ' ';

export interface ResponseStoreOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Memory for recently stored and requested answers; without a database it is the only store. */
  readonly memoryBytes: number;
}

export class ResponseStore {
  readonly #options: ResponseStoreOptions;
  readonly #memory: LRUCache<string, ResponseRecord>;
  /** Maps account and item to the key of the answer, for answers in memory. */
  readonly #items = new Map<string, string>();
  #rows: ResponseRows | undefined;
  #queue: WriteQueue<ResponseRecord> | undefined;
  #database: Database | undefined;
  /** Counts deletions by any process: an answer that was read during a deletion may be deleted, and is not cached. */
  #deletions = 0;

  constructor(options: ResponseStoreOptions) {
    this.#options = options;
    this.#memory = new LRUCache<string, ResponseRecord>({
      maxSize: options.memoryBytes,
      sizeCalculation: sizeOf,
      dispose: (record) => this.#forgetItems(record),
    });
  }

  /** Writes to the database from now on. Its table must exist. */
  useDatabase(database: Database): void {
    const rows = new ResponseRows(database);
    this.#database = database;
    this.#rows = rows;
    this.#queue = new WriteQueue({
      write: (records) => rows.insert(records),
      sizeOf,
      what: 'kept responses',
      log: this.#options.log,
      maxBytes: queueBytes,
    });
    database.onChange(topic, (key) => {
      this.#deletions += 1;
      this.#memory.delete(key);
    });
  }

  /** Visible at once in this process, in other processes a moment later. */
  put(record: ResponseRecord): void {
    const key = keyOf(record.accountId, record.id);
    this.#remember(key, record);
    this.#queue?.push(key, record);
  }

  /** The account's answer with this id; undefined when there is none or it has expired. */
  find(accountId: string, id: string): ResponseRecord | undefined | Promise<ResponseRecord | undefined> {
    if (!isStorableId(id)) return undefined;
    const key = keyOf(accountId, id);
    const near = this.#memory.get(key) ?? this.#queue?.find(key);
    if (near !== undefined) return this.#alive(near);
    return this.#rows === undefined ? undefined : this.#findStored(accountId, id);
  }

  async #findStored(accountId: string, id: string): Promise<ResponseRecord | undefined> {
    const before = this.#deletions;
    const record = await this.#ask((rows, now) => rows.find(accountId, id, now));
    if (record !== undefined && before === this.#deletions) this.#remember(keyOf(accountId, id), record);
    return record;
  }

  /** Maps each of these items to the account's answer that has it; items without an answer are absent. */
  async findByItems(accountId: string, itemIds: readonly string[]): Promise<Map<string, ResponseRecord>> {
    const wanted = new Set(itemIds.filter(isStorableId));
    const found = new Map<string, ResponseRecord>();
    const take = (record: ResponseRecord) => {
      for (const id of record.itemIds) if (wanted.delete(id)) found.set(id, record);
    };
    for (const itemId of wanted) {
      const record = this.#memory.get(this.#items.get(keyOf(accountId, itemId)) ?? '');
      if (record !== undefined && this.#alive(record) !== undefined) take(record);
    }
    if (wanted.size === 0) return found;
    for (const record of this.#queue?.values() ?? [])
      if (record.accountId === accountId && this.#alive(record) !== undefined) take(record);
    if (wanted.size === 0 || this.#rows === undefined) return found;
    for (const record of await this.#findStoredByItems(accountId, [...wanted])) take(record);
    return found;
  }

  async #findStoredByItems(accountId: string, itemIds: readonly string[]): Promise<readonly ResponseRecord[]> {
    const before = this.#deletions;
    const stored = await this.#ask((rows, now) => rows.findByItems(accountId, itemIds, now));
    if (before === this.#deletions) for (const record of stored) this.#remember(keyOf(accountId, record.id), record);
    return stored;
  }

  /** Deletes here, in the database, and within a second in the memory of other processes. */
  async delete(accountId: string, id: string): Promise<void> {
    const key = keyOf(accountId, id);
    this.#memory.delete(key);
    this.#queue?.remove(key);
    if (this.#rows === undefined) return;
    // A running batch may still insert it.
    await this.#queue!.flush();
    const rows = this.#rows;
    await this.#database!.change(topic, key, (orm) => rows.delete(orm, accountId, id));
  }

  get waits(): boolean {
    return this.#queue?.waits === true;
  }

  /** Writes pending records. */
  async flush(): Promise<void> {
    await this.#queue?.flush();
  }

  /** Deletes expired rows. */
  async deleteExpired(): Promise<void> {
    await this.#rows?.deleteExpired(this.#options.clock.now());
  }

  #alive(record: ResponseRecord): ResponseRecord | undefined {
    return record.expiresAt > this.#options.clock.now() ? record : undefined;
  }

  #remember(key: string, record: ResponseRecord): void {
    this.#memory.set(key, record);
    // An answer larger than the whole cache is not stored.
    if (!this.#memory.has(key)) return;
    for (const itemId of record.itemIds) this.#items.set(keyOf(record.accountId, itemId), key);
  }

  #forgetItems({ accountId, id, itemIds }: ResponseRecord): void {
    for (const itemId of itemIds) {
      const item = keyOf(accountId, itemId);
      if (this.#items.get(item) === keyOf(accountId, id)) this.#items.delete(item);
    }
  }

  async #ask<T>(question: (rows: ResponseRows, now: number) => Promise<T>): Promise<T> {
    try {
      return await question(this.#rows!, this.#options.clock.now());
    } catch (cause) {
      throw new GatewayError('overloaded', 'Earlier responses cannot be looked up at the moment; try again later.', {
        code: 'state_unavailable',
        retryAfterMs: 1_000,
        cause,
      });
    }
  }
}

/** Neither part contains a space: accounts are uuids, ids were checked. */
function keyOf(accountId: string, id: string): string {
  return accountId + keySeparator + id;
}
