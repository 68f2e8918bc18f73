/** A Prompt that was encoded as a chat request and read again has lost what was named, and nothing else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Part, Prompt, TextPart, Tool, Turn } from '../../../../plugins/common/canonical/prompt.ts';
import { fc } from '../../../helpers/properties.ts';
import { decode, encode } from './chat-harness.ts';

const word = fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' });
const textPart = word.map((text): Part => ({ kind: 'text', text }));
const image = fc.constant<Part>({
  kind: 'image',
  source: { form: 'bytes', mediaType: 'image/png', base64: Buffer.from('89504e470d0a1a0a', 'hex').toString('base64') },
  detail: 'low',
});
const toolName = fc.constantFrom('read', 'write', 'find');

/** What the user says, and the model's step upon it: text and calls with a result for each. */
const exchange = fc.record({
  asked: fc.tuple(textPart, fc.option(image)),
  said: fc.option(textPart),
  names: fc.array(toolName, { maxLength: 3 }),
  outputs: fc.array(word, { minLength: 3, maxLength: 3 }),
});
const history = fc.array(exchange, { minLength: 1, maxLength: 6 }).map((exchanges) =>
  exchanges.flatMap(({ asked, said, names, outputs }, at): Turn[] => {
    const calls = names.map(
      (name, place): Part => ({ kind: 'tool-call', id: `call_${at}_${place}`, name, input: `{"at":${at}}` }),
    );
    const parts = said === null && calls.length > 0 ? calls : [said ?? { kind: 'text' as const, text: 'ok' }, ...calls];
    const results = names.map((_, place): Turn => {
      const output: TextPart = { kind: 'text', text: outputs[place]! };
      return { role: 'user', parts: [{ kind: 'tool-result', callId: `call_${at}_${place}`, parts: [output] }] };
    });
    const user: Turn = { role: 'user', parts: asked.filter((part) => part !== null) };
    return [user, { role: 'assistant', parts }, ...results];
  }),
);

const settings = fc.record(
  {
    maxOutputTokens: fc.integer({ min: 1, max: 9999 }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    topP: fc.double({ min: 0, max: 1, noNaN: true }),
    topK: fc.integer({ min: 1, max: 99 }),
    stop: fc.array(word, { minLength: 1, maxLength: 4 }),
    choices: fc.integer({ min: 2, max: 4 }),
    seed: fc.integer(),
    frequencyPenalty: fc.double({ min: -2, max: 2, noNaN: true }),
    presencePenalty: fc.double({ min: -2, max: 2, noNaN: true }),
    logprobs: fc.integer({ min: 0, max: 20 }),
    verbosity: fc.constantFrom('low', 'high'),
    reasoning: fc.constantFrom('low', 'medium', 'high').map((effort) => ({ effort, visible: true }) as const),
    user: fc.string({ minLength: 1, maxLength: 64 }),
    metadata: fc.constant({ a: 'b' }),
    serviceTier: fc.constantFrom('auto', 'flex', 'priority'),
    cacheKey: word,
    output: fc.constantFrom({ form: 'schema', name: 'n', schema: { type: 'object' }, strict: false } as const),
    toolChoice: fc.constantFrom(
      { mode: 'auto' } as const,
      { mode: 'none' } as const,
      { mode: 'required', names: ['read'] } as const,
      { mode: 'auto', names: ['read', 'write'] } as const,
    ),
    parallelTools: fc.constant(false),
  },
  { requiredKeys: [] },
);
const tools: Tool[] = ['read', 'write', 'find'].map((name) => ({
  kind: 'function',
  name,
  description: 'd',
  schema: { type: 'object', properties: {} },
}));
const members: { readonly [name: string]: string } = { top_k: 'topK', metadata: 'metadata' };

test('a prompt that was encoded and decoded again lost what was named, and nothing else', () => {
  fc.assert(
    fc.property(history, settings, (turns, wishes) => {
      const prompt = { turns, tools, ...wishes } as Prompt;
      const { body, dropped } = encode(prompt, { traits: { allowed_tools: true } });
      const again = decode(JSON.parse(JSON.stringify(body)) as JsonObject);
      // As JSON tells it: without negative zeros.
      const expected = JSON.parse(JSON.stringify(prompt)) as Record<string, unknown>;
      for (const name of dropped) delete expected[members[name]!];
      assert.deepEqual(again.dropped, []);
      assert.deepEqual(again.prompt, expected);
    }),
    { numRuns: 300 },
  );
});
