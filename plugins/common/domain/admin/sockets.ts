/** Contract of metrics, beside the console's: figures of clients' WebSockets. */
import { defineService } from '../../../../core/contract/contract.ts';

/** Sums since the process began, apart from `open`. */
export interface SocketCounts {
  open: number;
  /** Exchanges that ran on them. */
  turns: number;
  bytesIn: number;
  bytesOut: number;
  /** By close code; rare codes are counted under 0. */
  readonly closes: Map<number, number>;
}

export interface SocketStatistics {
  /** By protocol: `responses`. */
  counts(): ReadonlyMap<string, SocketCounts>;
}

export const socketStatistics = defineService<SocketStatistics>('socket statistics');
