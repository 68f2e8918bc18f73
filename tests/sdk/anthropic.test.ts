/** The official Anthropic client as a black box before the demo gateway. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { watchDelay } from '../helpers/delay.ts';
import { type Demo, failing, limited, longPrompt, model, shaped, slowPrompt, startDemo } from './demo.ts';

let demo: Demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo.stop());

function client(key = demo.keys.good): Anthropic {
  return new Anthropic({ baseURL: demo.origin, apiKey: key, maxRetries: 0 });
}

type Params = Anthropic.MessageCreateParamsNonStreaming;
/** A model whose vendor speaks this protocol; the others are translated for. */
const native = 'claude-opus-5';
const requestOf = (content: string): Params => ({ model, max_tokens: 4_096, messages: [{ role: 'user', content }] });
const textOf = (message: Anthropic.Message) =>
  message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
const tools = [
  {
    name: 'get_weather',
    input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
  },
];

test('a whole answer is relayed, and its usage is paid and billed', async () => {
  const call = await demo.settled(async () => {
    const answer = await client().messages.create(requestOf('How are you?'));
    assert.match(textOf(answer), /How are you\?/);
    assert.equal(answer.model, model);
  });
  assert.deepEqual(call.usage, call.entry.usage);
  assert.equal(call.paid, call.due);
  assert.ok(!call.estimated && call.paid > 0n);
});

test('a key in the older header is accepted', async () => {
  const older = new Anthropic({
    baseURL: demo.origin,
    apiKey: null,
    maxRetries: 0,
    defaultHeaders: { 'x-api-key': demo.keys.good, 'anthropic-version': '2023-06-01' },
  });
  assert.match(textOf(await older.messages.create(requestOf('Older?'))), /Older\?/);
});

test('a stream with thoughts accumulates, and its usage is paid and billed', async () => {
  const call = await demo.settled(async () => {
    const request: Params = { ...requestOf('Think'), thinking: { type: 'enabled', budget_tokens: 1_024 } };
    const answer = await client().messages.stream(request).finalMessage();
    const [thought] = answer.content;
    assert.ok(thought?.type === 'thinking' && thought.thinking !== '' && thought.signature !== '');
    assert.ok(answer.usage.output_tokens_details!.thinking_tokens > 0);
  });
  assert.deepEqual(call.usage, call.entry.usage);
  assert.equal(call.paid, call.due);
});

test('tools are called and their results read, with signed thoughts in between', async () => {
  const request: Params = {
    ...requestOf('Weather? [[sandbox: tool=get_weather]]'),
    tools,
    thinking: { type: 'adaptive' },
  };
  const first = await client().messages.stream(request).finalMessage();
  const call = first.content.find((block) => block.type === 'tool_use')!;
  assert.deepEqual(call.input, { city: 'sample city' });
  assert.equal(first.stop_reason, 'tool_use');
  const second = await client().messages.create({
    ...request,
    messages: [
      ...request.messages,
      { role: 'assistant', content: first.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'Sunny' }] },
    ],
  });
  assert.match(textOf(second), /get_weather answered: Sunny/);
});

test("cached prompts cost the vendor's bill, in every class", async () => {
  const cached = (ttl: '5m' | '1h'): Params => ({
    ...requestOf('Short'),
    model: native,
    system: [{ type: 'text', text: `${ttl} ${longPrompt}`, cache_control: { type: 'ephemeral', ttl } }],
  });
  for (const [ttl, kind] of [
    ['5m', 'cache_write_5m'],
    ['5m', 'cache_read'],
    ['1h', 'cache_write_1h'],
    ['1h', 'cache_read'],
  ] as const) {
    const call = await demo.settled(() => client().messages.create(cached(ttl)));
    assert.ok(call.usage[kind]! >= 1_024);
    assert.deepEqual(call.usage, call.entry.usage);
    assert.equal(call.paid, call.due);
  }
});

test('counting tokens is free', async () => {
  const billed = await demo.billed();
  const { max_tokens: _, ...request } = requestOf('Count me');
  assert.equal((await client().messages.countTokens(request)).input_tokens, 2);
  assert.equal(await demo.billed(), billed);
});

test('leaving a stream stops the vendor within 100 ms, and the received part is paid', async () => {
  let leftAt = 0;
  let watch = watchDelay();
  const call = await demo.settled(async () => {
    const stream = client().messages.stream(requestOf(slowPrompt));
    stream.on('text', (_, text) => {
      if (text.length < 20 || leftAt > 0) return;
      watch = watchDelay();
      leftAt = Date.now();
      stream.abort();
    });
    await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
  });
  assert.equal(call.entry.outcome, 'cut');
  assert.ok(
    call.entry.endedAt - leftAt <= watch.allowedMs(100),
    `the vendor knew after ${call.entry.endedAt - leftAt} ms`,
  );
  assert.ok(call.estimated && call.usage.output! > 0 && call.usage.output! < 500);
  assert.equal(call.paid, call.due);
});

test("every failure raises the client's own error class, and none is billed", async () => {
  const billed = await demo.billed();
  const send = (prompt: string, key?: string, name = model) =>
    client(key).messages.create({ ...requestOf(prompt), model: name });
  await assert.rejects(send('[[sandbox: status=400]]'), Anthropic.BadRequestError);
  await assert.rejects(send('Hello', 'sk-unknown'), Anthropic.AuthenticationError);
  await assert.rejects(send('Hello', demo.keys.broke), (error) => {
    assert.ok(error instanceof Anthropic.APIError);
    assert.equal(error.status, 402);
    const body = error.error as { code?: string; error?: { type: string } };
    if (shaped) assert.equal(body.code, 'INSUFFICIENT_BALANCE');
    else assert.equal(body.error!.type, 'billing_error');
    return true;
  });
  await assert.rejects(send('Hello', demo.keys.narrow), Anthropic.PermissionDeniedError);
  await assert.rejects(send('Hello', undefined, 'no-such-model'), Anthropic.NotFoundError);
  assert.equal(await demo.billed(), billed);
});

test('a rate limit raises its own error class with retry-after', async () => {
  await client(demo.keys.tight).messages.create(requestOf('First'));
  await assert.rejects(client(demo.keys.tight).messages.create(requestOf('Second')), (error) => {
    assert.ok(error instanceof Anthropic.RateLimitError);
    assert.ok(Number(error.headers.get('retry-after')) > 0);
    return true;
  });
});

test("a vendor's own rate limit reaches the client as one", async () => {
  const request = { ...requestOf(`[[sandbox: status=${limited.status}]]`), model: limited.model };
  await assert.rejects(client().messages.create(request), Anthropic.RateLimitError);
});

for (const { status, model: name } of failing) {
  test(`a vendor that fails with ${status} raises the error class of servers`, async () => {
    const request = { ...requestOf(`[[sandbox: status=${status}]]`), model: name };
    await assert.rejects(client().messages.create(request), Anthropic.InternalServerError);
    await assert.rejects(client().messages.stream(request).finalMessage(), Anthropic.InternalServerError);
  });
}

test('an error inside a stream is raised by the client', async () => {
  const stream = client().messages.stream({ ...requestOf('[[sandbox: mid_error=529]]'), model: native });
  await assert.rejects(stream.finalMessage(), (error) => {
    assert.ok(error instanceof Anthropic.APIError);
    assert.match(error.message, /overloaded/i);
    return true;
  });
});

test('the ledger passes its audit at the end', async () => {
  assert.deepEqual((await demo.audit()).violations, []);
});
