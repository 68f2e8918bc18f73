/** The opening of an answer: how long that of a stream is held back, how its counts continue, and which answers are refusals. */
import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { type UsageReport, usageReport } from '../../common/domain/calls.ts';
import { instead } from '../../common/domain/models.ts';
import { isContentFinish } from '../../common/wire/refusal-class.ts';
import type { UsageMeter } from '../../common/wire/usage-meter.ts';
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

/** An answer without a word, kept back by the vendor's content rules, is a refusal where another model may answer. */
export function refuseKeptBack(exchange: Exchange, { finish, text }: UsageMeter, report: UsageReport): void {
  if ((exchange.find(instead)?.models('content_filter').length ?? 0) === 0) return;
  if (text.bytes > 0 || !isContentFinish(finish)) return;
  const { usage, estimated } = report;
  const hasUsage = !estimated && Object.keys(usage).length > 0;
  exchange.set<UsageReport | undefined>(usageReport, hasUsage ? report : undefined);
  const error = new GatewayError('invalid_request', "The content rules of the model's vendor refuse this request.", {
    code: 'content_filter',
    shouldRetry: false,
  });
  throw new UpstreamRefusal(error, { status: 400, hasUsage, about: 'content_filter' });
}
