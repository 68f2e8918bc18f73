/** Dialects of endpoints that clients of several protocols call at one address: which one a request has, and errors in its form. Pure. */
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer, ClientRequest } from '../../../core/contract/message.ts';

/** Named after the protocol families; `chat` is also the default. */
export type Dialect = 'chat' | 'messages' | 'gemini';

/**
 * By the path, the version header of the messages family, or the key header of the generate-content family; otherwise
 * the default list.
 */
export function dialectOf(request: ClientRequest): Dialect {
  const { path, headers, query } = request;
  if (/^\/v1(?:beta|alpha)\//.test(path)) return 'gemini';
  if (headers['anthropic-version'] !== undefined) return 'messages';
  const geminiKey = headers['x-goog-api-key'] !== undefined || query.has('key');
  return geminiKey && headers['authorization'] === undefined ? 'gemini' : 'chat';
}

const chatTypes: Record<number, string> = {
  401: 'authentication_error',
  402: 'insufficient_quota',
  403: 'permission_error',
  429: 'rate_limit_error',
};
const messagesTypes: Record<number, string> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
};
const geminiStatuses: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  402: 'FAILED_PRECONDITION',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

const errorBody: Record<Dialect, (error: GatewayError, requestId: string) => object> = {
  chat: ({ status, message, field, code }) => {
    const type = chatTypes[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
    return { error: { message, type, param: field ?? null, code: code ?? null } };
  },
  messages: ({ status, message }, requestId) => {
    const type = messagesTypes[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
    return { type: 'error', error: { type, message }, request_id: requestId };
  },
  gemini: ({ status, message }) => {
    const name = geminiStatuses[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT');
    return { error: { code: status, message, status: name } };
  },
};

/** An error in the caller's dialect; the core adds headers for retries. */
export function renderError(error: GatewayError, dialect: Dialect, requestId: string): Answer {
  return jsonAnswer(JSON.stringify(errorBody[dialect](error, requestId)), error.status);
}

export function jsonAnswer(body: string, status = 200): Answer {
  return { status, headers: { 'content-type': 'application/json' }, body };
}
