/** Kept answers of each account: in memory first, in the database where there is one, for as long as their lifetime lasts. */
import { LRUCache } from 'lru-cache';
import type { Clock, Log } from '../../../core/contract.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { Database } from '../../../core/vocabulary.ts';
import { isStorableId, type ResponseRecord, sizeOf } from './record.ts';
import { ResponseRows } from './rows.ts';
import { WriteQueue } from './writes.ts';

const topic = 'response';
/** Memory for what waits for a database that is slow or away. */
const queueBytes = 64 * 2 ** 20;
const keySeparator = ' ';

export interface ResponseStoreOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Memory for what was kept or asked for last; without a database there is nothing else. */
  readonly memoryBytes: number;
}

export class ResponseStore {
  readonly #options: ResponseStoreOptions;
  readonly #memory: LRUCache<string, ResponseRecord>;
  /** Account and item to the key of its answer, for answers in memory. */
  readonly #items = new Map<string, string>();
  #rows: ResponseRows | undefined;
  #queue: WriteQueue | undefined;
  #database: Database | undefined;
  /** Counts deletions by any process: what was read while one came in may be gone, and is not kept in memory. */
  #deletions = 0;

  constructor(options: ResponseStoreOptions) {
    this.#options = options;
    this.#memory = new LRUCache<string, ResponseRecord>({
      maxSize: options.memoryBytes,
      sizeCalculation: sizeOf,
      dispose: (record) => this.#forgetItems(record),
    });
  }

  /** From now on the database has them too. Its table must have been made. */
  useDatabase(database: Database): void {
    const rows = new ResponseRows(database);
    this.#database = database;
    this.#rows = rows;
    this.#queue = new WriteQueue({
      write: (records) => rows.insert(records),
      log: this.#options.log,
      maxBytes: queueBytes,
    });
    database.onChange(topic, (key) => {
      this.#deletions += 1;
      this.#memory.delete(key);
    });
  }

  /** Found at once by this process, by the others a moment later. */
  put(record: ResponseRecord): void {
    const key = keyOf(record.accountId, record.id);
    this.#remember(key, record);
    this.#queue?.push(key, record);
  }

  /** The account's answer by this id; undefined when there is none, or none any more. */
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

  /** For each of these items the account's answer that has it; those that nobody has are not in the map. */
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
    const before = this.#deletions;
    const stored = await this.#ask((rows, now) => rows.findByItems(accountId, [...wanted], now));
    for (const record of stored) {
      if (before === this.#deletions) this.#remember(keyOf(accountId, record.id), record);
      take(record);
    }
    return found;
  }

  /** Gone everywhere: here, in the database, and within a second in the memory of other processes. */
  async delete(accountId: string, id: string): Promise<void> {
    const key = keyOf(accountId, id);
    this.#memory.delete(key);
    this.#queue?.remove(key);
    if (this.#rows === undefined) return;
    // A batch under way may still bring it in.
    await this.#queue!.flush();
    const rows = this.#rows;
    await this.#database!.change(topic, key, (orm) => rows.delete(orm, accountId, id));
  }

  /** Writes what waits. */
  async flush(): Promise<void> {
    await this.#queue?.flush();
  }

  /** Rows that are too old to be found. */
  async deleteExpired(): Promise<void> {
    await this.#rows?.deleteExpired(this.#options.clock.now());
  }

  #alive(record: ResponseRecord): ResponseRecord | undefined {
    return record.expiresAt > this.#options.clock.now() ? record : undefined;
  }

  #remember(key: string, record: ResponseRecord): void {
    this.#memory.set(key, record);
    // One that is larger than the whole memory is not taken.
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

/** Neither part holds a space: accounts are uuids, ids were checked. */
function keyOf(accountId: string, id: string): string {
  return accountId + keySeparator + id;
}
