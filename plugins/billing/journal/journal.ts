/** The append-only journal: one write per turn of the event loop, group sync, rotated segments. */

import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import { Outage } from '../../../core/contract/outage.ts';
import { batchBytes } from '../ledger/backlog.ts';
import { lineBytes, putLine } from '../model/records.ts';
import type { PositionKeeper } from './position.ts';
import { type Files, type Segment, segmentPath } from './segments.ts';
import { Syncer } from './sync.ts';

export interface JournalOptions {
  readonly files: Files;
  readonly directory: string;
  /** Sequence number of the next record. */
  readonly next: number;
  /** Segments of earlier runs; they are only read and deleted. */
  readonly segments: readonly Segment[];
  /** Size at which a new segment begins. */
  readonly segmentBytes: number;
  /** Size on disk at which new work is refused. */
  readonly limitBytes: number;
  /** The minimum time for which an applied segment is kept. */
  readonly keepMs: number;
  /** Keeps the synced and the oldest needed sequence number; its epoch is in every line. */
  readonly position?: PositionKeeper;
  readonly clock: Clock;
  readonly log: Log;
  /** Called for each line written to a file: `slab` holds it too, and `last` is its last record. */
  readonly onWritten: (slab: Buffer, from: number, to: number, last: number) => void;
}

/** Lines are encoded in slabs of this size, outside of the garbage-collected heap: no batch has lines of two. */
const slabBytes = batchBytes;

/** One pending write, shared by all callers that wait for it. */
export interface Turn {
  /** Resolves when write() has returned; rejects with 503 when it failed. */
  promise: Promise<void>;
  resolve: () => void;
  reject: (error: GatewayError) => void;
  failed: boolean;
  /** Resolves when `promise` has settled; made when it is asked for. */
  settled: Promise<void> | undefined;
}

const done = Promise.resolve();
const nothing = () => {};
const doneTurn: Turn = { promise: done, resolve: nothing, reject: nothing, failed: false, settled: done };

export class Journal {
  readonly #options: JournalOptions;
  readonly #segments: Segment[];
  readonly #appliedAt = new Map<Segment, number>();
  readonly #syncer: Syncer;
  /** Records as texts without their closing braces. */
  #pending: string[] = [];
  #slab: Buffer = Buffer.alloc(0);
  #slabUsed = 0;
  #spareSlab: Buffer | undefined;
  #next: number;
  #turn: Turn | undefined;
  #scheduled = false;
  #current: { segment: Segment; descriptor: number } | undefined;
  /** A failed write may have left bytes behind the last record. */
  #torn = false;
  readonly #outages: { readonly write: Outage; readonly sync: Outage };
  #writeFails = false;
  #syncFails = false;
  /** All records up to this sequence number are durable. */
  #synced: number;
  #closed = false;
  #syncing: Promise<void> | undefined;
  #bytes: number;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#segments = [...options.segments];
    this.#next = options.next;
    this.#synced = options.next - 1;
    this.#syncer = new Syncer(options.files);
    this.#bytes = options.segments.reduce((sum, segment) => sum + segment.bytes, 0);
    this.#outages = { write: outageOfDisk('written', options), sync: outageOfDisk('synced', options) };
  }

  readonly #writeTurn = (): void => {
    this.#scheduled = false;
    this.write();
  };

  /**
   * Adds a record, as `recordText` gives it, at the end of this turn of the event loop; until then it may be extended. Returns its
   * sequence number. Never fails: a full disk delays it.
   */
  append(record: string): number {
    this.#pending.push(record);
    if (!this.#scheduled && !this.#writeFails) {
      this.#scheduled = true;
      setImmediate(this.#writeTurn);
    }
    return this.#next++;
  }

  /** Adds members to a record of this turn. false: it is written already. */
  extend(sequence: number, members: string): boolean {
    const index = sequence - this.writtenSequence - 1;
    if (index < 0) return false;
    this.#pending[index] += members;
    return true;
  }

  /** The pending write of the last appended record. 503 when the journal cannot be written. */
  turn(): Turn {
    if (this.#writeFails) throw this.refusal();
    if (this.#pending.length === 0) return doneTurn;
    this.#turn ??= { ...Promise.withResolvers<void>(), failed: false, settled: undefined };
    return this.#turn;
  }

  /** As `turn`; resolves when the write has failed, too. */
  settledTurn(): Promise<void> {
    const turn = this.turn();
    turn.settled ??= turn.promise.catch(() => undefined);
    return turn.settled;
  }

  /** Sequence number of the last record in a file. */
  get writtenSequence(): number {
    return this.#next - 1 - this.#pending.length;
  }

  /** Bytes on disk. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether new work may be admitted. */
  accepting(): boolean {
    return !this.#writeFails && !this.#syncFails && this.#bytes < this.#options.limitBytes;
  }

  /** False while writes fail; records that can wait should not be appended then. */
  writing(): boolean {
    return !this.#writeFails;
  }

  refusal(): GatewayError {
    return new GatewayError('overloaded', 'Calls cannot be recorded at the moment; please try again soon.', {
      code: 'journal_unavailable',
      retryAfterMs: 1_000,
    });
  }

  /** Writes the pending records now. After `close` the files may belong to another process. */
  write(): void {
    if (this.#pending.length === 0 || this.#closed) return;
    try {
      this.#writeLine();
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#pending = [];
    if (this.#writeFails) this.#outages.write.succeeded();
    this.#writeFails = false;
    const turn = this.#turn;
    if (turn === undefined) return;
    this.#turn = undefined;
    turn.resolve();
    // Holds keep it as long as their calls run.
    turn.promise = done;
    turn.resolve = nothing;
    turn.reject = nothing;
    turn.settled = done;
  }

  #writeLine(): void {
    // One text, without copies of it for its ends.
    const texts = this.#pending.slice();
    texts[0] = `[${texts[0]}`;
    texts[texts.length - 1] += '}]';
    const json = texts.join('},');
    const bytes = lineBytes(json);
    if (this.#slabUsed + bytes > this.#slab.length) this.#nextSlab(bytes);
    const from = this.#slabUsed;
    const to = putLine(this.#slab, from, this.writtenSequence + 1, json, this.#options.position?.epoch);
    this.#put(this.#slab.subarray(from, to));
    this.#slabUsed = to;
    this.#options.onWritten(this.#slab, from, to, this.#next - 1);
  }

  #nextSlab(bytes: number): void {
    const fits = this.#spareSlab !== undefined && this.#spareSlab.length >= bytes;
    this.#slab = fits ? this.#spareSlab! : Buffer.allocUnsafeSlow(Math.max(slabBytes, bytes));
    this.#slabUsed = 0;
    this.#spareSlab = undefined;
  }

  /** Reuses a slab that is no longer needed, because its memory is warm. */
  reclaim(slab: Buffer): void {
    if (slab === this.#slab) this.#slabUsed = 0;
    else if (slab.length === slabBytes) this.#spareSlab = slab;
  }

  #fail(error: unknown): void {
    this.#outages.write.failed(error);
    this.#writeFails = true;
    if (this.#turn === undefined) return;
    this.#turn.failed = true;
    this.#turn.reject(this.refusal());
    this.#turn = undefined;
  }

  /** Writes all or nothing: bytes of a failed write are truncated, at the latest before the next write. */
  #put(data: Buffer): void {
    const { files, segmentBytes } = this.#options;
    if (this.#torn) files.truncate(this.#current!.descriptor, this.#current!.segment.bytes);
    this.#torn = false;
    if (this.#current === undefined || this.#current.segment.bytes >= segmentBytes) this.#rotate();
    const { segment, descriptor } = this.#current!;
    this.#torn = true;
    let done = files.write(descriptor, data);
    while (done < data.length) done += files.write(descriptor, data.subarray(done));
    this.#torn = false;
    segment.bytes += data.length;
    segment.last = this.#next - 1;
    this.#bytes += data.length;
  }

  #rotate(): void {
    const { files, directory } = this.#options;
    const first = this.writtenSequence + 1;
    const path = segmentPath(directory, first);
    const descriptor = files.create(path);
    const segment = { path, first, last: first - 1, bytes: 0 };
    this.#segments.push(segment);
    this.#current = { segment, descriptor };
    this.#syncer.begin(segment, descriptor);
  }

  /** Syncs written records and retries failed writes. Call it every few milliseconds. */
  async tick(): Promise<void> {
    if (this.#writeFails) this.write();
    if (this.#synced < this.writtenSequence || this.#syncFails) await this.#syncOnce();
  }

  /** Resolves when every appended record is durable; rejects when the disk fails. */
  async secureAll(): Promise<void> {
    const last = this.#next - 1;
    await this.turn().promise;
    await this.secure(last);
  }

  /** Resolves when every written record up to `sequence` is durable; rejects when the disk fails. */
  async secure(sequence: number): Promise<void> {
    while (this.#synced < sequence) {
      await this.#syncOnce();
      if (this.#syncFails) throw new Error('the journal cannot be synced');
    }
  }

  #syncOnce(): Promise<void> {
    this.#syncing ??= this.#sync().finally(() => {
      this.#syncing = undefined;
    });
    return this.#syncing;
  }

  async #sync(): Promise<void> {
    const { position } = this.#options;
    const written = this.writtenSequence;
    try {
      await this.#syncer.sync();
      position?.noteSynced(written);
      this.#synced = written;
      this.#syncFails = false;
      this.#outages.sync.succeeded();
    } catch (error) {
      this.#outages.sync.failed(error);
      this.#syncFails = true;
    }
  }

  /**
   * Deletes segments that are no longer needed: all records applied to the database (up to `applied`), none of an
   * unfinished request (the oldest began at `oldest`), and older than the minimum time, which is ignored when space
   * runs short.
   */
  release(applied: number, oldest: number): void | Promise<void> {
    const spare = this.#spareSegments(applied, oldest);
    const last = spare.at(-1)?.last;
    if (last === undefined) return;
    const { position } = this.#options;
    if (position === undefined) this.#removeAll(spare);
    else return position.noteKept(last + 1).then(() => this.#removeAll(spare));
  }

  #spareSegments(applied: number, oldest: number): Segment[] {
    const { clock, keepMs, limitBytes } = this.#options;
    const now = clock.monotonic();
    const spare: Segment[] = [];
    let bytes = this.#bytes;
    for (const [index, segment] of this.#segments.entries()) {
      if (segment === this.#current?.segment || segment.last > applied || segment.last >= oldest) break;
      const appliedAt = this.#appliedAt.get(segment) ?? now;
      this.#appliedAt.set(segment, appliedAt);
      const isOld = now - appliedAt >= keepMs || bytes >= limitBytes / 2;
      if (!isOld || spare.length < index) continue;
      spare.push(segment);
      bytes -= segment.bytes;
    }
    return spare;
  }

  #removeAll(segments: readonly Segment[]): void {
    for (const segment of segments) if (segment === this.#segments[0]) this.#remove(segment);
  }

  #remove(segment: Segment): void {
    try {
      this.#options.files.remove(segment.path);
    } catch (error) {
      this.#options.log.warn({ error, path: segment.path }, 'an applied journal segment could not be deleted');
      return;
    }
    this.#segments.shift();
    this.#appliedAt.delete(segment);
    this.#bytes -= segment.bytes;
  }

  /** Writes, syncs and closes. Records after `writtenSequence` could not be written. */
  async close(): Promise<void> {
    this.write();
    this.#closed = true;
    await this.#syncing;
    if (this.#synced < this.writtenSequence) await this.#syncOnce();
    this.#syncer.close();
    this.#current = undefined;
    this.#options.position?.close();
  }
}

function outageOfDisk(what: 'written' | 'synced', { clock, log }: JournalOptions): Outage {
  const began = `the journal cannot be ${what}: new calls are refused`;
  return new Outage({ clock, log, began, over: `the journal can be ${what} again`, fields: {} });
}
