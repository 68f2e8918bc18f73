/** Bodies of requests that wait to be sent: small ones in memory, others on the disk, until their exchange has ended. */
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Random } from '../../../core/contract/host-tools.ts';
import type { RepeatableBody } from '../../../core/contract/message.ts';
import type { Edit } from '../../../core/json/splice.ts';
import { isUnwritable, makeDirectory } from '../../../core/tools/unwritable.ts';
import type { ByteSource } from '../../common/audio/duration.ts';

export interface SpoolLimits {
  /** Bytes of a body in memory. */
  readonly memoryBytes: number;
  /** Bodies at once, and bytes of all of them on the disk. */
  readonly bodies: number;
  readonly accountBodies: number;
  readonly diskBytes: number;
}

const spanBytes = 65_536;

export class Spool {
  readonly #directory: string;
  readonly #limits: () => SpoolLimits;
  readonly #random: Random;
  readonly #held = new Map<string, number>();
  #bodies = 0;
  #diskBytes = 0;

  constructor(directory: string, limits: () => SpoolLimits, random: Random) {
    this.#directory = directory;
    this.#limits = limits;
    this.#random = random;
  }

  /** Removes what a process left that was killed. */
  async start(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
    makeDirectory(this.#directory, 0o700);
  }

  /** A place for one body of at most so many bytes. Throws when there is none. */
  enter(accountId: string, mostBytes: number): SpooledBody {
    const { bodies, accountBodies } = this.#limits();
    const own = this.#held.get(accountId) ?? 0;
    if (own >= accountBodies)
      throw new GatewayError('rate_limited', `At most ${accountBodies} forms of an account are sent at once.`, {
        code: 'forms',
        retryAfterMs: 1_000,
      });
    if (this.#bodies >= bodies) throw noRoom();
    this.#held.set(accountId, own + 1);
    this.#bodies += 1;
    return new SpooledBody({
      mostBytes,
      memoryBytes: this.#limits().memoryBytes,
      open: () => this.#open(),
      count: (bytes) => this.#count(bytes),
      leave: () => this.#leave(accountId),
    });
  }

  /** The file has no name any more: it is gone when it is closed, and when the process ends. */
  async #open(): Promise<FileHandle> {
    const path = join(this.#directory, this.#random.bytes(16).toString('hex'));
    const file = await open(path, 'wx+', 0o600);
    await rm(path, { force: true });
    return file;
  }

  #count(bytes: number): void {
    if (bytes > 0 && this.#diskBytes + bytes > this.#limits().diskBytes) throw noRoom();
    this.#diskBytes += bytes;
  }

  #leave(accountId: string): void {
    this.#bodies -= 1;
    const left = this.#held.get(accountId)! - 1;
    if (left === 0) this.#held.delete(accountId);
    else this.#held.set(accountId, left);
  }
}

interface Place {
  readonly mostBytes: number;
  readonly memoryBytes: number;
  open(): Promise<FileHandle>;
  count(bytes: number): void;
  leave(): void;
}

export class SpooledBody {
  bytes = 0;
  readonly #place: Place;
  #memory: Buffer[] = [];
  #file: FileHandle | undefined;
  #diskBytes = 0;

  constructor(place: Place) {
    this.#place = place;
  }

  /** The same bytes, each chunk of which is kept before it is passed on. */
  async *keep(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) {
      await this.#add(chunk);
      yield chunk;
    }
    this.#memory = [Buffer.concat(this.#memory)];
  }

  async #add(chunk: Uint8Array): Promise<void> {
    const { mostBytes, memoryBytes } = this.#place;
    this.bytes += chunk.length;
    if (this.bytes > mostBytes)
      throw new GatewayError('too_large', `The form is larger than ${mostBytes} bytes.`, { shouldRetry: false });
    if (this.#file === undefined && this.bytes <= memoryBytes) {
      this.#memory.push(Buffer.from(chunk));
      return;
    }
    try {
      this.#file ??= await this.#place.open();
      for (const waiting of this.#memory) await this.#write(waiting);
      this.#memory = [];
      await this.#write(chunk);
    } catch (error) {
      throw isUnwritable(error) ? noRoom(error) : error;
    }
  }

  async #write(chunk: Uint8Array): Promise<void> {
    this.#place.count(chunk.length);
    this.#diskBytes += chunk.length;
    await this.#file!.appendFile(chunk);
  }

  async #read(first: number, length: number): Promise<Buffer> {
    if (this.#file === undefined) return (this.#memory[0] ?? Buffer.alloc(0)).subarray(first, first + length);
    const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, this.bytes - first)));
    let read = 0;
    while (read < bytes.length) {
      const { bytesRead } = await this.#file.read(bytes, read, bytes.length - read, first + read);
      if (bytesRead === 0) break;
      read += bytesRead;
    }
    return bytes.subarray(0, read);
  }

  /** A part of the body. */
  span(start: number, length: number): ByteSource {
    return {
      length,
      read: (first, bytes) => this.#read(start + first, Math.max(0, Math.min(bytes, length - first))),
    };
  }

  async *#between(first: number, end: number): AsyncGenerator<Uint8Array> {
    for (let at = first; at < end; at += spanBytes) yield await this.#read(at, Math.min(spanBytes, end - at));
  }

  /** All of it, with other texts instead of spans, which do not overlap. */
  with(edits: readonly Edit[]): RepeatableBody {
    const ordered = edits
      .map(({ start, end, text }) => ({ start, end, bytes: Buffer.from(text) }))
      .toSorted((left, right) => left.start - right.start);
    const between = (first: number, end: number) => this.#between(first, end);
    const length = this.bytes;
    return {
      bytes: ordered.reduce((sum, { start, end, bytes }) => sum - (end - start) + bytes.length, length),
      async *open() {
        let at = 0;
        for (const { start, end, bytes } of ordered) {
          yield* between(at, start);
          yield bytes;
          at = end;
        }
        yield* between(at, length);
      },
    };
  }

  /** Gives its place back; nothing of it is read any more. */
  async close(): Promise<void> {
    this.#place.leave();
    this.#memory = [];
    await this.#file?.close();
    this.#place.count(-this.#diskBytes);
  }
}

function noRoom(cause?: unknown): GatewayError {
  return new GatewayError('overloaded', 'The gateway has no room for another form at the moment.', {
    retryAfterMs: 2_000,
    cause,
  });
}
