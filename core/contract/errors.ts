/** The kinds of failures of an exchange with their HTTP statuses, the error that carries one, and marks on other errors. Pure. */

/** HTTP status of each kind. The client's protocol decides how a kind is encoded on the wire. */
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
  /** Machine-readable reason within the kind, such as `model_not_found` or `rpm`. Protocols send it as their `code`. */
  code?: string;
  /** Clients get `code` for a limit, too, where their protocol has one code for all limits. Set for the code of a rule. */
  ownCode?: boolean;
  /** How long the client should wait before it tries again. Becomes `retry-after`. */
  retryAfterMs?: number;
  /** false: a repetition could be billed twice or cannot help. Becomes `x-should-retry: false`, which official SDKs obey. */
  shouldRetry?: boolean;
  /** More headers for the answer, lower-case names. */
  headers?: Record<string, string>;
  /** For the log only; never rendered to a client. */
  cause?: unknown;
}

/** An error for the client. Its message must contain no secret and no upstream's name or address. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly kind: ErrorKind;
  readonly status: number;
  readonly field: string | undefined;
  readonly code: string | undefined;
  ownCode: boolean;
  readonly retryAfterMs: number | undefined;
  readonly shouldRetry: boolean | undefined;
  readonly headers: Record<string, string> | undefined;

  constructor(kind: ErrorKind, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    this.status = errorStatus[kind];
    this.field = details.field;
    this.code = details.code;
    this.ownCode = details.ownCode === true;
    this.retryAfterMs = details.retryAfterMs;
    this.shouldRetry = details.shouldRetry;
    this.headers = details.headers;
  }
}

/** Throws what a rule has thrown: the code of its refusal is its own. */
export function rethrowOfRule(error: unknown): never {
  if (error instanceof GatewayError) error.ownCode ||= error.code !== undefined;
  throw error;
}

const passing = new WeakSet<Error>();
/** Errors are wrapped a few times at most. */
const mostCauses = 10;

/** Marks an error as one that passes by itself, such as that of a database which is away: the same request may succeed later. */
export function markPassing<E extends Error>(error: E): E {
  passing.add(error);
  return error;
}

/** Whether this error, or what caused it, passes by itself. */
export const isPassing = (error: unknown): boolean => hasIn(passing, error);

const unstorable = new WeakSet<Error>();

/** Marks an error as the request's own fault: one of its texts has a character that no database keeps. */
export function markUnstorable<E extends Error>(error: E): E {
  unstorable.add(error);
  return error;
}

/** Whether this error, or what caused it, is the request's own fault in that way. */
export const isUnstorable = (error: unknown): boolean => hasIn(unstorable, error);

function hasIn(marked: WeakSet<Error>, error: unknown): boolean {
  let at = error;
  for (let depth = 0; at instanceof Error && depth < mostCauses; depth += 1, at = at.cause)
    if (marked.has(at)) return true;
  return false;
}
