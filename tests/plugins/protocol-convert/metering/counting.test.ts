/** Counting without a vendor: near the truth for text, bounded for media, never long on the event loop. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Prompt } from '../../../../plugins/common/canonical/prompt.ts';
import { estimateTokens } from '../../../../plugins/protocol-convert/metering/estimate-tokens.ts';
import { countText } from '../../../../plugins/protocol-convert/metering/tokenizer.ts';
import { countAnswer } from '../../../../plugins/protocol-convert/translate/count-call.ts';

const said = (text: string): Prompt => ({ turns: [{ role: 'user', parts: [{ kind: 'text', text }] }], tools: [] });

test('a sentence counts as many tokens as the vocabulary has for it', async () => {
  assert.equal(await countText(['hello world']), 2);
  assert.equal(await countText(['hello world', 'hello world']), 4);
  assert.equal(await countText([]), 0);
});

test('words of the vocabulary’s control language are text like any other', async () => {
  assert.ok((await countText(['<|endoftext|>'])) > 1);
});

test('a text that is cut into pieces counts nearly as one that is not', async () => {
  const words = Array.from({ length: 2_000 }, (_, index) => `number ${index % 97} of many,`).join(' ');
  const whole = (await import('gpt-tokenizer/encoding/o200k_base')).countTokens(words);
  const pieces = await countText([words]);
  assert.ok(pieces >= whole && pieces <= whole * 1.01, `${pieces} instead of ${whole}`);
});

test('system, turns, tools, results, schemas and documents of text all count', async () => {
  const bare = await estimateTokens(said('go'));
  const more: [string, Prompt][] = [
    [
      'system',
      { ...said('go'), turns: [{ role: 'system', parts: [{ kind: 'text', text: 'be brief' }] }, ...said('go').turns] },
    ],
    [
      'tool',
      { ...said('go'), tools: [{ kind: 'function', name: 'read', description: 'reads', schema: { type: 'object' } }] },
    ],
    [
      'call',
      {
        ...said('go'),
        turns: [
          { role: 'assistant', parts: [{ kind: 'tool-call', id: 'a', name: 'read', input: '{"path":"x"}' }] },
          ...said('go').turns,
        ],
      },
    ],
    [
      'result',
      {
        ...said('go'),
        turns: [
          ...said('go').turns,
          { role: 'user', parts: [{ kind: 'tool-result', callId: 'a', parts: [{ kind: 'text', text: 'found it' }] }] },
        ],
      },
    ],
    [
      'schema',
      { ...said('go'), output: { form: 'schema', name: 'x', schema: { type: 'object', required: ['name'] } } },
    ],
    [
      'document',
      {
        ...said('go'),
        turns: [
          ...said('go').turns,
          { role: 'user', parts: [{ kind: 'document', source: { form: 'text', text: 'a page' } }] },
        ],
      },
    ],
  ];
  for (const [what, prompt] of more) assert.ok((await estimateTokens(prompt)) > bare + 1, what);
});

test('media count by flat bounds, whatever their bytes', async () => {
  const image = (base64: string): Prompt => ({
    turns: [{ role: 'user', parts: [{ kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64 } }] }],
    tools: [],
  });
  assert.equal(await estimateTokens(image('AAAA')), await estimateTokens(image('A'.repeat(1_000_000))));
  const remote = { form: 'url', url: 'https://files.example/a.pdf' } as const;
  const document: Prompt = { turns: [{ role: 'user', parts: [{ kind: 'document', source: remote }] }], tools: [] };
  assert.equal(await estimateTokens(document), 20_004);
});

test('a megabyte of one unbroken word, and loading the vocabulary for it, leave the event loop to others', async () => {
  // Different everywhere, so that nothing of it is remembered.
  const word = Array.from({ length: 300_000 }, (_, index) =>
    String.fromCharCode(0x4e00 + ((index * 7919) % 20_000)),
  ).join('');
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const tokens = await countText([word]);
  isOver = true;
  assert.ok(tokens > 100_000, `${tokens} tokens`);
  assert.ok(turns >= word.length / 8_000 - 1, `others had ${turns} turns`);
});

test('texts of more than two megabytes are sized', async () => {
  assert.equal(await countText(['a'.repeat(3 * 2 ** 20)]), 2 ** 20);
});

test('a count is encoded as the client’s protocol words it, and says when it is estimated', () => {
  assert.equal(countAnswer('messages', 7, false).body, '{"input_tokens":7}');
  assert.equal(countAnswer('responses', 7, false).body, '{"object":"response.input_tokens","input_tokens":7}');
  assert.equal(countAnswer('gemini', 7, false).body, '{"totalTokens":7}');
  assert.equal(countAnswer('messages', 7, true).headers['x-gateway-estimated'], 'true');
  assert.equal(countAnswer('messages', 7, false).headers['x-gateway-estimated'], undefined);
  assert.throws(() => countAnswer('chat', 7, true));
});
