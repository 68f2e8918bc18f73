/** A small file beside the database that says how far its log was safe: a database that comes back before that has lost something. */
import { closeSync, constants, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { LogPoint } from './disk.ts';

/** The log is written in pages of this size, the last of them again and again. */
const pageBytes = 8192;
/** The record of a checkpoint, with room for a page's header in front of it. */
const stopRecordBytes = 512;
const fileBytes = 16 * 2 ** 20;
const filesPerNumber = 256;
const markBytes = 64;

export function markPath(directory: string): string {
  return join(directory, 'postgres.mark');
}

export interface Mark extends LogPoint {
  /** It was found not to be reached: it stays so until the file is deleted. */
  readonly behind: boolean;
}

/** undefined when there is none, or none that is whole: then nothing is known. */
export function readMark(directory: string): Mark | undefined {
  const match = /^([0-9a-f]{8}) (([0-9A-F]{24}) (\d+)( behind)?)\n/.exec(textOf(markPath(directory)));
  if (match === null || checksumOf(match[2]!) !== match[1]) return undefined;
  return { name: match[3]!, bytes: Number(match[4]), behind: match[5] !== undefined };
}

export function keepBehind(directory: string): void {
  const mark = readMark(directory);
  if (mark !== undefined) writeFileSync(markPath(directory), lineOf(`${mark.name} ${mark.bytes} behind`));
}

/**
 * Whether a log reaches the page that was safe last. `end`: where the last checkpoint's redo begins right after the start,
 * which is where the log ended before it, but for the record of an orderly stop.
 */
export function reaches(end: LogPoint, mark: LogPoint): boolean {
  return placeOf(end) + stopRecordBytes > placeOf(mark) - pageBytes;
}

/** Bytes since the log began: a file's name is timeline, number of 4 GB, number within them, eight hex digits each. */
function placeOf({ name, bytes }: LogPoint): number {
  const number = Number.parseInt(name.slice(8, 16), 16) * filesPerNumber + Number.parseInt(name.slice(16), 16);
  return number * fileBytes + bytes;
}

/** Keeps the mark up to date. It is not synced itself: an old mark only gives away less. */
export class MarkWriter {
  readonly #descriptor: number;
  #last: LogPoint = { name: '', bytes: 0 };

  constructor(directory: string) {
    this.#descriptor = openSync(markPath(directory), constants.O_RDWR | constants.O_CREAT, 0o600);
  }

  note(point: LogPoint): void {
    if (point.name === this.#last.name && point.bytes === this.#last.bytes) return;
    this.#last = point;
    writeSync(this.#descriptor, lineOf(`${point.name} ${point.bytes}`), 0, 'latin1');
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

export function removeMark(directory: string): void {
  rmSync(markPath(directory), { force: true });
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function lineOf(body: string): string {
  return `${checksumOf(body)} ${body}\n`.padEnd(markBytes);
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(8, '0');
}
