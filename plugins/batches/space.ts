/** Counts the rows of batches as space of their accounts, beside their files. */
import type { UploadedFiles } from '../common/domain/stored-files.ts';
import type { Batch, InputError, InputLine } from './batch.ts';
import { type LineRows, lineBytes } from './line-rows.ts';

type OfBatch = Pick<Batch, 'id' | 'accountId' | 'endpoint' | 'metadata' | 'headers'>;

const batchBytes = 1_000;

interface SpaceTools {
  readonly files: () => UploadedFiles;
  readonly lines: LineRows;
  /** Longest time that a batch is open, and that it is listed afterwards. */
  readonly openMs: number;
  readonly listedMs: number;
}

export class BatchSpace {
  readonly #tools: SpaceTools;

  constructor(tools: SpaceTools) {
    this.#tools = tools;
  }

  /** Throws forbidden or overloaded where there is no room for the batch with these bytes of lines. */
  async take(batch: OfBatch, ofLines: number): Promise<void> {
    await this.#reserve(batch, rowBytes(batch, []) + ofLines, true);
  }

  /** Counts the lines with the answers that have come. Resolves with whether there is room for more. */
  async recount(batch: OfBatch): Promise<boolean> {
    return this.#reserve(batch, rowBytes(batch, []) + (await this.#tools.lines.storedBytes(batch.id)), false);
  }

  /** Its lines are deleted; it is listed for a while. */
  async end(batch: OfBatch, errors: readonly InputError[] = []): Promise<void> {
    const { files, listedMs } = this.#tools;
    const terms = { lifetimeMs: listedMs, fits: false };
    await files().reserve(batch.accountId, spaceOf(batch), rowBytes(batch, errors), terms);
  }

  async release(batch: Pick<Batch, 'id' | 'accountId'>): Promise<void> {
    await this.#tools.files().release(batch.accountId, spaceOf(batch));
  }

  #reserve(batch: OfBatch, bytes: number, fits: boolean): Promise<boolean> {
    const { files, openMs, listedMs } = this.#tools;
    return files().reserve(batch.accountId, spaceOf(batch), bytes, { lifetimeMs: openMs + listedMs, fits });
  }
}

export const spaceOf = ({ id }: Pick<Batch, 'id'>) => `batch-${id}`;

export function bytesOfLines(lines: readonly InputLine[]): number {
  return lines.reduce((sum, { customId }) => sum + lineBytes + Buffer.byteLength(customId), 0);
}

function rowBytes({ endpoint, metadata, headers }: OfBatch, errors: readonly InputError[]): number {
  return batchBytes + Buffer.byteLength(endpoint + JSON.stringify([metadata, headers, errors]));
}
