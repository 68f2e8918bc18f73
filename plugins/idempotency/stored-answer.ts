/** The stored form of an answer, and its replay. Pure. */

import { type ErrorDetails, type ErrorKind, errorStatus, GatewayError } from '../../core/contract/errors.ts';
import type { Answer, Headers } from '../../core/contract/message.ts';
import { UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import { asBytes, isWhole } from '../common/wire/answer-body.ts';

/** A whole answer; an error is stored as such and rendered again at its replay. */
export interface StoredAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly error?: StoredError | undefined;
}

interface StoredError {
  readonly kind: ErrorKind;
  readonly message: string;
  readonly details: Omit<ErrorDetails, 'cause'>;
  /** The upstream's own error body is stored as the answer. */
  readonly hasAnswer: boolean;
}

/** Marks a replayed answer and names the request that ran. */
const replayHeader = 'idempotent-replayed';
export const originHeader = 'x-original-request-id';

const emptyBody = new Uint8Array(0);

/** Headers of the connection and of the single exchange are created again. */
export function storedAnswer(status: number, { ...headers }: Headers, body: Uint8Array): StoredAnswer {
  for (const name of ['content-length', 'x-request-id', 'request-id']) delete headers[name];
  return { status, headers, body };
}

/** Undefined: a refusal with a streamed answer. */
export function storedError(error: GatewayError | UpstreamRefusal): StoredAnswer | undefined {
  const rendered = error instanceof UpstreamRefusal ? error.error : error;
  const answer = error instanceof UpstreamRefusal ? error.answer : undefined;
  const stored = { kind: rendered.kind, message: rendered.message, details: detailsOf(rendered) };
  if (answer === undefined) {
    return { status: rendered.status, headers: {}, body: emptyBody, error: { ...stored, hasAnswer: false } };
  }
  if (!isWhole(answer.body)) return undefined;
  return {
    ...storedAnswer(answer.status, answer.headers, asBytes(answer.body)),
    error: { ...stored, hasAnswer: true },
  };
}

function detailsOf({ field, code, ownCode, retryAfterMs, shouldRetry, headers }: GatewayError): StoredError['details'] {
  return {
    ...(field === undefined ? {} : { field }),
    ...(code === undefined ? {} : { code }),
    ...(ownCode ? { ownCode } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(shouldRetry === undefined ? {} : { shouldRetry }),
    ...(headers === undefined ? {} : { headers }),
  };
}

/**
 * Returns the same answer again, or throws the same error again. `requestId` is the exchange that received it
 * first.
 */
export function replayAnswer({ status, headers, body, error }: StoredAnswer, requestId: string): Answer {
  const marks = { [replayHeader]: 'true', [originHeader]: requestId };
  if (error === undefined) return { status, headers: { ...headers, ...marks }, body };
  const { kind, message, details, hasAnswer } = error;
  // The same key gets the same answer whenever it is asked.
  const replayed = { ...details, shouldRetry: false, headers: { ...details.headers, ...marks } };
  const again = new GatewayError(kind, message, replayed);
  if (!hasAnswer) throw again;
  throw new UpstreamRefusal(again, { status, answer: { status, headers: { ...headers }, body } });
}

/** Everything but the body, as JSON. */
export function encodeHead({ status, headers, error }: StoredAnswer): string {
  return JSON.stringify({ status, headers, error });
}

/** Throws when the text is not the output of `encodeHead`. */
export function decodeStoredAnswer(head: string, body: Uint8Array): StoredAnswer {
  const { status, headers, error } = JSON.parse(head) as Omit<StoredAnswer, 'body'>;
  if (error !== undefined && !(error.kind in errorStatus)) throw new Error(`"${error.kind}" is no kind of error`);
  return { status, headers, body, error };
}
