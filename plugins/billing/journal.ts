/** The append-only journal: one write for each turn of the event loop, group sync behind it, segments that come and go. */
import type { Clock, Log } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import type { PositionKeeper } from './position.ts';
import { encodeRecords, type JournalRecord, lineBytes, putLine } from './records.ts';
import { type Files, type Segment, segmentPath } from './segments.ts';
import { Syncer } from './syncer.ts';

export interface JournalOptions {
  readonly files: Files;
  readonly directory: string;
  /** Sequence number of the next record. */
  readonly next: number;
  /** Segments of earlier runs; they are only ever deleted. */
  readonly segments: readonly Segment[];
  /** A segment that has grown to this many bytes is followed by a new one. */
  readonly segmentBytes: number;
  /** With this many bytes on disk nothing new is admitted. */
  readonly limitBytes: number;
  /** How long an applied segment is kept at least. */
  readonly keepMs: number;
  /** Told what is safe and what is kept; its epoch stands in every line. */
  readonly position?: PositionKeeper;
  readonly clock: Clock;
  readonly log: Log;
  /** Told of each line that is in a file: it stands in `slab` too, and `last` is its last record. */
  readonly onWritten: (slab: Buffer, from: number, to: number, last: number) => void;
}

/** The text is made in slabs of this size, outside of the collector's reach. */
const slabBytes = 256 * 1024;

/** One write to come, and everybody who waits for it. */
export interface Turn {
  /** Resolves when write() has returned; rejects with 503 when it failed. */
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: GatewayError) => void;
  failed: boolean;
}

const doneTurn: Turn = { promise: Promise.resolve(), resolve: () => {}, reject: () => {}, failed: false };

export class Journal {
  readonly #options: JournalOptions;
  readonly #segments: Segment[];
  readonly #appliedAt = new Map<Segment, number>();
  readonly #syncer: Syncer;
  #pending: JournalRecord[] = [];
  #slab: Buffer = Buffer.alloc(0);
  #slabUsed = 0;
  #spareSlab: Buffer | undefined;
  #next: number;
  #turn: Turn | undefined;
  #scheduled = false;
  #current: { segment: Segment; descriptor: number } | undefined;
  /** Bytes of a failed write may stand behind the last record. */
  #torn = false;
  #writeFails = false;
  #syncFails = false;
  /** Sequence number up to which all records are safe. */
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
  }

  readonly #writeTurn = (): void => {
    this.#scheduled = false;
    this.write();
  };

  /**
   * Adds a record at the end of this turn of the event loop; until then it may still be changed. Returns its sequence
   * number. Never fails: a full disk delays it.
   */
  append(record: JournalRecord): number {
    this.#pending.push(record);
    if (!this.#scheduled && !this.#writeFails) {
      this.#scheduled = true;
      setImmediate(this.#writeTurn);
    }
    return this.#next++;
  }

  /** The write that is due for what was appended last. 503 when the journal cannot be written. */
  turn(): Turn {
    if (this.#writeFails) throw this.refusal();
    if (this.#pending.length === 0) return doneTurn;
    this.#turn ??= { ...Promise.withResolvers<void>(), failed: false };
    return this.#turn;
  }

  /** Sequence number of the last record that is in a file. */
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

  /** false while the disk refuses writes; notes that can wait should not be appended then. */
  writing(): boolean {
    return !this.#writeFails;
  }

  refusal(): GatewayError {
    return new GatewayError('overloaded', 'Calls cannot be recorded at the moment; please try again soon.', {
      code: 'journal_unavailable',
      retryAfterMs: 1_000,
    });
  }

  /** Writes what is pending now. After `close` the files may be another process's. */
  write(): void {
    if (this.#pending.length === 0 || this.#closed) return;
    try {
      this.#writeLine();
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#pending = [];
    if (this.#writeFails) this.#options.log.info({ bytes: this.#bytes }, 'the journal can be written again');
    this.#writeFails = false;
    this.#turn?.resolve();
    this.#turn = undefined;
  }

  #writeLine(): void {
    const json = encodeRecords(this.#pending);
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

  /** Nobody needs what stands in the slab any more: its memory, which is warm, can be written again. */
  reclaim(slab: Buffer): void {
    if (slab === this.#slab) this.#slabUsed = 0;
    else if (slab.length === slabBytes) this.#spareSlab = slab;
  }

  #fail(error: unknown): void {
    if (!this.#writeFails) this.#options.log.error({ error }, 'the journal cannot be written: new calls are refused');
    this.#writeFails = true;
    if (this.#turn === undefined) return;
    this.#turn.failed = true;
    this.#turn.reject(this.refusal());
    this.#turn = undefined;
  }

  /** All or nothing: what a failed write left behind is cut off, at the latest before the next write. */
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

  /** Makes what was written safe against a power cut, and tries again what could not be written. Call it every few milliseconds. */
  async tick(): Promise<void> {
    if (this.#writeFails) this.write();
    if (this.#synced < this.writtenSequence || this.#syncFails) await this.#syncOnce();
  }

  /** Resolves when all that was appended is safe on disk; rejects when the disk refuses. */
  async secureAll(): Promise<void> {
    const last = this.#next - 1;
    await this.turn().promise;
    await this.secure(last);
  }

  /** Resolves when every record up to `sequence`, which was written, is safe on disk; rejects when the disk refuses. */
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
    const { log, position } = this.#options;
    const written = this.writtenSequence;
    try {
      await this.#syncer.sync();
      position?.noteSynced(written);
      this.#synced = written;
      this.#syncFails = false;
    } catch (error) {
      if (!this.#syncFails) log.error({ error }, 'the journal cannot be synced: new calls are refused');
      this.#syncFails = true;
    }
  }

  /**
   * Deletes segments that nobody needs: every record applied to the database (up to `applied`), no unfinished request
   * in them (the oldest began at `oldest`), and kept for a while; when space runs short, not kept.
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

  /** Writes, syncs and closes. What could not be written is told by `writtenSequence`. */
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
