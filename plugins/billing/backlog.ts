/** The journal's text on its way to the database: kept as it was written, in batches, with the sums that balances need. */
import { type Money, money } from '../../core/money.ts';
import type { Purse, Share } from './purses.ts';

/** Journal text of one transaction, a single longer line excepted. */
export const batchBytes = 256 * 1024;

/** What one transaction applies: a stretch of the journal. */
export interface Batch {
  readonly number: number;
  readonly slab: Buffer;
  readonly from: number;
  to: number;
  /** Sequence number of its last record. */
  last: number;
  /** Ledger rows in it. */
  rows: number;
  /** Sequence number of the oldest hold that ends in it. */
  oldest: number;
  readonly shares: Share[];
  /** Accounts in it that have no purse: those of an earlier run. */
  readonly accountIds: string[];
  /** It was taken once: a repetition must be the same. */
  sealed: boolean;
}

/** A stretch of an earlier run's journal. */
export interface Stretch {
  readonly slab: Buffer;
  readonly from: number;
  readonly to: number;
  readonly last: number;
  readonly rows: number;
  readonly accountIds: string[];
}

/**
 * Nothing of a single request is kept here: objects that live until the database has answered are moved by the collector,
 * some of them into the old generation, and that cost as much as all the rest of billing.
 */
export class Backlog {
  readonly #batches: Batch[] = [];
  readonly #onFree: (slab: Buffer) => void;
  #rows = 0;
  #bytes = 0;
  #batchNumber = 0;
  // What was appended to the journal and is not written yet.
  #turn = 0;
  #turnRows = 0;
  #turnOldest = Number.POSITIVE_INFINITY;
  #turnPurses: Purse[] = [];
  #turnAccountIds: string[] = [];

  /** `onFree` is told of a slab of which the database has everything so far. */
  constructor(onFree: (slab: Buffer) => void) {
    this.#onFree = onFree;
  }

  /** Ledger rows that the database does not have. */
  get rows(): number {
    return this.#rows;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Sequence number of the oldest hold whose end the database does not have. */
  get oldestSequence(): number {
    let oldest = this.#turnOldest;
    for (const batch of this.#batches) if (batch.oldest < oldest) oldest = batch.oldest;
    return oldest;
  }

  /** A record that makes a ledger row was appended to the journal. `ended`: sequence number of the hold that it ends. */
  post(purse: Purse, amount: Money, ended = Number.POSITIVE_INFINITY): void {
    this.#count(ended);
    purse.posted = money(purse.posted + amount);
    purse.rows += 1;
    if (amount > 0n && purse.slice !== undefined) purse.freed = money(purse.freed + amount);
    if (purse.turn === this.#turn) return;
    purse.turn = this.#turn;
    this.#turnPurses.push(purse);
  }

  /** The same for the hold of an earlier run, which no purse was opened for. */
  postEnd(accountId: string, ended: number): void {
    this.#count(ended);
    this.#turnAccountIds.push(accountId);
  }

  #count(ended: number): void {
    this.#rows += 1;
    this.#turnRows += 1;
    if (ended < this.#turnOldest) this.#turnOldest = ended;
  }

  /** All that was appended is in the journal's file, as one line that stands in the slab too; `last` is its last record. */
  written(slab: Buffer, from: number, to: number, last: number): void {
    const batch = this.#batchFor(slab, from, to);
    batch.to = to;
    batch.last = last;
    batch.rows += this.#turnRows;
    if (this.#turnOldest < batch.oldest) batch.oldest = this.#turnOldest;
    for (const purse of this.#turnPurses) shareOf(purse, batch);
    for (const accountId of this.#turnAccountIds) batch.accountIds.push(accountId);
    this.#bytes += to - from;
    this.#turn += 1;
    this.#turnRows = 0;
    this.#turnOldest = Number.POSITIVE_INFINITY;
    this.#turnPurses = [];
    this.#turnAccountIds = [];
  }

  #batchFor(slab: Buffer, from: number, to: number): Batch {
    const tail = this.#batches.at(-1);
    const fits = tail?.slab === slab && tail.to === from && to - tail.from <= batchBytes;
    if (tail !== undefined && fits && !tail.sealed) return tail;
    return this.#begin({ slab, from, to, last: 0, rows: 0, accountIds: [] });
  }

  #begin(stretch: Stretch): Batch {
    const number = this.#batchNumber++;
    const batch = { ...stretch, number, oldest: Number.POSITIVE_INFINITY, shares: [], sealed: false };
    this.#batches.push(batch);
    return batch;
  }

  /** Text that an earlier run wrote. */
  restore(stretch: Stretch): void {
    this.#begin(stretch).sealed = true;
    this.#rows += stretch.rows;
    this.#bytes += stretch.to - stretch.from;
  }

  get empty(): boolean {
    return this.#batches.length === 0;
  }

  /** The oldest batch; it does not grow any more. */
  take(): Batch | undefined {
    const batch = this.#batches[0];
    if (batch !== undefined) batch.sealed = true;
    return batch;
  }

  /** The database has the oldest batch. */
  drop(): void {
    const batch = this.#batches.shift();
    if (batch === undefined) return;
    this.#rows -= batch.rows;
    this.#bytes -= batch.to - batch.from;
    for (const { purse, posted, rows, freed } of batch.shares) {
      purse.appliedPosted = posted;
      purse.appliedRows = rows;
      purse.appliedFreed = freed;
    }
    if (this.#batches[0]?.slab !== batch.slab) this.#onFree(batch.slab);
  }
}

/** Notes what the purse has come to with all that was appended so far. */
function shareOf(purse: Purse, batch: Batch): void {
  const { posted, rows, freed, share } = purse;
  if (share === undefined || share.batch !== batch.number) {
    purse.share = { purse, batch: batch.number, posted, rows, freed };
    batch.shares.push(purse.share);
    return;
  }
  share.posted = posted;
  share.rows = rows;
  share.freed = freed;
}

export function textOf({ slab, from, to }: Batch): string {
  return slab.toString('utf8', from, to);
}

/** Every account that a batch touches, once. */
export function accountsOf({ shares, accountIds }: Batch): string[] {
  return [...new Set([...accountIds, ...shares.map(({ purse }) => purse.accountId)])];
}
