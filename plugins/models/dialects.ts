/** Model entries and errors of the model list in the three protocol families. Pure. */

import type { GatewayError } from '../../core/contract/errors.ts';
import type { Answer, ClientRequest } from '../../core/contract/message.ts';
import type { Model } from '../common/domain/models.ts';

export const dialects = ['chat', 'messages', 'gemini'] as const;
/** Named after the protocol families; `chat` is also the default. */
export type Dialect = (typeof dialects)[number];

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

/** `isCallable`: whether a call in this dialect's protocol finds a target. */
export const entryOf: Record<Dialect, (model: Model, isCallable: boolean) => object> = {
  /** Section 2.2 of the interface; https://platform.openai.com/docs/api-reference/models/object */
  chat: (model) => ({ id: model.id, object: 'model', created: model.created, owned_by: model.ownedBy }),

  /** https://platform.claude.com/docs/en/api/models/list; unknown values are null, as in that API. */
  messages: (model) => ({
    type: 'model',
    id: model.id,
    display_name: model.displayName,
    created_at: new Date(model.created * 1000).toISOString().replace('.000Z', 'Z'),
    max_input_tokens: model.contextTokens ?? null,
    max_tokens: model.maxOutputTokens ?? null,
    capabilities: null,
    lifecycle: 'active',
    line: null,
    deprecated_at: null,
    retires_at: null,
  }),

  /** https://ai.google.dev/api/models#Model */
  gemini: (model, isCallable) => ({
    name: `models/${model.id}`,
    displayName: model.displayName,
    inputTokenLimit: model.contextTokens,
    outputTokenLimit: model.maxOutputTokens,
    supportedGenerationMethods: methodsOf(model, isCallable),
  }),
};

/** A conversion between embedding protocols needs no translation of chat. */
function methodsOf({ kind }: Model, isCallable: boolean): readonly string[] {
  if (kind === 'embedding') return ['embedContent', 'batchEmbedContents'];
  return kind === 'chat' && isCallable ? ['generateContent', 'countTokens'] : [];
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
