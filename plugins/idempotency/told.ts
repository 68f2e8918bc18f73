/** What a call was told, in a form that can be kept, and told again. Pure. */
import type { Answer, AnswerBody, Headers } from '../../core/contract.ts';
import { type ErrorDetails, type ErrorKind, errorStatus, GatewayError, UpstreamRefusal } from '../../core/errors.ts';

/** A whole answer; an error is kept as such, to be worded anew by whoever words errors. */
export interface Told {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly error?: KeptError | undefined;
}

interface KeptError {
  readonly kind: ErrorKind;
  readonly message: string;
  readonly details: Omit<ErrorDetails, 'cause'>;
  /** The upstream's own words come with it, as the answer that is kept. */
  readonly hasAnswer: boolean;
}

/** Says that nothing ran for this answer, and which request it was that did. */
export const replayHeader = 'idempotent-replayed';
export const originHeader = 'x-original-request-id';

const noBody = new Uint8Array(0);

/** Headers of the connection and of the one exchange are made anew. */
export function toldAnswer(status: number, { ...headers }: Headers, body: Uint8Array): Told {
  for (const name of ['content-length', 'x-request-id', 'request-id']) delete headers[name];
  return { status, headers, body };
}

/** undefined: a refusal whose answer is a stream. */
export function toldError(error: GatewayError | UpstreamRefusal): Told | undefined {
  const worded = error instanceof UpstreamRefusal ? error.error : error;
  const answer = error instanceof UpstreamRefusal ? error.answer : undefined;
  const kept = { kind: worded.kind, message: worded.message, details: detailsOf(worded) };
  if (answer === undefined) {
    return { status: worded.status, headers: {}, body: noBody, error: { ...kept, hasAnswer: false } };
  }
  if (!isWhole(answer.body)) return undefined;
  return { ...toldAnswer(answer.status, answer.headers, bytesOf(answer.body)), error: { ...kept, hasAnswer: true } };
}

function detailsOf({ field, code, retryAfterMs, shouldRetry, headers }: GatewayError): KeptError['details'] {
  return {
    ...(field === undefined ? {} : { field }),
    ...(code === undefined ? {} : { code }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(shouldRetry === undefined ? {} : { shouldRetry }),
    ...(headers === undefined ? {} : { headers }),
  };
}

/** The same answer again; throws the same error again. `requestId` is of the exchange that was told it first. */
export function tellAgain({ status, headers, body, error }: Told, requestId: string): Answer {
  const marks = { [replayHeader]: 'true', [originHeader]: requestId };
  if (error === undefined) return { status, headers: { ...headers, ...marks }, body };
  const { kind, message, details, hasAnswer } = error;
  const again = new GatewayError(kind, message, { ...details, headers: { ...details.headers, ...marks } });
  if (!hasAnswer) throw again;
  throw new UpstreamRefusal(again, { status, answer: { status, headers: { ...headers }, body } });
}

/** Everything but the body, as JSON. */
export function encodeHead({ status, headers, error }: Told): string {
  return JSON.stringify({ status, headers, error });
}

/** Throws when it is not what `encodeHead` wrote. */
export function decodeTold(head: string, body: Uint8Array): Told {
  const { status, headers, error } = JSON.parse(head) as Omit<Told, 'body'>;
  if (error !== undefined && !(error.kind in errorStatus)) throw new Error(`"${error.kind}" is no kind of error`);
  return { status, headers, body, error };
}

export function isWhole(body: AnswerBody): body is Uint8Array | string {
  return typeof body === 'string' || body instanceof Uint8Array;
}

export function bytesOf(body: Uint8Array | string): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body;
}
