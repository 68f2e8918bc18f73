/** Short words for tests of responses requests: turns, and both ways of the codec. */
import assert from 'node:assert/strict';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { EncodedRequest } from '../../../../plugins/common/canonical/codec.ts';
import type { OpaqueState, Part, Prompt, Turn } from '../../../../plugins/common/canonical/prompt.ts';
import type { Traits } from '../../../../plugins/common/domain/traits.ts';
import { responsesCodec } from '../../../../plugins/protocol-convert/protocols/responses/codec.ts';
import { decodeContext, encodeContext } from './responses-helpers.ts';

export function decode(json: JsonObject, open?: (text: string) => OpaqueState | undefined) {
  const context = decodeContext(open);
  const prompt = responsesCodec.decodeRequest({ model: 'm', ...json }, context);
  return { prompt, dropped: context.dropped.dropped };
}

export function encode(prompt: Partial<Prompt>, traits: Traits = {}): EncodedRequest & { dropped: readonly string[] } {
  const context = encodeContext({ traits });
  const encoded = responsesCodec.encodeRequest({ turns: [user('Hi')], tools: [], ...prompt }, context);
  return { ...encoded, dropped: context.dropped.dropped };
}

export const user = (text: string): Turn => ({ role: 'user', parts: [{ kind: 'text', text }] });
export const system = (text: string): Turn => ({ role: 'system', parts: [{ kind: 'text', text }] });
export const assistant = (...parts: Part[]): Turn => ({ role: 'assistant', parts });
export const call = (id: string, name = 'f', input = '{}'): Part => ({ kind: 'tool-call', id, name, input });
export const result = (callId: string, text = 'ok'): Part => ({
  kind: 'tool-result',
  callId,
  parts: [{ kind: 'text', text }],
});

export function refusal(work: () => unknown): GatewayError {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return error;
  }
  return assert.fail('nothing was thrown');
}

export const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
export const dataUrl = `data:image/png;base64,${png}`;
