/** Chat Completions of the sandbox as the official client sees it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { lastEntry, longText, openai, vendorFor, weatherSchema } from './clients.ts';

const tools = [
  { type: 'function' as const, function: { name: 'get_weather', parameters: weatherSchema } },
  { type: 'function' as const, function: { name: 'get_time', parameters: { type: 'object', properties: {} } } },
];
const requestOf = (content: string) => ({ model: 'any-model', messages: [{ role: 'user' as const, content }] });

test('a whole answer refers to the prompt, and its usage is on the bill', async (context) => {
  const vendor = await vendorFor(context);
  const answer = await openai(vendor).chat.completions.create(requestOf('How tall is the tower?'));
  assert.match(answer.choices[0]!.message.content!, /How tall is the tower\?.*any-model/);
  assert.equal(answer.choices[0]!.finish_reason, 'stop');
  const { usage } = await lastEntry(vendor);
  assert.equal(usage.input, answer.usage!.prompt_tokens);
  assert.equal(usage.output, answer.usage!.completion_tokens);
  assert.equal(answer.usage!.total_tokens, usage.input! + usage.output!);
  assert.equal(answer.usage!.prompt_tokens_details!.cached_tokens, 0);
});

test('the same prompt gets the same answer, streamed or whole', async (context) => {
  const client = openai(await vendorFor(context));
  const whole = await client.chat.completions.create(requestOf('Twice the same'));
  const again = await client.chat.completions.create(requestOf('Twice the same'));
  const streamed = await client.chat.completions.stream(requestOf('Twice the same')).finalChatCompletion();
  assert.equal(again.choices[0]!.message.content, whole.choices[0]!.message.content);
  assert.equal(streamed.choices[0]!.message.content, whole.choices[0]!.message.content);
});

test('a stream begins with the role, has usage only on request, and ends with DONE', async (context) => {
  const vendor = await vendorFor(context);
  const post = (options: object) =>
    fetch(`${vendor.origin}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ ...requestOf('Frames'), stream: true, ...options }),
    }).then((answer) => answer.text());
  const frames = (text: string) => text.split('\n\n').filter((frame) => frame !== '');
  const plain = frames(await post({}));
  assert.equal(plain.at(-1), 'data: [DONE]');
  assert.ok(plain.every((frame) => !frame.includes('"usage"')));
  const first = JSON.parse(plain[0]!.slice(6)) as { choices: { delta: object }[] };
  assert.deepEqual(first.choices[0]!.delta, { role: 'assistant', content: '', refusal: null });
  const requested = frames(await post({ stream_options: { include_usage: true } }));
  const usage = JSON.parse(requested.at(-2)!.slice(6)) as { choices: unknown[]; usage: { total_tokens: number } };
  assert.deepEqual(usage.choices, []);
  assert.ok(usage.usage.total_tokens > 0);
  assert.ok(requested.slice(0, -2).every((frame) => frame.includes('"usage":null')));
});

test('a forced tool is called with arguments that fit its schema, and its result is read', async (context) => {
  const client = openai(await vendorFor(context));
  const request = { ...requestOf('Weather?'), tools, tool_choice: 'required' as const };
  const whole = await client.chat.completions.create(request);
  const call = whole.choices[0]!.message.tool_calls![0]!;
  assert.ok(call.type === 'function' && call.function.name === 'get_weather');
  assert.deepEqual(JSON.parse(call.function.arguments), { city: 'sample city', unit: 'celsius' });
  assert.equal(whole.choices[0]!.finish_reason, 'tool_calls');
  const streamed = await client.chat.completions.stream(request).finalChatCompletion();
  const streamedCall = streamed.choices[0]!.message.tool_calls![0]!;
  assert.ok(streamedCall.type === 'function');
  assert.equal(streamedCall.function.arguments, call.function.arguments);
  const heard = await client.chat.completions.create({
    model: 'any-model',
    tools,
    messages: [
      { role: 'user', content: 'Weather? [[sandbox: tool=get_weather]]' },
      whole.choices[0]!.message,
      { role: 'tool', tool_call_id: call.id, content: 'Sunny, 21 degrees' },
    ],
  });
  assert.match(heard.choices[0]!.message.content!, /get_weather answered: Sunny, 21 degrees/);
});

test('parallel calls are made when ordered, unless the client forbids them', async (context) => {
  const client = openai(await vendorFor(context));
  const request = { ...requestOf('Both [[sandbox: tools=2]]'), tools };
  const streamed = await client.chat.completions.stream(request).finalChatCompletion();
  const names = streamed.choices[0]!.message.tool_calls!.map((call) => call.type === 'function' && call.function.name);
  assert.deepEqual(names, ['get_weather', 'get_time']);
  const single = await client.chat.completions.create({ ...request, parallel_tool_calls: false });
  assert.equal(single.choices[0]!.message.tool_calls!.length, 1);
});

test('an eager model calls an unrequested tool once, and answers after its result', async (context) => {
  const client = openai(await vendorFor(context));
  const request = { ...requestOf('Weather?'), model: 'any-eager', tools };
  const requested = await client.chat.completions.create(request);
  const { message, finish_reason } = requested.choices[0]!;
  assert.deepEqual([message.tool_calls?.length, finish_reason], [1, 'tool_calls']);
  const result = { role: 'tool' as const, tool_call_id: message.tool_calls![0]!.id, content: 'Sunny' };
  const reported = await client.chat.completions.create({
    ...request,
    messages: [...request.messages, message, result],
  });
  assert.match(reported.choices[0]!.message.content!, /Sunny/);
});

test('custom tools get free text', async (context) => {
  const client = openai(await vendorFor(context));
  const answer = await client.chat.completions.create({
    ...requestOf('Do it'),
    tools: [{ type: 'custom', custom: { name: 'run' } }],
    tool_choice: { type: 'custom', custom: { name: 'run' } },
  });
  const call = answer.choices[0]!.message.tool_calls![0]!;
  assert.ok(call.type === 'custom');
  assert.match(call.custom.input, /Do it/);
});

test('an answer follows its schema', async (context) => {
  const client = openai(await vendorFor(context));
  const answer = await client.chat.completions.create({
    ...requestOf('As JSON'),
    response_format: { type: 'json_schema', json_schema: { name: 'weather', schema: weatherSchema } },
  });
  assert.deepEqual(JSON.parse(answer.choices[0]!.message.content!), { city: 'sample city', unit: 'celsius' });
  const object = await client.chat.completions.create({
    ...requestOf('As JSON'),
    response_format: { type: 'json_object' },
  });
  assert.match((JSON.parse(object.choices[0]!.message.content!) as { answer: string }).answer, /As JSON/);
});

test('a bound on tokens cuts the answer with the reason length; a stop sequence gives stop', async (context) => {
  const client = openai(await vendorFor(context));
  const short = await client.chat.completions.create({ ...requestOf('Long'), max_completion_tokens: 5 });
  assert.equal(short.choices[0]!.finish_reason, 'length');
  assert.equal(short.usage!.completion_tokens, 5);
  const stopped = await client.chat.completions.create({ ...requestOf('alpha beta gamma'), stop: ['gamma', 'beta'] });
  assert.equal(stopped.choices[0]!.finish_reason, 'stop');
  assert.ok(stopped.choices[0]!.message.content!.endsWith('alpha '));
});

test('several choices are interleaved and all billed', async (context) => {
  const vendor = await vendorFor(context);
  const request = { ...requestOf('Choose'), n: 3, stream_options: { include_usage: true } };
  const answer = await openai(vendor).chat.completions.stream(request).finalChatCompletion();
  const texts = answer.choices.map((choice) => choice.message.content);
  assert.equal(new Set(texts).size, 3);
  assert.equal((await lastEntry(vendor)).usage.output, answer.usage!.completion_tokens);
});

test('effort costs hidden reasoning tokens', async (context) => {
  const vendor = await vendorFor(context);
  const answer = await openai(vendor).chat.completions.create({ ...requestOf('Think'), reasoning_effort: 'high' });
  const reasoning = answer.usage!.completion_tokens_details!.reasoning_tokens!;
  assert.ok(reasoning > 0);
  const { usage } = await lastEntry(vendor);
  assert.equal(usage.reasoning, reasoning);
  assert.equal(usage.output, answer.usage!.completion_tokens - reasoning);
});

test('a long prefix is written to the cache first and read afterwards', async (context) => {
  const vendor = await vendorFor(context);
  const request = (question: string) => ({
    model: 'any-model',
    messages: [
      { role: 'system' as const, content: longText },
      { role: 'user' as const, content: question },
    ],
  });
  const client = openai(vendor).chat.completions;
  const first = (await client.create(request('One?'))).usage!;
  const second = (await client.create(request('Two?'))).usage!;
  const written = first.prompt_tokens_details!.cache_write_tokens!;
  assert.ok(written >= 1024);
  assert.deepEqual(second.prompt_tokens_details!.cached_tokens, written);
  assert.equal(second.prompt_tokens_details!.cache_write_tokens, 0);
  assert.equal(second.prompt_tokens, first.prompt_tokens);
  const { usage } = await lastEntry(vendor);
  assert.equal(usage.cache_read, written);
  assert.equal(usage.input, second.prompt_tokens - written);
});

test('images are acknowledged and counted apart', async (context) => {
  const vendor = await vendorFor(context);
  const answer = await openai(vendor).chat.completions.create({
    model: 'any-model',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is it?' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
        ],
      },
    ],
  });
  assert.match(answer.choices[0]!.message.content!, /I also see 1 image/);
  assert.equal(answer.usage!.prompt_tokens_details!.image_tokens, 258);
  assert.equal((await lastEntry(vendor)).usage.input_image, 258);
});

test('a refusal has its own member', async (context) => {
  const client = openai(await vendorFor(context));
  const whole = await client.chat.completions.create(requestOf('[[sandbox: refuse]]'));
  assert.equal(whole.choices[0]!.message.content, null);
  assert.match(whole.choices[0]!.message.refusal!, /cannot help/);
  const streamed = await client.chat.completions.stream(requestOf('[[sandbox: refuse]]')).finalChatCompletion();
  assert.equal(streamed.choices[0]!.message.refusal, whole.choices[0]!.message.refusal);
});

test('an abort in mid-stream is billed for the sent part', async (context) => {
  const vendor = await vendorFor(context);
  const stream = openai(vendor).chat.completions.stream(requestOf('Slow [[sandbox: chunk_delay=20ms tokens=500]]'));
  let chunks = 0;
  await assert.rejects(async () => {
    for await (const _ of stream) if (++chunks === 4) stream.abort();
  }, OpenAI.APIUserAbortError);
  const entry = await lastEntry(vendor);
  assert.equal(entry.outcome, 'cut');
  assert.ok(entry.usage.output! > 0 && entry.usage.output! < 500);
});

test('malformed requests are refused by field', async (context) => {
  const client = openai(await vendorFor(context));
  await assert.rejects(client.chat.completions.create({ model: 'm', messages: [] }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, 'messages');
    return true;
  });
  const wrongRole = [{ role: 'robot', content: 'x' }] as unknown as OpenAI.ChatCompletionMessageParam[];
  await assert.rejects(client.chat.completions.create({ model: 'm', messages: wrongRole }), {
    param: 'messages[0].role',
  });
});
