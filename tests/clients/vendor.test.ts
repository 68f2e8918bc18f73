/** The loopback vendor speaks each protocol as its official clients want it, and is as strict as the real ones. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { streamOracles, type Understood, wholeOracles } from '../helpers/oracles.ts';
import { reported, signature, thought } from './agent.ts';
import { type AgentVendor, protocols, startAgentVendor, upstreamModel } from './vendor.ts';

const parameters = { type: 'object', properties: { file_path: { type: 'string' } } };
const tool = { name: 'Read', description: 'Reads a file', parameters };
const request = 'Read it.';

/** A first request with one tool, by protocol. */
const questions = {
  chat: (stream: boolean) => ({
    path: '/chat/completions',
    body: {
      model: upstreamModel,
      messages: [{ role: 'user', content: request }],
      tools: [{ type: 'function', function: tool }],
      ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
    },
  }),
  responses: (stream: boolean) => ({
    path: '/responses',
    body: { model: upstreamModel, input: request, tools: [{ type: 'function', ...tool }], stream },
  }),
  messages: (stream: boolean) => ({
    path: '/v1/messages',
    body: {
      model: upstreamModel,
      max_tokens: 100,
      messages: [{ role: 'user', content: request }],
      tools: [{ name: 'Read', input_schema: parameters }],
      stream,
    },
  }),
  gemini: (stream: boolean) => ({
    path: `/models/${upstreamModel}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: { contents: [{ role: 'user', parts: [{ text: request }] }], tools: [{ functionDeclarations: [tool] }] },
  }),
};

for (const protocol of protocols)
  describe(`the vendor that speaks ${protocol}`, () => {
    let vendor: AgentVendor;
    before(async () => {
      vendor = await startAgentVendor(protocol, () => '/note.txt');
    });
    after(() => vendor.stop());

    const post = (path: string, body: object) =>
      fetch(vendor.base + path, { method: 'POST', body: JSON.stringify(body) });

    for (const form of ['stream', 'whole'] as const)
      test(`calls the tool in a ${form === 'stream' ? 'stream' : 'whole answer'} that every client understands`, async () => {
        const { path, body } = questions[protocol](form === 'stream');
        const answer = await post(path, body);
        const contentType = answer.headers.get('content-type')!;
        const bytes = await answer.text();
        for (const { understand, blindTo } of (form === 'stream' ? streamOracles : wholeOracles)[protocol]) {
          const reply = await understand({ body: bytes, contentType, tools: ['Read'] });
          assertCall(reply);
          if (!blindTo?.includes('reasoning') && (form === 'stream' || reply.reasoning !== ''))
            assert.equal(reply.reasoning, thought);
        }
      });

    test('a request that the vendor would refuse is refused', async () => {
      const { path, body } = questions[protocol](false);
      const wrong = { messages: [], input: [], contents: [] };
      const answer = await post(path, { ...body, ...wrong });
      assert.equal(answer.status, 400);
      assert.match(vendor.requests.at(-1)!.outcome, /^refused/);
    });
  });

function assertCall({ tools, stop, usage }: Understood): void {
  assert.deepEqual(
    tools.map(({ name, arguments: input }) => ({ name, input })),
    [{ name: 'Read', input: { file_path: '/note.txt' } }],
  );
  assert.equal(stop, 'tool-calls');
  const { input, output, cacheRead, reasoning } = usage;
  assert.deepEqual({ input, output, cached: cacheRead, reasoning }, reported);
}

test('a signature that the vendor did not make is refused', async () => {
  const vendor = await startAgentVendor('messages', () => '/note.txt');
  const { path, body } = questions.messages(false);
  for (const [given, status] of [
    [signature, 200],
    ['another', 400],
  ] as const) {
    const thinking = { type: 'thinking', thinking: thought, signature: given };
    const messages = [...body.messages, { role: 'assistant', content: [thinking] }, { role: 'user', content: 'Go on' }];
    const answer = await fetch(vendor.base + path, { method: 'POST', body: JSON.stringify({ ...body, messages }) });
    assert.equal(answer.status, status);
  }
  await vendor.stop();
});
