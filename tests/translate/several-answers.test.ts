/** Several answers to one request, from a vendor whose first protocol gives one: they are asked for in its protocol that gives several. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startGateway } from '../helpers/gateway.ts';
import { startVendor } from '../helpers/vendor.ts';

const choice = (index: number) => ({
  index,
  message: { role: 'assistant', content: `Answer ${index}.` },
  finish_reason: 'stop',
});
const answer = {
  ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1_800_000_000, model: 'm' },
  choices: [choice(0), choice(1)],
  usage: { prompt_tokens: 5, completion_tokens: 6, total_tokens: 11 },
};
const delta = (index: number, finish: string | null) => ({
  ...{ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_800_000_000, model: 'm' },
  choices: [{ index, delta: { role: 'assistant', content: `Answer ${index}.` }, finish_reason: finish }],
});
const frames = [delta(0, 'stop'), delta(1, 'stop'), { ...delta(0, null), choices: [], usage: answer.usage }];
const stream = `${frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')}data: [DONE]\n\n`;

const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
const requests = [
  ['/v1beta/models/m:generateContent', { contents, generationConfig: { candidateCount: 2 } }],
  ['/v1beta/models/m:generateContent', { contents, stream: false, candidate_count: 2 }],
  ['/v1beta/models/m:streamGenerateContent?alt=sse', { contents, generationConfig: { candidateCount: 2 } }],
] as const;

test('a generate-content request for two answers goes to the chat of a vendor that is asked in responses otherwise', async () => {
  const vendor = await startVendor();
  const gateway = await startGateway(
    JSON.stringify({
      gateway: 'several',
      listen: 0,
      plugins: ['providers', 'models', 'route', 'protocol-convert'],
      providers: { one: { keys: 'k', speaks: { responses: `${vendor.origin}/v1`, chat: `${vendor.origin}/v1` } } },
      models: { m: { owned_by: 'x', targets: ['one'], price: 'free' } },
    }),
  );
  try {
    for (const [path, body] of requests) {
      const isStream = path.includes('stream');
      vendor.play({
        headers: { 'content-type': isStream ? 'text/event-stream' : 'application/json' },
        body: isStream ? stream : JSON.stringify(answer),
      });
      const reply = await fetch(gateway.origin + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const text = await reply.text();
      assert.equal(reply.status, 200, text);
      assert.equal(vendor.requests.at(-1)!.url, '/v1/chat/completions');
      assert.equal(JSON.parse(vendor.requests.at(-1)!.body.toString()).n, 2);
      assert.ok(text.includes('Answer 0.') && text.includes('Answer 1.'), text);
    }
  } finally {
    await gateway.stop();
    await vendor.stop();
  }
});
