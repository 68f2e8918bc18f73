/**
 * The position file beside the segments: the current run and the required segments. It reveals a lost end of the
 * journal.
 */
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Files } from './segments.ts';

/** Advice about a damaged journal. */
export const advice =
  'restore the file, or apply the sound records with "gateway journal salvage" ("gateway journal inspect" shows it)';

export interface Position {
  /** Counts the runs that wrote this journal; the database stores the same count. */
  readonly epoch: number;
  /** No record before this one is needed. */
  readonly kept: number;
  /** Every record up to this one is durable. */
  readonly synced: number;
}

const fileName = 'position';
const slotBytes = 512;
/**
 * One slot is durable and stays unchanged until a sync has made another one durable, because a power cut may tear
 * every slot written since. The others are written in turn, so that damage to the newest loses little.
 */
const slotCount = 3;

export function positionPath(directory: string): string {
  return join(directory, fileName);
}

/** The stored position; undefined when there is no file. Throws when no slot is whole. */
export function readPosition(files: Files, directory: string): Position | undefined {
  if (!files.list(directory).includes(fileName)) return undefined;
  const data = files.read(positionPath(directory));
  const newest = newestSlot(data);
  // Cut short at the first start, before anything else was written: a lone first slot carries no information.
  if (newest === undefined && data.length <= slotBytes) return undefined;
  if (newest === undefined) {
    throw new Error(`${positionPath(directory)} is damaged: ${advice}`);
  }
  return { epoch: newest.epoch, kept: newest.kept, synced: newest.synced };
}

/** Updates the position file. It never claims more than is durable on disk. */
export class PositionKeeper {
  readonly #files: Files;
  readonly #descriptor: number;
  #position: Position;
  /** When each slot was written in this run. */
  readonly #turns = Array.from({ length: slotCount }, () => 0);
  #turn = 0;
  /** The durable slot, and the slot that a running sync makes durable; neither may be written. */
  #safe: number | undefined;
  #syncing: number | undefined;
  /** Resolves when the requested syncs are done. */
  #idle: Promise<unknown> = Promise.resolve();
  #closed = false;

  private constructor(files: Files, descriptor: number, position: Position) {
    this.#files = files;
    this.#descriptor = descriptor;
    this.#position = position;
  }

  /** Stores the position at which a new run begins; durable when this resolves. */
  static async begin(files: Files, directory: string, position: Position): Promise<PositionKeeper> {
    const path = positionPath(directory);
    if (!files.list(directory).includes(fileName)) files.close(files.create(path));
    const keeper = new PositionKeeper(files, files.open(path), position);
    try {
      await keeper.#begin(files.read(path));
      return keeper;
    } catch (error) {
      keeper.close();
      throw error;
    }
  }

  get epoch(): number {
    return this.#position.epoch;
  }

  /** Records that everything up to `synced` is durable. The caller does not wait: a late update only protects less. */
  noteSynced(synced: number): void {
    this.#position = { ...this.#position, synced };
    this.#write();
  }

  /** Stores that the records from `kept` up to `synced` are valid and durable. */
  async settle(kept: number, synced: number): Promise<void> {
    this.#position = { ...this.#position, synced };
    await this.noteKept(kept);
  }

  /**
   * Stores that records before `kept` are about to be deleted. This must be durable first, or a power cut would
   * make them appear lost.
   */
  noteKept(kept: number): Promise<void> {
    this.#position = { ...this.#position, kept };
    const noted = this.#idle.then(() => this.#secure());
    this.#idle = noted.catch(() => {});
    return noted;
  }

  close(): void {
    if (!this.#closed) this.#files.close(this.#descriptor);
    this.#closed = true;
  }

  /**
   * The file does not show which slot an earlier run left durable: its newest may not have been synced, or a sync
   * failed and the kernel reports it as written. So the same bytes are written again, which tears no durable slot.
   */
  async #begin(data: Buffer): Promise<void> {
    const newest = newestSlot(data);
    if (newest === undefined) await this.#secure();
    else {
      this.#files.rewrite(this.#descriptor, data, 0);
      await this.#files.sync(this.#descriptor);
      this.#safe = newest.place;
    }
    // Both other slots: damage to the newer one must not restore an older epoch.
    this.#write();
    await this.#secure();
  }

  /** Writes the position and syncs it; its slot is then the durable one. */
  async #secure(): Promise<void> {
    const place = this.#write();
    this.#syncing = place;
    try {
      await this.#files.sync(this.#descriptor);
      this.#safe = place;
    } finally {
      this.#syncing = undefined;
    }
  }

  /** Overwrites the oldest slot that is not durable; returns its index. */
  #write(): number {
    // The kernel may have assigned the descriptor to another file.
    if (this.#closed) throw new Error('the position is closed');
    const free = [...this.#turns.keys()].filter((place) => place !== this.#safe && place !== this.#syncing);
    const place = free.reduce((oldest, next) => (this.#turns[next]! < this.#turns[oldest]! ? next : oldest));
    this.#turn += 1;
    this.#turns[place] = this.#turn;
    const slot = encodeSlot({ ...this.#position, turn: this.#turn });
    this.#files.rewrite(this.#descriptor, Buffer.from(slot, 'latin1'), place * slotBytes);
    return place;
  }
}

/** The whole slot that was written last, and its index. */
function newestSlot(data: Buffer): (Slot & { readonly place: number }) | undefined {
  const slots = Array.from({ length: slotCount }, (_, place) => {
    const slot = decodeSlot(data.toString('latin1', place * slotBytes, (place + 1) * slotBytes));
    return slot === undefined ? [] : { ...slot, place };
  }).flat();
  return slots.sort((one, other) => other.epoch - one.epoch || other.turn - one.turn)[0];
}

interface Slot extends Position {
  readonly turn: number;
}

function encodeSlot({ epoch, turn, kept, synced }: Slot): string {
  const body = `${epoch} ${turn} ${kept} ${synced}`;
  return `${checksumOf(body)} ${body}\n`.padEnd(slotBytes);
}

function decodeSlot(text: string): Slot | undefined {
  // A slot at the file's end without its trailing spaces would be broken by the bytes that precede the next one.
  if (text.length < slotBytes) return undefined;
  const match = /^([0-9a-f]{8}) ((\d+) (\d+) (\d+) (\d+))\n *$/.exec(text);
  if (match === null || checksumOf(match[2]!) !== match[1]) return undefined;
  const [epoch, turn, kept, synced] = match.slice(3).map(Number) as [number, number, number, number];
  return { epoch, turn, kept, synced };
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(8, '0');
}
