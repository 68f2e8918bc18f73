/** Puts files into stores: takes them by lease, reads their text, and keeps its chunks with the vectors that the model makes. */
import type { Host } from '../../core/contract/contract.ts';
import { GatewayError, isPassing } from '../../core/contract/errors.ts';
import { keyring } from '../common/domain/accounts.ts';
import type { UploadedFiles } from '../common/domain/stored-files.ts';
import { Workers } from '../common/kit/jobs/workers.ts';
import type { ChunkBounds, ChunkRows } from './chunk-rows.ts';
import { embed, type Refusal, refusalOf, verdictOf } from './embed.ts';
import type { FileFault, FileRows, Job } from './file-rows.ts';
import { chunkingOf, type Store } from './shapes.ts';
import type { StoreRows } from './store-rows.ts';
import { type Chunk, chunksOf, tokensOf } from './text/chunks.ts';
import { extract } from './text/extract.ts';

export interface WorkerTools {
  readonly host: Host;
  readonly stores: StoreRows;
  readonly files: FileRows;
  readonly chunks: ChunkRows;
  readonly uploads: () => UploadedFiles;
  /** A file may be due soon. */
  readonly released: () => void;
}

export interface WorkerOptions {
  readonly places: number;
  readonly leaseMs: number;
  readonly fileBytes: number;
  readonly bounds: ChunkBounds;
}

/** What one request to the model has: few enough tokens for plans with low limits. */
const mostTexts = 64;
const mostTokens = 16_000;
const faultPauseMs = 10_000;

const full: FileFault = {
  code: 'server_error',
  message: 'The vector stores of the account take all the space that they may.',
};
/** Keys of its calls are forgotten after a day. */
const longestMs = 20 * 3_600_000;
const late: FileFault = { code: 'server_error', message: 'The file could not be read for too long; put it in again.' };
const notKept: FileFault = { code: 'server_error', message: 'Nothing of this account is kept any more.' };
const gone: FileFault = { code: 'invalid_file', message: 'The file is not there any more.' };

export class Worker {
  readonly #tools: WorkerTools;
  readonly #options: WorkerOptions;
  readonly #files: Workers<Job>;
  #isStopping = false;

  constructor(options: WorkerOptions, tools: WorkerTools) {
    this.#options = options;
    this.#tools = tools;
    this.#files = new Workers({
      ...{ places: options.places, random: tools.host.random, freed: tools.released },
      take: (token, limit) => tools.files.take(token, limit, options.leaseMs),
      work: (job, token) => this.#work(job, token),
    });
  }

  poll(): Promise<void> {
    return this.#files.turn();
  }

  /** Begins nothing more. */
  drain(): void {
    this.#isStopping = true;
    this.#files.drain();
  }

  async stop(): Promise<void> {
    this.drain();
    await this.#files.stop();
  }

  async #work(job: Job, token: string): Promise<void> {
    const { files, host } = this.#tools;
    try {
      await this.#put(job, token);
    } catch (error) {
      if (!isPassing(error))
        host.log.error(
          { error, file: job.fileId, store: job.storeId },
          'a file is put into its store again in a moment',
        );
      await files.postpone(job.id, token, faultPauseMs).catch(() => {});
    }
  }

  async #put(job: Job, token: string): Promise<void> {
    const { files, stores } = this.#tools;
    const store = await stores.find(job.accountId, job.storeId);
    const isLate = this.#tools.host.clock.now() - job.createdAt > longestMs;
    const read = isLate ? late : await this.#textOf(job);
    if (typeof read !== 'string') return files.fail(job, token, read);
    if (store === undefined) return;
    let group: Chunk[] = [];
    let tokens = 0;
    for (const chunk of chunksOf(read, chunkingOf(job))) {
      // A lost worker has kept those before.
      if (chunk.number < job.chunks) continue;
      const size = tokensOf(chunk.text);
      if (group.length > 0 && (group.length >= mostTexts || tokens + size > mostTokens)) {
        if (!(await this.#keep(job, token, store, group))) return;
        [group, tokens] = [[], 0];
      }
      group.push(chunk);
      tokens += size;
    }
    if (group.length > 0 && !(await this.#keep(job, token, store, group))) return;
    await files.complete(job.id, token);
  }

  async #textOf(job: Job): Promise<string | FileFault> {
    const { fileBytes } = this.#options;
    const uploads = this.#tools.uploads();
    const file = await uploads.find(job.accountId, job.fileId);
    if (file === undefined) return gone;
    if (file.bytes > fileBytes) return { code: 'invalid_file', message: `The file is larger than ${fileBytes} bytes.` };
    const opened = await uploads.open(job.accountId, job.fileId);
    if (opened === undefined) return gone;
    const parts: Uint8Array[] = [];
    try {
      for await (const part of opened.body) parts.push(part);
    } finally {
      opened.close();
    }
    const found = extract(Buffer.concat(parts), file);
    return 'text' in found ? found.text : found;
  }

  /** false: the file's turn is over. */
  async #keep(job: Job, token: string, store: Store, group: readonly Chunk[]): Promise<boolean> {
    const { chunks, files } = this.#tools;
    if (this.#isStopping) {
      await files.postpone(job.id, token, 0);
      return false;
    }
    if ((await files.leases.renew(job.id, token, this.#options.leaseMs)) === undefined) return false;
    const vectors = await this.#vectors(job, token, store, group);
    if (vectors === undefined) return false;
    const rows = group.map((chunk, index) => ({ ...chunk, vector: vectors[index]! }));
    const result = await chunks.add(job, token, rows, this.#options.bounds);
    if (result === 'full') await files.fail(job, token, full);
    job.tries = 0;
    return result === 'added';
  }

  /** undefined: the file waits, or has failed. */
  async #vectors(
    job: Job,
    token: string,
    store: Store,
    group: readonly Chunk[],
  ): Promise<readonly Float32Array[] | undefined> {
    const { host, files } = this.#tools;
    const { remoteAddress, headers } = job;
    let refusal: Refusal;
    try {
      const by = await host.get(keyring).callerOf(job.keyId, remoteAddress, headers);
      if (by.retention === 'none') {
        await files.fail(job, token, notKept);
        return undefined;
      }
      const keyed = { ...headers, 'idempotency-key': `${job.id} chunk ${group[0]!.number} try ${job.tries}` };
      const embedded = await embed(host, {
        store,
        texts: group.map(({ text }) => text),
        by,
        remoteAddress,
        headers: keyed,
      });
      if ('vectors' in embedded) return embedded.vectors;
      refusal = refusalOf(embedded);
    } catch (error) {
      if (!(error instanceof GatewayError) || isPassing(error)) throw error;
      refusal = { status: error.status, headers: {}, message: error.message, code: error.code };
    }
    const verdict = verdictOf(refusal, job.tries);
    if ('laterMs' in verdict) await files.postpone(job.id, token, verdict.laterMs, verdict.again);
    else await files.fail(job, token, { code: 'server_error', message: verdict.message });
    return undefined;
  }
}
