/** The official OpenAI client as a black box before the demo gateway. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { watchDelay } from '../helpers/delay.ts';
import { type Demo, failing, hasOneVendor, limited, longPrompt, model, shaped, slowPrompt, startDemo } from './demo.ts';

let demo: Demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo.stop());

function client(key = demo.keys.good): OpenAI {
  return new OpenAI({ baseURL: `${demo.origin}/v1`, apiKey: key, maxRetries: 0 });
}

const user = (content: string) => ({ model, messages: [{ role: 'user' as const, content }] });
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

test('a whole chat answer is relayed, and its usage is paid and billed', async () => {
  const call = await demo.settled(async () => {
    const answer = await client().chat.completions.create(user('How are you?'));
    assert.match(answer.choices[0]!.message.content!, /How are you\?/);
    assert.equal(answer.model, model);
  });
  assert.deepEqual(call.usage, call.entry.usage);
  assert.equal(call.paid, call.due);
  assert.ok(!call.estimated && call.paid > 0n);
});

const keptResponse = 'a response that its vendor keeps is continued, read, listed and deleted by its id';
const testKept = hasOneVendor ? test : () => {};

testKept(keptResponse, async () => {
  const { responses } = client();
  const first = await responses.create({ model, input: 'My name is Ada.' });
  const next = await responses.create({ model, input: 'And yours?', previous_response_id: first.id });
  assert.equal(next.previous_response_id, first.id);
  assert.equal((await responses.retrieve(next.id)).output_text, next.output_text);
  assert.equal((await responses.inputItems.list(next.id)).data.length, 3);
  await responses.delete(next.id);
  const gone = shaped ? { status: 404 } : { status: 404, type: 'invalid_request_error' };
  await assert.rejects(responses.retrieve(next.id), gone);
});

test('a streamed chat answer is metered although the client requested no usage', async () => {
  const call = await demo.settled(async () => {
    let text = '';
    for await (const chunk of await client().chat.completions.create({ ...user('Stream it'), stream: true })) {
      assert.equal(chunk.choices.length, 1);
      text += chunk.choices[0]!.delta.content ?? '';
    }
    assert.match(text, /Stream it/);
  });
  assert.deepEqual(call.usage, call.entry.usage);
  assert.equal(call.paid, call.due);
});

test("usage reaches the client that requested it, through the client's strict accumulator", async () => {
  const request = { ...user('With usage'), stream_options: { include_usage: true } };
  const answer = await client().chat.completions.stream(request).finalChatCompletion();
  assert.ok(answer.usage!.completion_tokens > 0);
});

test('chat tools are called and their results read, whole and streamed', async () => {
  const request = {
    ...user('Weather?'),
    tools: [{ type: 'function' as const, function: { name: 'get_weather', parameters } }],
  };
  const forced = { ...request, tool_choice: 'required' as const };
  const { message } = (await client().chat.completions.stream(forced).finalChatCompletion()).choices[0]!;
  const [call] = message.tool_calls!;
  assert.ok(call?.type === 'function' && call.function.arguments === '{"city":"sample city"}');
  const heard = await client().chat.completions.create({
    ...request,
    messages: [...request.messages, message, { role: 'tool', tool_call_id: call.id, content: 'Sunny' }],
  });
  assert.match(heard.choices[0]!.message.content!, /get_weather answered: Sunny/);
});

test('responses are relayed whole and streamed, with reasoning and tools', async () => {
  const request = {
    model,
    input: 'Think, then call',
    reasoning: { effort: 'low' as const, summary: 'auto' as const },
    tools: [{ type: 'function' as const, name: 'get_weather', parameters, strict: false }],
    tool_choice: 'required' as const,
  };
  const call = await demo.settled(async () => {
    const answer = await client().responses.stream(request).finalResponse();
    assert.deepEqual(
      answer.output.map(({ type }) => type),
      ['reasoning', 'function_call'],
    );
  });
  assert.deepEqual(call.usage, call.entry.usage);
  assert.equal(call.paid, call.due);
  const whole = await client().responses.create({ model, input: 'Plain' });
  assert.match(whole.output_text, /Plain/);
});

test("images and cached prompts cost the vendor's bill, in every class", async () => {
  const image = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
  const content = [{ type: 'text' as const, text: 'See?' }, image];
  const messages = [
    { role: 'system' as const, content: longPrompt },
    { role: 'user' as const, content },
  ];
  for (const kind of ['cache_write_5m', 'cache_read'] as const) {
    const chat = await demo.settled(() => client().chat.completions.create({ model, messages }));
    const input = longPrompt;
    const response = await demo.settled(() => client().responses.create({ model, input, prompt_cache_key: 'k' }));
    for (const call of [chat, response]) {
      assert.ok(call.usage[kind]! >= 1024);
      assert.deepEqual(call.usage, call.entry.usage);
      assert.equal(call.paid, call.due);
    }
  }
});

test('leaving a chat stream stops the vendor within 100 ms, and the received part is paid', async () => {
  let leftAt = 0;
  let watch = watchDelay();
  const call = await demo.settled(async () => {
    const stream = await client().chat.completions.create({ ...user(slowPrompt), stream: true });
    let chunks = 0;
    for await (const _ of stream) {
      if (++chunks < 4) continue;
      watch = watchDelay();
      leftAt = Date.now();
      break;
    }
  });
  assert.equal(call.entry.outcome, 'cut');
  assert.ok(
    call.entry.endedAt - leftAt <= watch.allowedMs(100),
    `the vendor knew after ${call.entry.endedAt - leftAt} ms`,
  );
  assert.ok(call.estimated && call.usage.output! > 0 && call.usage.output! < 500);
  assert.equal(call.paid, call.due);
});

test('leaving a response stream stops the vendor within 100 ms, and the received part is paid', async () => {
  let leftAt = 0;
  let watch = watchDelay();
  const call = await demo.settled(async () => {
    const stream = client().responses.stream({ model, input: slowPrompt });
    await assert.rejects(async () => {
      for await (const event of stream) {
        if (event.type !== 'response.output_text.delta') continue;
        watch = watchDelay();
        leftAt = Date.now();
        stream.abort();
      }
    }, OpenAI.APIUserAbortError);
  });
  assert.equal(call.entry.outcome, 'cut');
  assert.ok(
    call.entry.endedAt - leftAt <= watch.allowedMs(100),
    `the vendor knew after ${call.entry.endedAt - leftAt} ms`,
  );
  assert.ok(call.estimated && call.usage.output! > 0 && call.usage.output! < 500);
  assert.equal(call.paid, call.due);
});

for (const endpoint of ['chat', 'responses'] as const) {
  const send = (prompt: string, key?: string, name = model): Promise<unknown> =>
    endpoint === 'chat'
      ? client(key).chat.completions.create({ ...user(prompt), model: name })
      : client(key).responses.create({ model: name, input: prompt });

  test(`every failure raises the client's own error class, and none is billed (${endpoint})`, async () => {
    const billed = await demo.billed();
    await assert.rejects(send('[[sandbox: status=400]]'), OpenAI.BadRequestError);
    await assert.rejects(send('Hello', 'sk-unknown'), OpenAI.AuthenticationError);
    await assert.rejects(send('Hello', demo.keys.broke), (error) => {
      assert.ok(error instanceof OpenAI.APIError);
      assert.equal(error.status, 402);
      assert.equal(error.code, shaped ? 'INSUFFICIENT_BALANCE' : 'insufficient_balance');
      return true;
    });
    await assert.rejects(send('Hello', demo.keys.narrow), OpenAI.PermissionDeniedError);
    await assert.rejects(send('Hello', undefined, 'no-such-model'), (error) => {
      assert.ok(error instanceof OpenAI.NotFoundError);
      assert.equal(error.code, shaped ? 'MODEL_NOT_FOUND' : 'model_not_found');
      return true;
    });
    assert.equal(await demo.billed(), billed);
  });
}

test('a rate limit raises its own error class with retry-after', async () => {
  await client(demo.keys.tight).chat.completions.create(user('First'));
  await assert.rejects(client(demo.keys.tight).chat.completions.create(user('Second')), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    assert.ok(Number(error.headers.get('retry-after')) > 0);
    return true;
  });
});

test("a vendor's own rate limit reaches the client as one", async () => {
  const request = { ...user(`[[sandbox: status=${limited.status}]]`), model: limited.model };
  await assert.rejects(client().chat.completions.create(request), OpenAI.RateLimitError);
});

for (const { status, model: name } of failing) {
  test(`a vendor that fails with ${status} raises the error class of servers`, async () => {
    const request = { ...user(`[[sandbox: status=${status}]]`), model: name };
    await assert.rejects(client().chat.completions.create(request), OpenAI.InternalServerError);
    const input = request.messages[0]!.content;
    await assert.rejects(client().responses.create({ model: name, input, stream: true }), OpenAI.InternalServerError);
  });
}

test('an error inside a stream is raised by the client', async () => {
  const stream = await client().chat.completions.create({ ...user('[[sandbox: mid_error]]'), stream: true });
  await assert.rejects(
    async () => {
      for await (const _ of stream);
    },
    (error) => {
      assert.ok(error instanceof OpenAI.APIError);
      if (shaped) assert.equal(error.code, 'UPSTREAM_ERROR');
      return true;
    },
  );
});

test('the ledger passes its audit at the end', async () => {
  assert.deepEqual((await demo.audit()).violations, []);
});
