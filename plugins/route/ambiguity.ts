/** Attempts that may have run: whether another one may follow, because the call has no effect beside its answer. */

import type { Exchange } from '../../core/contract/contract.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import { type Attempt, call, conversation, pinned, spendGuard } from '../common/domain/calls.ts';
import type { Model } from '../common/domain/models.ts';
import { type Candidate, hasSeveralKeys } from './candidates.ts';
import type { RouteConfig } from './config.ts';
import { type Refused, recordAmbiguous } from './timeline.ts';

/** Calls of these kinds leave nothing but their answer. */
const answersAlone = new Set<Model['kind']>([
  'embedding',
  'rerank',
  'decision',
  'moderation',
  'speech',
  'transcription',
]);

/** Whether the whole request can be sent again, and nothing but an answer comes of it at an upstream. */
export function isPure(exchange: Exchange): boolean {
  if (exchange.find(pinned) !== undefined || !isKept(exchange)) return false;
  const { billable, kind = 'chat' } = exchange.get(call);
  if (!billable || answersAlone.has(kind)) return true;
  return kind === 'chat' && exchange.find(conversation)?.hasSideEffects?.() === false;
}

/** The body was buffered, so that it can be sent more than once. */
export const isKept = ({ request: { body, bodyBytes } }: Exchange) => body.length === bodyBytes;

/** undefined: another one may follow, and what this one may have cost is written off. */
function refusedAfter(
  attempt: Attempt,
  exchange: Exchange,
  { retry_ambiguous: rule, absorb }: Pick<RouteConfig, 'retry_ambiguous' | 'absorb'>,
): Refused | undefined {
  if (rule === 'always') return undefined;
  if (rule === 'never') return 'setting';
  if (!isPure(exchange)) return 'effects';
  return exchange.find(spendGuard)?.writeOff?.(attempt, absorb) === false ? 'share' : undefined;
}

/** Decides which attempts may follow one that may have run. */
export class Repeats {
  readonly #exchange: Exchange;
  readonly #clock: Clock;
  readonly #config: RouteConfig;
  /** The only attempt that may have run. */
  #broken: Attempt | undefined;
  /** The target of the only attempt that may have run, if no other attempt has followed. */
  #target: Candidate | undefined;
  /** The running attempt repeats one that may have run: it is the last. */
  isRepeat = false;

  constructor(exchange: Exchange, clock: Clock, config: RouteConfig) {
    this.#exchange = exchange;
    this.#clock = clock;
    this.#config = config;
  }

  /** Whether another attempt may follow the latest one that may have run. `isLast`: nothing is left that it could ask. */
  mayFollow(attempts: readonly Attempt[], isLast: boolean): boolean {
    if (isLast) return false;
    const broken = attempts.filter(({ result }) => result === 'unknown');
    this.#broken = broken.length === 1 ? broken[0] : undefined;
    const attempt = broken.at(-1)!;
    const refused = refusedAfter(attempt, this.#exchange, this.#config);
    recordAmbiguous(this.#exchange, this.#clock.now(), attempt.number, refused);
    return refused === undefined;
  }

  failed(candidate: Candidate, isAmbiguous: boolean): void {
    const hasBroken = isAmbiguous && this.#broken?.provider === candidate.provider.name;
    this.#target = hasBroken && this.#broken?.model === candidate.model ? candidate : undefined;
  }

  /** When nothing else could be asked: the target that broke off, once more, by another key where it has one. */
  take(): Candidate[] | undefined {
    const again = this.#target;
    if (again === undefined) return undefined;
    this.#target = undefined;
    this.isRepeat = true;
    const { tried: _tried, ...fresh } = again;
    return hasSeveralKeys(again.provider) ? [again, fresh] : [fresh];
  }
}
