/** Searches of stores: every vector is compared, and so many of the best chunks are given with their texts. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { ChunkRows } from './chunk-rows.ts';
import type { FileRows } from './file-rows.ts';
import type { Attributes, Filter } from './filters.ts';
import type { Store } from './shapes.ts';
import type { StoreRows } from './store-rows.ts';
import { Best } from './vectors.ts';

export interface SearchTerms {
  readonly filter: Filter | undefined;
  readonly limit: number;
  /** Lowest score that is given. */
  readonly threshold: number;
}

/** A store with the vectors of the queries by its model. */
export interface Asked {
  readonly store: Store;
  readonly vectors: readonly Float32Array[];
}

export interface Hit {
  readonly fileId: string;
  readonly name: string;
  readonly score: number;
  readonly attributes: Attributes;
  readonly text: string;
}

export interface SearchTools {
  readonly stores: StoreRows;
  readonly files: FileRows;
  readonly chunks: ChunkRows;
  /** Searches of an account at once. */
  readonly atOnce: number;
}

export class Searches {
  readonly #tools: SearchTools;
  readonly #running = new Map<string, number>();

  constructor(tools: SearchTools) {
    this.#tools = tools;
  }

  /** Runs it if the account has not as many searches as it may. */
  async within<Result>(accountId: string, search: () => Promise<Result>): Promise<Result> {
    const running = this.#running.get(accountId) ?? 0;
    if (running >= this.#tools.atOnce)
      throw new GatewayError('rate_limited', `At most ${this.#tools.atOnce} searches of an account run at once.`, {
        code: 'vector_store_searches',
        retryAfterMs: 1_000,
      });
    this.#running.set(accountId, running + 1);
    try {
      return await search();
    } finally {
      const rest = this.#running.get(accountId)! - 1;
      if (rest === 0) this.#running.delete(accountId);
      else this.#running.set(accountId, rest);
    }
  }

  /** The best first. */
  async find(accountId: string, asked: readonly Asked[], { filter, limit, threshold }: SearchTerms): Promise<Hit[]> {
    const { stores, files, chunks } = this.#tools;
    const best = new Best(limit);
    for (const { store, vectors } of asked) {
      const all = filter === undefined ? undefined : await files.ready(accountId, store.id);
      const kept = all?.filter(({ attributes }) => filter!(attributes)).map(({ id }) => id);
      if (kept?.length !== 0) await chunks.nearest(accountId, { storeId: store.id, files: kept }, vectors, best);
      await stores.touch(accountId, store.id);
    }
    const found = await chunks.textsOf(
      accountId,
      best.all.filter(({ score }) => score >= threshold),
    );
    const named = await files.named(accountId, [...new Set(found.map(({ file }) => file))]);
    return found.flatMap(({ file, score, text }): Hit[] => {
      const of = named.get(file);
      return of === undefined ? [] : [{ fileId: of.fileId, name: of.name, attributes: of.attributes, score, text }];
    });
  }
}
