/** Ids of what vendors keep, through the whole gateway: an account uses those that it was issued, and no others. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { startGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';
import { type Customer, faces, modelAt, speaks, startTestbed, yamlOf } from './testbed.ts';

const testbed = await startTestbed({
  providers: ({ replay }) => ({
    // Two keys: what one has made, the other cannot see.
    pair: { keys: ['pair-key-one', 'pair-key-two'], speaks: speaks(replay) },
    own: { keys: 'own-key', speaks: speaks(replay), unknown_ids: 'forward' },
    shared: { keys: 'shared-key', speaks: speaks(replay), shared_ids: ['vs_public', 'pmpt_public'] },
    foreign: { keys: 'foreign-key', speaks: { gemini: `${replay}/v1beta` } },
  }),
  models: {
    pair: modelAt('pair'),
    own: modelAt('own'),
    shared: modelAt('shared'),
    either: modelAt('replay', 'own'),
    foreign: modelAt('foreign'),
  },
});
after(() => testbed.stop());

const anna = await testbed.customer();
const bert = await testbed.customer();

interface Answered {
  readonly status: number;
  readonly text: string;
  readonly dropped: string | null;
}

async function send(customer: Customer, path: string, body: object, origin = testbed.origin): Promise<Answered> {
  const answer = await fetch(origin + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${customer.key}` },
    body: JSON.stringify(body),
  });
  const dropped = answer.headers.get('x-gateway-dropped');
  return { status: answer.status, text: await answer.text(), dropped };
}

const usages = {
  chat: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
  messages: { input_tokens: 5, output_tokens: 5 },
  gemini: { promptTokenCount: 5, candidatesTokenCount: 5, totalTokenCount: 10 },
};
const json = (body: object) => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
const sse = (body: string) => ({ headers: { 'content-type': 'text/event-stream' }, body });
const frame = (type: string, members: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;

const response = (output: object[], more: object = {}) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'replay',
  output,
  usage: { input_tokens: 5, output_tokens: 5, total_tokens: 10 },
  ...more,
});
const chat = (message: object) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'replay',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
  usage: usages.chat,
});
const message = (content: object[], more: object = {}) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'replay',
  content,
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: usages.messages,
  ...more,
});
const gemini = (parts: object[]) => ({
  candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
  usageMetadata: usages.gemini,
});

const text = { type: 'output_text', text: 'ok', annotations: [] };
const answers = {
  responses: json(response([{ type: 'message', id: 'm', role: 'assistant', content: [text], status: 'completed' }])),
  chat: json(chat({ content: 'ok' })),
  messages: json(message([{ type: 'text', text: 'ok' }])),
  gemini: json(gemini([{ text: 'ok' }])),
};
type Protocol = keyof typeof answers;

const pathOf = (protocol: Protocol, model: string, stream = false) =>
  ({
    responses: '/v1/responses',
    chat: '/v1/chat/completions',
    messages: '/v1/messages',
    gemini: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  })[protocol];

/** A body of this protocol with one more member or message. */
function bodyOf(protocol: Protocol, model: string, requested: object): object {
  const said = { role: 'user', content: 'hi' };
  if (protocol === 'responses') return { model, input: 'hi', ...requested };
  if (protocol === 'chat') return { model, messages: [said], ...requested };
  if (protocol === 'messages') return { model, max_tokens: 10, messages: [said], ...requested };
  return { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], ...requested };
}

const user = (content: unknown) => [{ role: 'user', content }];
/** Each way to name something, for any id. */
const uses: readonly (readonly [string, Protocol, (id: string) => object])[] = [
  ['conversation', 'responses', (id) => ({ conversation: id })],
  ['conversation.id', 'responses', (id) => ({ conversation: { id } })],
  ['prompt.id', 'responses', (id) => ({ prompt: { id } })],
  ['input[0].content[0].file_id', 'responses', (id) => ({ input: user([{ type: 'input_file', file_id: id }]) })],
  [
    'input[0].output[0].file_id',
    'responses',
    (id) => ({
      input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', file_id: id }] }],
    }),
  ],
  ['tools[0].vector_store_ids[0]', 'responses', (id) => ({ tools: [{ type: 'file_search', vector_store_ids: [id] }] })],
  ['tools[0].container', 'responses', (id) => ({ tools: [{ type: 'code_interpreter', container: id }] })],
  [
    'tools[0].container.file_ids[0]',
    'responses',
    (id) => ({ tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: [id] } }] }),
  ],
  ['input[0].id', 'responses', (id) => ({ input: [{ type: 'image_generation_call', id }] })],
  [
    'messages[0].content[0].file.file_id',
    'chat',
    (id) => ({ messages: user([{ type: 'file', file: { file_id: id } }]) }),
  ],
  [
    'messages[1].audio.id',
    'chat',
    (id) => ({ messages: [...user('hi'), { role: 'assistant', audio: { id } }, ...user('on')] }),
  ],
  ['container', 'messages', (id) => ({ container: id })],
  [
    'messages[0].content[0].source.file_id',
    'messages',
    (id) => ({ messages: user([{ type: 'document', source: { type: 'file', file_id: id } }]) }),
  ],
  [
    'messages[2].content[0].content[0].source.file_id',
    'messages',
    (id) => ({
      messages: [
        ...user('hi'),
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
        ...user([
          {
            type: 'tool_result',
            tool_use_id: 't',
            content: [{ type: 'image', source: { type: 'file', file_id: id } }],
          },
        ]),
      ],
    }),
  ],
  ['cachedContent', 'gemini', (id) => ({ cachedContent: id })],
  [
    'contents[0].parts[0].fileData.fileUri',
    'gemini',
    (id) => ({ contents: [{ role: 'user', parts: [{ fileData: { fileUri: id } }] }] }),
  ],
];

for (const [field, protocol, use] of uses) {
  for (const stream of [false, true]) {
    test(`an id that was never issued is refused, ${stream ? 'streamed' : 'whole'}: ${field} of ${protocol}`, async () => {
      const before = testbed.replay.requests.length;
      const body = bodyOf(protocol, 'replay', { ...use('guess_1'), ...(protocol === 'gemini' ? {} : { stream }) });
      const { status, text: reply } = await send(anna, pathOf(protocol, 'replay', stream), body);
      assert.equal(status, 400, reply);
      assert.match(reply, /with id 'guess_1' not found/);
      assert.equal(testbed.replay.requests.length, before, 'nothing reaches the vendor');
    });
  }

  test(`a provider whose account is one customer's accepts it: ${field} of ${protocol}`, async () => {
    testbed.replay.play(answers[protocol]);
    const body = bodyOf(protocol, 'own', use('guess_1'));
    const { status, text: reply } = await send(anna, pathOf(protocol, 'own'), body);
    assert.equal(status, 200, reply);
    assert.deepEqual(JSON.parse(testbed.replay.requests.at(-1)!.body.toString()), body);
  });
}

for (const [path, body] of [
  [
    '/v1/messages/count_tokens',
    { messages: user([{ type: 'document', source: { type: 'file', file_id: 'guess_2' } }]) },
  ],
  ['/v1/responses/input_tokens', { input: user([{ type: 'input_file', file_id: 'guess_2' }]) }],
  ['/v1/responses/compact', { input: user([{ type: 'input_file', file_id: 'guess_2' }]) }],
  ['/v1/chat/completions', { input: user([{ type: 'input_file', file_id: 'guess_2' }]) }],
  ['/v1beta/models/replay:countTokens', { contents: [{ parts: [{ fileData: { fileUri: 'guess_2' } }] }] }],
  [
    '/v1beta/models/replay:countTokens',
    { generateContentRequest: { model: 'models/replay', cachedContent: 'guess_2', contents: [] } },
  ],
] as const) {
  test(`counts, compactions and bodies at another address are checked too: ${path}`, async () => {
    const before = testbed.replay.requests.length;
    const { status, text: reply } = await send(
      anna,
      path,
      path.includes('replay') ? body : { model: 'replay', ...body },
    );
    assert.equal(status, 400, reply);
    assert.match(reply, /guess_2|cannot read files that another service keeps/);
    assert.equal(testbed.replay.requests.length, before);
  });
}

test('a repeated member that decides where a request goes is refused', async () => {
  const before = testbed.replay.requests.length;
  for (const [path, members] of [
    ['/v1/responses', '"model":"replay","input":"x","conversation":"conv_no","conversation":null'],
    ['/v1/messages', '"model":"replay","max_tokens":9,"messages":[],"container":"c_no","container":null'],
    ['/v1beta/models/replay:generateContent', '"contents":[],"cachedContent":"c_no","cachedContent":null'],
  ] as const) {
    const answer = await fetch(testbed.origin + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${anna.key}` },
      body: `{${members}}`,
    });
    assert.equal(answer.status, 400);
    assert.match(await answer.text(), /more than once/);
  }
  assert.equal(testbed.replay.requests.length, before);
});

test('the refusal names the member in the form of the protocol', async () => {
  const { text: reply } = await send(anna, '/v1/responses', bodyOf('responses', 'replay', { conversation: 'conv_no' }));
  const { error } = JSON.parse(reply);
  assert.deepEqual(
    [error.type, error.param, error.code, error.message],
    ['invalid_request_error', 'conversation', 'resource_not_found', "Conversation with id 'conv_no' not found."],
  );
});

test('ids that the operator shares are accepted from every account', async () => {
  testbed.replay.play(answers.responses);
  const tools = [{ type: 'file_search', vector_store_ids: ['vs_public'] }];
  const shared = { tools, prompt: { id: 'pmpt_public' } };
  for (const customer of [anna, bert])
    assert.equal((await send(customer, '/v1/responses', bodyOf('responses', 'shared', shared))).status, 200);
  const other = { tools: [{ type: 'file_search', vector_store_ids: ['vs_public', 'vs_other'] }] };
  assert.equal((await send(anna, '/v1/responses', bodyOf('responses', 'shared', other))).status, 400);
});

test('a target that accepts any id is tried where another must not receive it', async () => {
  testbed.replay.play(answers.responses);
  const body = bodyOf('responses', 'either', { conversation: 'conv_own' });
  assert.equal((await send(anna, '/v1/responses', body)).status, 200);
  assert.equal(testbed.replay.requests.at(-1)!.headers.authorization, 'Bearer own-key');
});

test("a vendor's file in an address of another protocol is found", async () => {
  const before = testbed.replay.requests.length;
  for (const uri of ['gs://bucket/of-another', `${testbed.replay.origin}/v1beta/files/of-another`]) {
    const content = [{ type: 'image_url', image_url: { url: uri } }];
    const { status } = await send(anna, '/v1/chat/completions', { model: 'foreign', messages: user(content) });
    assert.ok(status >= 400 && status < 500, uri);
  }
  assert.equal(testbed.replay.requests.length, before);
});

test('a public address is not treated as an id', async () => {
  testbed.replay.play(answers.gemini);
  const request = {
    contents: [{ role: 'user', parts: [{ fileData: { fileUri: 'https://video.example/watch?v=1' } }] }],
  };
  assert.equal((await send(anna, pathOf('gemini', 'replay'), request)).status, 200);
});

test('arguments and results of functions are not treated as ids', async () => {
  testbed.replay.play(answers.messages);
  const messages = [
    ...user('hi'),
    { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'open', input: { file_id: 'mine' } }] },
    ...user([{ type: 'tool_result', tool_use_id: 't', content: '{"file_id":"mine"}' }]),
  ];
  assert.equal((await send(anna, '/v1/messages', { model: 'replay', max_tokens: 9, messages })).status, 200);
});

/** How each id is issued, and then used. */
const issues: readonly (readonly [string, Protocol, string, object, object | undefined, (id: string) => object])[] = [
  [
    'the container of a code run',
    'responses',
    'cntr_w',
    json(
      response([{ type: 'code_interpreter_call', id: 'ci', status: 'completed', code: '', container_id: 'cntr_w' }]),
    ),
    sse(
      frame('response.created', { response: response([], { status: 'in_progress' }) }) +
        frame('response.output_item.done', {
          item: { type: 'code_interpreter_call', id: 'ci', container_id: 'cntr_w' },
        }) +
        frame('response.completed', { response: response([]) }),
    ),
    (id) => ({ tools: [{ type: 'code_interpreter', container: id }] }),
  ],
  [
    'a conversation',
    'responses',
    'conv_w',
    json(response([], { conversation: { id: 'conv_w' } })),
    sse(frame('response.completed', { response: response([], { conversation: { id: 'conv_w' } }) })),
    (id) => ({ conversation: { id } }),
  ],
  [
    'an image',
    'responses',
    'ig_w',
    json(response([{ type: 'image_generation_call', id: 'ig_w', status: 'completed', result: 'AAAA' }])),
    sse(
      frame('response.completed', { response: response([{ type: 'image_generation_call', id: 'ig_w', result: 'A' }]) }),
    ),
    (id) => ({ input: [{ type: 'image_generation_call', id }] }),
  ],
  [
    'a sound',
    'chat',
    'audio_w',
    json(chat({ content: null, audio: { id: 'audio_w', data: 'AA==', transcript: 'hi', expires_at: 1 } })),
    sse(
      `${['{"role":"assistant","audio":{"id":"audio_w"}}', '{"audio":{"data":"AA=="}}']
        .map((delta) => `data: {"id":"c","choices":[{"index":0,"delta":${delta},"finish_reason":null}]}\n\n`)
        .join('')}data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`,
    ),
    (id) => ({ messages: [...user('hi'), { role: 'assistant', audio: { id } }, ...user('on')] }),
  ],
  [
    'a file of a run',
    'messages',
    'file_w',
    json(
      message([
        {
          type: 'bash_code_execution_tool_result',
          tool_use_id: 's',
          content: { type: 'bash_code_execution_result', content: [{ file_id: 'file_w' }] },
        },
      ]),
    ),
    sse(
      frame('message_start', { message: message([], { stop_reason: null }) }) +
        frame('content_block_start', {
          index: 0,
          content_block: {
            type: 'bash_code_execution_tool_result',
            tool_use_id: 's',
            content: { type: 'bash_code_execution_result', content: [{ file_id: 'file_w' }] },
          },
        }) +
        frame('content_block_stop', { index: 0 }) +
        frame('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } }) +
        frame('message_stop', {}),
    ),
    (id) => ({ messages: user([{ type: 'container_upload', file_id: id }]) }),
  ],
  [
    'a container of messages',
    'messages',
    'container_w',
    json(message([{ type: 'text', text: 'ok' }], { container: { id: 'container_w', expires_at: 'x' } })),
    sse(
      frame('message_start', { message: message([], { stop_reason: null }) }) +
        frame('content_block_start', { index: 0, content_block: { type: 'text', text: 'k' } }) +
        frame('content_block_stop', { index: 0 }) +
        frame('message_delta', {
          delta: { stop_reason: 'end_turn', container: { id: 'container_w' } },
          usage: { output_tokens: 5 },
        }) +
        frame('message_stop', {}),
    ),
    (id) => ({ container: id }),
  ],
  [
    'a file of Gemini',
    'gemini',
    'files/w',
    json(gemini([{ fileData: { fileUri: 'files/w', mimeType: 'image/png' } }])),
    sse(`data: ${JSON.stringify(gemini([{ fileData: { fileUri: 'files/w', mimeType: 'image/png' } }]))}\n\n`),
    (id) => ({ contents: [{ role: 'user', parts: [{ fileData: { fileUri: id } }] }] }),
  ],
];

for (const [what, protocol, id, whole, streamed, use] of issues) {
  for (const [form, script] of [
    ['whole', whole],
    ['streamed', streamed],
  ] as const) {
    if (script === undefined) continue;
    test(`${what}, issued in an answer that is ${form}, is for its account alone, with its key`, async () => {
      const owner = await testbed.customer();
      const stream = form === 'streamed';
      testbed.replay.play(script, answers[protocol]);
      const requested = bodyOf(protocol, 'pair', protocol === 'gemini' ? {} : { stream });
      const first = await send(owner, pathOf(protocol, 'pair', stream), requested);
      assert.equal(first.status, 200, first.text);
      const { headers: maker } = testbed.replay.requests.at(-1)!;
      const next = bodyOf(protocol, 'pair', use(id));
      for (let round = 0; round < 3; round++) {
        const again = await send(owner, pathOf(protocol, 'pair'), next);
        assert.equal(again.status, 200, again.text);
        const { headers, body } = testbed.replay.requests.at(-1)!;
        for (const name of ['authorization', 'x-api-key', 'x-goog-api-key'])
          assert.equal(headers[name], maker[name], 'the same key each time');
        assert.deepEqual(JSON.parse(body.toString()), next);
      }
      const before = testbed.replay.requests.length;
      const other = await send(bert, pathOf(protocol, 'pair'), next);
      assert.equal(other.status, 400, other.text);
      assert.equal(testbed.replay.requests.length, before);
    });
  }
}

test('an id of one provider is not sent to another', async () => {
  testbed.replay.play(json(response([], { conversation: { id: 'conv_of_pair' } })), answers.responses);
  const owner = await testbed.customer();
  await send(owner, '/v1/responses', bodyOf('responses', 'pair', {}));
  const before = testbed.replay.requests.length;
  const { status } = await send(
    owner,
    '/v1/responses',
    bodyOf('responses', 'replay', { conversation: 'conv_of_pair' }),
  );
  assert.deepEqual([status, testbed.replay.requests.length], [400, before]);
});

const issuedLast: Record<Protocol, (id: string) => object> = {
  responses: (id) => ({ input: user([{ type: 'input_file', file_id: id }]) }),
  chat: (id) => ({ messages: user([{ type: 'file', file: { file_id: id } }]) }),
  messages: (id) => ({ messages: user([{ type: 'document', source: { type: 'file', file_id: id } }]) }),
  gemini: (id) => ({ contents: [{ role: 'user', parts: [{ fileData: { fileUri: id } }] }] }),
};
const later: readonly (readonly [Protocol, string, (id: string) => object])[] = [
  ['responses', 'input_file', (id) => ({ input: [...user([{ type: 'input_file', file_id: id }]), ...user('Go on.')] })],
  [
    'responses',
    'function_call_output',
    (id) => ({
      input: [
        ...user('Look.'),
        { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file', file_id: id }] },
      ],
    }),
  ],
  ['chat', 'file', (id) => ({ messages: [...user([{ type: 'file', file: { file_id: id } }]), ...user('Go on.')] })],
  [
    'messages',
    'document',
    (id) => ({ messages: [...user([{ type: 'document', source: { type: 'file', file_id: id } }]), ...user('Go on.')] }),
  ],
  [
    'messages',
    'tool_result',
    (id) => ({
      messages: [
        ...user('Look.'),
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'look', input: {} }] },
        ...user([
          {
            type: 'tool_result',
            tool_use_id: 't',
            content: [{ type: 'document', source: { type: 'file', file_id: id } }],
          },
        ]),
      ],
    }),
  ],
  [
    'gemini',
    'fileData',
    (id) => ({
      contents: [
        { role: 'user', parts: [{ fileData: { fileUri: id, mimeType: 'application/pdf' } }] },
        { role: 'user', parts: [{ text: 'Go on.' }] },
      ],
    }),
  ],
  [
    'gemini',
    'functionResponse',
    (id) => ({
      contents: [
        { role: 'user', parts: [{ text: 'Look.' }] },
        { role: 'model', parts: [{ functionCall: { name: 'look', args: {} } }] },
        {
          role: 'user',
          parts: [
            {
              functionResponse: {
                name: 'look',
                response: { ok: true },
                parts: [{ fileData: { fileUri: id, mimeType: 'application/pdf' } }],
              },
            },
          ],
        },
      ],
    }),
  ],
];

for (const [protocol, place, use] of later) {
  test(`an issued file of an earlier turn or a tool's result goes to its vendor alone, and another model gets a text with its name: ${place} of ${protocol}`, async () => {
    const owner = await testbed.customer();
    const file = [{ file_id: 'files/held' }];
    const content = { type: 'bash_code_execution_result', content: file };
    testbed.replay.play(json(message([{ type: 'bash_code_execution_tool_result', tool_use_id: 's', content }])));
    await send(owner, '/v1/messages', bodyOf('messages', 'own', {}));
    for (const [model, answer] of [
      ['own', protocol],
      ['replay', protocol],
      ['foreign', 'gemini'],
    ] as const) {
      testbed.replay.play(answers[answer]);
      const requested = bodyOf(protocol, model, use('files/held'));
      const { status, text: reply, dropped } = await send(owner, pathOf(protocol, model), requested);
      assert.equal(status, 200, `${model}: ${reply}`);
      const sent = testbed.replay.requests.at(-1)!.body.toString();
      if (model === 'own') assert.deepEqual(JSON.parse(sent), requested);
      else {
        assert.doesNotMatch(sent, /files\/held/);
        assert.match(sent, /\(document that cannot be shown\)/);
        assert.match(dropped ?? '', /file/);
      }
    }
    const before = testbed.replay.requests.length;
    const last = issuedLast[protocol];
    const refused = await send(owner, pathOf(protocol, 'replay'), bodyOf(protocol, 'replay', last('files/held')));
    assert.deepEqual([refused.status, testbed.replay.requests.length], [400, before], refused.text);
    const stranger = await send(bert, pathOf(protocol, 'replay'), bodyOf(protocol, 'replay', use('files/held')));
    assert.equal(stranger.status, 400, stranger.text);
  });
}

test('the echo of a request issues no ids', async () => {
  const owner = await testbed.customer();
  testbed.replay.play(json(response([], { conversation: { id: 'conv_echo' } })), answers.responses);
  const requested = { conversation: 'conv_echo' };
  assert.equal((await send(owner, '/v1/responses', bodyOf('responses', 'own', requested))).status, 200);
  assert.equal((await send(owner, '/v1/responses', bodyOf('responses', 'replay', requested))).status, 400);
});

test('issued ids are known after a restart, and to other processes', async () => {
  const owner = await testbed.customer();
  testbed.replay.play(json(response([], { conversation: { id: 'conv_kept' } })), answers.responses);
  await send(owner, '/v1/responses', bodyOf('responses', 'replay', {}));
  const row = await until('the id is written', async () => {
    const rows = await testbed.rows<{ id: string; account_id: string; provider: string }>('issued_ids');
    return rows.find(({ id }) => id === 'conv_kept');
  });
  assert.deepEqual([row.account_id, row.provider], [owner.accountId, 'replay']);
});

test('a gateway that starts again finds the stored ids', async (context) => {
  const first = await startTestbed();
  context.after(() => first.stop());
  const { directory, gateway } = first.gateway;
  try {
    const owner = await first.customer();
    first.replay.play(json(response([], { conversation: { id: 'conv_again' } })), answers.responses);
    await send(owner, '/v1/responses', bodyOf('responses', 'replay', {}), first.origin);
    await gateway.stop(0);
    const providers = { replay: { keys: 'vendor-key-of-the-replay', speaks: speaks(first.replay.origin) } };
    const plans = { default: 'open', offers: { open: { price: 0 } } };
    const sections = {
      gateway: 'test',
      listen: '127.0.0.1:0',
      plans,
      providers,
      models: { replay: modelAt('replay') },
    };
    const schema = /^schema: "?([a-z0-9_]+)/m.exec(await yamlIn(directory))![1]!;
    await using second = await startGateway(yamlOf({ ...sections, schema }), {
      directory,
      ...(process.env['TEST_DATABASE_URL'] ? { environment: { DATABASE_URL: process.env['TEST_DATABASE_URL'] } } : {}),
    });
    context.after(() => second.stop());
    const { origin } = faces(second);
    const requested = bodyOf('responses', 'replay', { conversation: 'conv_again' });
    assert.equal((await send(owner, '/v1/responses', requested, origin)).status, 200);
    const guess = bodyOf('responses', 'replay', { conversation: 'conv_guess' });
    assert.equal((await send(owner, '/v1/responses', guess, origin)).status, 400);
  } finally {
    await first.stop().catch(() => {});
  }
});

async function yamlIn(directory: string): Promise<string> {
  return readFile(`${directory}/gateway.yaml`, 'utf8');
}
