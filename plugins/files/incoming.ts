/**
 * Takes in files: bytes, or a vendor's address that is fetched to the disk by the guarded client, with the type sniffed
 * from the content.
 */
import { createWriteStream } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Random } from '../../core/contract/host-tools.ts';
import { type FetchWay, GuardedClient, type GuardOptions, Unfetchable } from '../../core/tools/guarded-fetch.ts';
import { makeDirectory } from '../../core/tools/unwritable.ts';
import type { FileContent, FileVendor } from '../common/domain/stored-files.ts';
import { kindOfMedia } from '../common/kit/media-types.ts';
import { sniffBytes } from '../common/kit/sniff.ts';
import { type StoredContent, svgType } from './bytes.ts';
import { isNoSpace, storageFull } from './disk-space.ts';
import { Semaphore } from './semaphore.ts';

/** Types that browsers show without running content; what an SVG holds runs nowhere, as it is served in a sandbox. */
const servable = new Set([
  ...['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'image/avif', svgType],
  ...['video/mp4', 'video/webm', 'video/quicktime'],
]);

/** Enough for every signature, and for what precedes the first element of an SVG. */
const headBytes = 1_024;
const firstPauseMs = 300;
/** An older incoming file is a leftover of a process that has ended. */
const leftoverMs = 2 * 3_600_000;

/** Statuses that may be temporary; a vendor may report a result before it can be fetched. */
const retryableStatuses = new Set([404, 408, 425, 429]);

export interface IncomingOptions {
  readonly guard: GuardOptions;
  readonly parallel: number;
  /** All attempts together. */
  readonly timeoutMs: number;
  readonly attempts: number;
}

export interface IncomingFile {
  readonly mediaType: string;
  readonly bytes: number;
  readonly content: StoredContent;
  /** Removes the written file, if it is still there. */
  discard(): Promise<void>;
}

type Kind = 'image' | 'video';

export class Incoming {
  readonly #directory: string;
  readonly #options: IncomingOptions;
  readonly #random: Random;
  readonly #client: GuardedClient;
  readonly #semaphore: Semaphore;

  /** Files are written to `directory/incoming`. */
  constructor(directory: string, options: IncomingOptions, random: Random) {
    this.#directory = directory;
    this.#options = options;
    this.#random = random;
    this.#client = new GuardedClient(options.guard);
    this.#semaphore = new Semaphore(options.parallel);
  }

  async open(): Promise<void> {
    makeDirectory(join(this.#directory, 'incoming'), 0o700);
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /**
   * Throws upstream_failed if the content cannot be fetched or has another type (`shouldRetry: false`: permanently),
   * overloaded if the disk is full, and the reason of `signal` on an abort.
   */
  async take(content: FileContent, kind: Kind, signal: AbortSignal): Promise<IncomingFile> {
    if (content instanceof Uint8Array) return this.#given(content, kind);
    const turn = await this.#semaphore.acquire(signal);
    try {
      return await this.#fetch(content.url, wayTo(content.vendor), kind, signal);
    } finally {
      turn();
    }
  }

  #given(content: Uint8Array, kind: Kind): IncomingFile {
    const { maxBytes } = this.#options.guard;
    if (content.length > maxBytes) throw unusable(new Unfetchable(`it is larger than ${maxBytes} bytes`));
    try {
      return { mediaType: checkedType(content, kind), bytes: content.length, content, discard: async () => {} };
    } catch (error) {
      throw unusable(error);
    }
  }

  async #fetch(url: string, way: FetchWay, kind: Kind, signal: AbortSignal): Promise<IncomingFile> {
    const timeout = AbortSignal.timeout(this.#options.timeoutMs);
    const either = AbortSignal.any([signal, timeout]);
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#fetchOnce(url, way, kind, either);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        throwIfLasting(error);
        if (timeout.aborted || attempt >= this.#options.attempts) throw notFetched(error);
      }
      const pauseMs = firstPauseMs * 3 ** (attempt - 1) * (0.5 + this.#random.fraction());
      // The next attempt sees an abort.
      await sleep(pauseMs, undefined, { signal: either }).catch(() => {});
    }
  }

  async #fetchOnce(url: string, way: FetchWay, kind: Kind, signal: AbortSignal): Promise<IncomingFile> {
    const path = `incoming/${this.#random.bytes(16).toString('hex')}`;
    const file = join(this.#directory, path);
    const discard = () => rm(file, { force: true });
    const opened = await this.#client.open(url, signal, way);
    const gauge = new Gauge(kind);
    try {
      await pipeline(gauge.watch(opened.body), createWriteStream(file, { flags: 'wx', mode: 0o600 }), { signal });
    } catch (error) {
      await discard();
      throw error;
    } finally {
      opened.close();
    }
    return { mediaType: gauge.mediaType!, bytes: gauge.bytes, content: { path }, discard };
  }

  /** Removes files of processes that ended during a fetch. `now`: wall clock. */
  async removeLeftovers(now: number): Promise<void> {
    const directory = join(this.#directory, 'incoming');
    for (const name of await readdir(directory)) {
      const path = join(directory, name);
      const found = await stat(path).catch(() => undefined);
      if (found !== undefined && now - found.mtimeMs > leftoverMs) await rm(path, { force: true });
    }
  }
}

/** Counts the bytes of a stream, and refuses another type at the first bytes. */
class Gauge {
  readonly #kind: Kind;
  bytes = 0;
  mediaType: string | undefined;

  constructor(kind: Kind) {
    this.#kind = kind;
  }

  async *watch(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
    let head = Buffer.alloc(0);
    for await (const chunk of body) {
      this.bytes += chunk.length;
      if (this.mediaType === undefined) {
        head = Buffer.concat([head, chunk.subarray(0, headBytes)]);
        if (head.length >= headBytes) this.mediaType = checkedType(head, this.#kind);
      }
      yield chunk;
    }
    this.mediaType ??= checkedType(head, this.#kind);
  }
}

function checkedType(bytes: Uint8Array, kind: Kind): string {
  const mediaType = sniffBytes(bytes) ?? (isSvg(bytes) ? svgType : undefined);
  if (bytes.length === 0) throw new Unfetchable('it is empty');
  if (mediaType === undefined) throw new Unfetchable(`it is no ${kind}`);
  if (kindOfMedia(mediaType) !== kind || !servable.has(mediaType)) {
    throw new Unfetchable(`it is ${mediaType}, which is not kept as ${kind}`);
  }
  return mediaType;
}

/** A text with `svg` as its first element, after a declaration, comments and a document type. */
function isSvg(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, headBytes)).toString('utf8');
  return /^\uFEFF?\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:[^-]|-(?!->))*-->\s*)*(?:<!DOCTYPE\s+svg[^>]*>\s*)?(?:<!--(?:[^-]|-(?!->))*-->\s*)*<svg[\s>]/i.test(
    head,
  );
}

/** Throws for a failure that no further attempt mends. */
function throwIfLasting(error: unknown): void {
  if (isNoSpace(error)) throw storageFull(error);
  if (error instanceof Unfetchable && !isPassing(error)) throw unusable(error);
}

function isPassing({ status }: Unfetchable): boolean {
  return status !== undefined && (status >= 500 || retryableStatuses.has(status));
}

/** A base URL that cannot be parsed makes no origin trusted. */
function wayTo(vendor: FileVendor | undefined): FetchWay {
  if (vendor === undefined) return {};
  const { baseUrl, headers, network } = vendor;
  return { trustedOrigin: URL.parse(baseUrl)?.origin, headers, network };
}

function unusable(cause: unknown): GatewayError {
  const reason = cause instanceof Unfetchable ? cause.message : 'it cannot be read';
  return new GatewayError('upstream_failed', `The result cannot be kept: ${reason}.`, {
    code: 'result_unusable',
    shouldRetry: false,
    cause,
  });
}

function notFetched(cause: unknown): GatewayError {
  return new GatewayError('upstream_failed', 'The result could not be fetched.', {
    code: 'result_not_fetched',
    cause,
  });
}
