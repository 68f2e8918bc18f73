/** Large translated requests: the event loop turns between their steps, and the body goes out in bounded parts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readBody } from '../../../core/json/request-body.ts';
import { KeptFiles } from '../../../plugins/protocol-convert/request/kept-files.ts';
import { fakeExchange } from '../../helpers/fakes.ts';
import { relay, wholeAnswer } from './harness.ts';

const done = JSON.stringify({
  content: [{ type: 'text', text: 'x' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
});
const mebi = 2 ** 20;
const base64 = `iVBORw0KGgoAAAANSUhEUgAA${'A'.repeat(3 * mebi)}`;
const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } };
const turns = Array.from({ length: 8_000 }, (_, index) => ({
  role: index % 2 === 0 ? 'user' : 'assistant',
  content: `${index} "quoted" é ${'x'.repeat(150)}`,
}));

/** What is sent to a messages upstream, and how often the event loop turned until then. */
async function translated(messages: readonly object[]) {
  let count = 0;
  let isOver = false;
  const turn = () => {
    count++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const body = { model: 'm', max_tokens: 10, messages };
  const request = { path: '/v1/chat/completions', body, target: { protocol: 'messages' } };
  const { sent } = await relay(request, wholeAnswer(done));
  isOver = true;
  return { parts: sent.body, count };
}

function joined(parts: unknown): { messages: { content: Record<string, never>[] }[] } {
  return JSON.parse(Buffer.concat(parts as Buffer[]).toString());
}

test('an image goes out in parts of at most 1 MB, each in a turn of its own, with every byte', async () => {
  const { parts, count } = await translated([{ role: 'user', content: [{ type: 'text', text: 'What?' }, image] }]);
  assert.ok(Array.isArray(parts) && parts.length >= 4);
  assert.ok(parts.every(({ length }) => length <= mebi));
  assert.ok(count >= 3 + parts.length - 1, `${count} turns`);
  const [, sent] = joined(parts).messages[0]!.content;
  assert.deepEqual(sent!['source'], { type: 'base64', media_type: 'image/png', data: base64 });
});

test('many turns go out in parts too, in their order', async () => {
  const { parts } = await translated(turns);
  assert.ok(Array.isArray(parts) && parts.length > 1 && parts.every(({ length }) => length <= mebi));
  const texts = joined(parts).messages.map(({ content }) => content[0]!['text']);
  assert.deepEqual(
    texts.slice(0, turns.length),
    turns.map(({ content }) => content),
  );
});

test('a small request is one buffer', async () => {
  const { parts } = await translated(turns.slice(0, 3));
  assert.ok(Buffer.isBuffer(parts));
});

test('a file that a large request names is looked for wherever its name stands, and only then', async () => {
  const lead = '{"a":"';
  for (const [name, looks] of [
    ['"file-0"', 1],
    ['"file 0"', 0],
  ] as const) {
    for (const at of [mebi - 3, mebi, 2 * mebi + 7]) {
      const pad = 'A'.repeat(at - lead.length - '","b":'.length);
      const body = readBody(Buffer.from(`${lead}${pad}","b":${name},"c":"${pad}"}`), new Set());
      assert.equal(body.bytes.indexOf(name as never), at);
      let looked = 0;
      const files = new KeptFiles(() => void looked++, {} as never);
      assert.equal(await files.insert(fakeExchange({}), body), body);
      assert.equal(looked, looks, `${name} at ${at}`);
    }
  }
});
