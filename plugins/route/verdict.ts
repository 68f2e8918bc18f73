/** The meaning of a failed attempt: whether it may have run, whether another may be tried, and the error to return. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';
import { UpstreamError, UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import type { Attempt } from '../common/domain/calls.ts';
import { CredentialError } from '../common/wire/credentials.ts';
import type { RouteConfig } from './config.ts';

/** Shortest cooldown of a key: after less, the vendor would only refuse again. */
const minCooldownMs = 1_000;
/** Cooldown of a key whose credential could not be obtained: what gives it out may be back soon. */
const credentialPauseMs = 30_000;

export interface Verdict {
  readonly result: Attempt['result'];
  readonly status: number | undefined;
  /** Where to try next: another key of this target, another target, or nowhere. */
  readonly next: 'key' | 'target' | 'nowhere';
  /** Cooldown of the key, for this model or for all. */
  readonly cooldown: { readonly forMs: number; readonly allModels: boolean } | undefined;
  /** Thrown when nothing more is tried. */
  readonly error: unknown;
  /** The failure with the highest precedence is returned to the client; from 2 on, waiting helps. */
  readonly errorPrecedence: number;
  /** The failure counts against the target, and usually concerns all of its keys. */
  readonly isFault: boolean;
  /** It may have run: another attempt follows only where `ambiguity.ts` allows it. */
  readonly isAmbiguous: boolean;
  /** What the vendor refuses of the request, where another model may take it; absent: nothing of that kind. */
  readonly about?: UpstreamRefusal['about'];
  /** How many tokens are too many, where a prompt was too long. */
  readonly tokens?: number | undefined;
  /** The vendor's own message, for the log. */
  readonly vendor?: UpstreamRefusal['vendor'];
}

/** The members that routing continues with. */
export type Failure = Pick<Verdict, 'next' | 'error' | 'isFault' | 'isAmbiguous' | 'about' | 'tokens'>;

/**
 * Follows the outcome table of the money rules.
 * `sent`: the attempt's request had been handed to a socket.
 */
export function judge(error: unknown, sent: boolean, config: RouteConfig): Verdict {
  if (error instanceof UpstreamRefusal) {
    const verdict = judgeRefusal(error, config);
    return error.vendor === undefined ? verdict : { ...verdict, vendor: error.vendor };
  }
  if (error instanceof CredentialError) return withoutCredential(error);
  if (error instanceof UpstreamError && error.phase === 'connect') {
    const unreachable = new GatewayError('upstream_failed', 'The model could not be reached.', { cause: error });
    return { ...nothing, result: 'not_sent', next: 'target', error: unreachable, errorPrecedence: 1, isFault: true };
  }
  // Another target may accept what this one cannot.
  if (error instanceof GatewayError && targetCodes.has(error.code ?? '') && !sent)
    return { ...nothing, result: 'not_sent', next: 'target', error, errorPrecedence: 1 };
  const mayHaveRun = sent || error instanceof UpstreamError;
  if (!mayHaveRun) return { ...nothing, result: 'not_sent', error };
  const isFault = isUpstreamFault(error);
  return { ...nothing, result: 'unknown', next: isFault ? 'target' : 'nowhere', error, isFault, isAmbiguous: isFault };
}

/** The key rests, another may be usable; the target is not at fault. */
function withoutCredential(cause: CredentialError): Verdict {
  const error = new GatewayError('upstream_failed', 'The model is not available at the moment.', { cause });
  const cooldown = { forMs: credentialPauseMs, allModels: true };
  return { ...nothing, result: 'not_sent', next: 'key', cooldown, error, errorPrecedence: 1 };
}

/** Errors about one target, which cannot accept the request or must not receive it. */
const targetCodes = new Set(['unsupported_by_model', 'resource_not_found', 'thread_unsupported_request']);

/** Whether the upstream failed; other errors would occur at every target. */
function isUpstreamFault(error: unknown): boolean {
  return error instanceof UpstreamError || (error instanceof GatewayError && upstreamKinds.has(error.kind));
}

const upstreamKinds = new Set<GatewayError['kind']>(['upstream_failed', 'upstream_timeout']);

/** Whether an answer was cut off by the target's fault. `error`: the error that ended the stream. */
export function isBreak(error: GatewayError | undefined): boolean {
  return error === undefined || upstreamKinds.has(error.kind) || error.kind === 'overloaded';
}

/** The exchange's own time limit was reached; the client is still connected. */
export function isDeadline(reason: unknown): boolean {
  return reason instanceof GatewayError && reason.kind === 'upstream_timeout';
}

const nothing = {
  status: undefined,
  next: 'nowhere',
  cooldown: undefined,
  errorPrecedence: 0,
  isFault: false,
  isAmbiguous: false,
} as const;

/** Where the next target may accept the request, and none does, this error is returned. */
const afterRefusal = ({ elsewhere }: UpstreamRefusal) =>
  elsewhere ? ({ next: 'target', errorPrecedence: 1 } as const) : undefined;

/** Statuses of a proxy that gave up waiting for the vendor: the vendor may still be running the request. */
const gaveUpWaiting = new Set([520, 524]);

function judgeRefusal(refusal: UpstreamRefusal, config: RouteConfig): Verdict {
  const { status } = refusal;
  const { cooldown } = config;
  // 408 is the vendor's own time limit, at any point of its work.
  const isClients = status >= 400 && status < 500 && status !== 408 && status !== 429 && !refusal.keyAtFault;
  if (refusal.mayRun || refusal.hasUsage || gaveUpWaiting.has(status)) {
    const isFault = status >= 500 || status < 400 || status === 408;
    const unknown = { ...nothing, result: 'unknown', status, isFault } as const;
    if (isClients) return { ...unknown, isAmbiguous: true, about: refusal.about, error: refusal };
    return { ...unknown, next: 'target', error: failed(refusal), isAmbiguous: true };
  }
  const refused = { ...nothing, result: 'refused', status } as const;
  if (isClients) {
    const { about, tokens } = refusal;
    return { ...refused, ...afterRefusal(refusal), about, tokens, error: refusal };
  }
  if (refusal.keyAtFault) {
    // A 403 is often about one model that the key may not use; 401 and 402 concern the key itself.
    const pause = { forMs: cooldown.unauthorized, allModels: status !== 403 };
    return { ...refused, next: 'key', cooldown: pause, error: failed(refusal) };
  }
  if (status !== 429 && !isBusy(status))
    return { ...refused, next: 'target', error: refusal.error, errorPrecedence: 1, isFault: true };
  const requestedMs = refusal.retryAfterMs === undefined ? undefined : clamp(refusal.retryAfterMs, cooldown.max);
  if (status === 429) {
    const forMs = requestedMs ?? cooldown.rate_limited;
    return {
      ...refused,
      next: 'key',
      cooldown: { forMs, allModels: false },
      error: rateLimited(forMs, refusal),
      errorPrecedence: 3,
    };
  }
  // Without a `retry-after` there is no cooldown: one stray 503 must not disable a model that has a single key.
  const pause = requestedMs === undefined ? undefined : { forMs: requestedMs, allModels: false };
  return {
    ...refused,
    next: 'target',
    cooldown: pause,
    error: busy(requestedMs, refusal),
    errorPrecedence: 2,
    isFault: true,
  };
}

function isBusy(status: number): boolean {
  return status === 503 || status === 529;
}

function clamp(milliseconds: number, longest: number): number {
  return Math.min(Math.max(milliseconds, minCooldownMs), longest);
}

/** The request may have run, or a retry cannot help; `retry-advice.ts` says which. */
function failed(cause: unknown): GatewayError {
  return new GatewayError('upstream_failed', 'The model failed to answer this request.', { shouldRetry: false, cause });
}

function rateLimited(retryAfterMs: number, cause: unknown): GatewayError {
  return new GatewayError('rate_limited', 'The model gets too many requests at the moment; try again later.', {
    code: 'upstream',
    retryAfterMs,
    cause,
  });
}

/** No target of the model is available for a while. */
function busy(retryAfterMs: number | undefined, cause?: unknown): GatewayError {
  return new GatewayError('overloaded', 'The model is overloaded at the moment; try again later.', {
    code: 'upstream_busy',
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    cause,
  });
}

/** The failures of one request. */
export class Failures {
  /** The verdict with the highest precedence so far. */
  #verdict: Verdict | undefined;
  /** Shortest time after which a target could accept the request. */
  #soonestMs: number | undefined;

  note(verdict: Verdict): void {
    if (this.#verdict === undefined || verdict.errorPrecedence >= this.#verdict.errorPrecedence)
      this.#verdict = verdict;
  }

  noteWait(milliseconds: number): void {
    if (milliseconds > 0 && milliseconds < (this.#soonestMs ?? Number.POSITIVE_INFINITY))
      this.#soonestMs = milliseconds;
  }

  /** Nothing is left to try. */
  finalError(): unknown {
    return this.#verdict === undefined ? busy(this.#soonestMs) : finalError(this.#verdict, this.#soonestMs);
  }
}

/** The error to throw at the end: where waiting helps, with the shortest known wait. */
function finalError(verdict: Verdict, soonestMs: number | undefined): unknown {
  const { error, errorPrecedence: precedence } = verdict;
  if (soonestMs === undefined || precedence < 2 || !(error instanceof GatewayError)) return error;
  const { kind, message, cause } = error;
  const code = error.code === undefined ? {} : { code: error.code };
  return new GatewayError(kind, message, { ...code, retryAfterMs: soonestMs, cause });
}
