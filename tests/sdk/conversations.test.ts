/** Conversations by the official client: kept, listed, continued over HTTP and WebSocket, for vendors of each family. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { talk } from '../end-to-end/sockets.ts';
import { type Customer, modelAt, startTestbed, type Testbed, until } from '../end-to-end/testbed.ts';

const families = ['chat', 'responses', 'messages', 'gemini'] as const;
let testbed: Testbed;
let anna: Customer;
let bert: Customer;
before(async () => {
  testbed = await startTestbed({
    providers: ({ sandbox, replay }) => ({
      ...Object.fromEntries(
        families.map((name) => [
          name,
          { keys: 'vendor-key-of-the-sandbox', speaks: { [name]: addressOf(name, sandbox) } },
        ]),
      ),
      relayed: { keys: 'k', speaks: { responses: `${replay}/v1` } },
      translated: { keys: 'k', speaks: { chat: `${replay}/v1` } },
    }),
    models: {
      ...Object.fromEntries(families.map((name) => [`by-${name}`, modelAt(name)])),
      relayed: modelAt('relayed'),
      translated: modelAt('translated'),
    },
    more: { 'protocol-convert': { state: { max_bytes: '16KB' } } },
  });
  [anna, bert] = [await testbed.customer(), await testbed.customer()];
});
after(() => testbed.stop());

const addressOf = (name: string, origin: string) =>
  name === 'messages' ? origin : name === 'gemini' ? `${origin}/v1beta` : `${origin}/v1`;
const clientOf = ({ key }: Customer) => new OpenAI({ baseURL: `${testbed.origin}/v1`, apiKey: key, maxRetries: 0 });
// biome-ignore lint/suspicious/noExplicitAny: items of many types are asserted on
type Item = any;
const textOf = (item: Item) => [item.content].flat().map((part: Item) => part?.text ?? part)[0];
const saying = (text: string) => `${text} [[sandbox: tokens=5]]`;

async function itemsOf(id: string, of = anna): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of clientOf(of).conversations.items.list(id, { order: 'asc', limit: 100 })) items.push(item);
  return items;
}

test('a conversation is created, read, changed and deleted with its items', async () => {
  const { conversations } = clientOf(anna);
  const made = await conversations.create({
    metadata: { topic: 'demo' },
    items: [{ type: 'message', role: 'user', content: 'Hello!' }],
  });
  assert.match(made.id, /^conv_/);
  assert.deepEqual([made.object, made.metadata], ['conversation', { topic: 'demo' }]);
  assert.deepEqual(await conversations.retrieve(made.id), made);
  const changed = await conversations.update(made.id, { metadata: { topic: 'other' } });
  assert.deepEqual(changed, { ...made, metadata: { topic: 'other' } });
  assert.deepEqual(await conversations.retrieve(made.id), changed);
  assert.deepEqual(await conversations.delete(made.id), {
    id: made.id,
    object: 'conversation.deleted',
    deleted: true,
  });
  await assert.rejects(conversations.retrieve(made.id), { status: 404, type: 'invalid_request_error' });
  await assert.rejects(itemsOf(made.id), { status: 404 });
  assert.deepEqual((await conversations.create()).metadata, {});
});

test('items are added, listed in pages in both orders, read and deleted', async () => {
  const { conversations } = clientOf(anna);
  const { id } = await conversations.create({ items: [{ role: 'user', content: 'n0' }] });
  const more = Array.from({ length: 5 }, (_, index) => ({ role: 'user' as const, content: `n${index + 1}` }));
  const added = await conversations.items.create(id, { items: more });
  assert.deepEqual([added.object, added.data.length, added.has_more], ['list', 5, false]);
  for (const order of ['asc', 'desc'] as const) {
    const seen: unknown[] = [];
    for await (const item of conversations.items.list(id, { order, limit: 2 })) seen.push(textOf(item));
    const expected = ['n0', 'n1', 'n2', 'n3', 'n4', 'n5'];
    assert.deepEqual(seen, order === 'asc' ? expected : expected.toReversed());
  }
  const first = added.data[0]! as Item;
  assert.deepEqual(await conversations.items.retrieve(first.id, { conversation_id: id }), first);
  assert.equal((await conversations.items.delete(first.id, { conversation_id: id })).id, id);
  await assert.rejects(conversations.items.retrieve(first.id, { conversation_id: id }), { status: 404 });
  await assert.rejects(conversations.items.delete(first.id, { conversation_id: id }), { status: 404 });
  assert.equal((await itemsOf(id)).length, 5);
});

test('encrypted reasoning is listed on request, and an unknown name is refused', async () => {
  const { conversations } = clientOf(anna);
  const reasoning = { type: 'reasoning' as const, id: 'rs_own', summary: [], encrypted_content: 'sealed' };
  const { id } = await conversations.create({ items: [reasoning] });
  const [hidden] = await itemsOf(id);
  assert.equal(hidden.encrypted_content, undefined);
  const include = ['reasoning.encrypted_content' as const];
  assert.equal(((await conversations.items.list(id, { include })).data[0] as Item).encrypted_content, 'sealed');
  const one = await conversations.items.retrieve('rs_own', { conversation_id: id, include });
  assert.equal((one as Item).encrypted_content, 'sealed');
  await assert.rejects(Promise.resolve(conversations.items.list(id, { include: ['secrets' as never] })), {
    status: 400,
    param: 'include',
  });
});

for (const [what, body, field] of [
  ['metadata that is no object', { metadata: 'x' }, 'metadata'],
  ['metadata with a number', { metadata: { a: 1 } }, 'metadata'],
  ['items that are no list', { items: {} }, 'items'],
  ['more than 20 items', { items: Array.from({ length: 21 }, () => ({ role: 'user', content: 'x' })) }, 'items'],
  ['an item that is a text', { items: ['x'] }, 'items[0]'],
  ['a message without a role', { items: [{ role: 'user', content: 'x' }, { content: 'x' }] }, 'items[1].role'],
  ['a reference', { items: [{ type: 'item_reference', id: 'msg_1' }] }, 'items[0].type'],
] as const) {
  test(`${what} is refused by its field`, async () => {
    const { conversations } = clientOf(anna);
    await assert.rejects(conversations.create(body as never), { status: 400, param: field });
  });
}

for (const family of families) {
  for (const streamed of [false, true])
    test(`a call continues the conversation and becomes part of it, once (${family}, ${streamed ? 'streamed' : 'whole'})`, async () => {
      const client = clientOf(anna);
      const model = `by-${family}`;
      const { id } = await client.conversations.create({
        items: [{ role: 'user', content: 'A first word that takes some tokens of the prompt.' }],
      });
      const send = async (input: string, conversation: string | { id: string }) => {
        const order = { model, input: saying(input), conversation };
        return streamed
          ? await client.responses.stream(order).finalResponse()
          : await client.responses.create({ ...order, stream: false });
      };
      const first = await send('One', id);
      const second = await send('Two', { id });
      const items = await itemsOf(id);
      assert.deepEqual(
        items.map(({ role }) => role),
        ['user', 'user', 'assistant', 'user', 'assistant'],
      );
      assert.deepEqual([textOf(items[1]), textOf(items[3])], [saying('One'), saying('Two')]);
      assert.deepEqual([textOf(items[2]), textOf(items[4])], [first.output_text, second.output_text]);
      assert.equal(new Set(items.map((item) => item.id)).size, 5);
      assert.ok(second.usage!.input_tokens > first.usage!.input_tokens);
      assert.deepEqual([first.conversation, second.conversation], [{ id }, { id }]);
    });

  test(`a turn over WebSocket continues the conversation and becomes part of it (${family})`, async () => {
    const { conversations } = clientOf(anna);
    const { id } = await conversations.create({ items: [{ role: 'user', content: 'Before' }] });
    const socket = await talk(testbed.origin, anna.key);
    for (const input of ['One', 'Two']) {
      const turn = { model: `by-${family}`, input: saying(input), conversation: id, store: false };
      assert.equal((await socket.turn(turn)).at(-1).type, 'response.completed');
    }
    const items = await itemsOf(id);
    assert.deepEqual(
      items.map(({ role }) => role),
      ['user', 'user', 'assistant', 'user', 'assistant'],
    );
    await socket.close();
  });
}

const response = (output: object[], members: object = {}) => ({
  ...{ id: 'resp_v', object: 'response', created_at: 1, status: 'completed', model: 'relayed', output },
  ...{ usage: { input_tokens: 9, output_tokens: 2, total_tokens: 11 }, ...members },
});
const said = (text: string, id = 'msg_v') => ({
  ...{ id, type: 'message', role: 'assistant', status: 'completed' },
  content: [{ type: 'output_text', text, annotations: [] }],
});
const json = (body: object) => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
const sse = (...events: { type: string }[]) => ({
  headers: { 'content-type': 'text/event-stream' },
  body: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
});

test('relayed answers name the conversation of the call, keep every other byte, and are unchanged without one', async () => {
  const { id } = await clientOf(anna).conversations.create();
  const send = async (body: object) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${anna.key}` };
    const order = JSON.stringify({ model: 'relayed', input: 'Hi', ...body });
    return (await fetch(`${testbed.origin}/v1/responses`, { method: 'POST', headers, body: order })).text();
  };
  const echo = `"conversation":{"id":"${id}"}`;
  const whole = JSON.stringify(response([said('ok "response" {')], { own: [1e3] }));
  const spread = JSON.stringify(JSON.parse(whole), null, 2);
  for (const [vendors, expected] of [
    [whole, whole.replace('{', `{${echo},`)],
    [spread, spread.replace('{', `{${echo},`)],
    [
      whole.replace('"own"', '"conversation": null,"own"'),
      whole.replace('"own"', `"conversation": {"id":"${id}"},"own"`),
    ],
  ] as const)
    for (const isNamed of [true, false]) {
      testbed.replay.play({ headers: { 'content-type': 'application/json' }, body: vendors });
      assert.equal(await send(isNamed ? { conversation: id } : {}), isNamed ? expected : vendors);
    }
  const begun = response([], { status: 'in_progress', conversation: null });
  const delta = { type: 'response.output_text.delta', delta: '"response":{', item_id: 'm', output_index: 0 };
  const { headers, body } = sse({ type: 'response.created', response: begun } as never, delta, {
    type: 'response.completed',
    response: response([said('ok')]),
  } as never);
  const named = body.replace('"conversation":null', echo).replace(/("response.completed","response":\{)/, `$1${echo},`);
  for (const isNamed of [true, false]) {
    testbed.replay.play({ headers, body });
    const text = await send({ stream: true, ...(isNamed ? { conversation: id } : {}) });
    assert.equal(text, isNamed ? named : body);
  }
  // An answer in the other form.
  testbed.replay.play({ headers: { 'content-type': 'application/json' }, body: whole });
  assert.match(await send({ stream: true, conversation: id }), new RegExp(`"conversation":\\{"id":"${id}"`));
});

test('a vendor that keeps conversations itself gets the items, and never the id of the gateway', async () => {
  const client = clientOf(anna);
  const { id } = await client.conversations.create({ items: [{ role: 'user', content: 'Before' }] });
  const call = {
    id: 'fc_v',
    type: 'function_call',
    call_id: 'call_v',
    name: 'f',
    arguments: '{}',
    status: 'completed',
  };
  testbed.replay.play(
    json(response([{ id: 'rs_v', type: 'reasoning', summary: [] }, call])),
    // A vendor whose last event has no items.
    sse(
      { type: 'response.created', response: response([], { status: 'in_progress' }) } as never,
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...said(''), content: [] },
      } as never,
      { type: 'response.output_item.done', output_index: 0, item: said('Done') } as never,
      { type: 'response.completed', response: response([]) } as never,
    ),
    json(response([said('Again')])),
  );
  const order = { model: 'relayed', conversation: id };
  await client.responses.create({ ...order, input: 'Call it' });
  const output = { type: 'function_call_output' as const, call_id: 'call_v', output: '42' };
  await client.responses.stream({ ...order, input: [output] }).finalResponse();
  await client.responses.create({ ...order, input: 'And again' });
  const sent = testbed.replay.requests.slice(-3).map(({ body }) => body.toString());
  for (const body of sent) assert.doesNotMatch(body, /conv_/);
  assert.deepEqual(
    JSON.parse(sent[2]!).input.map((item: Item) => item.type ?? item.role),
    ['message', 'message', 'function_call', 'function_call_output', 'message', 'message'],
  );
  const items = await itemsOf(id);
  assert.deepEqual(
    items.map((item) => item.type),
    ['message', 'message', 'reasoning', 'function_call', 'function_call_output', 'message', 'message', 'message'],
  );
  // The vendor has used one id in two answers: neither is lost.
  assert.deepEqual(items.filter(({ role }) => role === 'assistant').map(textOf), ['Done', 'Again']);
  assert.equal(new Set(items.map((item) => item.id)).size, items.length);
});

test('a failed call leaves the conversation unchanged', async () => {
  const client = clientOf(anna);
  const { id } = await client.conversations.create({ items: [{ role: 'user', content: 'Before' }] });
  for (const model of ['relayed', 'translated']) {
    testbed.replay.play({ status: 400, ...json({ error: { message: 'no' } }) });
    await assert.rejects(client.responses.create({ model, input: 'x', conversation: id }));
  }
  testbed.replay.play(
    sse({
      type: 'response.failed',
      response: response([], { status: 'failed', error: { code: 'x', message: 'y' } }),
    } as never),
  );
  await assert.rejects(client.responses.stream({ model: 'relayed', input: 'x', conversation: id }).finalResponse());
  assert.equal((await itemsOf(id)).length, 1);
});

test('concurrent calls are appended one after the other, each with its own answer', async () => {
  const client = clientOf(anna);
  const { id } = await client.conversations.create();
  const words = Array.from({ length: 8 }, (_, index) => `word-${index}`);
  await Promise.all(
    words.map((word, index) => {
      const order = { model: `by-${families[index % 4]}`, input: saying(word), conversation: id };
      return index % 2 === 0
        ? client.responses.create({ ...order, stream: false })
        : client.responses.stream(order).finalResponse();
    }),
  );
  const items = await itemsOf(id);
  assert.equal(items.length, 16);
  for (let index = 0; index < 16; index += 2) {
    const word = textOf(items[index]).split(' ')[0];
    assert.deepEqual([items[index].role, items[index + 1].role], ['user', 'assistant']);
    assert.match(textOf(items[index + 1]), new RegExp(word));
  }
});

test('the conversation of another account is not found, as an unknown one', async () => {
  const [mine, others] = [clientOf(anna), clientOf(bert)];
  const { id } = await mine.conversations.create({ items: [{ role: 'user', content: 'secret' }] });
  const item = (await itemsOf(id))[0].id;
  const never = `conv_gw${'0'.repeat(32)}`;
  const report = async (call: Promise<unknown>, name: string) => {
    const error = await call.then(
      () => assert.fail('answered'),
      (refused: InstanceType<typeof OpenAI.APIError>) => refused,
    );
    return [error.status, error.type, error.code, error.param, error.message.replaceAll(name, 'ID')];
  };
  const calls: ((name: string) => Promise<unknown>)[] = [
    (name) => others.conversations.retrieve(name),
    (name) => others.conversations.update(name, { metadata: {} }),
    (name) => others.conversations.delete(name),
    async (name) => others.conversations.items.list(name),
    (name) => others.conversations.items.create(name, { items: [{ role: 'user', content: 'x' }] }),
    (name) => others.conversations.items.retrieve(item, { conversation_id: name }),
    (name) => others.conversations.items.delete(item, { conversation_id: name }),
    ...families.map(
      (family) => (name: string) => others.responses.create({ model: `by-${family}`, input: 'x', conversation: name }),
    ),
    (name) => others.responses.inputTokens.count({ model: 'by-responses', input: 'x', conversation: name }),
  ];
  for (const call of calls) {
    const foreign = await report(call(id), id);
    assert.equal(foreign[0], 404);
    assert.deepEqual(foreign, await report(call(never), never));
  }
  const socket = await talk(testbed.origin, bert.key);
  const [message] = await socket.turn({ model: 'by-chat', input: 'x', conversation: id });
  assert.deepEqual([message.type, message.status, message.error.param], ['error', 404, 'conversation']);
  await socket.close();
  assert.equal((await itemsOf(id)).length, 1);
});

test('a conversation and an earlier answer exclude each other', async () => {
  const client = clientOf(anna);
  const { id } = await client.conversations.create();
  const both = { model: 'by-chat', input: 'x', conversation: id, previous_response_id: 'resp_x' };
  const refused = { status: 400, param: 'conversation', code: 'mutually_exclusive_parameters' };
  await assert.rejects(client.responses.create(both), refused);
  const socket = await talk(testbed.origin, anna.key);
  for (const turn of [both, { model: 'by-chat', input: 'x', conversation: id, generate: false }]) {
    const [{ type, status, error }] = await socket.turn(turn);
    assert.deepEqual([type, status, error.param], ['error', 400, 'conversation']);
  }
  await socket.close();
});

test('an item that the conversation has already is refused, in a call and when it is added', async () => {
  const client = clientOf(anna);
  const { id } = await client.conversations.create();
  const answer = await client.responses.create({ model: 'by-chat', input: saying('One'), conversation: id });
  const again = answer.output as Item[];
  const refused = { status: 400, code: 'duplicate_item' };
  await assert.rejects(client.responses.create({ model: 'by-chat', input: again, conversation: id }), {
    ...refused,
    param: 'input',
  });
  const reference = [{ type: 'item_reference' as const, id: again[0].id }];
  await assert.rejects(client.responses.create({ model: 'by-chat', input: reference, conversation: id }), refused);
  await assert.rejects(client.conversations.items.create(id, { items: again }), { ...refused, param: 'items' });
  assert.equal((await itemsOf(id)).length, 2);
});

test('a conversation that would be too large is refused before anything is sent or kept', async () => {
  const client = clientOf(anna);
  const large = { role: 'user' as const, content: 'x'.repeat(9_000) };
  const full = { status: 400, code: 'conversation_full' };
  await assert.rejects(client.conversations.create({ items: [large, large] }), full);
  const { id } = await client.conversations.create({ items: [large] });
  await assert.rejects(client.conversations.items.create(id, { items: [large] }), full);
  const before = testbed.sandbox.bill();
  await assert.rejects(client.responses.create({ model: 'by-chat', input: [large], conversation: id }), full);
  assert.deepEqual(testbed.sandbox.bill(), before);
  assert.equal((await itemsOf(id)).length, 1);
});

test('uploaded files stay names in the conversation, and vendors get their content', async () => {
  const client = clientOf(anna);
  const file = await client.files.create({
    file: await toFile(Buffer.from('Notes.'), 'notes.txt'),
    purpose: 'user_data',
  });
  const { id } = await client.conversations.create({
    items: [{ role: 'user', content: [{ type: 'input_file', file_id: file.id }] }],
  });
  testbed.replay.play(json(response([said('Read')])), json(response([said('Read', 'msg_w')])));
  const input = [{ role: 'user' as const, content: [{ type: 'input_file' as const, file_id: file.id }] }];
  for (let turn = 0; turn < 2; turn++) {
    await client.responses.create({ model: 'relayed', conversation: id, input });
    const sent = testbed.replay.requests.at(-1)!.body.toString();
    assert.doesNotMatch(sent, /file-/);
    assert.equal(sent.split('data:text/plain;base64,').length, 3 + turn);
  }
  const files = (await itemsOf(id)).filter(({ role }) => role === 'user').map(({ content }) => content[0].file_id);
  assert.deepEqual(files, [file.id, file.id, file.id]);
});

test('counting reads a conversation and leaves it unchanged', async () => {
  const client = clientOf(anna);
  const count = async (conversation: string) =>
    (await client.responses.inputTokens.count({ model: 'by-responses', input: 'x', conversation })).input_tokens;
  const [empty, filled] = [
    await client.conversations.create(),
    await client.conversations.create({ items: [{ role: 'user', content: 'Twenty words and more. '.repeat(9) }] }),
  ];
  assert.ok((await count(filled.id)) > (await count(empty.id)));
  assert.equal((await itemsOf(filled.id)).length, 1);
});

test('conversations are stored by account, and deleted with their items', async () => {
  const client = clientOf(bert);
  const { id } = await client.conversations.create({ items: [{ role: 'user', content: 'kept' }] });
  const rows = async () =>
    (await testbed.rows<{ conversation_id: string; account_id: string }>('kept_conversation_items')).filter(
      (row) => row.conversation_id === id,
    );
  assert.deepEqual(
    (await rows()).map((row) => row.account_id),
    [bert.accountId],
  );
  await client.conversations.delete(id);
  assert.deepEqual(
    await until('the items are deleted', async () => ((await rows()).length === 0 ? 'gone' : undefined)),
    'gone',
  );
});

test('the addresses need a key, cost nothing and are in the description', async () => {
  assert.equal((await fetch(`${testbed.origin}/v1/conversations`, { method: 'POST', body: '{}' })).status, 401);
  const before = await testbed.balance(anna);
  await clientOf(anna).conversations.create();
  assert.equal(await testbed.balance(anna), before);
  const { paths } = (await (await fetch(`${testbed.origin}/openapi.json`)).json()) as { paths: Record<string, object> };
  assert.ok('post' in paths['/v1/conversations']!);
  assert.deepEqual(Object.keys(paths['/v1/conversations/{conversation_id}/items/{item_id}']!).sort(), [
    'delete',
    'get',
  ]);
});
