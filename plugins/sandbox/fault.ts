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

/** Throws as the original does for a number outside of these bounds; `say` words the fault. */
export function refuseOutside(
  body: { readonly [member: string]: unknown },
  bounds: { readonly [member: string]: readonly [least: number, most: number] },
  say: (member: string, value: number, bound: number) => Fault,
): void {
  for (const [member, [least, most]] of Object.entries(bounds)) {
    const value = body[member];
    if (typeof value === 'number' && (value < least || value > most))
      throw say(member, value, value < least ? least : most);
  }
}

/** As OpenAI's APIs say it. */
export function decimalOutside(member: string, value: number, bound: number): Fault {
  const [side, sign, code] =
    value < bound
      ? ['below minimum', '>=', 'decimal_below_min_value']
      : ['above maximum', '<=', 'decimal_above_max_value'];
  const message = `Invalid '${member}': decimal ${side} value. Expected a value ${sign} ${bound}, but got ${value} instead.`;
  return badRequest(message, member, code);
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
