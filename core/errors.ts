/** Every way an exchange can fail, with its status: one closed table. Pure. */
import type { Answer } from './contract.ts';

/** HTTP status of each kind. A kind is what happened, said once; the client's protocol decides how it is worded on the wire. */
export const errorStatus = {
  invalid_request: 400,
  unauthenticated: 401,
  insufficient_balance: 402,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  conflict: 409,
  too_large: 413,
  unsupported: 422,
  upgrade_required: 426,
  rate_limited: 429,
  headers_too_large: 431,
  client_left: 499,
  internal: 500,
  upstream_failed: 502,
  overloaded: 503,
  upstream_timeout: 504,
} as const;

export type ErrorKind = keyof typeof errorStatus;

export interface ErrorDetails {
  /** The request field at fault, as the client wrote it: `messages[2].content`. */
  field?: string;
  /** Machine-readable reason within the kind, such as `model_not_found` or `rpm`. Protocols put it where their `code` stands. */
  code?: string;
  /** How long the client should wait before it tries again. Becomes `retry-after`. */
  retryAfterMs?: number;
  /** false: a repetition could be billed twice or cannot help. Becomes `x-should-retry: false`, which official SDKs obey. */
  shouldRetry?: boolean;
  /** More headers for the answer, lower-case names. */
  headers?: Record<string, string>;
  /** For the log alone; never rendered to a client. */
  cause?: unknown;
}

/** Thrown by any plugin, rendered in one place. The message is read by the client: no secret, no upstream's name or address. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly kind: ErrorKind;
  readonly status: number;
  readonly field: string | undefined;
  readonly code: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly shouldRetry: boolean | undefined;
  readonly headers: Record<string, string> | undefined;

  constructor(kind: ErrorKind, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    this.status = errorStatus[kind];
    this.field = details.field;
    this.code = details.code;
    this.retryAfterMs = details.retryAfterMs;
    this.shouldRetry = details.shouldRetry;
    this.headers = details.headers;
  }
}

/** Where an upstream attempt broke. `connect`: nothing was sent, so another target may be tried. `sent`: the request may have been executed and billed. `body`: the answer had begun. */
export type UpstreamPhase = 'connect' | 'sent' | 'body';

/** Thrown by the forwarding centre when an attempt fails on the wire. Never reaches a client: `toGatewayError` makes it presentable. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly phase: UpstreamPhase;
  readonly timedOut: boolean;

  constructor(phase: UpstreamPhase, message: string, options: { timedOut?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.phase = phase;
    this.timedOut = options.timedOut ?? false;
  }
}

/**
 * Thrown by the plugin that speaks with upstreams when one answers, but with an error: a status of 300 or more, an error
 * inside a 200, or a body that is no answer of its protocol. `route` catches it and decides by these members whether
 * another target is tried. Nothing of it has reached the client. When it comes to the top, `answer` is sent as it is if
 * there is one, else `error` is worded in the client's protocol.
 */
export class UpstreamRefusal extends Error {
  override readonly name = 'UpstreamRefusal';
  /** What the upstream answered, or what its error amounts to when it came inside a 200. */
  readonly status: number;
  /** What the client is told: kind, words, waiting time. Also for logs and for a gateway's own error shape. */
  readonly error: GatewayError;
  /** The upstream's own words, scrubbed, where the client may read them. */
  readonly answer: Answer | undefined;
  /** How long this upstream wants to be left alone, if it said so. */
  readonly retryAfterMs: number | undefined;
  /** The refusal reports usage: it was billed. */
  readonly hasUsage: boolean;
  /** It refused our key or our account, not the request: 401, 402, 403 and what amounts to them. */
  readonly keyAtFault: boolean;
  /** It may have executed the request (500, 502, 504): trying again could be billed twice. */
  readonly mayRun: boolean;

  constructor(
    error: GatewayError,
    details: {
      status: number;
      answer?: Answer | undefined;
      retryAfterMs?: number | undefined;
      hasUsage?: boolean;
      keyAtFault?: boolean;
      mayRun?: boolean;
    },
  ) {
    super(`the upstream answered ${details.status}`, { cause: error });
    this.status = details.status;
    this.error = error;
    this.answer = details.answer;
    this.retryAfterMs = details.retryAfterMs;
    this.hasUsage = details.hasUsage ?? false;
    this.keyAtFault = details.keyAtFault ?? false;
    this.mayRun = details.mayRun ?? false;
  }
}

/** What a client may be told of any failure. Anything that is not a GatewayError loses its own words. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof UpstreamRefusal) return error.error;
  if (error instanceof UpstreamError) {
    const shouldRetry = error.phase === 'connect' ? {} : { shouldRetry: false };
    return error.timedOut
      ? new GatewayError('upstream_timeout', 'The model did not answer in time.', { ...shouldRetry, cause: error })
      : new GatewayError('upstream_failed', 'The model could not be reached or broke off its answer.', {
          ...shouldRetry,
          cause: error,
        });
  }
  return new GatewayError('internal', 'The gateway failed to handle this request.', { cause: error });
}
