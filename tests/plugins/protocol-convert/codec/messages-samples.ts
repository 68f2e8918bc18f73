/** Words that the tests of messages requests share: bodies, turns, parts, and what refusals look like. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Part, Turn } from '../../../../plugins/common/canonical/prompt.ts';

export const body = (more: object = {}): JsonObject => ({
  model: 'm',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello' }],
  ...more,
});
export const user = (...parts: Part[]): Turn => ({ role: 'user', parts });
export const assistant = (...parts: Part[]): Turn => ({ role: 'assistant', parts });
export const text = (words: string): Part => ({ kind: 'text', text: words });
export const call = (id: string, name = 'look'): Part => ({ kind: 'tool-call', id, name, input: '{"a":1}' });
export const result = (callId: string, words = 'seen'): Part => ({
  kind: 'tool-result',
  callId,
  parts: words === '' ? [] : [{ kind: 'text', text: words }],
});
export const tool = { kind: 'function', name: 'look', schema: { type: 'object', properties: {} } } as const;
export const messagesOf = (request: { body: JsonObject }) =>
  request.body['messages'] as { role: string; content: JsonObject[] }[];
export const refusal = (field: string) => (error: unknown) =>
  error instanceof GatewayError && error.kind === 'invalid_request' && error.field === field;
export const badField = (field: string) => (error: unknown) =>
  error instanceof GatewayError && error.kind === 'invalid_request' && error.field === field;

export const marksIn = (json: JsonObject) => JSON.stringify(json).match(/"cache_control":\{[^}]*\}/g) ?? [];
