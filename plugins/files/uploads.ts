/** Uploaded files: received to the disk within bounds, counted, then kept in the store under ids of their own. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import type {
  ReceivedFile,
  UploadDetails,
  UploadedFile,
  UploadedFiles,
  UploadPieces,
  UploadQuery,
} from '../common/domain/stored-files.ts';
import type { Span } from './bytes.ts';
import { ensureDisk, refusedByDisk } from './disk-space.ts';
import { noSuchFile } from './file-service.ts';
import { Pieces, type UploadTools } from './pieces.ts';

export interface UploadOptions {
  readonly directory: string;
  readonly mostBytes: number;
  readonly mostFiles: number;
  readonly retentionMs: number;
  readonly reserveBytes: number;
  /** Uploads that come at once: of an account, and of all. */
  readonly atOnce: { readonly account: number; readonly all: number };
  readonly origin: (host?: string) => string;
}

const idFormat = /^(?:file-[0-9a-f]{32}|files\/[a-z0-9-]{1,40})$/;

export class Uploads implements UploadedFiles {
  readonly mostBytes: number;
  readonly pieces: UploadPieces;
  readonly origin: UploadedFiles['origin'];
  readonly #options: UploadOptions;
  readonly #tools: UploadTools;
  readonly #running = new Map<string, number>();
  #all = 0;

  constructor(options: UploadOptions, tools: UploadTools) {
    this.#options = options;
    this.#tools = tools;
    this.mostBytes = options.mostBytes;
    this.origin = options.origin;
    this.pieces = new Pieces(tools);
  }

  newId(): string {
    return `file-${this.#tools.random.bytes(16).toString('hex')}`;
  }

  async receive(accountId: string, body: AsyncIterable<Uint8Array>): Promise<ReceivedFile> {
    const { directory, mostBytes, reserveBytes } = this.#options;
    const leave = this.#enter(accountId);
    const relative = `incoming/${this.#tools.random.bytes(16).toString('hex')}`;
    const path = join(directory, relative);
    // Where it cannot be removed now, the sweep removes it.
    const discard = () => rm(path, { force: true }).catch(() => {});
    const digest = createHash('sha256');
    let bytes = 0;
    try {
      await ensureDisk(directory, mostBytes, reserveBytes);
      await pipeline(
        async function* () {
          for await (const chunk of body) {
            bytes += chunk.length;
            if (bytes > mostBytes) throw tooLarge(mostBytes);
            digest.update(chunk);
            yield chunk;
          }
        },
        createWriteStream(path, { flags: 'wx', mode: 0o600 }),
      );
      return { bytes, sha256: digest.digest('hex'), path: relative, discard };
    } catch (error) {
      await discard();
      throw refusedByDisk(error);
    } finally {
      leave();
    }
  }

  async keep(
    accountId: string,
    received: ReceivedFile,
    details: UploadDetails,
    id = this.newId(),
  ): Promise<UploadedFile> {
    const { files } = this.#tools;
    const { name, chosenName, purpose, mediaType, space, lifetimeMs = this.#options.retentionMs } = details;
    const retentionMs = Math.min(lifetimeMs, this.#options.retentionMs);
    try {
      if (received.bytes === 0)
        throw new GatewayError('invalid_request', 'The file is empty.', { field: 'file', shouldRetry: false });
      const kept = await files.store(
        { mediaType, bytes: received.bytes, content: { path: received.path } },
        { accountId, taskId: id, number: 0 },
        {
          ...{ id, space },
          named: { name, chosenName, purpose, mostFiles: this.#options.mostFiles, sha256: received.sha256 },
        },
        retentionMs,
      );
      return { ...kept, name, chosenName, purpose, sha256: received.sha256, createdAt: kept.expiresAt - retentionMs };
    } finally {
      await received.discard();
    }
  }

  async reserve(...[accountId, name, bytes, terms]: Parameters<UploadedFiles['reserve']>): Promise<boolean> {
    const { files } = this.#tools;
    await files.reserve(accountId, name, bytes, terms);
    return terms.fits || files.hasRoom(accountId);
  }

  release(accountId: string, name: string): Promise<void> {
    return this.#tools.files.release(accountId, name);
  }

  async find(accountId: string, fileId: string): Promise<UploadedFile | undefined> {
    return idFormat.test(fileId) ? this.#tools.rows.find(accountId, fileId, this.#tools.clock.now()) : undefined;
  }

  async list(accountId: string, query: UploadQuery) {
    const { rows, clock } = this.#tools;
    const after = query.after === undefined ? undefined : await this.find(accountId, query.after);
    if (query.after !== undefined && after === undefined)
      throw new GatewayError('invalid_request', '"after" names no file of this account.', {
        field: 'after',
        shouldRetry: false,
      });
    const found = await rows.list(accountId, query, after, clock.now());
    return { files: found.slice(0, query.limit), more: found.length > query.limit };
  }

  async remove(accountId: string, fileId: string): Promise<boolean> {
    const file = await this.find(accountId, fileId);
    if (file === undefined) return false;
    await this.#tools.copies()?.removed(accountId, file.id);
    return this.#tools.rows.remove(accountId, file.id, this.#tools.clock.now());
  }

  async open(accountId: string, fileId: string, span?: Span) {
    const file = await this.find(accountId, fileId);
    return file && (await this.#tools.store.open(file.id, span ?? { first: 0, last: file.bytes - 1 }));
  }

  async answer(accountId: string, fileId: string, exchange: Exchange): Promise<Answer> {
    const file = await this.find(accountId, fileId);
    if (file === undefined) throw noSuchFile();
    const answer = await this.#tools.files.answerFile(accountId, file, exchange);
    // Uploaded files are never displayed by a browser.
    answer.headers['content-disposition'] = `attachment; filename*=UTF-8''${encodeURIComponent(file.name)}`;
    return answer;
  }

  #enter(accountId: string): () => void {
    const { account, all } = this.#options.atOnce;
    const own = this.#running.get(accountId) ?? 0;
    if (own >= account)
      throw new GatewayError('rate_limited', `At most ${account} files of an account are uploaded at once.`, {
        code: 'uploads',
        retryAfterMs: 2_000,
      });
    if (this.#all >= all)
      throw new GatewayError('overloaded', 'Too many files are being uploaded at the moment.', { retryAfterMs: 2_000 });
    this.#running.set(accountId, own + 1);
    this.#all += 1;
    return () => {
      this.#all -= 1;
      const left = this.#running.get(accountId)! - 1;
      if (left === 0) this.#running.delete(accountId);
      else this.#running.set(accountId, left);
    };
  }
}

function tooLarge(mostBytes: number): GatewayError {
  return new GatewayError('too_large', `The file is larger than ${mostBytes} bytes.`, {
    field: 'file',
    shouldRetry: false,
  });
}
