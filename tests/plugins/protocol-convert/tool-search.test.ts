/** A client of responses that searches for tools by itself, with models of other protocols: what is offered, and what comes back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResponseOutputItem, ResponseToolSearchCall } from 'openai/resources/responses/responses';
import { foreignItems } from '../../../plugins/protocol-convert/protocols/responses/decode/input-items.ts';
import { keptItems } from '../../../plugins/protocol-convert/state/items.ts';
import { replayed } from '../../../plugins/protocol-convert/state/replay.ts';
import { sent } from '../../pitfalls/relayed.ts';
import { type Family, type Json, upstreamAnswer } from './answers.ts';
import { framesOf, readBySdk } from './codec/responses-helpers.ts';
import { readBody, relay } from './harness.ts';

const vendors = ['chat', 'messages', 'gemini'] as const satisfies readonly Family[];
type Vendor = (typeof vendors)[number];

const parameters = { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] };
const search = { type: 'tool_search', execution: 'client', description: 'Finds tools.', parameters };
const plain = { type: 'object', properties: {} };
const fn = (name: string, more: object = {}) => ({ type: 'function', name, parameters: plain, ...more });
const namespace = (name: string, ...tools: object[]) => ({ type: 'namespace', name, description: '', tools });
const user = { role: 'user', content: 'Write to Ada' };
const asked = { type: 'tool_search_call', call_id: 'c1', execution: 'client', arguments: { query: 'mail' } };
const found = (...tools: object[]) => ({ type: 'tool_search_output', call_id: 'c1', execution: 'client', tools });
const mail = {
  ...namespace('mcp__mail', fn('send', { description: 'Sends a mail.\nAt once.', defer_loading: true })),
  description: 'Mail of the company.',
};

/** How a vendor's request says what matters here. */
const readers: Readonly<Record<Vendor, { offered(body: Json): Json[]; history(body: Json): Json[] }>> = {
  chat: {
    offered: ({ tools }) => tools.map(({ function: one }: Json) => one),
    history: ({ messages }) =>
      messages.flatMap(({ role, content, tool_calls }: Json) =>
        role === 'tool'
          ? [content]
          : (tool_calls ?? []).map(({ function: one }: Json) => [one.name, JSON.parse(one.arguments)]),
      ),
  },
  messages: {
    offered: ({ tools }) => tools.map(({ input_schema, ...one }: Json) => ({ ...one, parameters: input_schema })),
    history: ({ messages }) =>
      messages
        .flatMap(({ content }: Json) => (typeof content === 'string' ? [] : content))
        .flatMap(({ type, name, input, content }: Json) => {
          if (type === 'tool_use') return [[name, input]];
          return type === 'tool_result' ? [typeof content === 'string' ? content : content[0].text] : [];
        }),
  },
  gemini: {
    offered: ({ tools }) =>
      tools[0].functionDeclarations.map(({ parametersJsonSchema, ...one }: Json) => ({
        ...one,
        parameters: parametersJsonSchema,
      })),
    history: ({ contents }) =>
      contents
        .flatMap(({ parts }: Json) => parts)
        .flatMap(({ functionCall, functionResponse }: Json) => {
          if (functionCall) return [[functionCall.name, functionCall.args]];
          return functionResponse ? [Object.values(functionResponse.response)[0]] : [];
        }),
  },
};
const namesIn = (vendor: Vendor, body: Json): string[] => readers[vendor].offered(body).map(({ name }) => name);

/** What a vendor answers that calls these functions. */
function calling(vendor: Vendor, calls: readonly (readonly [name: string, input: object | string])[]): Json {
  switch (vendor) {
    case 'chat': {
      const tool_calls = calls.map(([name, input], index) => ({
        ...{ id: `call_${index}`, type: 'function' },
        function: { name, arguments: typeof input === 'string' ? input : JSON.stringify(input) },
      }));
      const choice = {
        index: 0,
        message: { role: 'assistant', content: null, tool_calls },
        finish_reason: 'tool_calls',
      };
      const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
      return { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [choice], usage };
    }
    case 'messages': {
      const content = calls.map(([name, input], index) => ({ type: 'tool_use', id: `toolu_${index}`, name, input }));
      const usage = { input_tokens: 9, output_tokens: 3 };
      const head = { id: 'x', type: 'message', role: 'assistant', model: 'm' };
      return { ...head, content, stop_reason: 'tool_use', stop_sequence: null, usage };
    }
    case 'gemini': {
      const parts = calls.map(([name, args]) => ({ functionCall: { name, args } }));
      const usageMetadata = { promptTokenCount: 9, candidatesTokenCount: 3, totalTokenCount: 12 };
      return { candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }], usageMetadata };
    }
  }
}

const send = (vendor: Vendor, body: object) => sent({ client: 'responses', vendor }, { input: [user], ...body });

/** What the client reads when the vendor answers like this. */
async function answered(vendor: Vendor, body: object, answer: Json, isStream: boolean): Promise<string> {
  const request = { model: 'model', input: [user], store: false, stream: isStream, ...body };
  const upstream = upstreamAnswer(vendor, answer, isStream);
  const relayed = await relay({ path: '/v1/responses', body: request, target: { protocol: vendor } }, upstream);
  return (await readBody(relayed.answer.body)).toString();
}

/** The items of an answer to the calls of all that was offered, in its order. */
async function itemsFor(vendor: Vendor, body: object, isStream = false): Promise<ResponseOutputItem[]> {
  const names = namesIn(vendor, (await send(vendor, body)).body);
  const answer = calling(
    vendor,
    names.map((name) => [name, {}] as const),
  );
  const text = await answered(vendor, body, answer, isStream);
  return isStream ? (await readBySdk(text)).output : JSON.parse(text).output;
}

for (const vendor of vendors) {
  test(`${vendor}: a search by the client is offered as a function, and nothing is left out`, async () => {
    const { body, dropped } = await send(vendor, { tools: [search, fn('exec')] });
    assert.deepEqual(namesIn(vendor, body), ['tool_search', 'exec']);
    const [first] = readers[vendor].offered(body);
    assert.equal(first.description, 'Finds tools.');
    assert.deepEqual(first.parameters, parameters);
    assert.equal(dropped, undefined);
  });

  for (const isStream of [false, true])
    test(`${vendor}: its call is an item of the search, with arguments as an object, ${isStream ? 'streamed' : 'whole'}`, async () => {
      const calls = calling(vendor, [['tool_search', { query: 'mail', limit: 3 }]]);
      const text = await answered(vendor, { tools: [search] }, calls, isStream);
      const response = isStream ? await readBySdk(text) : JSON.parse(text);
      assert.equal(response.status, 'completed');
      const [item] = response.output as [ResponseToolSearchCall];
      assert.match(item.id, /^tsc_/);
      assert.ok(item.call_id);
      assert.deepEqual(
        { ...item },
        {
          ...{ id: item.id, type: 'tool_search_call', status: 'completed', call_id: item.call_id },
          ...{ execution: 'client', arguments: { query: 'mail', limit: 3 } },
        },
      );
      if (!isStream) return;
      const frames = framesOf(text).filter(({ data }) => 'output_index' in data);
      assert.deepEqual(
        frames.map(({ event, data }) => [event, data['item']]),
        [
          ['response.output_item.added', { ...item, status: 'in_progress', arguments: {} }],
          ['response.output_item.done', item],
        ],
      );
    });

  for (const isStream of [false, true])
    test(`${vendor}: tools that were found are offered, and called by their namespace, ${isStream ? 'streamed' : 'whole'}`, async () => {
      const body = { tools: [search], input: [user, asked, found(mail, fn('ring', { description: 'Rings.' }))] };
      const { body: request, dropped } = await send(vendor, body);
      assert.deepEqual(namesIn(vendor, request), ['tool_search', 'mcp__mail__send', 'ring']);
      assert.equal(readers[vendor].offered(request)[1].description, 'Sends a mail.\nAt once.');
      assert.deepEqual(readers[vendor].history(request), [
        ['tool_search', { query: 'mail' }],
        'Tools loaded:\nmcp__mail: Mail of the company.\n- mcp__mail__send: Sends a mail.\n- ring: Rings.',
      ]);
      assert.equal(dropped, undefined);
      const items = (await itemsFor(vendor, body, isStream)) as Json[];
      assert.deepEqual(
        items.map(({ type, namespace: of, name }) => [type, of, name]),
        [
          ['tool_search_call', undefined, undefined],
          ['function_call', 'mcp__mail', 'send'],
          ['function_call', undefined, 'ring'],
        ],
      );
    });

  test(`${vendor}: names that collide stay apart, at most 64 long, and each call comes back as the tool that it is`, async () => {
    const long = 'x'.repeat(60);
    const tools = [
      search,
      fn('tool_search'),
      fn('mcp__mail__send'),
      namespace('mcp__mail', fn('send')),
      namespace('other', fn('send'), fn('tool_search')),
      namespace(long, fn(`${long}1`), fn(`${long}2`)),
    ];
    const { body } = await send(vendor, { tools });
    const names = namesIn(vendor, body);
    assert.equal(names.length, 8);
    assert.equal(new Set(names).size, 8);
    for (const name of names) assert.match(name, /^[\w-]{1,64}$/);
    const items = (await itemsFor(vendor, { tools })) as Json[];
    assert.deepEqual(
      items.map(({ type, namespace: of, name }) => [type, of, name]),
      [
        ['tool_search_call', undefined, undefined],
        ['function_call', undefined, 'tool_search'],
        ['function_call', undefined, 'mcp__mail__send'],
        ['function_call', 'mcp__mail', 'send'],
        ['function_call', 'other', 'send'],
        ['function_call', 'other', 'tool_search'],
        ['function_call', long, `${long}1`],
        ['function_call', long, `${long}2`],
      ],
    );
  });

  test(`${vendor}: a tool that is found twice, or was declared before, is offered once`, async () => {
    const again = { ...asked, call_id: 'c2' };
    const input = [user, asked, found(mail), again, { ...found(mail), call_id: 'c2' }];
    const { body } = await send(vendor, { tools: [search, mail], input });
    assert.deepEqual(namesIn(vendor, body), ['tool_search', 'mcp__mail__send']);
  });

  test(`${vendor}: a search that has found nothing says so`, async () => {
    const { body } = await send(vendor, { tools: [search], input: [user, asked, found()] });
    assert.equal(readers[vendor].history(body)[1], 'No tools were found.');
  });

  test(`${vendor}: a search by the vendor is left out and reported, and refused where it is the only tool`, async () => {
    for (const execution of ['server', undefined]) {
      const server = { type: 'tool_search', execution };
      const { body, dropped } = await send(vendor, { tools: [server, fn('exec')] });
      assert.deepEqual(namesIn(vendor, body), ['exec']);
      assert.ok(dropped !== undefined && /tool/.test(dropped), String(dropped));
      await assert.rejects(send(vendor, { tools: [server] }), { field: 'tools' });
    }
  });

  test(`${vendor}: what the vendor's own search has found is offered, with no call of it in the conversation`, async () => {
    const ran = { ...asked, call_id: null, execution: 'server' };
    const { body, dropped } = await send(vendor, {
      tools: [fn('exec')],
      input: [user, ran, { ...found(mail), call_id: null, execution: 'server' }],
    });
    assert.deepEqual(namesIn(vendor, body), ['exec', 'mcp__mail__send']);
    assert.deepEqual(readers[vendor].history(body), []);
    assert.equal(dropped, 'tool_search_call');
  });
}

test('a choice of the search alone forces its function, and a list of allowed tools keeps it', async () => {
  const forced = await send('chat', { tools: [fn('exec'), search], tool_choice: { type: 'tool_search' } });
  assert.deepEqual(forced.body['tool_choice'], { type: 'function', function: { name: 'tool_search' } });
  const allowed = [{ type: 'tool_search' }, { type: 'function', name: 'exec' }];
  const { body } = await send('messages', {
    tools: [fn('exec'), search, fn('other')],
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: allowed },
  });
  assert.deepEqual(namesIn('messages', body), ['exec', 'tool_search']);
});

test('arguments that are no object stay the text that they are, and those that were cut off are incomplete', async () => {
  const texts = async (input: string, reason: string) => {
    const answer = calling('chat', [['tool_search', input]]);
    answer.choices[0].finish_reason = reason;
    const read = async (isStream: boolean) => {
      const text = await answered('chat', { tools: [search] }, answer, isStream);
      const response: Json = isStream ? framesOf(text).at(-1)!.data['response'] : JSON.parse(text);
      const [item] = response.output;
      return [item.type, item.status, item.arguments];
    };
    const whole = await read(false);
    assert.deepEqual(await read(true), whole);
    return whole;
  };
  assert.deepEqual(await texts('["mail"]', 'tool_calls'), ['tool_search_call', 'completed', '["mail"]']);
  assert.deepEqual(await texts('', 'tool_calls'), ['tool_search_call', 'completed', {}]);
  assert.deepEqual(await texts('{"query":"ma', 'length'), ['tool_search_call', 'incomplete', '{"query":"ma']);
});

test('a search that is kept has an id and a status, which its vendor never gets, and is replayed as it was streamed', () => {
  const [call, output] = keptItems([asked, found(mail)], 'x');
  assert.deepEqual(call, { ...asked, id: 'tsc_x_in0', status: 'completed' });
  assert.deepEqual(output, { ...found(mail), id: 'tso_x_in1', status: 'completed' });
  assert.deepEqual(foreignItems([call, output]), [asked, found(mail)]);
  const frames = framesOf(replayed({ id: 'resp', status: 'completed', output: [call] }, 1));
  assert.deepEqual(
    frames.slice(0, 2).map(({ event, data }) => [event, data['item']]),
    [
      ['response.output_item.added', { ...call, status: 'in_progress', arguments: {} }],
      ['response.output_item.done', call],
    ],
  );
});
