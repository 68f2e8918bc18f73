/** What a request costs beside its tokens: services and the vendor's own tools, as asked for and as granted, in each protocol. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call } from '../../../plugins/common/domain/calls.ts';
import { open, readBody, relay, streamAnswer, wholeAnswer } from './harness.ts';

const chat = ['/v1/chat/completions', { model: 'm', messages: [] }] as const;
const responses = ['/v1/responses', { model: 'm', input: 'x' }] as const;
const messages = ['/v1/messages', { model: 'm', max_tokens: 9, messages: [] }] as const;
const gemini = ['/v1beta/models/m:generateContent', { contents: [] }] as const;

function requestFor([path, body]: readonly [string, object], more: object) {
  const { services, toolCalls } = open({ path, body: { ...body, ...more } }).exchange.get(call);
  return { services, toolCalls };
}

test('a service beyond the standard one is stated, whatever the protocol calls it', () => {
  const flex = { tier: 'flex' };
  assert.deepEqual(requestFor(chat, { service_tier: 'flex' }).services, flex);
  assert.deepEqual(requestFor(responses, { service_tier: 'FLEX' }).services, flex);
  assert.deepEqual(requestFor(gemini, { serviceTier: 'SERVICE_TIER_FLEX' }).services, flex);
  assert.deepEqual(requestFor(gemini, { service_tier: 'flex' }).services, flex);
  assert.deepEqual(requestFor(messages, { speed: 'fast' }).services, { tier: 'fast' });
  const both = requestFor(messages, { speed: 'fast', inference_geo: 'us', service_tier: 'auto' });
  assert.deepEqual(both.services, { tier: 'fast', region: 'us' });
});

test('the member that asks for a service is named as the client wrote it', () => {
  const fieldsOf = ([path, body]: readonly [string, object], more: object) =>
    open({ path, body: { ...body, ...more } }).exchange.get(call).serviceFields;
  assert.deepEqual(fieldsOf(chat, { service_tier: 'flex' }), { tier: 'service_tier' });
  assert.deepEqual(fieldsOf(responses, { service_tier: 'flex' }), { tier: 'service_tier' });
  assert.deepEqual(fieldsOf(messages, { speed: 'fast', inference_geo: 'us' }), {
    tier: 'speed',
    region: 'inference_geo',
  });
  assert.deepEqual(fieldsOf(gemini, { serviceTier: 'flex' }), { tier: 'serviceTier' });
  assert.deepEqual(fieldsOf(gemini, { service_tier: 'flex' }), { tier: 'service_tier' });
  assert.equal(fieldsOf(chat, { service_tier: 'auto' }), undefined);
});

test('the standard service and none are the same', () => {
  for (const name of ['auto', 'default', 'standard', null, undefined, 7]) {
    assert.equal(requestFor(chat, { service_tier: name }).services, undefined);
    assert.equal(requestFor(responses, { service_tier: name }).services, undefined);
  }
  assert.equal(requestFor(messages, { service_tier: 'standard_only', inference_geo: 'global' }).services, undefined);
  assert.equal(requestFor(gemini, { serviceTier: 'SERVICE_TIER_STANDARD' }).services, undefined);
});

test('calls of tools that the vendor runs are bounded: by the request, else by a usual number', () => {
  const own = { type: 'function', function: { name: 'f' } };
  assert.equal(requestFor(chat, { tools: [own, { type: 'custom', custom: { name: 'c' } }] }).toolCalls, 0);
  assert.equal(requestFor(chat, { web_search_options: {} }).toolCalls, 10);
  assert.equal(requestFor(responses, { tools: [{ type: 'web_search' }, { type: 'file_search' }] }).toolCalls, 20);
  assert.equal(requestFor(responses, { tools: [{ type: 'web_search' }], max_tool_calls: 3 }).toolCalls, 3);
  assert.equal(requestFor(responses, { tools: [{ type: 'function' }, { type: 'local_shell' }] }).toolCalls, 0);
  const search = { type: 'web_search_20250305', name: 'web_search' };
  assert.equal(
    requestFor(messages, {
      tools: [
        { name: 'f', input_schema: {} },
        { ...search, max_uses: 2 },
      ],
    }).toolCalls,
    2,
  );
  assert.equal(requestFor(messages, { tools: [search, { type: 'bash_20250124', name: 'bash' }] }).toolCalls, 10);
  assert.equal(requestFor(messages, { tools: [{ ...search, max_uses: 1_000_000 }] }).toolCalls, 100);
  assert.equal(requestFor(gemini, { tools: [{ functionDeclarations: [] }, { googleSearch: {} }] }).toolCalls, 10);
});

async function granted([path, body]: readonly [string, object], answer: object) {
  return (await relay({ path, body }, wholeAnswer(JSON.stringify(answer)))).report!;
}

test('the service that the vendor reports to have granted is reported, by the kinds of its protocol', async () => {
  const worldwide = { region: 'global' };
  const report = async (...given: Parameters<typeof granted>) => (await granted(...given)).services;
  assert.deepEqual(await report(chat, { choices: [{}], service_tier: 'priority' }), { tier: 'priority', ...worldwide });
  assert.deepEqual(await report(chat, { choices: [{}] }), worldwide);
  assert.deepEqual(await report(responses, { output: [], service_tier: 'default' }), { tier: 'default', ...worldwide });
  assert.deepEqual(await report(responses, { output: [], service_tier: 'auto' }), worldwide);
  const tier = { candidates: [], usageMetadata: { serviceTier: 'flex' } };
  assert.deepEqual(await report(gemini, tier), { tier: 'flex', ...worldwide });
  const usage = { input_tokens: 1, output_tokens: 1, service_tier: 'standard' };
  assert.deepEqual(await report(messages, { content: [], usage }), { tier: 'standard' });
  const fast = { content: [], usage: { ...usage, speed: 'fast', inference_geo: 'us' } };
  assert.deepEqual(await report(messages, fast), { tier: 'fast', region: 'us' });
});

test('a stream tells the service at its end, after it was left open at its beginning', async () => {
  const response = (status: string, service_tier: string) => ({ id: 'r', status, service_tier, output: [] });
  const frames = [
    { type: 'response.created', response: response('in_progress', 'auto') },
    { type: 'response.completed', response: { ...response('completed', 'flex'), usage: {} } },
  ];
  const [path, body] = responses;
  const chunks = frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`);
  const { report, answer } = await relay({ path, body: { ...body, stream: true } }, streamAnswer(chunks));
  await readBody(answer.body);
  assert.deepEqual(report!.services, { tier: 'flex', region: 'global' });
});

test('calls of the vendor’s own tools are counted by name', async () => {
  const counted = async (...given: Parameters<typeof granted>) => (await granted(...given)).usage;
  const usage = { input_tokens: 1, output_tokens: 1 };
  const server_tool_use = { web_search_requests: 2, web_fetch_requests: 1 };
  const ofMessages = await counted(messages, { content: [], usage: { ...usage, server_tool_use } });
  assert.deepEqual([ofMessages.web_search, ofMessages.web_fetch], [2, 1]);
  const items = ['web_search_call', 'file_search_call', 'code_interpreter_call', 'message'].map((type) => ({ type }));
  const opening = { type: 'web_search_call', action: { type: 'open_page' } };
  const ofItems = await counted(responses, { output: [...items, opening], usage });
  assert.deepEqual([ofItems.web_search, ofItems.file_search, ofItems.code_execution], [1, 1, 1]);
  const zero = { output: items, usage, tool_usage: { web_search: { num_requests: 0 } } };
  assert.equal((await counted(responses, zero)).web_search, 0);
  const details = { web_search_calls: 2, x_search_calls: 3, code_interpreter_calls: 0, file_search_calls: 1 };
  const ofDetails = await counted(responses, {
    output: [],
    usage: { ...usage, server_side_tool_usage_details: details },
  });
  assert.deepEqual(
    [ofDetails.web_search, ofDetails.call, ofDetails.code_execution, ofDetails.file_search],
    [2, 3, 0, 1],
  );
  const grounded = { candidates: [{ groundingMetadata: { webSearchQueries: ['a', 'b'] } }], usageMetadata: {} };
  assert.equal((await counted(gemini, grounded)).web_search, 2);
});

test('a member that prices hang on may not be there twice', () => {
  const [path] = chat;
  const text = '{"model":"m","messages":[],"service_tier":"default","service_tier":"priority"}';
  assert.throws(() => open({ path, body: Buffer.from(text) }), /service_tier.*more than once/);
});
