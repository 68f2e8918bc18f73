/** Errors in the form of JSON-RPC, and a server that is away. Pure, and without the library of the protocol. */
import type { ErrorKind, GatewayError } from '../../core/contract/errors.ts';
import type { Answer, ClientRequest } from '../../core/contract/message.ts';
import { isObject, tryParseBytes } from '../../core/json/json.ts';

const invalidRequest = -32_600;
const unknownMethod = -32_601;
export const invalidParams = -32_602;
const internal = -32_603;
/** Errors that the protocol leaves to servers. */
export const ownError = -32_000;

export const rpcCodes: { readonly [K in ErrorKind]?: number } = {
  invalid_request: invalidRequest,
  unsupported: invalidRequest,
  not_found: unknownMethod,
  internal,
  upstream_failed: internal,
};

export function rpcError(
  error: GatewayError,
  { id, request }: { readonly id: string; readonly request: ClientRequest },
): Answer {
  const { field, code, kind, status } = error;
  const data = { code: code ?? kind, ...(field === undefined ? {} : { field }), request_id: id };
  const body = {
    jsonrpc: '2.0',
    id: idOf(request),
    error: { code: rpcCodes[kind] ?? ownError, message: error.message, data },
  };
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

function idOf({ body }: ClientRequest): string | number | null {
  const json = body.length === 0 ? undefined : tryParseBytes(body);
  const id = isObject(json) ? json['id'] : undefined;
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}

/** The server cannot be reached, or does not answer as it should. The message is for clients. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
  /** Whether the request may have been executed. */
  readonly mayHaveRun: boolean;

  constructor(message: string, mayHaveRun: boolean, cause?: unknown) {
    super(message, { cause });
    this.mayHaveRun = mayHaveRun;
  }
}

/** Right before a request is sent: its client may have left while it waited for a connection or a token. */
export function refuseLeft(signal: AbortSignal): void {
  if (signal.aborted) throw new Unavailable('The request was cancelled.', false, signal.reason);
}

/** The call was not sent, as its arguments do not fit the tool. The message is for the model that made them. */
export class WrongArguments extends Error {
  override readonly name = 'WrongArguments';
}
