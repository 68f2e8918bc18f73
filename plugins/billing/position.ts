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

export function positionPath(directory: string): string {
  return join(directory, fileName);
}

/**
 * What the file says; undefined when there is none. Two slots are written in turn, so that a write which the power cut
 * short leaves the other one; with neither of them whole it throws.
 */
export function readPosition(files: Files, directory: string): Position | undefined {
  if (!files.list(directory).includes(fileName)) return undefined;
  const data = files.read(positionPath(directory));
  const slots = [0, slotBytes].flatMap((from) => decodeSlot(data.toString('latin1', from, from + slotBytes)) ?? []);
  const [newest] = slots.sort((one, other) => other.epoch - one.epoch || other.turn - one.turn);
  // Cut short at the very first start, before anything else was written: an empty file says nothing.
  if (newest === undefined && data.length === 0) return undefined;
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
  #turn = 0;
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
      // Both slots: damage to the newer one must not lead back into an older epoch.
      keeper.#write();
      keeper.#write();
      await files.sync(keeper.#descriptor);
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
  async noteKept(kept: number): Promise<void> {
    this.#position = { ...this.#position, kept };
    this.#write();
    await this.#files.sync(this.#descriptor);
  }

  close(): void {
    if (!this.#closed) this.#files.close(this.#descriptor);
    this.#closed = true;
  }

  #write(): void {
    this.#turn += 1;
    const slot = encodeSlot({ ...this.#position, turn: this.#turn });
    this.#files.rewrite(this.#descriptor, Buffer.from(slot, 'latin1'), (this.#turn % 2) * slotBytes);
  }
}

interface Slot extends Position {
  readonly turn: number;
}

function encodeSlot({ epoch, turn, kept, synced }: Slot): string {
  const body = `${epoch} ${turn} ${kept} ${synced}`;
  return `${checksumOf(body)} ${body}\n`.padEnd(slotBytes);
}

function decodeSlot(text: string): Slot | undefined {
  const match = /^([0-9a-f]{8}) ((\d+) (\d+) (\d+) (\d+))\n *$/.exec(text);
  if (match === null || checksumOf(match[2]!) !== match[1]) return undefined;
  const [epoch, turn, kept, synced] = match.slice(3).map(Number) as [number, number, number, number];
  return { epoch, turn, kept, synced };
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(8, '0');
}
