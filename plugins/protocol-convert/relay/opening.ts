/** The opening of a relayed stream: for how long it is held back, and what is left of its counts where it is refused. */
import type { Exchange } from '../../../core/contract/contract.ts';
import { UpstreamRefusal } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { type UsageReport, usageReport } from '../../common/domain/calls.ts';
import type { RelayStreamOptions } from './stream-end.ts';

type Step = IteratorResult<Uint8Array>;

export class Opening {
  readonly #clock: Clock;
  readonly #source: RelayStreamOptions['source'];
  readonly #heldMs: number;
  readonly #startedAt: number;
  /** The chunk that did not come in time. */
  late: Promise<Step> | undefined;

  constructor({ clock, source, heldMs }: RelayStreamOptions) {
    this.#clock = clock;
    this.#source = source;
    this.#heldMs = heldMs();
    this.#startedAt = clock.monotonic();
  }

  /** The next chunk. undefined: the time is up, and a chunk that was asked for is `late`. */
  next(): Step | Promise<Step | undefined> | undefined {
    const leftMs = this.#heldMs - (this.#clock.monotonic() - this.#startedAt);
    if (leftMs <= 0) return undefined;
    const next = this.#source.next();
    return next instanceof Promise ? this.#within(next, leftMs) : next;
  }

  #within(next: Promise<Step>, milliseconds: number): Promise<Step | undefined> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.late = next;
        resolve(undefined);
      }, milliseconds);
      next.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }
}

/**
 * What opening frames report is no bill of a stream that fails behind them: an estimate of what the operator may have to pay. What
 * the refusal itself reports is one, and a client that has left pays for its prompt.
 */
export function keepAsEstimate(exchange: Exchange, error: unknown): void {
  if (exchange.signal.aborted || (error instanceof UpstreamRefusal && error.hasUsage)) return;
  const usage = exchange.find(usageReport)?.usage;
  const isCounted = usage !== undefined && Object.keys(usage).length > 0;
  const left = { usage, estimated: true, terminal: false, upstreamId: undefined, finish: undefined };
  exchange.set<UsageReport | undefined>(usageReport, isCounted ? (left as UsageReport) : undefined);
}
