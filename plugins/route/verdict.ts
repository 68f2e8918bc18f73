/** What a failed attempt means: whether it may have run, whether another may be tried, and what the client is told if not. Pure. */
import { GatewayError, toGatewayError, UpstreamError, UpstreamRefusal } from '../../core/errors.ts';
import type { Attempt } from '../../core/vocabulary.ts';
import type { RouteConfig } from './config.ts';

/** A key sleeps at least this long: a shorter word of the vendor would only bring the same refusal again. */
const shortestRestMs = 1_000;

export interface Verdict {
  readonly result: Attempt['result'];
  readonly status: number | undefined;
  /** Where to try next: another key of this target, another target, or nowhere. */
  readonly next: 'key' | 'target' | 'nowhere';
  /** The key rests; for this model alone or for all. */
  readonly rest: { readonly forMs: number; readonly allModels: boolean } | undefined;
  /** What is thrown when nothing more is tried. */
  readonly error: unknown;
  /** Which of several failures the client is told: the one for which waiting helps most; from 2 on it does. */
  readonly hope: number;
  /** The target has failed: it counts against it, and as a rule concerns all of its keys. */
  readonly isFault: boolean;
}

/** As much of it as the way goes on by. */
export type Failure = Pick<Verdict, 'next' | 'error' | 'isFault'>;

/**
 * By the outcome table of the money rules: only what cannot have been executed is tried elsewhere.
 * `sent`: the attempt's request had been handed to a socket.
 */
export function judge(error: unknown, sent: boolean, config: RouteConfig): Verdict {
  if (error instanceof UpstreamRefusal) return judgeRefusal(error, config);
  if (error instanceof UpstreamError && error.phase === 'connect') {
    const told = new GatewayError('upstream_failed', 'The model could not be reached.', { cause: error });
    return { ...nothing, result: 'not_sent', next: 'target', error: told, hope: 1, isFault: true };
  }
  // What this target cannot take, another may.
  if (error instanceof GatewayError && error.code === 'unsupported_by_model' && !sent)
    return { ...nothing, result: 'not_sent', next: 'target', error, hope: 1 };
  const mayHaveRun = sent || error instanceof UpstreamError;
  if (!mayHaveRun) return { ...nothing, result: 'not_sent', error };
  const isFault = isUpstreams(error);
  return { ...nothing, result: 'unknown', next: isFault ? onward(config) : 'nowhere', error, isFault };
}

/** The upstream's failure; all others would meet every target. */
function isUpstreams(error: unknown): boolean {
  return error instanceof UpstreamError || (error instanceof GatewayError && upstreamKinds.has(error.kind));
}

const upstreamKinds = new Set<GatewayError['kind']>(['upstream_failed', 'upstream_timeout']);

/** Whether an answer that had begun broke off by the target's fault. `error`: what the stream was ended with. */
export function isBreak(error: GatewayError | undefined): boolean {
  return error === undefined || upstreamKinds.has(error.kind) || error.kind === 'overloaded';
}

/** The exchange's own time was up: the client is still there. */
export function isDeadline(reason: unknown): boolean {
  return reason instanceof GatewayError && reason.kind === 'upstream_timeout';
}

/** Where an attempt that may have run is followed by another. */
function onward(config: RouteConfig): Verdict['next'] {
  return config.retry_unknown ? 'target' : 'nowhere';
}

const nothing = { status: undefined, next: 'nowhere', rest: undefined, hope: 0, isFault: false } as const;

/** Statuses of a proxy in front of the vendor that gave up waiting: the vendor may be at work. */
const gaveUpWaiting = new Set([520, 524]);

function judgeRefusal(refusal: UpstreamRefusal, config: RouteConfig): Verdict {
  const { status } = refusal;
  const { rest } = config;
  const isClients = status >= 400 && status < 500 && status !== 429 && !refusal.keyAtFault;
  if (refusal.mayRun || refusal.hasUsage || gaveUpWaiting.has(status)) {
    const error = isClients ? refusal : failed(refusal);
    return {
      ...nothing,
      result: 'unknown',
      status,
      next: isClients ? 'nowhere' : onward(config),
      error,
      isFault: status >= 500 || status < 400,
    };
  }
  const refused = { ...nothing, result: 'refused', status } as const;
  if (isClients) return { ...refused, error: refusal };
  if (refusal.keyAtFault) {
    // A 403 is often about one model that this key may not use; the others concern the key itself.
    const pause = { forMs: rest.unauthorized, allModels: status !== 403 };
    return { ...refused, next: 'key', rest: pause, error: failed(refusal) };
  }
  if (status !== 429 && !isBusy(status))
    return { ...refused, next: 'target', error: refusal.error, hope: 1, isFault: true };
  const asked = refusal.retryAfterMs === undefined ? undefined : clamp(refusal.retryAfterMs, rest.max);
  if (status === 429) {
    const forMs = asked ?? rest.rate_limited;
    return { ...refused, next: 'key', rest: { forMs, allModels: false }, error: rateLimited(forMs, refusal), hope: 3 };
  }
  // Without a word of the vendor a key does not rest: one stray 503 must not close a model that has a single key.
  const pause = asked === undefined ? undefined : { forMs: asked, allModels: false };
  return { ...refused, next: 'target', rest: pause, error: busy(asked, refusal), hope: 2, isFault: true };
}

function isBusy(status: number): boolean {
  return status === 503 || status === 529;
}

function clamp(milliseconds: number, longest: number): number {
  return Math.min(Math.max(milliseconds, shortestRestMs), longest);
}

/** It may have run, or no repetition can help. */
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

/** Every way to the model is closed for a while. */
export function busy(retryAfterMs: number | undefined, cause?: unknown): GatewayError {
  return new GatewayError('overloaded', 'The model is overloaded at the moment; try again later.', {
    code: 'upstream_busy',
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    cause,
  });
}

/** What is thrown in the end: where waiting helps, with the shortest time that is known. */
export function finalError(verdict: Verdict, soonestMs: number | undefined): unknown {
  const { error, hope } = verdict;
  if (soonestMs === undefined || hope < 2 || !(error instanceof GatewayError)) return error;
  const { kind, message, cause } = error;
  const code = error.code === undefined ? {} : { code: error.code };
  return new GatewayError(kind, message, { ...code, retryAfterMs: soonestMs, cause });
}

/** What official SDKs try again by themselves, unless they are told not to. */
const isTriedAgain = (status: number) => status === 408 || status === 409 || status === 429 || status >= 500;

/** Something may have run: a repetition could be billed twice, so official SDKs are told not to try again by themselves. */
export function withoutRetry(error: unknown): unknown {
  const told = toGatewayError(error);
  const { kind, message, status, field, code, headers, shouldRetry, cause } = told;
  // A fault of the gateway's own stays what it is: the server tells of it, and marks it too.
  if (shouldRetry === false || !isTriedAgain(status) || kind === 'internal') return error;
  const quiet = new GatewayError(kind, message, {
    ...(field === undefined ? {} : { field }),
    ...(code === undefined ? {} : { code }),
    ...(headers === undefined ? {} : { headers }),
    shouldRetry: false,
    cause,
  });
  return error instanceof UpstreamRefusal ? new UpstreamRefusal(quiet, error) : quiet;
}
