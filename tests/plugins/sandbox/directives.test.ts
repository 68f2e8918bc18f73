/** What a prompt can order, in every protocol, seen by the official clients. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { ApiError } from '@google/genai';
import OpenAI from 'openai';
import { parseDirectives } from '../../../plugins/sandbox/script/directives.ts';
import type { RunningVendor } from '../../../plugins/sandbox/vendor.ts';
import { anthropic, google, lastEntry, openai, pause, vendorFor } from './clients.ts';

/** One way to send a prompt: reads the whole answer, and gives its text. */
interface Way {
  readonly name: string;
  send(vendor: RunningVendor, prompt: string): Promise<string>;
}

const whole: Way[] = [
  {
    name: 'chat',
    send: async (vendor, content) => {
      const answer = await openai(vendor).chat.completions.create({
        model: 'm',
        messages: [{ role: 'user', content }],
      });
      return answer.choices[0]!.message.content ?? '';
    },
  },
  {
    name: 'responses',
    send: async (vendor, input) => (await openai(vendor).responses.create({ model: 'm', input })).output_text,
  },
  {
    name: 'messages',
    send: async (vendor, content) => {
      const messages = [{ role: 'user' as const, content }];
      const answer = await anthropic(vendor).messages.create({ model: 'm', max_tokens: 9_000, messages });
      return answer.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    },
  },
  {
    name: 'gemini',
    send: async (vendor, contents) =>
      (await google(vendor).models.generateContent({ model: 'm', contents })).text ?? '',
  },
];

const streamed: Way[] = [
  {
    name: 'chat',
    send: async (vendor, content) => {
      const request = { model: 'm', messages: [{ role: 'user' as const, content }] };
      const answer = await openai(vendor).chat.completions.stream(request).finalChatCompletion();
      return answer.choices[0]!.message.content ?? '';
    },
  },
  {
    name: 'responses',
    send: async (vendor, input) => {
      const answer = await openai(vendor).responses.stream({ model: 'm', input }).finalResponse();
      assert.equal(answer.status, 'completed');
      return answer.output.map((item) => JSON.stringify(item)).join('');
    },
  },
  {
    name: 'messages',
    send: async (vendor, content) => {
      const messages = [{ role: 'user' as const, content }];
      const stream = anthropic(vendor).messages.stream({ model: 'm', max_tokens: 9_000, messages });
      const answer = await stream.finalMessage();
      assert.notEqual(answer.stop_reason, null, 'the stream ended without a stop reason');
      return answer.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    },
  },
  {
    name: 'gemini',
    send: async (vendor, contents) => {
      let text = '';
      let finish: string | undefined;
      for await (const chunk of await google(vendor).models.generateContentStream({ model: 'm', contents })) {
        text += chunk.text ?? '';
        finish = chunk.candidates?.[0]?.finishReason ?? finish;
      }
      if (finish === undefined) throw new Error('the stream ended without a finish reason');
      return text;
    },
  },
];

const openaiErrors: Record<number, new (...values: never[]) => Error> = {
  400: OpenAI.BadRequestError,
  401: OpenAI.AuthenticationError,
  402: OpenAI.APIError,
  403: OpenAI.PermissionDeniedError,
  404: OpenAI.NotFoundError,
  429: OpenAI.RateLimitError,
  500: OpenAI.InternalServerError,
  503: OpenAI.InternalServerError,
  529: OpenAI.InternalServerError,
};
const anthropicErrors: typeof openaiErrors = {
  400: Anthropic.BadRequestError,
  401: Anthropic.AuthenticationError,
  402: Anthropic.APIError,
  403: Anthropic.PermissionDeniedError,
  404: Anthropic.NotFoundError,
  429: Anthropic.RateLimitError,
  500: Anthropic.InternalServerError,
  503: Anthropic.InternalServerError,
  529: Anthropic.InternalServerError,
};
const errorClasses: Record<string, typeof openaiErrors | undefined> = {
  chat: openaiErrors,
  responses: openaiErrors,
  messages: anthropicErrors,
};

for (const { name, send } of [...whole, ...streamed]) {
  test(`every ordered status raises the client's own typed error, and none is billed (${name})`, async (context) => {
    const vendor = await vendorFor(context);
    for (const status of [400, 401, 402, 403, 404, 429, 500, 503, 529]) {
      const expected = errorClasses[name]?.[status] ?? ApiError;
      await assert.rejects(send(vendor, `Fail [[sandbox: status=${status}]]`), (error) => {
        assert.ok(error instanceof expected, `${status}: ${String(error)}`);
        assert.equal((error as { status?: number }).status, status);
        return true;
      });
    }
    assert.equal(vendor.bill().requests, 0);
  });
}

for (const { name, send } of streamed) {
  test(`a stream can break in every way, and the bill has the sent part (${name})`, async (context) => {
    const vendor = await vendorFor(context);
    for (const order of ['cut_after=2', 'no_terminal', 'mid_error']) {
      await assert.rejects(send(vendor, `Break [[sandbox: ${order}]]`), `${order} was not noticed`);
      const entry = await lastEntry(vendor);
      assert.equal(entry.outcome, 'cut', order);
      assert.ok(entry.usage.input! > 0, order);
      assert.ok(entry.usage.output! > 0, order);
    }
    await assert.rejects(send(vendor, 'Break [[sandbox: first_error]]'));
    assert.equal(vendor.bill().requests, 3);
    assert.equal(vendor.bill().cut, 3);
  });

  test(`a cut stream is billed by its sent pieces (${name})`, async (context) => {
    const vendor = await vendorFor(context);
    await assert.rejects(send(vendor, 'Cut [[sandbox: tokens=100 chunks=10 cut_after=3]]'));
    assert.equal((await lastEntry(vendor)).usage.output, 30);
  });

  test(`a stream can be paced, late and silent (${name})`, async (context) => {
    const vendor = await vendorFor(context);
    const before = performance.now();
    await send(vendor, 'Slow [[sandbox: delay=40ms chunks=4 chunk_delay=20ms]]');
    assert.ok(performance.now() - before >= 95);
    const silent = send(vendor, 'Silent [[sandbox: stall]]').then(
      () => 'answered',
      () => 'broken',
    );
    assert.equal(await Promise.race([silent, pause(100).then(() => 'silent')]), 'silent');
    assert.equal(vendor.bill().open, 1);
    await vendor.close();
    assert.equal(await silent, 'broken');
  });
}

for (const { name, send } of [...whole, ...streamed]) {
  test(`the answer has the ordered length (${name})`, async (context) => {
    const vendor = await vendorFor(context);
    await send(vendor, 'Long [[sandbox: tokens=200]]');
    assert.equal((await lastEntry(vendor)).usage.output, 200);
  });

  test(`an answer can be empty (${name})`, async (context) => {
    const vendor = await vendorFor(context);
    await send(vendor, '[[sandbox: empty]]');
    assert.equal((await lastEntry(vendor)).usage.output, undefined);
  });
}

for (const { name, send } of whole) {
  test(`a whole answer can be cut, and is billed all the same (${name})`, async (context) => {
    const vendor = await vendorFor(context);
    await assert.rejects(send(vendor, 'Cut [[sandbox: cut_after=0]]'));
    const entry = await lastEntry(vendor);
    assert.equal(entry.outcome, 'cut');
    assert.ok(entry.usage.output! > 0);
  });

  test(`thoughts are sent when ordered (${name})`, async (context) => {
    const vendor = await vendorFor(context);
    await send(vendor, 'Think [[sandbox: thinking]]');
    assert.ok((await lastEntry(vendor)).usage.reasoning! > 0);
  });

  test(`an HTML page can be ordered as the answer (${name})`, async (context) => {
    const vendor = await vendorFor(context);
    await assert.rejects(send(vendor, '[[sandbox: html status=502]]'), { status: 502 });
    assert.equal(vendor.bill().requests, 0);
  });

  test(`an unknown directive is refused by name (${name})`, async (context) => {
    const vendor = await vendorFor(context);
    await assert.rejects(send(vendor, '[[sandbox: explode]]'), /knows no directive .{0,2}"explode/);
  });

  test(`a key is required where one was configured (${name})`, async (context) => {
    const vendor = await vendorFor(context, { key: 'another' });
    await assert.rejects(send(vendor, 'Let me in'), { status: 401 });
    const open = await vendorFor(context, { key: 'sk-test' });
    assert.match(await send(open, 'Let me in'), /Let me in/);
  });
}

test('a rate limit has retry-after, in each dialect', async (context) => {
  const vendor = await vendorFor(context);
  const post = async (path: string, body: object) => {
    const answer = await fetch(vendor.origin + path, { method: 'POST', body: JSON.stringify(body) });
    assert.equal(answer.status, 429);
    assert.equal(answer.headers.get('retry-after'), '7');
    return { headers: answer.headers, text: await answer.text() };
  };
  const content = '[[sandbox: status=429 retry_after=7]]';
  const messages = [{ role: 'user', content }];
  const chat = await post('/v1/chat/completions', { model: 'm', messages });
  assert.equal(chat.headers.get('x-ratelimit-remaining-requests'), '0');
  const anthropicAnswer = await post('/v1/messages', { model: 'm', max_tokens: 5, messages });
  assert.equal(anthropicAnswer.headers.get('anthropic-ratelimit-requests-remaining'), '0');
  assert.equal(anthropicAnswer.headers.get('x-should-retry'), 'true');
  const gemini = await post('/v1beta/models/m:generateContent', { contents: [{ parts: [{ text: content }] }] });
  assert.match(gemini.text, /"retryDelay": "7s"/);
});

test('no_usage omits the usage from the answer, and not from the bill', async (context) => {
  const vendor = await vendorFor(context);
  const messages = [{ role: 'user' as const, content: '[[sandbox: no_usage]]' }];
  const answer = await openai(vendor).chat.completions.create({ model: 'm', messages });
  assert.equal(answer.usage, undefined);
  assert.ok((await lastEntry(vendor)).usage.output! > 0);
});

test('directives are removed from the text, and their values are checked', () => {
  assert.deepEqual(parseDirectives('Hi [[sandbox: delay=2s stall]] there [[sandbox: tool=x]]'), {
    text: 'Hi  there',
    directives: { delay: 2_000, stall: 1, tool: 'x' },
  });
  for (const wrong of ['status=200', 'delay=soon', 'tokens=0', 'html=no', 'chunks']) {
    assert.throws(() => parseDirectives(`[[sandbox: ${wrong}]]`), { name: 'Fault', status: 400 }, wrong);
  }
});
