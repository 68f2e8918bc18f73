/** What a cache of answers has saved, for the console. */
import { defineService } from '../../../../core/contract/contract.ts';
import type { Money } from '../money.ts';

export interface CacheSums {
  readonly model: string;
  readonly operation: string;
  readonly hits: number;
  /** Hits by the answer to nearly the same question; not among `hits`. */
  readonly similar: number;
  readonly misses: number;
  /** What the hits would have cost beyond their price. */
  readonly saved: Money;
}

export interface CacheReport {
  /** By model and operation, the most saved first; whole days (UTC). Without an account: of all. */
  sums(options: {
    readonly from: number;
    readonly until: number;
    readonly accountId?: string | undefined;
  }): Promise<readonly CacheSums[]>;
}

export const cacheReport = defineService<CacheReport>('cache report');
