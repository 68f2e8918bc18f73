/** Chooses other targets when a model cannot serve a request: its targets that can take more, else another model by its settings. */
import type { Exchange } from '../../core/contract/contract.ts';
import type { GatewayError } from '../../core/contract/errors.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import { toGatewayError, UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import { call, spendGuard } from '../common/domain/calls.ts';
import { type InsteadReason, instead, type Model, model } from '../common/domain/models.ts';
import { isKept } from './ambiguity.ts';
import type { Candidate } from './candidates.ts';
import type { RequestOrder } from './choice.ts';
import { recordInstead } from './timeline.ts';
import type { Failure } from './verdict.ts';

/** Set by the first failure that another target or model may mend. */
interface TooLong {
  readonly tokens: number | undefined;
  /** Context of the target that refused it. */
  readonly contextTokens: number | undefined;
}

/** A model that goes on with the request, and its targets. */
export interface Substitute {
  readonly entry: Model;
  readonly order: RequestOrder;
}

export class Substitutes {
  readonly #exchange: Exchange;
  readonly #clock: Clock;
  #tooLong: TooLong | undefined;

  constructor(exchange: Exchange, clock: Clock) {
    this.#exchange = exchange;
    this.#clock = clock;
  }

  /** Without the targets that are known to be too small for a prompt that this one refused. */
  largeEnough(queue: Candidate[], refused: Candidate, { about, tokens }: Failure): Candidate[] {
    if (about !== 'context_length') return queue;
    const contextTokens = refused.contextTokens ?? this.#exchange.get(model).contextTokens;
    this.#tooLong = { tokens, contextTokens };
    return queue.filter((other) => other === refused || !this.#isTooSmall(other, false));
  }

  /** Whether another model may be asked for this reason. */
  has(reason: InsteadReason): boolean {
    return (this.#exchange.find(instead)?.models(reason).length ?? 0) > 0;
  }

  /**
   * The next model. The call is charged by its price from now on. `failure`: by which the request would end; `attempts`: how many
   * there were; `orderOf`: throws where none of its targets can serve the request.
   */
  next(
    failure: Pick<Failure, 'about' | 'error'>,
    attempts: number,
    orderOf: (entry: Model) => RequestOrder,
  ): Substitute | undefined {
    const others = this.#exchange.find(instead);
    const reason = this.#reasonFor(failure);
    if (others === undefined || reason === undefined) return undefined;
    if (this.#exchange.signal.aborted || !isKept(this.#exchange)) return undefined;
    for (const entry of others.models(reason)) {
      const order = this.#canServe(entry, reason) ? orderIn(entry, orderOf) : undefined;
      if (order === undefined || this.#exchange.find(spendGuard)?.serve?.(entry, attempts) === false) continue;
      const requested = this.#exchange.get(model).id;
      others.serve(entry);
      recordInstead(this.#exchange, this.#clock.now(), requested, entry.id, reason);
      return { entry, order };
    }
    return undefined;
  }

  #reasonFor({ about, error }: Pick<Failure, 'about' | 'error'>): InsteadReason | undefined {
    if (about === 'content_filter') return about;
    if (this.#tooLong !== undefined) return 'context_length';
    const isMissing = error instanceof UpstreamRefusal && error.elsewhere;
    return isMissing || unavailable.has(toGatewayError(error).kind) ? 'unavailable' : undefined;
  }

  #canServe(entry: Model, reason: InsteadReason): boolean {
    const wanted = this.#exchange.get(call).maxOutputTokens ?? 0;
    if (wanted > (entry.maxOutputTokens ?? Number.POSITIVE_INFINITY)) return false;
    return reason !== 'context_length' || !this.#isTooSmall(entry, true);
  }

  /** Another model of the same size counts as too small: it takes no more. */
  #isTooSmall({ contextTokens }: Partial<Pick<Model, 'contextTokens'>>, isOther: boolean): boolean {
    if (contextTokens === undefined || this.#tooLong === undefined) return false;
    const { tokens = 0, contextTokens: refused = 0 } = this.#tooLong;
    return contextTokens < tokens || contextTokens < refused || (isOther && contextTokens === refused);
  }
}

const unavailable = new Set<GatewayError['kind']>([
  'upstream_failed',
  'upstream_timeout',
  'overloaded',
  'rate_limited',
]);

function orderIn(entry: Model, orderOf: (entry: Model) => RequestOrder): RequestOrder | undefined {
  try {
    return orderOf(entry);
  } catch {
    return undefined;
  }
}
