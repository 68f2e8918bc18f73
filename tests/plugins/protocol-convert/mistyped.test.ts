/** Members of the wrong type in requests that are translated: each is refused by its name, none is passed over in silence. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import type { Codec } from '../../../plugins/common/canonical/codec.ts';
import { DroppedParameters } from '../../../plugins/common/canonical/dropped-parameters.ts';
import { chatCodec } from '../../../plugins/protocol-convert/protocols/chat/codec.ts';
import { geminiCodec } from '../../../plugins/protocol-convert/protocols/gemini/codec.ts';
import { messagesCodec } from '../../../plugins/protocol-convert/protocols/messages/codec.ts';
import { responsesCodec } from '../../../plugins/protocol-convert/protocols/responses/codec.ts';
import { preflightResponses } from '../../../plugins/protocol-convert/protocols/responses/preflight.ts';

type Place = readonly [field: string, type: 'text' | 'flag' | 'object' | 'list'];
interface Case {
  readonly codec: Codec;
  /** Good, and with every place in it. */
  readonly body: object;
  readonly places: readonly Place[];
}

const wrong = { text: [5, true, ['x'], { a: 1 }], flag: [1, 'true', ['x'], {}], object: [5, 'x', true, ['x']] };
const wrongOf = (type: Place[1]) => (type === 'list' ? [5, 'x', true, { a: 1 }] : wrong[type]);

const schema = { type: 'object' };
const cases: Record<string, Case> = {
  chat: {
    codec: chatCodec,
    body: {
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'function', function: { name: 'f' } }],
      response_format: { type: 'json_schema', json_schema: { schema } },
      stream_options: {},
    },
    places: [
      ['store', 'flag'],
      ['stream_options', 'object'],
      ['stream_options.include_usage', 'flag'],
      ['messages[0].name', 'text'],
      ['response_format.json_schema.name', 'text'],
      ['response_format.json_schema.description', 'text'],
      ['tools[0].function.description', 'text'],
    ],
  },
  responses: {
    codec: responsesCodec,
    body: {
      input: 'Hi',
      tools: [{ type: 'function', name: 'f', parameters: schema }],
      reasoning: { effort: 'low' },
      text: { format: { type: 'json_schema', name: 'a', schema } },
    },
    places: [
      ['metadata', 'object'],
      ['stream_options', 'object'],
      ['include', 'list'],
      ['truncation', 'text'],
      ['parallel_tool_calls', 'flag'],
      ['user', 'text'],
      ['safety_identifier', 'text'],
      ['service_tier', 'text'],
      ['prompt_cache_key', 'text'],
      ['reasoning.effort', 'text'],
      ['reasoning.summary', 'text'],
      ['text.verbosity', 'text'],
      ['text.format.name', 'text'],
      ['text.format.strict', 'flag'],
      ['text.format', 'object'],
      ['tools[0].description', 'text'],
      ['tools[0].strict', 'flag'],
    ],
  },
  messages: {
    codec: messagesCodec,
    body: {
      max_tokens: 9,
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'x' }] },
      ],
      metadata: {},
      output_config: {},
      context_management: {},
      tools: [{ name: 'f', input_schema: schema }],
      tool_choice: { type: 'auto' },
    },
    places: [
      ['metadata.user_id', 'text'],
      ['metadata', 'object'],
      ['thinking', 'object'],
      ['service_tier', 'text'],
      ['mcp_servers', 'list'],
      ['context_management.edits', 'list'],
      ['context_management', 'object'],
      ['output_config.format', 'object'],
      ['output_config', 'object'],
      ['output_format', 'object'],
      ['tools[0].description', 'text'],
      ['tool_choice.disable_parallel_tool_use', 'flag'],
      ['messages[2].content[0].is_error', 'flag'],
    ],
  },
};

const decode = (codec: Codec, body: object) =>
  codec.decodeRequest(body as JsonObject, { dropped: new DroppedParameters(codec.spelling), open: () => undefined });

/** The same body with this value at the place. */
function withValue(body: object, field: string, value: unknown): object {
  const copy = structuredClone(body);
  const steps = field.match(/[^.[\]]+/g)!;
  const last = steps.pop()!;
  const place = steps.reduce((at, step) => at[step] as Record<string, unknown>, copy as Record<string, unknown>);
  place[last] = value;
  return copy;
}

for (const [name, { codec, body, places }] of Object.entries(cases)) {
  test(`a member of the wrong type is refused by its name (${name})`, () => {
    decode(codec, body);
    for (const [field, type] of places) {
      decode(codec, withValue(body, field, null));
      for (const value of wrongOf(type)) {
        const run = () => decode(codec, withValue(body, field, value));
        assert.throws(run, { kind: 'invalid_request', field }, `${field}: ${JSON.stringify(value)}`);
      }
    }
  });
}

test('a temperature or a share beyond its protocol is refused, its ends are taken', () => {
  for (const [name, most] of [
    ['chat', 2],
    ['responses', 2],
    ['messages', 1],
  ] as const) {
    const { codec, body } = cases[name]!;
    for (const [field, highest] of [
      ['temperature', most],
      ['top_p', 1],
    ] as const) {
      for (const value of [0, highest]) decode(codec, { ...body, [field]: value });
      for (const value of [-0.1, highest + 0.1, '1', true]) {
        const run = () => decode(codec, { ...body, [field]: value });
        assert.throws(run, { kind: 'invalid_request', field }, `${name}: ${value}`);
      }
    }
  }
});

test('a request without a prompt is refused, and nothing is charged', () => {
  const chat = () => decode(chatCodec, { messages: [] });
  assert.throws(chat, { kind: 'invalid_request', field: 'messages', message: /must not be empty/ });
  const messages = () => decode(messagesCodec, { max_tokens: 9, messages: [] });
  assert.throws(messages, { kind: 'invalid_request', field: 'messages', message: /must not be empty/ });
  for (const parts of [{}, { parts: [] }]) {
    const gemini = () => decode(geminiCodec, { contents: [{ role: 'user', ...parts }] });
    assert.throws(gemini, { kind: 'invalid_request', field: 'contents[0].parts', message: /must not be empty/ });
  }
  const silent = [
    { role: 'user', parts: [{ text: 'Hi' }] },
    { role: 'model', parts: [] },
  ];
  assert.equal(decode(geminiCodec, { contents: silent }).turns.length, 2);
});

test('whether an answer runs in the background and is kept is said in no other way than true and false', () => {
  const peek = (members: object) => {
    const json = { model: 'm', input: 'Hi', ...members };
    return preflightResponses({ json, bytes: Buffer.from(JSON.stringify(json)) } as never);
  };
  peek({ background: false, store: false });
  peek({ background: null, store: null });
  for (const value of ['true', 1, {}, []]) {
    assert.throws(() => peek({ background: value }), { kind: 'invalid_request', field: 'background' });
    assert.throws(() => peek({ store: value }), { kind: 'invalid_request', field: 'store' });
  }
  assert.throws(() => peek({ background: true }), GatewayError);
});
