/** What vendors take beyond their documents, and what they demand: single objects, queries, reasoning beside tools, files in stores. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { call } from '../../../plugins/common/domain/calls.ts';
import type { Traits } from '../../../plugins/common/domain/traits.ts';
import type { UpstreamTraits } from '../../../plugins/common/domain/upstreams.ts';
import { open, type RelayRequest, readBody, relay, streamAnswer, wholeAnswer } from './harness.ts';

const answers: Readonly<Record<string, object>> = {
  gemini: { candidates: [{ content: { parts: [{ text: 'ok' }] }, finishReason: 'STOP' }] },
  messages: { type: 'message', role: 'assistant', content: [{ type: 'text', text: 'ok' }], stop_reason: 'end_turn' },
  responses: {
    ...{ object: 'response', status: 'completed' },
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok' }] }],
  },
  chat: { choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }] },
};

/** What goes out for this request: the address and the body. */
async function sent(
  requested: RelayRequest,
  protocol: string,
  traits: Traits = {},
  upstream: Partial<UpstreamTraits> = {},
) {
  const relayed = await relay(
    { ...requested, target: { protocol, traits, upstream } },
    wholeAnswer(JSON.stringify(answers[protocol])),
  );
  const body = Buffer.from(relayed.sent.body as Uint8Array).toString();
  return { url: relayed.sent.url, text: body, body: JSON.parse(body), headers: relayed.answer.headers };
}

const gemini = '/v1beta/models/m:generateContent';

test('single objects instead of the lists of generate-content are taken as lists of one', async () => {
  const listed = {
    contents: [{ role: 'user', parts: [{ text: 'Hello there' }] }],
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    tools: [{ functionDeclarations: [{ name: 'look', description: 'Looks.' }] }],
  };
  const single = {
    contents: { role: 'user', parts: { text: 'Hello there' } },
    systemInstruction: { parts: { text: 'Be brief.' } },
    tools: { functionDeclarations: { name: 'look', description: 'Looks.' } },
  };
  const mixed = { ...listed, contents: [{ role: 'user', parts: { text: 'Hello there' } }], tools: single.tools };
  for (const protocol of ['chat', 'responses', 'messages']) {
    const expected = await sent({ path: gemini, body: listed }, protocol);
    for (const body of [single, mixed])
      assert.deepEqual((await sent({ path: gemini, body }, protocol)).body, expected.body, protocol);
  }
  const { text } = await sent({ path: gemini, body: single }, 'gemini');
  assert.equal(text, JSON.stringify(single));
  const image = { inlineData: { mimeType: 'image/png', data: 'A'.repeat(400_000) } };
  const large = { contents: { role: 'user', parts: image }, tools: { googleSearch: {} } };
  const opened = open({ path: gemini, body: large }).exchange.get(call);
  assert.ok(opened.inputTokens < 10_000);
  assert.equal(opened.toolCalls, 10);
});

test('a fault in a single object is named as the client wrote it', async () => {
  for (const [body, field] of [
    [{ contents: { role: 'user', parts: { text: 7 } } }, 'contents.parts.text'],
    [{ contents: [{ role: 'user', parts: { text: 7 } }] }, 'contents[0].parts.text'],
    [{ contents: { role: 'user', parts: [{ text: 7 }] } }, 'contents.parts[0].text'],
    [{ contents: 'x' }, 'contents'],
  ] as const)
    await assert.rejects(
      () => sent({ path: gemini, body }, 'chat'),
      (error: unknown) => error instanceof GatewayError && error.field === field,
      field,
    );
});

test('sealed signatures are taken out of single objects too', async () => {
  const seal = Buffer.from('gw1.abc o').toString('base64');
  for (const wrap of [<T>(value: T) => value, <T>(value: T) => [value]]) {
    const parts = wrap({ text: 'a', thoughtSignature: seal });
    const body = { contents: wrap({ role: 'model', parts }) };
    const { text } = await sent({ path: gemini, body }, 'gemini');
    assert.equal(text, JSON.stringify({ contents: wrap({ role: 'model', parts: wrap({ text: 'a' }) }) }));
  }
});

const chat = { model: 'm', messages: [{ role: 'user', content: 'x' }] };
const messages = { model: 'm', max_tokens: 9, messages: chat.messages };
const contents = { contents: [{ role: 'user', parts: [{ text: 'x' }] }] };

test('a relay hands on query members that are not the gateway’s own', async () => {
  const cases = [
    ['/v1/messages?beta=true', messages, 'messages', '/messages?beta=true'],
    ['/v1/messages?beta=true&beta=a%26b&x=', messages, 'messages', '/messages?beta=true&beta=a%26b&x='],
    ['/v1/chat/completions?api-version=2026-01-01', chat, 'chat', '/chat/completions?api-version=2026-01-01'],
    ['/v1/responses?a=1', { model: 'm', input: 'x' }, 'responses', '/responses?a=1'],
    [
      `${gemini}?key=secret&alt=json&prettyPrint=false`,
      contents,
      'gemini',
      '/models/m:generateContent?prettyPrint=false',
    ],
    [`${gemini}?key=secret`, contents, 'gemini', '/models/m:generateContent'],
  ] as const;
  for (const [path, body, protocol, end] of cases) {
    const { url } = await sent({ path, body }, protocol);
    assert.ok(url.endsWith(end), `${path} → ${url}`);
    assert.ok(!url.includes('secret'));
  }
});

test('query members that would take usage out of the answer are left out and named', async () => {
  const { url, headers } = await sent(
    { path: `${gemini}?fields=candidates&$callback=f&q=1`, body: contents },
    'gemini',
  );
  assert.ok(url.endsWith(':generateContent?q=1'), url);
  assert.equal(headers['x-gateway-dropped'], 'fields, $callback');
});

test('a translated request hands no query on', async () => {
  const { url } = await sent({ path: '/v1/messages?beta=true', body: messages }, 'chat');
  assert.ok(url.endsWith('/chat/completions'));
});

test('a chat model that does not reason beside tools is asked not to', async () => {
  const traits: Traits = { reasoning_with_tools: false, efforts: ['none', 'low', 'high'] };
  const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }];
  const thinking = { thinking: { type: 'enabled', budget_tokens: 5_000 }, max_tokens: 9_000 };
  const requestOf = (more: object): RelayRequest => ({ path: '/v1/messages', body: { ...messages, ...more } });
  for (const more of [{}, thinking]) {
    const { body, headers } = await sent(requestOf({ ...more, tools }), 'chat', traits);
    assert.equal(body.reasoning_effort, 'none');
    assert.equal(headers['x-gateway-dropped']?.includes('thinking') ?? false, more === thinking);
  }
  assert.equal((await sent(requestOf({}), 'chat', traits)).body.reasoning_effort, undefined);
  assert.equal((await sent(requestOf(thinking), 'chat', traits)).body.reasoning_effort, 'high');
  assert.equal((await sent(requestOf({ tools }), 'chat')).body.reasoning_effort, undefined);
});

/** The operator says that every account may read what the vendor reads for its key. */
const ownStore = { uncheckedIds: { all: true, shared: new Set<string>() } };

test('an image in a store goes to vendors that read it, and is refused by its field for others', async () => {
  const url = 'gs://bucket/fox.png';
  const shapes: readonly (readonly [RelayRequest, string])[] = [
    [
      {
        path: '/v1/chat/completions',
        body: { ...chat, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] },
      },
      'messages[0].content[0].image_url',
    ],
    [
      {
        path: '/v1/messages',
        body: {
          ...messages,
          messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url } }] }],
        },
      },
      'messages[0].content[0].source',
    ],
    [
      {
        path: '/v1/responses',
        body: { model: 'm', input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
      },
      'input[0].content[0]',
    ],
  ];
  for (const [requested, field] of shapes) {
    await assert.rejects(() => sent(requested, 'gemini'), { code: 'resource_not_found' });
    const { body } = await sent(requested, 'gemini', {}, ownStore);
    assert.deepEqual(body.contents[0].parts, [{ fileData: { mimeType: 'image/png', fileUri: url } }], requested.path);
    for (const protocol of ['messages', 'responses', 'chat'].filter((name) => !requested.path.includes(name)))
      await assert.rejects(
        () => sent(requested, protocol),
        (error: unknown) =>
          error instanceof GatewayError && error.status === 400 && error.field?.startsWith(field) === true,
        `${requested.path} → ${protocol}`,
      );
    if (requested.path.includes('chat')) continue;
    const read = await sent(requested, 'chat', { file_stores: ['gs'] }, ownStore);
    assert.ok(read.text.includes(`"image_url":{"url":"${url}"}`), read.text);
  }
});

for (const index of ['1e400', '-1', '0.5', '4294967295'])
  test(`a candidate with the number ${index} is left out of the chunks`, async () => {
    const candidate = (at: string, text: string) => `{"index":${at},"content":{"parts":[{"text":"${text}"}]}}`;
    const chunk = `data: {"candidates":[${candidate('0', 'seen')},${candidate(index, 'unseen')}]}\n\n`;
    const request: RelayRequest = {
      path: '/v1/chat/completions',
      body: { model: 'm', messages: [{ role: 'user', content: 'hi' }], stream: true },
      target: { protocol: 'gemini' },
    };
    const { answer } = await relay(request, streamAnswer([chunk]));
    const text = (await readBody(answer.body)).toString();
    assert.match(text, /"content":"seen"/);
    for (const [, data] of text.matchAll(/^data: (\{.*)$/gm)) JSON.parse(data!);
    assert.doesNotMatch(text, /unseen/);
  });
