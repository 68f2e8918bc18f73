/** Words that the tests of requests to chat upstreams share: parts, turns, tools, and what refusals look like. */
import assert from 'node:assert/strict';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { Part, Tool, Turn } from '../../../../plugins/common/canonical/prompt.ts';
import { encode } from './chat-harness.ts';

export const text = (words: string): Part => ({ kind: 'text', text: words });
export const user = (...parts: Part[]): Turn => ({ role: 'user', parts });
export const assistant = (...parts: Part[]): Turn => ({ role: 'assistant', parts });
export const system = (...parts: Part[]): Turn => ({ role: 'system', parts });
export const call = (id: string, name = 'f', rest: object = {}): Part => ({
  kind: 'tool-call',
  id,
  name,
  input: '{}',
  ...rest,
});
export const result = (callId: string, ...parts: Part[]): Part => ({ kind: 'tool-result', callId, parts: parts as [] });
export const png: Part = { kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64: 'AAAA' } };
export const url = 'data:image/png;base64,AAAA';
export const tool = (name: string, rest: object = {}): Tool => ({
  kind: 'function',
  name,
  schema: { type: 'object', properties: {} },
  ...rest,
});
export const messages = (turns: readonly Turn[], options: Parameters<typeof encode>[1] = {}) =>
  encode({ turns }, options).body.messages;

export function refused(work: () => unknown, field: string): void {
  assert.throws(
    work,
    (error) => error instanceof GatewayError && error.kind === 'invalid_request' && error.field === field,
  );
}
