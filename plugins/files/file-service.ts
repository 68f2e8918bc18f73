/** Stores, serves, removes and sweeps files. */

import type { Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Clock, Log, Random } from '../../core/contract/host-tools.ts';
import type { Answer } from '../../core/contract/message.ts';
import {
  bytesOf,
  type FileContent,
  type FileOwner,
  type Files,
  isNoRoom,
  type KeptFile,
} from '../common/domain/stored-files.ts';
import { isFileId, newFileId } from './address.ts';
import type { ByteStore } from './bytes.ts';
import { ensureDisk, isNoSpace, storageFailed, storageFull } from './disk-space.ts';
import type { Incoming, IncomingFile } from './incoming.ts';
import type { RoomLimits } from './room.ts';
import type { FileRows, NewFile, OwnedFile } from './rows.ts';
import { Sending, type SendingLimits } from './sending.ts';
import { dispositionOf, servingOf } from './serving.ts';

export interface FileServiceOptions {
  readonly directory: string;
  readonly retentionMs: number;
  readonly fileBytes: number;
  readonly limits: RoomLimits;
  readonly reserveBytes: number;
  readonly sending: SendingLimits;
}

export interface FileServiceTools {
  readonly rows: FileRows;
  readonly store: ByteStore;
  readonly incoming: Incoming;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** Files per claim statement, and the most claims of one sweep. */
const sweepBatch = 100;
const sweepRounds = 50;

export class FileService implements Omit<Files, 'address'> {
  readonly #options: FileServiceOptions;
  readonly #tools: FileServiceTools;
  readonly #sending: Sending;

  constructor(options: FileServiceOptions, tools: FileServiceTools) {
    this.#options = options;
    this.#tools = tools;
    this.#sending = new Sending(options.sending, tools.clock);
  }

  async ensureRoom(accountId: string): Promise<void> {
    const { directory, limits, reserveBytes, fileBytes } = this.#options;
    // A fetched file passes through the disk, whatever the store; its size is known only afterwards.
    await ensureDisk(directory, fileBytes, reserveBytes);
    await this.#tools.rows.room.ensure(accountId, 1, limits);
  }

  async keep(content: FileContent, kind: 'image' | 'video', owner: FileOwner, signal: AbortSignal): Promise<KeptFile> {
    const { rows, incoming, clock } = this.#tools;
    const before = await rows.findOfTask(owner, clock.now());
    if (before !== undefined) return before;
    const { directory, reserveBytes, fileBytes } = this.#options;
    await ensureDisk(directory, fileBytes, reserveBytes);
    const taken = await incoming.take(content, kind, signal);
    try {
      return await this.store(taken, owner, { id: newFileId(this.#tools.random) }, this.#options.retentionMs);
    } finally {
      await taken.discard();
    }
  }

  /** Writes the row first, so that a sweep finds all bytes. */
  async store(
    { content, mediaType, bytes }: Omit<IncomingFile, 'discard'>,
    owner: FileOwner,
    { id, ...more }: Pick<NewFile, 'id' | 'named' | 'space'>,
    retentionMs: number,
  ): Promise<KeptFile> {
    const { rows, store, clock } = this.#tools;
    const file = { id, owner, mediaType, bytes, ...more };
    const begunAt = clock.now();
    const other = await rows.begin(file, this.#options.limits, begunAt);
    if (other !== undefined) return other;
    try {
      await store.put(id, content, { mediaType, bytes });
      const expiresAt = begunAt + retentionMs;
      if (await rows.complete(id, begunAt, expiresAt)) return { id, mediaType, bytes, expiresAt };
      // Writers of one id write the same bytes. Of a row that was swept, nothing else would find these.
      if (!(await rows.isUsedAgain(id, begunAt))) await store.remove(id);
      throw new GatewayError('conflict', 'The file was removed, or kept by another, while it was being kept.');
    } catch (error) {
      await rows.abandon(id, begunAt, clock.now()).catch((cause: unknown) => {
        this.#tools.log.warn(
          { error: cause, account_id: owner.accountId, file: id },
          'a file that could not be stored is swept later',
        );
      });
      throw toGatewayError(error);
    }
  }

  /** `fits`: what it grows by must fit. */
  async reserve(
    accountId: string,
    name: string,
    bytes: number,
    { lifetimeMs, fits }: { readonly lifetimeMs: number; readonly fits: boolean },
  ): Promise<void> {
    const { rows, clock } = this.#tools;
    const space = { accountId, name, bytes, expiresAt: clock.now() + lifetimeMs };
    await rows.room.reserve(space, fits ? this.#options.limits : undefined);
  }

  async hasRoom(accountId: string): Promise<boolean> {
    const { rows } = this.#tools;
    try {
      await rows.room.ensure(accountId, 1, this.#options.limits);
      return true;
    } catch (error) {
      if (isNoRoom(error)) return false;
      throw error;
    }
  }

  release(accountId: string, name: string): Promise<void> {
    return this.#tools.rows.room.release(accountId, name);
  }

  async find(accountId: string, fileId: string): Promise<KeptFile | undefined> {
    return isFileId(fileId) ? this.#tools.rows.find(fileId, accountId, this.#tools.clock.now()) : undefined;
  }

  expiries(fileIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.#tools.rows.expiries(fileIds, this.#tools.clock.now());
  }

  async read(accountId: string, fileId: string): Promise<Uint8Array | undefined> {
    const file = await this.find(accountId, fileId);
    const opened = file && (await this.#tools.store.open(fileId, { first: 0, last: file.bytes - 1 }));
    return opened && bytesOf(opened);
  }

  async answer(accountId: string, fileId: string, exchange: Exchange): Promise<Answer> {
    const file = await this.find(accountId, fileId);
    if (file === undefined) throw noSuchFile();
    return this.answerFile(accountId, file, exchange);
  }

  /** A file that was found for its account. */
  answerFile(accountId: string, file: KeptFile, exchange: Exchange): Promise<Answer> {
    return this.#answer({ file, accountId }, exchange, file.expiresAt);
  }

  /** Answers at a signed address, which the caller has verified until `expiresAt`. */
  async answerAddress(fileId: string, expiresAt: number, exchange: Exchange): Promise<Answer> {
    const { rows, store, clock } = this.#tools;
    const owned = await rows.findOfAny(fileId, clock.now());
    if (owned === undefined) throw noSuchFile();
    if (store.link === undefined || exchange.request.method === 'HEAD') {
      return this.#answer(owned, exchange, expiresAt);
    }
    const { file } = owned;
    const lifetimeMs = Math.min(expiresAt, file.expiresAt) - clock.now();
    const details = { mediaType: file.mediaType, disposition: dispositionOf(file), lifetimeMs };
    const location = await store.link(fileId, details);
    return {
      status: 307,
      headers: { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' },
      body: '',
    };
  }

  async #answer({ file, accountId }: OwnedFile, exchange: Exchange, until: number): Promise<Answer> {
    const { clock, store } = this.#tools;
    const { request } = exchange;
    const { status, headers, span } = servingOf(file, request, until, clock.now());
    // Without a content length, as there is no body.
    if (span === undefined) return { status, headers, body: status === 304 ? nothing() : '' };
    const bodyBytes = span.last - span.first + 1;
    if (request.method === 'HEAD') return { status, headers, body: nothing(), bodyBytes };
    this.#sending.admit(exchange, accountId);
    const opened = await store.open(file.id, span);
    if (opened === undefined) {
      exchange.log.error({ file: file.id }, 'a file is missing in the store');
      throw noSuchFile();
    }
    exchange.defer(() => opened.close());
    return { status, headers, body: this.#sending.paced(opened.body), bodyBytes };
  }

  async removeFilesOfTask(accountId: string, taskId: string): Promise<void> {
    await this.#tools.rows.remove(accountId, taskId, this.#tools.clock.now());
  }

  async removeOfAccount(accountId: string): Promise<void> {
    await this.#tools.rows.remove(accountId, undefined, this.#tools.clock.now());
  }

  /** Deletes expired and abandoned files of all processes. Resolves with their number. */
  async sweep(): Promise<number> {
    const { rows, store, clock, log } = this.#tools;
    await rows.room.refresh();
    let swept = 0;
    for (let round = 0; round < sweepRounds; round++) {
      const ids = await rows.claim(sweepBatch, clock.now());
      const removed: string[] = [];
      for (const id of ids) {
        try {
          await store.remove(id);
          removed.push(id);
        } catch (error) {
          log.warn({ error, file: id }, 'a file could not be deleted; trying again later');
        }
      }
      await rows.forget(removed);
      swept += removed.length;
      if (ids.length < sweepBatch) break;
    }
    return swept;
  }
}

/** The same answer for unknown, foreign, expired and wrongly signed files. */
export function noSuchFile(): GatewayError {
  return new GatewayError('not_found', 'There is no such file.', { code: 'file_not_found' });
}

async function* nothing(): AsyncGenerator<Uint8Array, void> {}

function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (isNoSpace(error)) return storageFull(error);
  return storageFailed(error);
}
