/** A refusal of the sandbox, before a protocol words it. Pure. */

export class Fault extends Error {
  override readonly name = 'Fault';
  readonly status: number;
  /** The request field at fault, as the client wrote it. */
  readonly field: string | undefined;
  /** Machine-readable reason, where a protocol has a place for it. */
  readonly code: string | undefined;
  /** Seconds until a repetition may help; sent as `retry-after`. */
  readonly retryAfter: number | undefined;

  constructor(status: number, message: string, details: { field?: string; code?: string; retryAfter?: number } = {}) {
    super(message);
    this.status = status;
    this.field = details.field;
    this.code = details.code;
    this.retryAfter = details.retryAfter;
  }
}

/** A fault that the client itself made, naming the field. */
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

/** The fault that a directive orders. */
export function orderedFault(status: number, retryAfter?: number): Fault {
  const message = sentences[status] ?? `The sandbox was asked to fail with status ${status}.`;
  return new Fault(status, message, retryAfter === undefined ? {} : { retryAfter });
}
