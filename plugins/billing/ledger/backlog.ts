/** The backlog: journal text not yet in the database, kept as written, in batches, with the totals of each balance. */
import { type Money, money } from '../../common/domain/money.ts';
import type { Balance, BatchTotals } from './balance.ts';

/** Journal text of one transaction, about 800 calls, except for a single longer line. */
export const batchBytes = 1024 * 1024;

/** A stretch of the journal. */
export interface Stretch {
  readonly slab: Buffer;
  readonly from: number;
  to: number;
  /** Sequence number of its last record. */
  last: number;
  /** Ends of calls in it: each makes a row. */
  rows: number;
  /** Facts of requests in it. */
  facts: number;
  /** Accounts in it without a balance in memory: those of an earlier run. */
  readonly accountIds: string[];
}

/** The text that one transaction applies. */
export interface Batch extends Stretch {
  readonly number: number;
  /** Sequence number of the oldest hold that ends in it. */
  oldest: number;
  /** Begin and end of each run of lines with ends of calls or facts: the database needs no others. */
  readonly runs: number[];
  readonly totals: BatchTotals[];
  /** It was taken once: a retry must send the same text. */
  sealed: boolean;
}

/**
 * Keeps no object per request: objects that live until the database answers are moved by the garbage collector,
 * some into the old generation, and that cost as much as all the rest of billing.
 */
export class Backlog {
  readonly #batches: Batch[] = [];
  readonly #onFree: (slab: Buffer) => void;
  #rows = 0;
  #facts = 0;
  #bytes = 0;
  #batchNumber = 0;
  // Records appended to the journal and not written yet.
  #turn = 0;
  #turnRows = 0;
  #turnFacts = 0;
  #turnOldest = Number.POSITIVE_INFINITY;
  #turnBalances: Balance[] = [];
  #turnAccountIds: string[] = [];

  /** `onFree` is called with a slab once the database has everything in it. */
  constructor(onFree: (slab: Buffer) => void) {
    this.#onFree = onFree;
  }

  /** Calls that have ended and of which the database has no row. */
  get rows(): number {
    return this.#rows;
  }

  /** Whether anything waits that makes or completes a row. */
  get hasRows(): boolean {
    return this.#rows + this.#facts > 0;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Sequence number of the oldest hold that has ended in the journal but not in the database. */
  get oldestSequence(): number {
    let oldest = this.#turnOldest;
    for (const batch of this.#batches) if (batch.oldest < oldest) oldest = batch.oldest;
    return oldest;
  }

  /**
   * Counts the end of a call, appended to the journal: what it held is released, and its cost is charged. `sequence`: of
   * its hold.
   */
  end(balance: Balance, held: Money, cost: Money, sequence: number): void {
    this.#count(sequence);
    if (balance.end(held, cost, this.#turn)) this.#turnBalances.push(balance);
  }

  /** The same for the hold of an earlier run, which has no balance in memory. */
  endRecovered(accountId: string, sequence: number): void {
    this.#count(sequence);
    this.#turnAccountIds.push(accountId);
  }

  /** Counts the facts of a request, appended to the journal behind the end of its call. */
  complete(): void {
    this.#facts += 1;
    this.#turnFacts += 1;
  }

  #count(sequence: number): void {
    this.#rows += 1;
    this.#turnRows += 1;
    if (sequence < this.#turnOldest) this.#turnOldest = sequence;
  }

  /** Everything appended is in the journal's file as one line, which the slab holds too; `last` is its last record. */
  written(slab: Buffer, from: number, to: number, last: number): void {
    const batch = this.#batchFor(slab, from, to);
    batch.to = to;
    batch.last = last;
    if (this.#turnRows + this.#turnFacts > 0) {
      if (batch.runs.at(-1) === from) batch.runs[batch.runs.length - 1] = to;
      else batch.runs.push(from, to);
    }
    batch.rows += this.#turnRows;
    batch.facts += this.#turnFacts;
    if (this.#turnOldest < batch.oldest) batch.oldest = this.#turnOldest;
    for (const balance of this.#turnBalances) balance.addTo(batch);
    for (const accountId of this.#turnAccountIds) batch.accountIds.push(accountId);
    this.#bytes += to - from;
    this.#turn += 1;
    this.#turnRows = 0;
    this.#turnFacts = 0;
    this.#turnOldest = Number.POSITIVE_INFINITY;
    this.#turnBalances = [];
    this.#turnAccountIds = [];
  }

  #batchFor(slab: Buffer, from: number, to: number): Batch {
    const tail = this.#batches.at(-1);
    const fits = tail?.slab === slab && tail.to === from && to - tail.from <= batchBytes;
    if (tail !== undefined && fits && !tail.sealed) return tail;
    return this.#begin({ slab, from, to, last: 0, rows: 0, facts: 0, accountIds: [] });
  }

  #begin(stretch: Stretch): Batch {
    const number = this.#batchNumber++;
    const batch = { ...stretch, number, oldest: Number.POSITIVE_INFINITY, runs: [], totals: [], sealed: false };
    this.#batches.push(batch);
    return batch;
  }

  /** Adds text of an earlier run. */
  restore(stretch: Stretch): void {
    const batch = this.#begin(stretch);
    batch.sealed = true;
    batch.runs.push(stretch.from, stretch.to);
    this.#rows += stretch.rows;
    this.#facts += stretch.facts;
    this.#bytes += stretch.to - stretch.from;
  }

  get empty(): boolean {
    return this.#batches.length === 0;
  }

  /** Number of the oldest batch; undefined: there is none. */
  get head(): number | undefined {
    return this.#batches[0]?.number;
  }

  /** Number of the newest batch so far. */
  get newest(): number {
    return this.#batchNumber - 1;
  }

  /** The oldest batch, which grows no more. */
  take(): Batch | undefined {
    const batch = this.#batches[0];
    if (batch !== undefined) batch.sealed = true;
    return batch;
  }

  /** Removes the oldest batch, which the database has. */
  drop(): void {
    const batch = this.#batches.shift();
    if (batch === undefined) return;
    this.#rows -= batch.rows;
    this.#facts -= batch.facts;
    this.#bytes -= batch.to - batch.from;
    for (const totals of batch.totals) totals.balance.applied(totals);
    if (this.#batches[0]?.slab !== batch.slab) this.#onFree(batch.slab);
  }
}

/** The lines of a batch that the database needs. */
export function textOf({ slab, runs }: Batch): string {
  let text = '';
  for (let index = 0; index < runs.length; index += 2) text += slab.toString('utf8', runs[index]!, runs[index + 1]!);
  return text;
}

/** Every account of which calls ended in a batch, with what its running calls held then. */
export function accountsOf({ totals, accountIds }: Batch): Map<string, Money> {
  const accounts = new Map(accountIds.map((accountId) => [accountId, money(0n)]));
  for (const { balance, open } of totals) accounts.set(balance.accountId, open);
  return accounts;
}
