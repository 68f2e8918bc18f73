/** Responses of the sandbox as the official client sees them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import type { ResponseInput, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { lastEntry, longText, openai, vendorFor, weatherSchema } from './clients.ts';

const weather = {
  type: 'function' as const,
  name: 'get_weather',
  parameters: weatherSchema,
  strict: false,
};

test('a whole answer refers to the prompt, and its usage is on the bill', async (context) => {
  const vendor = await vendorFor(context);
  const answer = await openai(vendor).responses.create({ model: 'any-model', input: 'How tall is the tower?' });
  assert.match(answer.output_text, /How tall is the tower\?.*any-model/);
  assert.equal(answer.status, 'completed');
  const { usage } = await lastEntry(vendor);
  assert.equal(usage.input, answer.usage!.input_tokens);
  assert.equal(usage.output, answer.usage!.output_tokens);
  assert.deepEqual(answer.usage!.input_tokens_details, { cache_write_tokens: 0, cached_tokens: 0 });
  assert.deepEqual(answer.usage!.output_tokens_details, { reasoning_tokens: 0 });
});

test('a stream has the whole life of a response, numbered without a gap', async (context) => {
  const client = openai(await vendorFor(context));
  const events: ResponseStreamEvent[] = [];
  const stream = await client.responses.create({ model: 'any-model', input: 'Life', stream: true });
  for await (const event of stream) events.push(event);
  assert.deepEqual(
    events.map((event) => (event as { sequence_number: number }).sequence_number),
    events.map((_, index) => index),
  );
  const types = events.map(({ type }) => type);
  assert.deepEqual(
    types.filter((type, index) => type !== types[index - 1]),
    [
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ],
  );
});

test("the client's strict accumulator gets the same response as a whole answer", async (context) => {
  const client = openai(await vendorFor(context));
  const request = {
    model: 'any-model',
    input: 'Think and call',
    reasoning: { effort: 'high' as const, summary: 'detailed' as const },
    include: ['reasoning.encrypted_content' as const],
    tools: [weather, { ...weather, name: 'get_time' }],
    tool_choice: 'required' as const,
  };
  const whole = await client.responses.create(request);
  const streamed = await client.responses.stream(request).finalResponse();
  const bare = (response: { output: unknown }) =>
    JSON.parse(JSON.stringify(response.output).replaceAll(/sandbox0\w+/g, 'ID')) as Record<string, unknown>[];
  const withoutParsed = bare(streamed).map(({ parsed_arguments: _, ...item }) => item);
  assert.deepEqual(withoutParsed, bare(whole));
  assert.deepEqual(
    whole.output.map(({ type }) => type),
    ['reasoning', 'function_call'],
  );
});

test("sealed reasoning and tool results are accepted and read; another's seal is refused", async (context) => {
  const client = openai(await vendorFor(context));
  const input: ResponseInput = [{ role: 'user', content: 'Weather? [[sandbox: tool=get_weather]]' }];
  const request = {
    model: 'any-model',
    tools: [weather],
    store: false,
    reasoning: { effort: 'medium' as const },
    include: ['reasoning.encrypted_content' as const],
  };
  const first = await client.responses.create({ ...request, input });
  const call = first.output.find((item) => item.type === 'function_call')!;
  input.push(...(first.output as ResponseInput));
  input.push({ type: 'function_call_output', call_id: call.call_id, output: 'Rain' });
  const second = await client.responses.create({ ...request, input });
  assert.match(second.output_text, /get_weather answered: Rain/);
  const foreign = { type: 'reasoning' as const, id: 'rs_1', summary: [], encrypted_content: 'gAAAAforeign' };
  await assert.rejects(client.responses.create({ ...request, input: [...input, foreign] }), {
    status: 400,
    code: 'invalid_encrypted_content',
  });
});

test('custom tools are called with free text', async (context) => {
  const client = openai(await vendorFor(context));
  const answer = await client.responses
    .stream({
      model: 'any-model',
      input: 'Patch it',
      tools: [{ type: 'custom', name: 'apply_patch' }],
      tool_choice: { type: 'custom', name: 'apply_patch' },
    })
    .finalResponse();
  const [call] = answer.output;
  assert.ok(call?.type === 'custom_tool_call');
  assert.match(call.input, /Patch it/);
});

test('an answer follows its schema and is parsed by the client', async (context) => {
  const client = openai(await vendorFor(context));
  const format = { type: 'json_schema' as const, name: 'weather', schema: weatherSchema };
  const answer = await client.responses.create({ model: 'any-model', input: 'JSON', text: { format } });
  assert.deepEqual(JSON.parse(answer.output_text), { city: 'sample city', unit: 'celsius' });
});

test('a bound on tokens makes the response incomplete', async (context) => {
  const vendor = await vendorFor(context);
  const request = { model: 'any-model', input: 'Long', max_output_tokens: 8 };
  const whole = await openai(vendor).responses.create(request);
  assert.equal(whole.status, 'incomplete');
  assert.equal(whole.incomplete_details!.reason, 'max_output_tokens');
  assert.equal(whole.usage!.output_tokens, 8);
  const events: string[] = [];
  for await (const event of await openai(vendor).responses.create({ ...request, stream: true }))
    events.push(event.type);
  assert.equal(events.at(-1), 'response.incomplete');
});

test('a refusal is a part of its own, whole and streamed', async (context) => {
  const client = openai(await vendorFor(context));
  const request = { model: 'any-model', input: '[[sandbox: refuse]]' };
  const parts = (response: OpenAI.Responses.Response) => {
    const [item] = response.output;
    assert.ok(item?.type === 'message');
    return item.content.map(({ type }) => type);
  };
  assert.deepEqual(parts(await client.responses.create(request)), ['refusal']);
  assert.deepEqual(parts(await client.responses.stream(request).finalResponse()), ['refusal']);
});

test('compaction returns the user messages and one item that the next request may contain', async (context) => {
  const vendor = await vendorFor(context);
  const client = openai(vendor);
  const compacted = await client.responses.compact({
    model: 'any-model',
    input: [
      { role: 'user', content: 'First' },
      { role: 'assistant', content: 'Yes' },
      { role: 'user', content: 'Second' },
    ],
  });
  assert.deepEqual(
    compacted.output.map(({ type }) => type),
    ['message', 'message', 'compaction'],
  );
  assert.equal(compacted.object, 'response.compaction');
  assert.equal((await lastEntry(vendor)).usage.output, compacted.usage.output_tokens);
  const input = [...compacted.output, { role: 'user', content: 'Third' }] as ResponseInput;
  assert.match((await client.responses.create({ model: 'any-model', input })).output_text, /Third/);
});

test('a compaction trigger is answered with exactly one compaction item', async (context) => {
  const client = openai(await vendorFor(context));
  const input = [{ role: 'user', content: 'Much' }, { type: 'compaction_trigger' }] as ResponseInput;
  const answer = await client.responses.stream({ model: 'any-model', input }).finalResponse();
  assert.deepEqual(
    answer.output.map(({ type }) => type),
    ['compaction'],
  );
});

test('counting tokens agrees with the usage of the answer and is not billed', async (context) => {
  const vendor = await vendorFor(context);
  const request = { model: 'any-model', input: 'Count me', instructions: 'Be short.' };
  const counted = await openai(vendor).responses.inputTokens.count(request);
  assert.equal(vendor.bill().requests, 0);
  const answer = await openai(vendor).responses.create(request);
  assert.equal(counted.input_tokens, answer.usage!.input_tokens);
});

test('a cache key keeps prefixes apart', async (context) => {
  const client = openai(await vendorFor(context));
  const request = { model: 'any-model', instructions: longText, input: 'Go' };
  const read = async (key: string) => {
    const { usage } = await client.responses.create({ ...request, prompt_cache_key: key });
    return usage!.input_tokens_details.cached_tokens;
  };
  assert.equal(await read('one'), 0);
  assert.equal(await read('two'), 0);
  assert.ok((await read('one')) >= 1024);
});

test('an abort in mid-stream is billed for the sent part', async (context) => {
  const vendor = await vendorFor(context);
  const stream = openai(vendor).responses.stream({
    model: 'any-model',
    input: 'Slow [[sandbox: chunk_delay=20ms tokens=500]]',
  });
  let deltas = 0;
  await assert.rejects(async () => {
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta' && ++deltas === 3) stream.abort();
    }
  }, OpenAI.APIUserAbortError);
  const entry = await lastEntry(vendor);
  assert.equal(entry.outcome, 'cut');
  assert.ok(entry.usage.output! > 0 && entry.usage.output! < 500);
});

test('an unknown earlier response is refused by its code', async (context) => {
  const client = openai(await vendorFor(context));
  await assert.rejects(client.responses.create({ model: 'm', input: 'x', previous_response_id: 'resp_1' }), {
    status: 400,
    code: 'previous_response_not_found',
  });
});

test('an answer is kept, continued, returned, listed with its input, and deleted, unless its client turns storing off', async (context) => {
  const vendor = await vendorFor(context);
  const client = openai(vendor);
  const first = await client.responses.create({ model: 'any-model', input: 'My name is Ada.' });
  const request = { model: 'any-model', input: 'And yours?', previous_response_id: first.id };
  const second = await client.responses.stream(request).finalResponse();
  assert.equal(second.previous_response_id, first.id);
  // The whole conversation is read again, and paid.
  assert.equal(second.usage!.input_tokens, 4 + first.usage!.output_tokens + 3);
  const reported = await client.responses.retrieve(second.id);
  assert.deepEqual(
    [reported.output_text, reported.usage, reported.status],
    [second.output_text, second.usage, 'completed'],
  );
  const items = await client.responses.inputItems.list(second.id, { order: 'asc' });
  assert.deepEqual(
    items.data.map((item) => (item as { role: string }).role),
    ['user', 'assistant', 'user'],
  );
  const page = await client.responses.inputItems.list(second.id, { limit: 1, after: items.data[2]!.id! });
  assert.deepEqual([page.data[0]!.id, page.has_more], [items.data[1]!.id, true]);
  await client.responses.delete(second.id);
  await assert.rejects(client.responses.retrieve(second.id), { status: 404, type: 'invalid_request_error' });
  const forgotten = await client.responses.create({ model: 'any-model', input: 'x', store: false });
  await assert.rejects(client.responses.inputItems.list(forgotten.id), { status: 404 });
  const lost = { ...request, previous_response_id: forgotten.id };
  await assert.rejects(client.responses.create(lost), { code: 'previous_response_not_found' });
});

test('a bounded number of the newest answers is kept', async (context) => {
  const client = openai(await vendorFor(context));
  const input = 'x'.repeat(6 * 2 ** 20);
  const ids: string[] = [];
  for (let made = 0; made < 3; made++) ids.push((await client.responses.create({ model: 'm', input })).id);
  await assert.rejects(client.responses.retrieve(ids[0]!), { status: 404 });
  for (const id of ids.slice(1)) assert.equal((await client.responses.retrieve(id)).id, id);
});
