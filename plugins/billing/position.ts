/** A small file beside the segments: which run writes them, and which of them must be there. It gives a lost end away. */
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Files } from './segments.ts';

export interface Position {
  /** Counts the runs that wrote this journal; the database keeps the same count. */
  readonly epoch: number;
  /** No record before this one is needed any more. */
  readonly kept: number;
  /** Every record up to this one was safe on disk. */
  readonly synced: number;
}

const fileName = 'position';
const slotBytes = 512;
/**
 * One slot is safe on disk and stays as it is until a sync has made another one safe: a power cut may tear everything
 * that was written since. The others are written in turn, so that damage to the newest gives little away.
 */
const slotCount = 3;

export function positionPath(directory: string): string {
  return join(directory, fileName);
}

/** What the file says; undefined when there is none. With none of its slots whole it throws. */
export function readPosition(files: Files, directory: string): Position | undefined {
  if (!files.list(directory).includes(fileName)) return undefined;
  const data = files.read(positionPath(directory));
  const newest = newestSlot(data);
  // Cut short at the very first start, before anything else was written: the first slot alone says nothing.
  if (newest === undefined && data.length <= slotBytes) return undefined;
  if (newest === undefined) {
    throw new Error(`${positionPath(directory)} is damaged: restore the file, or move the journal away and run audit`);
  }
  return { epoch: newest.epoch, kept: newest.kept, synced: newest.synced };
}

/** Keeps the file up to date. What it says never runs ahead of the disk. */
export class PositionKeeper {
  readonly #files: Files;
  readonly #descriptor: number;
  #position: Position;
  /** When each slot was written in this run. */
  readonly #turns = Array.from({ length: slotCount }, () => 0);
  #turn = 0;
  /** The slot that a power cut leaves alone, and the one that a running sync makes so; neither is written. */
  #safe: number | undefined;
  #syncing: number | undefined;
  /** Resolves when the syncs that were asked for are over. */
  #idle: Promise<unknown> = Promise.resolve();
  #closed = false;

  private constructor(files: Files, descriptor: number, position: Position) {
    this.#files = files;
    this.#descriptor = descriptor;
    this.#position = position;
  }

  /** Notes the position that a new run begins with, safe on disk when this resolves. */
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

  /** Records up to `synced` are safe on disk. The note itself is not waited for: a late one only gives away less. */
  noteSynced(synced: number): void {
    this.#position = { ...this.#position, synced };
    this.#write();
  }

  /** What this run found is sound, and safe on disk: everything from `kept` on up to `synced`. */
  async settle(kept: number, synced: number): Promise<void> {
    this.#position = { ...this.#position, synced };
    await this.noteKept(kept);
  }

  /** Records before `kept` are about to be deleted. That is safe on disk first, or a power cut would make them missing. */
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
   * Which slot an earlier run left safe the file does not tell: its newest may never have been synced, or a sync of it
   * failed and the system takes it for written. So the same bytes are put in place again: they tear none that are safe.
   */
  async #begin(data: Buffer): Promise<void> {
    const newest = newestSlot(data);
    if (newest === undefined) await this.#secure();
    else {
      this.#files.rewrite(this.#descriptor, data, 0);
      await this.#files.sync(this.#descriptor);
      this.#safe = newest.place;
    }
    // Both of the others: damage to the newer one must not lead back into an older epoch.
    this.#write();
    await this.#secure();
  }

  /** Writes the position and makes it safe; its slot is then the one that is left alone. */
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

  /** Writes the position over the oldest slot that may be torn; returns its place. */
  #write(): number {
    // The system may have given the descriptor to another file.
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

/** The slot that was written last of those that are whole, and where it stands. */
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
  // A slot at the end of the file that lacks but spaces would be broken by the bytes put in front of the next one.
  if (text.length < slotBytes) return undefined;
  const match = /^([0-9a-f]{8}) ((\d+) (\d+) (\d+) (\d+))\n *$/.exec(text);
  if (match === null || checksumOf(match[2]!) !== match[1]) return undefined;
  const [epoch, turn, kept, synced] = match.slice(3).map(Number) as [number, number, number, number];
  return { epoch, turn, kept, synced };
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(8, '0');
}
