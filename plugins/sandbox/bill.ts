/** What the vendor charges: one entry for each request that ran, totals by model and class. */
import { type Usage, type UsageClass, usageClasses } from '../common/domain/usage.ts';
import type { ProtocolName } from './script/model-request.ts';

export interface BillEntry {
  readonly number: number;
  /** Wall-clock milliseconds of the request's arrival and of its end. */
  readonly at: number;
  readonly endedAt: number;
  readonly protocol: ProtocolName | 'images' | 'videos' | 'endpoints' | 'live';
  readonly model: string;
  /** The id that the caller sent, if any. */
  readonly requestId: string | undefined;
  /** The vendor's own id of the answer, which the client's ids end with after a prefix. */
  readonly answerId: string;
  readonly usage: Usage;
  /** `cut`: the client did not receive the end. */
  outcome: 'complete' | 'cut';
}

export interface BillReport {
  readonly requests: number;
  readonly complete: number;
  readonly cut: number;
  /** Requests in progress, so not yet in the totals. */
  readonly open: number;
  readonly totals: Readonly<Record<string, Usage>>;
  /** Newest last. */
  readonly recent: readonly BillEntry[];
}

/** Further models are counted together, so that invented names cannot grow the bill without limit. */
const maxModels = 1_000;
const otherModels = '(other models)';

export class Bill {
  readonly #maxRecent: number;
  #totals = new Map<string, { [K in UsageClass]?: number }>();
  #recent: BillEntry[] = [];
  #requests = 0;
  #cut = 0;
  #open = 0;
  /** Entries of the current period; after a reset, earlier charges no longer count. */
  #charged = new WeakSet<BillEntry>();

  constructor(maxRecent = 1_000) {
    this.#maxRecent = maxRecent;
  }

  opened(): void {
    this.#open++;
  }

  closed(): void {
    this.#open--;
  }

  add(entry: Omit<BillEntry, 'number'>): BillEntry {
    const numbered = { number: ++this.#requests, ...entry };
    if (entry.outcome === 'cut') this.#cut++;
    const name = this.#totals.has(entry.model) || this.#totals.size < maxModels ? entry.model : otherModels;
    const total = this.#totals.get(name) ?? {};
    this.#totals.set(name, total);
    for (const kind of usageClasses) {
      const count = entry.usage[kind];
      if (count !== undefined) total[kind] = (total[kind] ?? 0) + count;
    }
    this.#charged.add(numbered);
    this.#recent.push(numbered);
    if (this.#recent.length >= 2 * this.#maxRecent) this.#recent = this.#recent.slice(-this.#maxRecent);
    return numbered;
  }

  /** The whole answer was charged, but not all of it was sent. */
  turnedOutCut(entry: BillEntry): void {
    if (entry.outcome === 'cut' || !this.#charged.has(entry)) return;
    entry.outcome = 'cut';
    this.#cut++;
  }

  report(): BillReport {
    return {
      requests: this.#requests,
      complete: this.#requests - this.#cut,
      cut: this.#cut,
      open: this.#open,
      totals: Object.fromEntries([...this.#totals].map(([model, usage]) => [model, { ...usage }])),
      recent: this.#recent.slice(-this.#maxRecent).map((entry) => ({ ...entry })),
    };
  }

  /** Removes everything but requests in progress. */
  reset(): void {
    this.#totals = new Map();
    this.#recent = [];
    this.#requests = 0;
    this.#cut = 0;
    this.#charged = new WeakSet();
  }
}
