/** Rows of "what a client asks, and what must become of it at each other protocol's upstream", and the check of one. */
import assert from 'node:assert/strict';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { Traits } from '../../../../plugins/common/domain/traits.ts';
import { relay, wholeAnswer } from '../harness.ts';

export type Name = 'chat' | 'responses' | 'messages' | 'gemini';
export const names: readonly Name[] = ['chat', 'responses', 'messages', 'gemini'];
type Json = Record<string, unknown>;

/** What becomes of a request at one upstream. A bare array: only what was dropped. */
export interface Outcome {
  /** Members that the upstream request must hold: objects by their members, lists whole, a function as the judge. */
  readonly has?: Json;
  /** Members (or texts) that the upstream request must not hold anywhere. */
  readonly lacks?: readonly string[];
  /** All that was noted as left out, in any order. Default: nothing. */
  readonly dropped?: readonly string[];
  /** The field that the refusal names. */
  readonly refused?: string;
  readonly traits?: Traits;
}

export interface Row {
  readonly what: string;
  readonly from: Name;
  readonly request: Json;
  readonly to: { readonly [target in Name]?: Outcome };
}

const tool = { name: 'f', description: 'd' };
const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
/** A function in the words of each protocol. */
export const functions = {
  chat: { type: 'function', function: { ...tool, parameters: schema } },
  responses: { type: 'function', ...tool, parameters: schema },
  messages: { ...tool, input_schema: schema },
  gemini: { functionDeclarations: [{ ...tool, parametersJsonSchema: schema }] },
} as const;
export const answerSchema = {
  type: 'object',
  properties: { a: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
};
export const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').toString('base64');
export const pdf = Buffer.from('%PDF-1.7 content of a document').toString('base64');
export const wav = Buffer.from('RIFF0000WAVEfmt 0000').toString('base64');

const paths: Readonly<Record<Name, string>> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  gemini: '/v1beta/models/m:generateContent',
};
const least: Readonly<Record<Name, Json>> = {
  chat: { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  responses: { model: 'm', input: 'hi' },
  messages: { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] },
  gemini: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
};
const answers: Readonly<Record<Name, Json>> = {
  chat: { choices: [{ message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }], usage: {} },
  responses: {
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok' }] }],
  },
  messages: { type: 'message', role: 'assistant', content: [{ type: 'text', text: 'ok' }], stop_reason: 'end_turn' },
  gemini: { candidates: [{ content: { parts: [{ text: 'ok' }] }, finishReason: 'STOP' }] },
};

export interface Requested {
  readonly body: Json;
  readonly text: string;
  readonly dropped: readonly string[];
}

/** What an upstream of another protocol is asked, and what was noted. Throws what the gateway refuses with. */
export async function send(from: Name, members: Json, to: Name, traits: Traits = {}): Promise<Requested> {
  const { sent, answer } = await relay(
    { path: paths[from], body: { ...least[from], ...members }, target: { protocol: to, traits } },
    wholeAnswer(JSON.stringify(answers[to])),
  );
  const text = Buffer.from(sent.body as Uint8Array).toString();
  const noted = answer.headers['x-gateway-dropped'];
  return { body: JSON.parse(text) as Json, text, dropped: noted === undefined ? [] : String(noted).split(', ') };
}

/** Fails unless the request becomes at this upstream what the row says. */
export async function check({ from, request: members }: Row, to: Name, outcome: Outcome): Promise<void> {
  const { has = {}, lacks = [], dropped = [], refused, traits } = outcome;
  if (refused !== undefined) {
    await assert.rejects(send(from, members, to, traits), (error) => {
      assert.ok(error instanceof GatewayError, String(error));
      assert.deepEqual([error.kind, error.field], ['invalid_request', refused]);
      return true;
    });
    return;
  }
  const requested = await send(from, members, to, traits);
  for (const [path, wanted] of Object.entries(has)) {
    const found = path.split('.').reduce<unknown>((at, step) => (at as Json | undefined)?.[step], requested.body);
    if (typeof wanted === 'function') assert.ok(wanted(found), `${path}: ${JSON.stringify(found)}`);
    else assert.deepEqual(found, wanted, `${path} in ${requested.text}`);
  }
  for (const absent of lacks) assert.ok(!requested.text.includes(absent), `${absent} in ${requested.text}`);
  assert.deepEqual([...requested.dropped].sort(), [...dropped].sort(), requested.text);
}
