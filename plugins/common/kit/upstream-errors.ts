/** Classifies an upstream's error: what the client may see, and whether another target may be tried. Pure. */

import { type ErrorKind, GatewayError } from '../../../core/contract/errors.ts';
import type { Answer, Headers } from '../../../core/contract/message.ts';
import { table } from '../../../core/contract/table.ts';
import { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../core/json/json.ts';
import { refusalClass, reportedTokens } from '../wire/refusal-class.ts';
import { type ErrorBody, errorIn, readErrorBody } from './error-body.ts';
import { retryAfterMs } from './retry-after.ts';
import { maxScrubbedBytes, scrubBytes } from './scrub.ts';

/** Statuses that are about the client's request: its message is passed on, scrubbed. All others get the gateway's message. */
const clientStatuses: Readonly<Record<number, ErrorKind>> = {
  400: 'invalid_request',
  404: 'not_found',
  409: 'conflict',
  413: 'too_large',
  422: 'unsupported',
  429: 'rate_limited',
};

/**
 * How vendors say under other statuses that our key or our account is refused. Only how a message begins counts: further
 * on it may quote the client, who must not be able to have a key rested.
 */
const keyMessage =
  /^(?:API key not valid|invalid API key|incorrect API key|API key expired|your credit balance is too low)/i;
const keyCodes = new Set(['API_KEY_INVALID', 'invalid_api_key', 'insufficient_quota']);
/** Codes of a 404 for a model that the operator names and the upstream does not have: another target may have it. */
const missingModelCodes = new Set<unknown>(['DeploymentNotFound', 'ResourceNotFoundException']);
/** Codes among these with a message that names resources of the operator. */
const tellingCodes = new Set<unknown>(['ResourceNotFoundException']);

/**
 * Sorts an answer with a status of 300 or more. A status that is about the client's request stays, with the vendor's
 * message; a body that is a JSON object is handed to the client byte for byte where there was nothing to mask. `key` is the
 * one that the upstream was called with.
 */
export function classify(
  status: number,
  headers: Headers,
  body: Uint8Array,
  now: number,
  key?: string,
): UpstreamRefusal {
  const isCut = body.length > maxScrubbedBytes;
  const said = readErrorBody(scrubBytes(isCut ? body.subarray(0, maxScrubbedBytes) : body, key), isCut);
  const refusal = sorted(status, headers, said, now);
  return new UpstreamRefusal(refusal.error, { ...refusal, vendor: vendorWords(headers, said) });
}

const longestWords = 500;
const longestId = 100;
/** Headers in which vendors name a request. */
const idHeaders = ['x-request-id', 'request-id', 'x-amzn-requestid', 'apim-request-id', 'x-goog-request-id', 'cf-ray'];

/** The vendor's own message, scrubbed and bounded: for operators alone. */
function vendorWords(headers: Headers, { message }: ErrorBody): UpstreamRefusal['vendor'] {
  const id = idHeaders.map((name) => headers[name]).find((value) => typeof value === 'string' && value !== '');
  if (message === undefined && id === undefined) return undefined;
  return {
    message: message?.slice(0, longestWords),
    requestId: id === undefined ? undefined : String(id).slice(0, longestId),
  };
}

function sorted(status: number, headers: Headers, said: ErrorBody, now: number): UpstreamRefusal {
  const waitMs = retryAfterMs(headers, said.json, now);
  const hasUsage = hasReportedUsage(said.json);
  if (isKeyFault(status, said))
    return new UpstreamRefusal(unavailable(), { status, retryAfterMs: waitMs, hasUsage, keyAtFault: true });
  const code = errorIn(said.json ?? {})['code'];
  const isMissing = status === 404 && missingModelCodes.has(code);
  if (isMissing && tellingCodes.has(code))
    return new UpstreamRefusal(unavailable(new Error('the upstream has no such model')), { status: 502 });
  const kind = clientStatuses[status];
  if (kind === undefined) return withGatewayMessage(status, waitMs, hasUsage);
  const about = refusalClass(status, said.json, said.message);
  return new UpstreamRefusal(renderedError(kind, said, waitMs, headers['x-should-retry'] === 'false'), {
    status,
    retryAfterMs: waitMs,
    hasUsage,
    elsewhere: isMissing || about === 'context_length',
    about,
    tokens: about === 'context_length' ? reportedTokens(said.message ?? '') : undefined,
    answer: said.bytes === undefined ? undefined : jsonAnswer(status, said.bytes),
  });
}

/** An error in the body of a 200: as if it had come with the status that it amounts to. */
export function classifyBody(
  payload: JsonObject,
  headers: Headers,
  body: Uint8Array,
  now: number,
  key?: string,
): UpstreamRefusal {
  return notRunning(classify(reportedStatus(payload), headers, body, now, key));
}

/** An error that came as the first frame of a stream; the frame is no body, so its message alone is handed on. */
export function classifyFrame(payload: JsonObject, now: number, key?: string): UpstreamRefusal {
  const refusal = classify(reportedStatus(payload), {}, Buffer.from(JSON.stringify(payload)), now, key);
  return notRunning(new UpstreamRefusal(refusal.error, { ...refusal, answer: undefined }));
}

/** The vendor itself says that it failed before any answer. */
function notRunning(refusal: UpstreamRefusal): UpstreamRefusal {
  return refusal.mayRun ? new UpstreamRefusal(refusal.error, { ...refusal, mayRun: false }) : refusal;
}

/** A body that is no answer of the protocol: a page of some middlebox, a truncated document. `mayRun` as for the status. */
export function notAnAnswer(what: string, mayRun: boolean): UpstreamRefusal {
  const error = new GatewayError('upstream_failed', 'The model gave an answer that cannot be read.', {
    ...(mayRun ? { shouldRetry: false } : {}),
    cause: new Error(what),
  });
  return new UpstreamRefusal(error, { status: 502, mayRun });
}

function isKeyFault(status: number, { json, message }: ErrorBody): boolean {
  if (status === 401 || status === 402 || status === 403) return true;
  if (status < 400 || status >= 500) return false;
  const inner = errorIn(json ?? {});
  const reasons = listOf(inner['details']).map((detail) => objectOf(detail)?.['reason']);
  return (
    [inner['code'], inner['type'], ...reasons].some((word) => typeof word === 'string' && keyCodes.has(word)) ||
    keyMessage.test(message ?? '')
  );
}

function unavailable(cause?: Error): GatewayError {
  return new GatewayError('upstream_failed', 'The model is not available at the moment.', {
    code: 'upstream_refused',
    ...(cause === undefined ? {} : { cause }),
  });
}

function withGatewayMessage(status: number, waitMs: number | undefined, hasUsage: boolean): UpstreamRefusal {
  const wait = waitMs === undefined ? {} : { retryAfterMs: waitMs };
  const details = { status, retryAfterMs: waitMs, hasUsage };
  if (status === 503 || status === 529) {
    const error = new GatewayError('overloaded', 'The model is overloaded; try again later.', wait);
    return new UpstreamRefusal(error, details);
  }
  const mayRun = status === 408 || status === 500 || status === 502 || status === 504;
  const error = new GatewayError('upstream_failed', 'The model failed to answer.', {
    ...(mayRun ? { shouldRetry: false } : {}),
    ...wait,
  });
  return new UpstreamRefusal(error, { ...details, mayRun });
}

function jsonAnswer(status: number, body: Uint8Array): Answer {
  return { status, headers: { 'content-type': 'application/json' }, body };
}

/** What a refusal says where its body is not handed on: in logs, to other protocols, in a gateway's own error shape. */
function renderedError(
  kind: ErrorKind,
  { json, message }: ErrorBody,
  waitMs: number | undefined,
  isLasting: boolean,
): GatewayError {
  const inner = errorIn(json ?? {});
  const field = textOf(inner['param']);
  const code = kind === 'rate_limited' ? 'upstream' : textOf(inner['code']);
  return new GatewayError(kind, message ?? noWords[kind] ?? 'The model refused the request.', {
    ...(field === undefined ? {} : { field }),
    ...(code === undefined ? {} : { code }),
    ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }),
    ...(isLasting ? { shouldRetry: false } : {}),
  });
}

/** Messages of refusals that have none. */
const noWords: Partial<Record<ErrorKind, string>> = {
  rate_limited: 'The model takes no more requests for now.',
  too_large: 'The model takes no request of this size.',
};

/** Error types and codes that vendors put into bodies, with the status that they go with in vendors' documents. */
const statusByCode: Readonly<Record<string, number>> = table({
  invalid_request_error: 400,
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  content_filter: 400,
  invalid_prompt: 400,
  context_length_exceeded: 400,
  authentication_error: 401,
  UNAUTHENTICATED: 401,
  billing_error: 402,
  insufficient_quota: 402,
  permission_error: 403,
  PERMISSION_DENIED: 403,
  not_found_error: 404,
  model_not_found: 404,
  NOT_FOUND: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  RESOURCE_EXHAUSTED: 429,
  api_error: 500,
  server_error: 500,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  server_is_overloaded: 503,
  timeout_error: 504,
  DEADLINE_EXCEEDED: 504,
  overloaded_error: 529,
});

function reportedStatus(payload: JsonObject): number {
  const inner = errorIn(payload);
  for (const value of [inner['status'], inner['status_code'], inner['code'], payload['code']]) {
    const status = typeof value === 'string' ? Number(value) : value;
    if (typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600) return status;
  }
  for (const word of [inner['code'], inner['status'], inner['type']]) {
    if (typeof word === 'string' && Object.hasOwn(statusByCode, word)) return statusByCode[word]!;
  }
  return 502;
}

function hasReportedUsage(json: unknown): boolean {
  const body = objectOf(json);
  return (
    isObject(body?.['usage']) || isObject(body?.['usageMetadata']) || isObject(objectOf(body?.['response'])?.['usage'])
  );
}

/** Whether a body, or a frame of a stream, names an error: itself, in the answer that it carries, or in a choice. */
export function hasErrorIn(json: JsonObject): boolean {
  return (
    Boolean(json['error']) ||
    namesError(json['response']) ||
    namesError(json['message']) ||
    someNames(json['choices']) ||
    someNames(json['candidates'])
  );
}

function namesError(value: unknown): boolean {
  return isObject(value) && Boolean(value['error']);
}

function someNames(list: unknown): boolean {
  return Array.isArray(list) && list.some(namesError);
}
