/** A refusal of the sandbox, independent of the protocol. Pure. */

export class Fault extends Error {
  override readonly name = 'Fault';
  readonly status: number;
  /** The invalid request field, in the client's spelling. */
  readonly field: string | undefined;
  /** Machine-readable reason, if the protocol has a member for it. */
  readonly code: string | undefined;
  /** Seconds until a retry may succeed; sent as `retry-after`. */
  readonly retryAfter: number | undefined;

  constructor(status: number, message: string, details: { field?: string; code?: string; retryAfter?: number } = {}) {
    super(message);
    this.status = status;
    this.field = details.field;
    this.code = details.code;
    this.retryAfter = details.retryAfter;
  }
}

/** A fault in the client's request, with the field. */
export function badRequest(message: string, field?: string, code?: string): Fault {
  return new Fault(400, message, {
    ...(field === undefined ? {} : { field }),
    ...(code === undefined ? {} : { code }),
  });
}

const sentences: Record<number, string> = {
  400: 'The sandbox was asked to find this request invalid.',
  401: 'The sandbox was asked not to know this key.',
  402: 'The sandbox was asked to find the credit used up.',
  403: 'The sandbox was asked to forbid this.',
  404: 'The sandbox was asked not to find this model.',
  408: 'The sandbox was asked to time out.',
  413: 'The sandbox was asked to find this request too large.',
  429: 'The sandbox was asked to find the rate limit reached. Please try again later.',
  503: 'The sandbox was asked to be unavailable.',
  529: 'The sandbox was asked to be overloaded.',
};

/** The fault that a directive requests. */
export function orderedFault(status: number, retryAfter?: number): Fault {
  const message = sentences[status] ?? `The sandbox was asked to fail with status ${status}.`;
  return new Fault(status, message, retryAfter === undefined ? {} : { retryAfter });
}
