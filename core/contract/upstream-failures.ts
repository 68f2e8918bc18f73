/** Failures of attempts at upstreams: on the wire, and answers that refuse; and what a client is shown of any error. Pure. */
import { GatewayError, isPassing, isUnstorable } from './errors.ts';
import type { Answer } from './message.ts';

/** Where an upstream attempt broke. `connect`: nothing was sent, so another target may be tried. `sent`: the request may have been executed and billed. `body`: during the answer's body. */
export type UpstreamPhase = 'connect' | 'sent' | 'body';

/** Thrown by `forward` when an attempt fails on the wire. `toGatewayError` converts it for clients. */
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
 * An upstream's error answer: a status of 300 or more, an error inside a 200, or a body that is no answer of its protocol.
 * A plugin with `retries` may catch it and try another target by these members; nothing has been sent to the client. If
 * none catches it, `answer` is sent unchanged if there is one, else `error` is rendered in the client's protocol.
 */
export class UpstreamRefusal extends Error {
  override readonly name = 'UpstreamRefusal';
  /** The upstream's status, or the equivalent one of an error inside a 200. */
  readonly status: number;
  /** The error for the client, for logs, and for a gateway's own error shape. */
  readonly error: GatewayError;
  /** The upstream's own error answer, scrubbed, where the client may read it. */
  readonly answer: Answer | undefined;
  /** The upstream's Retry-After, if it sent one. */
  readonly retryAfterMs: number | undefined;
  /** The error reports usage: it was billed. */
  readonly hasUsage: boolean;
  /** The upstream refused the gateway's key or account, not the request: 401, 402, 403 and equivalents. */
  readonly keyAtFault: boolean;
  /** The upstream may have executed the request (408, 500, 502, 504): a retry could be billed twice. */
  readonly mayRun: boolean;
  /** It refuses for a reason of its own: another target may accept the request. */
  readonly elsewhere: boolean;
  /** The refused aspect of the request, where the upstream says so. */
  readonly about: 'context_length' | 'content_filter' | undefined;
  /** How many tokens are too many, where a prompt was too long and the upstream says a number. */
  readonly tokens: number | undefined;
  /** The vendor's own message and its id of the request, scrubbed and bounded: for operators, never for clients. */
  readonly vendor: { readonly message: string | undefined; readonly requestId: string | undefined } | undefined;

  constructor(
    error: GatewayError,
    details: {
      status: number;
      answer?: Answer | undefined;
      retryAfterMs?: number | undefined;
      hasUsage?: boolean;
      keyAtFault?: boolean;
      mayRun?: boolean;
      elsewhere?: boolean;
      about?: UpstreamRefusal['about'];
      tokens?: number | undefined;
      vendor?: UpstreamRefusal['vendor'];
    },
  ) {
    super(`the upstream answered ${details.status}`, { cause: error });
    this.vendor = details.vendor;
    this.status = details.status;
    this.error = error;
    this.answer = details.answer;
    this.retryAfterMs = details.retryAfterMs;
    this.hasUsage = details.hasUsage ?? false;
    this.keyAtFault = details.keyAtFault ?? false;
    this.mayRun = details.mayRun ?? false;
    this.elsewhere = details.elsewhere ?? false;
    this.about = details.about;
    this.tokens = details.tokens;
  }
}

const passingRetryMs = 2_000;

/** Converts any error to one that a client may see. The message of an unknown error is dropped. */
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
  if (isPassing(error))
    return new GatewayError('overloaded', 'The gateway cannot handle this request now; please try again soon.', {
      code: 'store_unavailable',
      retryAfterMs: passingRetryMs,
      cause: error,
    });
  if (isUnstorable(error))
    return new GatewayError('invalid_request', 'A text of this request has the character U+0000.', {
      code: 'invalid_text',
      cause: error,
    });
  return new GatewayError('internal', 'The gateway failed to handle this request.', { cause: error });
}
