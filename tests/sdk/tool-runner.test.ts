/** The official Anthropic tool runner, which asks for threads by default, in front of vendors of all four protocols. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import type { Play } from '../matrix/scenario.ts';
import { protocolNames } from '../matrix/scenario.ts';
import { type MatrixStage, modelOf, startMatrixStage } from '../matrix/stage.ts';
import { vendors } from '../matrix/vendors/index.ts';

let stage: MatrixStage;
before(async () => {
  stage = await startMatrixStage();
});
after(() => stage.stop());

const usage = { input: 20, cacheRead: 0, cacheWrite: 0, output: 5, reasoning: 0 };
const call: Play = { calls: [{ id: 'call_1', name: 'weather', input: { city: 'Ulm' } }], meaning: 'tool-calls', usage };
const end: Play = { text: 'It is sunny in Ulm.', meaning: 'stop', usage };

for (const protocol of protocolNames) {
  for (const stream of [false, true]) {
    test(`the runner works without threads, and a ${protocol} model gets all messages, ${stream ? 'streamed' : 'whole'}`, async () => {
      const vendor = stage.vendors[protocol];
      const words = vendors[protocol];
      const model = modelOf(protocol);
      const seen = vendor.requests.length;
      vendor.play(
        ...[call, end].map((play, turn) => {
          const body = stream ? words.stream(play, model).join('') : words.whole(play, model);
          const type = stream ? 'text/event-stream' : 'application/json';
          return { headers: { 'content-type': type }, body: body.replaceAll('msg_01', `msg_${turn}`) };
        }),
      );
      const requests: { thread?: unknown; messages: unknown[] }[] = [];
      const client = new Anthropic({
        baseURL: stage.origin,
        apiKey: 'any',
        maxRetries: 0,
        fetch: (url, init) => {
          requests.push(JSON.parse(String(init?.body)));
          return fetch(url, init as RequestInit);
        },
      });
      const weather = betaTool({
        name: 'weather',
        description: 'The weather of a city.',
        inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        run: ({ city }) => `Sunny in ${city}`,
      });
      const runner = client.beta.messages.toolRunner({
        model,
        max_tokens: 500,
        messages: [{ role: 'user', content: 'What is the weather in Ulm?' }],
        tools: [weather],
        ...(stream ? { stream } : {}),
      });
      const last = await runner.runUntilDone();
      assert.match(JSON.stringify(last.content), /It is sunny in Ulm\./);
      assert.deepEqual(
        requests.map(({ thread, messages }) => [thread !== undefined, messages.length]),
        [
          [true, 1],
          [false, 1],
          [false, 3],
        ],
        'the refused request is sent again without a thread, and so are all later ones, with the whole conversation',
      );
      const received = vendor.requests.slice(seen).map(({ body }) => body.toString());
      assert.equal(received.length, 2, 'the refused request reaches no vendor');
      for (const text of ['What is the weather in Ulm?', 'Sunny in Ulm', 'weather'])
        assert.ok(received[1]!.includes(text));
      assert.ok(!received.some((body) => body.includes('"thread"')));
    });
  }
}

test('a thread that a client asks for by itself is refused by the error class of its SDK', async () => {
  const client = new Anthropic({ baseURL: stage.origin, apiKey: 'any', maxRetries: 0 });
  for (const thread of [{ type: 'create' }, { type: 'continue', previous_message_id: 'msg_1' }] as const) {
    const requested = client.beta.messages.create({
      model: modelOf('chat'),
      max_tokens: 9,
      messages: [{ role: 'user', content: 'And then?' }],
      thread,
    });
    await assert.rejects(requested, (error) => {
      assert.ok(error instanceof Anthropic.APIError);
      assert.equal(error.status, 400);
      assert.equal((error as { errorCode?: string }).errorCode, 'thread_unsupported_request');
      return true;
    });
  }
});
