/** Bodies that no client should send: each gets its protocol's error, names the field, and moves no money. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type DialectName, dialectNames, dialects } from './dialects.ts';
import { type Customer, type Reply, startTestbed, type Testbed, until } from './testbed.ts';

let testbed: Testbed;
let customer: Customer;
before(async () => {
  testbed = await startTestbed();
  customer = await testbed.customer();
});
after(() => testbed.stop());

const send = (dialect: DialectName, body: string | Uint8Array): Promise<Reply> =>
  testbed.call(customer, dialect, { model: 'sandbox', prompt: '' }, { body: body as string });
/** A good body with these members instead; undefined takes one out. */
const good = (dialect: DialectName, members: object) =>
  JSON.stringify({ ...dialects[dialect].body({ model: 'sandbox', prompt: 'Hello' }), ...members });

const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

/** What is wrong in every protocol. */
const always: Record<string, (dialect: DialectName) => string | Uint8Array> = {
  nothing: () => '',
  'half an object': () => '{"model":"sandbox"',
  'no JSON': () => 'model=sandbox',
  'a list': () => '[]',
  'a string': () => '"sandbox"',
  'a number': () => '1',
  null: () => 'null',
  'two objects': (dialect) => good(dialect, {}).repeat(2),
  'NaN for a number': (dialect) => good(dialect, { temperature: 0 }).replace('"temperature":0', '"temperature":NaN'),
  'a byte that is no UTF-8 in front': (dialect) => Buffer.concat([Buffer.from([0xff]), Buffer.from(good(dialect, {}))]),
  'a list nested 100,000 deep': (dialect) => good(dialect, { x: 0 }).replace('"x":0', `"x":${deep(100_000)}`),
  'objects nested 100,000 deep': (dialect) =>
    good(dialect, { x: 0 }).replace('"x":0', `"x":${'{"a":'.repeat(100_000)}0${'}'.repeat(100_000)}`),
  'a body of brackets': () => '['.repeat(1_000_000),
  ['__proto__']: (dialect) => good(dialect, {}).replace('{', '{"__proto__":{"model":"free"},'),
};

for (const [what, body] of Object.entries(always)) {
  test(`a body with ${what} is a 400 in all protocols`, async () => {
    for (const dialect of dialectNames) {
      const answer = await send(dialect, body(dialect));
      assert.equal(answer.status, 400, `${dialect}: ${answer.text}`);
      assert.ok(dialects[dialect].errorType(JSON.parse(answer.text)), `${dialect}: ${answer.text}`);
      assert.ok(answer.text.length < 1_000);
      if (what === '__proto__') assert.match(answer.text, /__proto__/);
    }
  });
}

const prompt: Record<DialectName, string> = {
  chat: 'messages',
  responses: 'input',
  messages: 'messages',
  gemini: 'contents',
};
const bound: Record<DialectName, (value: unknown) => object> = {
  chat: (value) => ({ max_tokens: value }),
  responses: (value) => ({ max_output_tokens: value }),
  messages: (value) => ({ max_tokens: value }),
  gemini: (value) => ({ generationConfig: { maxOutputTokens: value } }),
};

for (const dialect of dialectNames) {
  test(`a missing or mistyped member is a 400 that names it (${dialect})`, async () => {
    const cases: [RegExp, string][] = [
      [new RegExp(prompt[dialect]), good(dialect, { [prompt[dialect]]: 5 })],
      ...['many', -1, 1.5, true, [], {}].map((value): [RegExp, string] => [
        /max\w*tokens/i,
        good(dialect, bound[dialect](value)),
      ]),
      [/max\w*tokens/i, good(dialect, bound[dialect](7)).replace(/(tokens":)7/i, '$11e999')],
      [/max\w*tokens/i, good(dialect, bound[dialect](7)).replace(/(tokens":)7/i, '$19007199254740993')],
    ];
    if (dialect !== 'gemini') {
      cases.push(
        [new RegExp(prompt[dialect]), good(dialect, { [prompt[dialect]]: undefined })],
        [/model/, good(dialect, { model: undefined })],
        [/model/, good(dialect, { model: null })],
        [/model/, good(dialect, { model: 5 })],
        [/model/, good(dialect, { model: ['sandbox'] })],
        [/model/, good(dialect, {}).replace('{', '{"model":"free",')],
        [/stream/, good(dialect, { stream: 'yes' })],
        [/stream/, good(dialect, { stream: 1 })],
      );
    }
    if (dialect === 'messages') cases.push([/max_tokens/, good(dialect, { max_tokens: undefined })]);
    if (dialect === 'chat') {
      for (const n of [0, -1, 1.5, '2']) cases.push([/"n"|\bn\b/, good(dialect, { n })]);
    }
    for (const [named, body] of cases) {
      const answer = await send(dialect, body);
      assert.equal(answer.status, 400, `${body.slice(0, 300)}: ${answer.text}`);
      assert.match(answer.text, named);
      assert.ok(dialects[dialect].errorType(JSON.parse(answer.text)));
    }
  });
}

test('strange model names are unknown, and are quoted within bounds', async () => {
  const names = ['x'.repeat(1_000_000), 'a\u0000b', '\ud800', '😀'.repeat(150), '../../etc/passwd', '<script>', ' '];
  for (const model of names) {
    for (const dialect of ['chat', 'responses', 'messages'] as const) {
      const answer = await send(dialect, good(dialect, { model }));
      assert.equal(answer.status, 404, answer.text.slice(0, 300));
      assert.ok(answer.text.length < 1_000);
    }
    if (model.length > 10_000) continue;
    const path = `/v1beta/models/${encodeURIComponent(model.toWellFormed())}:generateContent`;
    const headers = { ...dialects.gemini.key(customer.key), 'content-type': 'application/json' };
    const answer = await fetch(testbed.origin + path, { method: 'POST', headers, body: good('gemini', {}) });
    assert.equal(answer.status, 404, await answer.text());
  }
});

test('a body above 32 MB is a 413 in all protocols', async () => {
  const body = `{"model":"sandbox","messages":"${'x'.repeat(33 * 2 ** 20)}"}`;
  for (const dialect of dialectNames) {
    const answer = await send(dialect, body);
    assert.equal(answer.status, 413);
    assert.ok(dialects[dialect].errorType(JSON.parse(answer.text)), answer.text);
  }
});

test('20,000 tools, messages or parts delay no other request, and are not held for a poor account; 100,000 are refused', async () => {
  const poor = await testbed.customer({ nanoUsd: 1_000n });
  const tools = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ type: 'function', function: { name: `f${at}` } }));
  const turns = (count: number) => Array.from({ length: count }, () => ({ role: 'user', content: 'x' }));
  for (const [count, status] of [
    [20_000, 402],
    [100_000, 400],
  ] as const) {
    for (const members of [{ tools: tools(count) }, { messages: turns(count) }]) {
      const slow = testbed.call(poor, 'chat', { model: 'sandbox', prompt: '' }, { body: good('chat', members) });
      const health = await fetch(`${testbed.origin}/healthz`);
      assert.equal(health.status, 200);
      assert.equal((await slow).status, status);
    }
  }
});

test('hostile JSON in each protocol is refused where the scan reaches its bound, compressed or not', async () => {
  const hostile = [
    `{"model":"sandbox",${Array.from({ length: 1_000_000 }, (_, index) => `"k${index}":1`).join(',')}}`,
    `{"model":"sandbox","messages":[${'[],'.repeat(5 * 2 ** 20)}[]]}`,
    `{"model":"sandbox","messages":${'['.repeat(10 * 2 ** 20)}}`,
  ];
  for (const body of hostile) {
    for (const dialect of dialectNames) {
      const answer = await send(dialect, body);
      assert.equal(answer.status, 400, answer.text.slice(0, 300));
      assert.match(answer.text, /100000 members|nested deeper/);
      assert.ok(dialects[dialect].errorType(JSON.parse(answer.text)));
    }
  }
  const headers = {
    ...dialects.chat.key(customer.key),
    'content-type': 'application/json',
    'content-encoding': 'gzip',
  };
  const body = new Uint8Array(gzipSync(hostile[0]!));
  const answer = await fetch(`${testbed.origin}/v1/chat/completions`, { method: 'POST', headers, body });
  assert.equal(answer.status, 400);
  assert.match(await answer.text(), /100000 members/);
});

test('after all bad requests nothing was held or charged, every request has its row, and the vendor received none', async () => {
  const records = await testbed.records(customer, 0);
  assert.deepEqual(
    records.ledger.map(({ kind }) => kind),
    ['CREDIT'],
  );
  assert.equal(testbed.sandbox.bill().requests, 0);
  const written = () => testbed.gateway.lines.filter((line) => line.includes('"msg":"request"')).length;
  await until('the request rows are written', async () => (await testbed.rows('requests')).length === written());
  assert.deepEqual(
    testbed.gateway.lines.filter((line) => line.includes('"level":"error"')),
    [],
  );
  await testbed.audit();
});

test('vendor texts that the database cannot store stop neither the ledger nor the request log', async () => {
  const strange = 'a\u0000b\ud800'.repeat(500);
  const choice = { index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: strange };
  const usage = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 };
  const refusal = JSON.stringify({ error: { message: strange, type: strange, code: strange, param: strange } });
  testbed.replay.play(
    { body: JSON.stringify({ id: strange, model: strange, choices: [choice], usage }) },
    { status: 400, headers: { 'content-type': 'application/json' }, body: refusal },
  );
  const stranger = await testbed.customer();
  assert.equal((await testbed.call(stranger, 'chat', { model: 'replay', prompt: 'Hello' })).status, 200);
  assert.equal((await testbed.call(stranger, 'chat', { model: 'replay', prompt: 'Hello' })).status, 400);
  assert.deepEqual((await testbed.records(stranger, 2)).ends, ['charged answered', 'free refused']);
  await until('the request rows are written', async () => {
    const rows = await testbed.rows<{ account_id: string }>('requests');
    return rows.filter(({ account_id: id }) => id === stranger.accountId).length === 2;
  });
});

test('a good request still works after all bad ones', async () => {
  for (const dialect of dialectNames) {
    assert.equal((await send(dialect, good(dialect, {}))).status, 200);
  }
});

test('an unknown method or path is refused in the form of the nearest protocol', async () => {
  const send = async (method: string, path: string, headers: Record<string, string> = {}) => {
    const reply = await fetch(testbed.origin + path, { method, headers });
    return {
      status: reply.status,
      allow: reply.headers.get('allow'),
      json: (await reply.json()) as { type?: string; request_id?: string; error: Record<string, unknown> },
    };
  };
  const chat = await send('PUT', '/v1/chat/completions');
  assert.deepEqual([chat.status, chat.allow], [405, 'GET, HEAD, POST']);
  assert.deepEqual(chat.json.error, {
    message: '/v1/chat/completions does not answer PUT.',
    type: 'invalid_request_error',
    param: null,
    code: 'method_not_allowed',
  });
  for (const [method, path, status, type] of [
    ['GET', '/v1/messages', 405, 'invalid_request_error'],
    ['POST', '/v1/messages/somewhere', 404, 'not_found_error'],
  ] as const) {
    const { json, ...reply } = await send(method, path);
    assert.deepEqual([reply.status, json.type, json.error['type']], [status, 'error', type], path);
    assert.match(json.request_id!, /^req_/);
  }
  const gemini = await send('PUT', '/v1beta/models/sandbox:generateContent');
  assert.deepEqual([gemini.status, gemini.json.error['code']], [405, 405]);
  const list = await send('DELETE', '/v1/models', { 'anthropic-version': '2023-06-01' });
  assert.deepEqual([list.status, list.json.type], [405, 'error']);
  for (const [path, message] of [
    ['/v1/somewhere', 'There is nothing at POST /v1/somewhere.'],
    ['/chat/completions', 'There is nothing at POST /chat/completions. Did you mean /v1/chat/completions?'],
    ['/v1/v1/somewhere', 'There is nothing at POST /v1/somewhere.'],
  ] as const) {
    const { status, json } = await send('POST', path);
    assert.deepEqual([status, json.error['code'], json.error['message']], [404, 'unknown_url', message]);
  }
});

test('GET and HEAD /api/hello answer 200 without a key', async () => {
  for (const method of ['GET', 'HEAD']) {
    const answer = await fetch(`${testbed.origin}/api/hello`, { method });
    assert.deepEqual([answer.status, await answer.text()], [200, method === 'GET' ? '{"status":"ok"}' : '']);
  }
});

test('HEAD on the model list answers as GET does, without the list', async () => {
  const [head, get] = await Promise.all(
    ['HEAD', 'GET'].map((method) => fetch(`${testbed.origin}/v1/models`, { method })),
  );
  assert.deepEqual([head!.status, head!.headers.get('content-length')], [200, get!.headers.get('content-length')]);
  assert.equal(await head!.text(), '');
});

test('U+0000 in an id is a 404, in a query or stored body a 400, and never a 500', async () => {
  const headers = { authorization: `Bearer ${customer.key}`, 'content-type': 'application/json' };
  const send = async (method: string, path: string, body?: object) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(testbed.origin + path, { method, headers, ...sent });
    return { status: answer.status, text: await answer.text() };
  };
  for (const path of ['batches', 'files', 'responses', 'videos', 'messages/batches', 'models', 'tasks'])
    for (const id of ['%00', 'a%00b']) assert.equal((await send('GET', `/v1/${path}/${id}`)).status, 404, path);
  for (const path of ['batches?after', 'files?after', 'files?purpose', 'messages/batches?after_id', 'tasks?after']) {
    const { status, text } = await send('GET', `/v1/${path}=a%00b`);
    assert.ok(status < 500, `${path}: ${status} ${text}`);
  }
  const order = { input_file_id: 'file-a\0b', endpoint: '/v1/chat/completions', completion_window: '24h' };
  const requested: readonly [string, object][] = [
    ['batches', order],
    ['batches', { ...order, input_file_id: 'file-x', metadata: { name: 'a\0b' } }],
    ['chat/completions', { model: 'a\0b', messages: [{ role: 'user', content: 'x' }] }],
    ['responses', { model: 'sandbox', input: 'x', previous_response_id: 'resp_a\0b' }],
    ['responses', { model: 'sandbox', input: 'a\0b', user: 'a\0b', metadata: { name: 'a\0b' } }],
    ['messages/batches', { requests: [{ custom_id: 'a\0b', params: {} }] }],
  ];
  for (const [path, body] of requested) {
    const { status, text } = await send('POST', `/v1/${path}`, body);
    assert.ok(status < 500, `${path} ${JSON.stringify(body)}: ${status} ${text}`);
    if (text.includes('U+0000')) assert.match(text, /The field /);
  }
});
