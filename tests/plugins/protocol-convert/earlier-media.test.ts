/** Media that a model cannot read: refused in the last turn of the user, a named text in earlier turns and tool results. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../core/json/json.ts';
import { encodeRequest as encodeBedrock } from '../../../plugins/bedrock/encode.ts';
import { encodeRequest as encodeCohere } from '../../../plugins/cohere/encode.ts';
import type { EncodeContext } from '../../../plugins/common/canonical/codec.ts';
import { DroppedParameters } from '../../../plugins/common/canonical/dropped-parameters.ts';
import type { MediaPart, Part, Turn } from '../../../plugins/common/canonical/prompt.ts';
import { encodeRequest as encodeOllama } from '../../../plugins/ollama/encode.ts';
import { protocolNamed } from '../../../plugins/protocol-convert/protocols/index.ts';
import { mediaKindsIn } from '../../../plugins/protocol-convert/request/media-kinds.ts';
import type { ClientRequest, Play, ProtocolName, RequestTurn } from '../../matrix/scenario.ts';
import { vendors } from '../../matrix/vendors/index.ts';
import { hello, nameOf, pairs, sent, turn, usage } from '../../pitfalls/relayed.ts';
import { open, readBody, relay, targetFor, wholeAnswer } from './harness.ts';

const base64 = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image = { kind: 'image', mediaType: 'image/png', base64 } as const;
const said = (text: string): RequestTurn => ({ by: 'user', parts: [{ kind: 'text', text }] });
const shown: RequestTurn = { by: 'user', parts: [{ kind: 'text', text: 'What is it?' }, image] };
const answered: RequestTurn = { by: 'assistant', text: 'A dot.' };
const called: RequestTurn = { by: 'assistant', calls: [{ id: 'call_1', name: 'look', input: {} }] };
const result: RequestTurn = { by: 'tools', results: [{ callId: 'call_1', name: 'look', text: 'Seen.' }] };
const tools = [{ name: 'look', description: 'Looks.', schema: { type: 'object', properties: {} } }];
const done: Play = { text: 'Done.', meaning: 'stop', usage };
const blind = { inputs: [] };
const refusal = (field: RegExp) => (error: { code?: string; field?: string; kind?: string }) => {
  assert.deepEqual([error.kind, error.code], ['invalid_request', 'unsupported_by_model']);
  assert.match(error.field ?? '', field);
  return true;
};

const imageNames: Record<ProtocolName, string> = {
  chat: 'image_url',
  responses: 'input_image',
  messages: 'messages.content.image',
  gemini: 'contents[].parts[].inlineData',
};
const imageFields: Record<ProtocolName, RegExp> = {
  chat: /^messages\[\d\]\.content\[1\]\.image_url/,
  responses: /^input\[\d\]\.content\[1\]$/,
  messages: /^messages\[\d\]\.content\[1\]\.source/,
  gemini: /^contents\[\d\]\.parts\[1\]\.inlineData/,
};

const earlier: Record<string, RequestTurn[]> = {
  'in an earlier turn': [shown, answered, said('Go on.')],
  'in a turn that was refused': [shown, said('Then without it.')],
  'before a step with tools': [shown, answered, said('Look.'), called, result],
};
const last: Record<string, RequestTurn[]> = {
  'in the only turn': [shown],
  'in the last turn': [said('Hello.'), answered, shown],
  'before the calls that answer it': [said('Hello.'), answered, shown, called, result],
};

for (const pair of pairs) {
  test(`an image in an earlier turn becomes a text and is named; in the last turn of the user it is refused by its field (${nameOf(pair)})`, async () => {
    for (const isStream of [true, false]) {
      const options = { isStream, traits: blind };
      for (const [kind, turns] of Object.entries(earlier)) {
        const request: ClientRequest = { turns, tools };
        const { body, dropped, seen } = await turn(pair, request, done, options);
        assert.equal(body.split('(image that cannot be shown)').length - 1, 1, `${kind}: ${body}`);
        assert.ok(!body.includes(base64), kind);
        assert.ok(dropped?.split(', ').includes(imageNames[pair.client]), `${kind}: ${dropped}`);
        assert.equal(seen.text, 'Done.');
        const { body: whole } = await turn(pair, request, done, { isStream });
        assert.ok(whole.includes(base64), `${kind}, of a model with images`);
      }
      for (const [kind, turns] of Object.entries(last))
        await assert.rejects(turn(pair, { turns, tools }, done, options), refusal(imageFields[pair.client]), kind);
    }
  });
}

/** A file that another vendor keeps: as the user's part, as a tool's result in a conversation, its names. */
const files: Record<
  ProtocolName,
  { part: JsonObject; step: (part: JsonObject) => JsonObject[]; field: RegExp; name: string }
> = {
  chat: {
    part: { type: 'file', file: { file_id: 'file-abc' } },
    step: (part) => [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: [part] },
    ],
    field: /^messages\[2\]\.content\[0\]\.file/,
    name: 'file.file_id',
  },
  responses: {
    part: { type: 'input_file', file_id: 'file-abc' },
    step: (part) => [
      { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: [part] },
    ],
    field: /^input\[2\]\.content\[0\]/,
    name: 'file_id',
  },
  messages: {
    part: { type: 'document', source: { type: 'file', file_id: 'file_abc' } },
    step: (part) => [
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: [part] }] },
    ],
    field: /^messages\[2\]\.content\[0\]\.source/,
    name: 'messages.content.source.file_id',
  },
  gemini: {
    part: {
      fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/abc', mimeType: 'application/pdf' },
    },
    step: (part) => [
      { role: 'model', parts: [{ functionCall: { name: 'look', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'look', response: {}, parts: [part] } }] },
    ],
    field: /^contents\[2\]\.parts\[0\]\.fileData/,
    name: 'contents[].parts[].fileData',
  },
};

for (const pair of pairs) {
  test(`a file of another vendor becomes a text and is named in earlier turns and tool results; in the last turn of the user it is refused by its field (${nameOf(pair)})`, async () => {
    const { part, step, field, name } = files[pair.client];
    const isGemini = pair.client === 'gemini';
    const list = isGemini ? 'contents' : pair.client === 'responses' ? 'input' : 'messages';
    const by = (role: string, content: unknown): JsonObject =>
      isGemini ? { role: role === 'user' ? role : 'model', parts: content } : { role, content };
    const text = (words: string) => (isGemini ? [{ text: words }] : words);
    const hi = by('user', text('Hi.'));
    const reply = by('assistant', text('Hello.'));
    const user = by('user', [part]);
    for (const turns of [
      [user, reply, hi],
      [user, hi],
      [hi, ...step(part)],
    ]) {
      const { body, dropped } = await sent(pair, { [list]: turns });
      const found = JSON.stringify(body);
      assert.match(found, /\(document that cannot be shown\)/);
      assert.doesNotMatch(found, /abc/);
      assert.ok(dropped?.split(', ').includes(name), String(dropped));
    }
    await assert.rejects(sent(pair, { [list]: [hi, reply, user] }), refusal(field));
  });
}

test('an image of a kept conversation becomes a text; one beside previous_response_id is refused by the client’s own field', async () => {
  const vendor = 'chat';
  let exchanges = 0;
  const send = async (input: unknown, previous: string | undefined, traits: object, play = hello) => {
    const body = { model: 'model', input, ...(previous === undefined ? {} : { previous_response_id: previous }) };
    const id = `exchange-${++exchanges}`;
    const requested = { path: '/v1/responses', body, target: { protocol: vendor, traits }, id };
    const request = open(requested);
    await request.opening;
    const { answer, sent: made } = await relay(requested, wholeAnswer(vendors[vendor].whole(play, 'model')), request);
    const response = JSON.parse((await readBody(answer.body)).toString()) as { id: string };
    await new Promise(setImmediate);
    const text = Buffer.concat([made.body].flat() as Uint8Array[]).toString();
    return { id: response.id, body: text, dropped: answer.headers['x-gateway-dropped'] };
  };
  const picture = { type: 'input_image', image_url: `data:image/png;base64,${base64}` };
  const looking = [{ role: 'user', content: [{ type: 'input_text', text: 'What is it?' }, picture] }];
  const first = await send(looking, undefined, {});
  assert.ok(first.body.includes(base64));
  const { body, dropped } = await send('Go on.', first.id, blind);
  assert.match(body, /\(image that cannot be shown\)/);
  assert.equal(dropped, 'input_image');
  await assert.rejects(send(looking, first.id, blind), refusal(/^input\[0\]\.content\[1\]/));
  const step = await send(
    looking,
    undefined,
    {},
    { calls: [{ id: 'call_1', name: 'look', input: {} }], meaning: 'tool-calls', usage },
  );
  const output = { type: 'function_call_output', call_id: 'call_1', output: [picture] };
  await assert.rejects(send([output], step.id, blind), refusal(/^previous_response_id/));
  const { body: later } = await send([output, { role: 'user', content: 'Go on.' }], step.id, blind);
  assert.equal(later.split('(image that cannot be shown)').length - 1, 2);
});

test('content without a message around it is one turn: its image is refused', async () => {
  const picture = { type: 'input_image', image_url: `data:image/png;base64,${base64}` };
  const question = { type: 'input_text', text: 'What is it?' };
  for (const input of [
    [picture, question],
    [question, picture],
  ])
    await assert.rejects(
      sent({ client: 'responses', vendor: 'chat' }, { input }, { traits: blind }),
      refusal(/^input\[\d\]/),
    );
});

const encoders = {
  ...Object.fromEntries(
    (['chat', 'responses', 'messages', 'gemini'] as const).map((name) => [
      name,
      protocolNamed(name)!.codec.encodeRequest,
    ]),
  ),
  ollama: encodeOllama,
  cohere: encodeCohere,
  bedrock: encodeBedrock,
} satisfies Record<string, unknown>;
const bytes = (kind: MediaPart['kind'], mediaType: string): MediaPart => ({
  kind,
  source: { form: 'bytes', mediaType, base64 },
});
/** What no upstream without images, sounds and films takes. */
const unreadable: MediaPart[] = [
  bytes('image', 'image/png'),
  bytes('audio', 'audio/ogg'),
  bytes('video', 'video/mp4'),
  bytes('document', 'application/zip'),
  { kind: 'image', source: { form: 'url', url: 'https://a.example/a.png' } },
  { kind: 'document', source: { form: 'file', id: 'file-abc' } },
  { kind: 'image', source: { form: 'file', id: 'file-abc' } },
];

for (const [name, encodeRequest] of Object.entries(encoders)) {
  test(`every medium that a model cannot read is refused in the last turn alone (${name} upstream)`, () => {
    for (const part of unreadable) {
      const target = targetFor(name, 'model', { traits: blind });
      const encode = (turns: Turn[]) => {
        const dropped = new DroppedParameters({});
        const context = { target, traits: blind, maker: 'maker', dropped, stream: false, maxOutputTokens: undefined };
        const { body } = encodeRequest({ turns, tools: [] }, context as EncodeContext);
        return { text: JSON.stringify(body), dropped: dropped.dropped };
      };
      const user = (...parts: Part[]): Turn => ({ role: 'user', parts });
      const assistant = (...parts: Part[]): Turn => ({ role: 'assistant', parts });
      const hi: Part = { kind: 'text', text: 'Hi.' };
      const call: Part = { kind: 'tool-call', id: 'call_1', name: 'look', input: '{}' };
      const given: Part = { kind: 'tool-result', callId: 'call_1', parts: [part] };
      const setting = part.source.form === 'file' ? 'file' : part.kind;
      for (const turns of [
        [user(part), assistant(hi), user(hi)],
        [user(hi), { role: 'system', parts: [part] } as Turn, user(hi)],
        [user(hi), assistant(part), user(hi)],
        [user(hi), assistant(call), user(given)],
        [user(hi), assistant(call), user(given), user(hi)],
      ]) {
        const { text, dropped } = encode(turns);
        assert.ok(text.includes(`(${part.kind} that cannot be shown)`), `${part.kind}: ${text}`);
        assert.ok(!text.includes(base64));
        assert.deepEqual(dropped, [setting]);
      }
      for (const turns of [
        [user(part)],
        [user(hi), assistant(hi), user(hi, part)],
        [user(part), assistant(call), user({ ...given, parts: [hi] })],
      ])
        assert.throws(() => encode(turns as Turn[]), { code: 'unsupported_by_model', field: setting });
    }
  });
}

test('the kinds of media of a request are found in every protocol, in tool results too', () => {
  const kindsOf = (body: object) => [...mediaKindsIn(body as JsonObject)].sort();
  const list = (name: string, ...turns: object[]) => ({ [name]: [{ role: 'user', content: 'Hi.' }, ...turns] });
  const user = (...content: object[]) => ({ role: 'user', content });
  const data = (mimeType: string) => ({ inlineData: { mimeType, data: 'AA==' } });
  for (const [body, kinds] of [
    [{ input: 'Hi.' }, []],
    [list('messages'), []],
    [list('messages', user({ type: 'image_url', image_url: { url: 'https://a.example/a' } })), ['image']],
    [list('messages', { role: 'user', content: 'x', images: ['AA=='] }), ['image']],
    [list('messages', user({ type: 'input_audio' }, { type: 'file', file: { file_id: 'f' } })), ['audio', 'document']],
    [list('messages', user({ type: 'file', file: { filename: 'a.png', file_data: 'AA==' } })), ['image']],
    [
      list('messages', user({ type: 'tool_result', content: [{ type: 'image' }] }, { type: 'document' })),
      ['document', 'image'],
    ],
    [
      list('input', user({ type: 'input_image' }), { type: 'function_call_output', output: [{ type: 'input_file' }] }),
      ['document', 'image'],
    ],
    [list('input', { type: 'computer_call_output', output: { type: 'computer_screenshot' } }), ['image']],
    [
      { contents: [{ parts: [data('video/mp4'), { functionResponse: { parts: [data('image/png')] } }] }] },
      ['image', 'video'],
    ],
    [{ contents: [{ parts: [{ file_data: { mime_type: 'audio/wav' } }] }] }, ['audio']],
  ] as const)
    assert.deepEqual(kindsOf(body), kinds, JSON.stringify(body));
});
