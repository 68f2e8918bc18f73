/** Messages of the sandbox as the official client sees them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { anthropic, apiKey, lastEntry, longText, vendorFor, weatherSchema } from './clients.ts';

type Params = Anthropic.MessageCreateParamsNonStreaming;
const requestOf = (content: string): Params => ({
  model: 'any-model',
  max_tokens: 1024,
  messages: [{ role: 'user', content }],
});
const tools = [
  { name: 'get_weather', input_schema: weatherSchema as Anthropic.Tool.InputSchema },
  { name: 'get_time', input_schema: { type: 'object' as const } },
];
const textOf = (message: Anthropic.Message) =>
  message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');

test('a whole answer refers to the prompt, and its usage is on the bill', async (context) => {
  const vendor = await vendorFor(context);
  const answer = await anthropic(vendor).messages.create(requestOf('How tall is the tower?'));
  assert.match(textOf(answer), /How tall is the tower\?.*any-model/);
  assert.equal(answer.stop_reason, 'end_turn');
  const { usage } = await lastEntry(vendor);
  assert.equal(usage.input, answer.usage.input_tokens);
  assert.equal(usage.output, answer.usage.output_tokens);
  assert.equal(answer.usage.output_tokens_details!.thinking_tokens, 0);
});

test('a stream accumulates to the whole answer, usage included', async (context) => {
  const vendor = await vendorFor(context);
  const client = anthropic(vendor);
  const request: Params = { ...requestOf('Think and call'), tools, thinking: { type: 'enabled', budget_tokens: 1024 } };
  request.max_tokens = 4096;
  request.messages = [{ role: 'user', content: 'Both [[sandbox: tools=2]]' }];
  const whole = await client.messages.create(request);
  const streamed = await client.messages.stream(request).finalMessage();
  const bare = (message: Anthropic.Message) =>
    JSON.parse(JSON.stringify(message.content).replaceAll(/sandbox0\w+/g, 'ID')) as unknown;
  assert.deepEqual(bare(streamed), bare(whole));
  assert.deepEqual(
    whole.content.map(({ type }) => type),
    ['thinking', 'tool_use', 'tool_use'],
  );
  assert.equal(streamed.stop_reason, 'tool_use');
  assert.equal(streamed.usage.output_tokens, whole.usage.output_tokens);
  assert.equal(streamed.usage.input_tokens, whole.usage.input_tokens);
  const { usage } = await lastEntry(vendor);
  assert.equal(usage.reasoning, whole.usage.output_tokens_details!.thinking_tokens);
  assert.equal(usage.output! + usage.reasoning!, whole.usage.output_tokens);
});

test('events have names, and are in order with a ping', async (context) => {
  const vendor = await vendorFor(context);
  const answer = await fetch(`${vendor.origin}/v1/messages?beta=true`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({ ...requestOf('Events'), stream: true }),
  });
  const names = [...(await answer.text()).matchAll(/^event: (.*)$/gm)].map((match) => match[1]!);
  assert.deepEqual(
    names.filter((name, index) => name !== names[index - 1]),
    [
      'message_start',
      'content_block_start',
      'ping',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ],
  );
});

test('a signed thought and a tool result are accepted and read; a forged signature is refused', async (context) => {
  const client = anthropic(await vendorFor(context));
  const request: Params = {
    ...requestOf('Weather? [[sandbox: tool=get_weather]]'),
    tools,
    thinking: { type: 'adaptive', display: 'omitted' },
  };
  const first = await client.messages.create(request);
  const [thought, call] = first.content;
  assert.ok(thought?.type === 'thinking' && thought.thinking === '' && thought.signature !== '');
  assert.ok(call?.type === 'tool_use');
  assert.deepEqual(call.input, { city: 'sample city', unit: 'celsius' });
  const next = (content: Anthropic.ContentBlockParam[]): Params => ({
    ...request,
    messages: [
      ...request.messages,
      { role: 'assistant', content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'Sunny' }] },
    ],
  });
  assert.match(textOf(await client.messages.create(next(first.content))), /get_weather answered: Sunny/);
  const forged = { ...thought, signature: `${thought.signature.slice(0, -8)}AAAAAAAA` };
  await assert.rejects(client.messages.create(next([forged, call])), (error) => {
    assert.ok(error instanceof Anthropic.BadRequestError);
    assert.match(error.message, /messages\.1\.content\.0: Invalid `signature`/);
    return true;
  });
});

test('marks write to the cache for their span and read from it afterwards', async (context) => {
  const vendor = await vendorFor(context);
  const client = anthropic(vendor);
  const request = (question: string): Params => ({
    ...requestOf(question),
    system: [{ type: 'text', text: longText, cache_control: { type: 'ephemeral', ttl: '1h' } }],
  });
  const first = (await client.messages.create(request('One?'))).usage;
  assert.equal(first.cache_creation!.ephemeral_1h_input_tokens, longText.length / 4);
  assert.equal(first.cache_creation_input_tokens, longText.length / 4);
  assert.equal((await lastEntry(vendor)).usage.cache_write_1h, longText.length / 4);
  const second = await client.messages.stream(request('Two?')).finalMessage();
  assert.equal(second.usage.cache_read_input_tokens, longText.length / 4);
  assert.equal(second.usage.cache_creation_input_tokens, 0);
  assert.equal(second.usage.input_tokens, first.input_tokens);
  const unmarked = await client.messages.create({ ...requestOf('Three?'), system: longText });
  assert.equal(unmarked.usage.cache_read_input_tokens, 0);
});

test('a mark that moves further writes only the new part', async (context) => {
  const client = anthropic(await vendorFor(context));
  const turns: Anthropic.MessageParam[] = [{ role: 'user', content: longText }];
  const send = () =>
    client.messages.create({ ...requestOf(''), messages: turns, cache_control: { type: 'ephemeral' } });
  const first = (await send()).usage;
  turns.push({ role: 'assistant', content: 'Yes.' }, { role: 'user', content: 'And now?' });
  const second = (await send()).usage;
  assert.equal(second.cache_read_input_tokens, first.cache_creation_input_tokens);
  assert.equal(second.cache_creation_input_tokens, 1 + 2);
});

test('an answer follows its schema', async (context) => {
  const client = anthropic(await vendorFor(context));
  const answer = await client.messages.create({
    ...requestOf('JSON'),
    output_config: { format: { type: 'json_schema', schema: weatherSchema } },
  });
  assert.deepEqual(JSON.parse(textOf(answer)), { city: 'sample city', unit: 'celsius' });
});

test('a stop sequence and a bound on tokens are named', async (context) => {
  const client = anthropic(await vendorFor(context));
  const stopped = await client.messages.create({ ...requestOf('alpha beta gamma'), stop_sequences: ['beta'] });
  assert.equal(stopped.stop_reason, 'stop_sequence');
  assert.equal(stopped.stop_sequence, 'beta');
  const short = await client.messages.stream({ ...requestOf('Long'), max_tokens: 4 }).finalMessage();
  assert.equal(short.stop_reason, 'max_tokens');
  assert.equal(short.usage.output_tokens, 4);
  const warmed = await client.messages.create({ ...requestOf('Only warm up'), max_tokens: 0 });
  assert.deepEqual(warmed.content, []);
});

test('forced tools are called; thinking forbids forcing', async (context) => {
  const client = anthropic(await vendorFor(context));
  const forced: Params = { ...requestOf('Now'), tools, tool_choice: { type: 'tool', name: 'get_time' } };
  const answer = await client.messages.create(forced);
  assert.ok(answer.content[0]?.type === 'tool_use' && answer.content[0].name === 'get_time');
  await assert.rejects(
    client.messages.create({ ...forced, thinking: { type: 'adaptive' } }),
    /Thinking may not be enabled when tool_choice forces tool use/,
  );
});

test('a refusal has its own stop reason', async (context) => {
  const client = anthropic(await vendorFor(context));
  const answer = await client.messages.stream(requestOf('[[sandbox: refuse]]')).finalMessage();
  assert.equal(answer.stop_reason, 'refusal');
  assert.equal(answer.stop_details!.type, 'refusal');
});

test('images and documents are acknowledged', async (context) => {
  const client = anthropic(await vendorFor(context));
  const source = { type: 'base64' as const, media_type: 'image/png' as const, data: 'iVBORw0KGgo=' };
  const answer = await client.messages.create({
    ...requestOf(''),
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image', source },
          { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Words' } },
          { type: 'text', text: 'See?' },
        ],
      },
    ],
  });
  assert.match(textOf(answer), /I also see 1 image and 1 file/);
});

test('counting tokens agrees with the usage of the answer and is not billed', async (context) => {
  const vendor = await vendorFor(context);
  const { max_tokens: _, ...request } = { ...requestOf('Count me'), tools };
  const counted = await anthropic(vendor).messages.countTokens(request);
  assert.equal(vendor.bill().requests, 0);
  const answer = await anthropic(vendor).messages.create({ ...request, max_tokens: 100 });
  assert.equal(counted.input_tokens, answer.usage.input_tokens);
});

test('sampling fields are refused from the newer version on', async (context) => {
  const vendor = await vendorFor(context);
  const post = (version: string) =>
    fetch(`${vendor.origin}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'anthropic-version': version },
      body: JSON.stringify({ ...requestOf('Hot'), temperature: 0.5 }),
    });
  assert.equal((await post('2023-06-01')).status, 200);
  assert.equal((await post('2026-10-21')).status, 400);
});

test('an abort in mid-stream is billed for the sent part', async (context) => {
  const vendor = await vendorFor(context);
  const stream = anthropic(vendor).messages.stream(requestOf('Slow [[sandbox: chunk_delay=20ms tokens=500]]'));
  let deltas = 0;
  stream.on('text', () => {
    if (++deltas === 3) stream.abort();
  });
  await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
  const entry = await lastEntry(vendor);
  assert.equal(entry.outcome, 'cut');
  assert.ok(entry.usage.output! > 0 && entry.usage.output! < 500);
});
