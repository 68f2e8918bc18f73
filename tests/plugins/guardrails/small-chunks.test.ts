/** Long answers in small chunks, which are joined while they are held: what is found in them, relayed and translated, and what is left of them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startGateway, startVendor, type TestGateway, type Vendor } from '../../../plugins/common/author/testing.ts';
import { fc } from '../../helpers/properties.ts';

let vendor: Vendor;
let gateway: TestGateway;

before(async () => {
  vendor = await startVendor();
  const model = (target: string) => ({ owned_by: 'x', targets: [target], price: 'free' });
  gateway = await startGateway({
    plugins: ['providers', 'models', 'guardrails', 'prompts', 'route', 'protocol-convert'],
    providers: {
      chat: { keys: 'k', speaks: { chat: `${vendor.origin}/v1` } },
      messages: { keys: 'k', speaks: { messages: vendor.origin } },
    },
    models: { chat: model('chat'), messages: model('messages') },
    guardrails: {
      checks: { mail: { type: 'patterns', find: ['email'], on: ['answer'], do: 'mask' } },
      policies: { base: ['mail'] },
      apply: [{ policy: 'base' }],
    },
  });
});
after(async () => {
  await gateway?.stop();
  await vendor?.stop();
});

const address = 'ada.lovelace@example.com';
const frame = (data: object, spaces = 0) => `data: ${JSON.stringify(data)}${' '.repeat(spaces)}\n\n`;

/** A vendor's stream of these texts. */
const streams = {
  chat(texts: readonly string[]): string {
    const chunk = (delta: object, finish: string | null) => ({
      ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'chat' },
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    const first = frame(chunk({ role: 'assistant', content: '' }, null));
    const deltas = texts.map((content) => frame(chunk({ content }, null)));
    return `${first}${deltas.join('')}${frame(chunk({}, 'stop'))}data: [DONE]\n\n`;
  },
  messages(texts: readonly string[]): string {
    const named = (data: { type: string }, spaces = 0) => `event: ${data.type}\n${frame(data, spaces)}`;
    const delta = (text: string) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: 'm', type: 'message', role: 'assistant', model: 'messages', content: [], usage };
    const ends = { stop_reason: null, stop_sequence: null };
    const start = { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } };
    return [
      named({ type: 'message_start', message: { ...message, ...ends } } as never),
      named(start),
      ...texts.map((text, index) => named(delta(text), index % 4)),
      named({ type: 'content_block_stop', index: 0 } as never),
      named({ type: 'message_delta', delta: { ...ends, stop_reason: 'end_turn' }, usage } as never),
      named({ type: 'message_stop' }),
    ].join('');
  },
};
type Name = keyof typeof streams;

/** The text that a client reads, and the bytes that it gets. */
async function answered(client: Name, upstream: Name, texts: readonly string[]) {
  vendor.play({ headers: { 'content-type': 'text/event-stream' }, body: streams[upstream](texts) });
  const path = client === 'chat' ? '/v1/chat/completions' : '/v1/messages';
  const messages = [{ role: 'user', content: 'Tell me.' }];
  const answer = await gateway.post(path, { model: upstream, max_tokens: 100, messages, stream: true });
  const body = await answer.text();
  let text = '';
  for (const [, data] of body.matchAll(/^data: (\{.*)$/gm)) {
    const json = JSON.parse(data!);
    text += (client === 'chat' ? json.choices?.[0]?.delta?.content : json.delta?.text) ?? '';
  }
  return { body, text };
}

const word = fc.constantFrom(
  'Grüße ',
  'a "quote" ',
  'line\n',
  'x'.repeat(90),
  ' ',
  'plain words of a model ',
  '3:1 ',
  '😀',
);
const part = fc.oneof({ weight: 9, arbitrary: word }, { weight: 1, arbitrary: fc.constant(` ${address} `) });
const text = fc.array(part, { minLength: 60, maxLength: 120 }).map((parts) => parts.join(''));

/** Cut in chunks of one size, never inside a sign. */
function cut(whole: string, size: number): string[] {
  const signs = Array.from(whole);
  return Array.from({ length: Math.ceil(signs.length / size) }, (_, index) =>
    signs.slice(index * size, (index + 1) * size).join(''),
  );
}

for (const client of ['chat', 'messages'] as const)
  for (const upstream of ['chat', 'messages'] as const)
    test(`${client} on ${upstream}: addresses in chunks of any size are masked, and all else is as it came`, async () => {
      await fc.assert(
        fc.asyncProperty(text, fc.constantFrom(1, 4, 7, 20, 63, 120, 500), async (whole, size) => {
          const found = await answered(client, upstream, cut(whole, size));
          assert.equal(found.text, whole.replaceAll(address, '[EMAIL-1]'));
          const clean = cut(whole.replaceAll(address, '-'), size);
          const plain = await answered(client, upstream, clean);
          assert.equal(plain.text, clean.join(''));
          if (client === upstream) assert.equal(plain.body, streams[upstream](clean));
        }),
        { numRuns: 15 },
      );
    });

test('a stream that breaks off sends nothing that was held, and ends with its error', async () => {
  const texts = cut(`${'plain words '.repeat(60)}${address} and ${'more words '.repeat(3)}`, 5);
  const stream = streams.chat(texts);
  vendor.play({ headers: { 'content-type': 'text/event-stream' }, body: stream, dieAfter: stream.length - 300 });
  const messages = [{ role: 'user', content: 'Tell me.' }];
  const answer = await gateway.post('/v1/chat/completions', { model: 'chat', messages, stream: true });
  const body = await answer.text();
  assert.doesNotMatch(body, /lovelace/);
  assert.match(body, /plain/);
  assert.match(body, /"error"/);
});
