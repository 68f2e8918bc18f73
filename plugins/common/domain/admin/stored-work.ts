/** Contract of metrics, beside the console's: totals of batches and files. */
import { defineService } from '../../../../core/contract/contract.ts';

export interface BatchFigures {
  /** Batches that have not ended, of the whole gateway. */
  readonly open: number;
  /** Age of the oldest of them; 0: there is none. */
  readonly oldestMs: number;
}

export interface BatchStatistics {
  /** Lines that this process has finished. */
  readonly lines: { readonly succeeded: number; readonly errored: number };
  figures(): Promise<BatchFigures>;
}

export const batchStatistics = defineService<BatchStatistics>('batch statistics');

export interface FileStatistics {
  /** Bytes of all files that are kept, of the whole gateway. */
  keptBytes(): Promise<number>;
  /** For how long the bucket has not answered, 0: it does; undefined: there is none. */
  bucketAwayMs(): number | undefined;
}

export const fileStatistics = defineService<FileStatistics>('file statistics');
