/** What a run asks of vector stores of the gateway, and what it has found. Types. */
import type { StoreHit, StoreSearch } from '../../common/domain/stored-files.ts';

export interface WantedFiles {
  readonly field: string;
  readonly search: StoreSearch;
}

/** A piece of text with its number in the run, by which the model cites it. */
export interface NumberedHit extends StoreHit {
  readonly number: number;
}

export interface FoundFiles {
  readonly query: string;
  readonly hits: readonly NumberedHit[];
}
