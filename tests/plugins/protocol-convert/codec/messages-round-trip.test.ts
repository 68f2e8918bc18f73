/** Requests of the messages protocol, decoded, encoded and decoded again, for any conversation and any settings. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Prompt } from '../../../../plugins/common/canonical/prompt.ts';
import { messagesCodec } from '../../../../plugins/protocol-convert/protocols/messages/codec.ts';
import { fc } from '../../../helpers/properties.ts';
import { decoded, word } from './messages-harness.ts';
import { marksIn } from './messages-samples.ts';

const word0 = fc
  .string({ minLength: 1, maxLength: 12 })
  .filter((value) => value.trim() !== '' && !value.startsWith('x-'));
const mark = fc.option(fc.constantFrom({ type: 'ephemeral' }, { type: 'ephemeral', ttl: '1h' }), { nil: undefined });
const textBlock = fc.record({ type: fc.constant('text'), text: word0, cache_control: mark });
const picture = fc.record({
  type: fc.constant('image'),
  source: fc.constant({ type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' }),
});
const step = fc
  .record({
    words: fc.array(textBlock, { maxLength: 2 }),
    thought: fc.boolean(),
    input: fc.dictionary(word0, word0),
    result: word0,
    failed: fc.boolean(),
  })
  .map(({ words, thought, input, result: output, failed }) => ({ words, thought, input, output, failed }));
const conversation = fc.record({
  first: fc.array(fc.oneof(textBlock, picture), { minLength: 1, maxLength: 3 }),
  steps: fc.array(step, { maxLength: 3 }),
});
const settings = fc.record(
  {
    system: fc.array(textBlock, { minLength: 1, maxLength: 2 }),
    temperature: fc.double({ min: 0, max: 1, noNaN: true }),
    top_p: fc.double({ min: 0, max: 1, noNaN: true }),
    top_k: fc.nat(100),
    stop_sequences: fc.array(word0, { minLength: 1, maxLength: 3 }),
    thinking: fc.constantFrom({ type: 'adaptive', display: 'omitted' }, { type: 'disabled' }),
    output_config: fc.constantFrom({ effort: 'low' }, { effort: 'high' }),
    metadata: fc.record({ user_id: word0 }),
    tool_choice: fc.constantFrom({ type: 'auto' }, { type: 'any' }, { type: 'none' }, { type: 'tool', name: 'look' }),
  },
  { requiredKeys: [] },
);

function bodyOf(
  {
    first,
    steps,
  }: {
    first: JsonObject[];
    steps: { words: JsonObject[]; thought: boolean; input: object; output: string; failed: boolean }[];
  },
  more: object,
): JsonObject {
  const messages: JsonObject[] = [{ role: 'user', content: first }];
  for (const [index, { words, thought, input, output, failed }] of steps.entries()) {
    const thinking = thought ? [{ type: 'thinking', thinking: 'hm', signature: `gw1.${index}` }] : [];
    const use = { type: 'tool_use', id: `toolu_${index}`, name: 'look', input };
    messages.push({ role: 'assistant', content: [...thinking, ...words, use] });
    const answer = {
      type: 'tool_result',
      tool_use_id: `toolu_${index}`,
      content: output,
      ...(failed ? { is_error: true } : {}),
    };
    messages.push({ role: 'user', content: [answer] });
  }
  const look = { name: 'look', description: 'Looks', input_schema: { type: 'object', properties: {} } };
  return { model: 'm', max_tokens: 500, messages, tools: [look], ...more };
}

/** The words of one prompt, each setting under the name that losses have for it. */
function members({ turns, ...settingsOf }: Prompt): Map<string, string> {
  const withoutMarks = (value: unknown) =>
    JSON.stringify(value, (key, inner: unknown) => (key === 'cache' ? undefined : inner));
  const words = new Map([['messages', withoutMarks(turns.filter(({ role }) => role !== 'system'))]]);
  for (const [name, value] of Object.entries(settingsOf)) {
    words.set(messagesCodec.spelling[name as keyof typeof messagesCodec.spelling] ?? name, withoutMarks(value));
  }
  return words;
}

test('a request that is decoded, encoded and decoded again has lost only what is noted', () => {
  fc.assert(
    fc.property(conversation, settings, (talk, more) => {
      const before = decoded(bodyOf(talk as never, more)).prompt;
      const request = word(before);
      // What was encoded holds the bare signatures: sealed again, it is what a client would send.
      const again = JSON.parse(
        JSON.stringify(request.body).replaceAll('"signature":"', '"signature":"gw1.'),
      ) as JsonObject;
      const after = decoded(again).prompt;
      const noted = new Set(request.dropped);
      const [one, other] = [members(before), members(after)];
      // The one that names an effort alone is taken to want thinking too.
      if (before.reasoning?.effort !== undefined && before.reasoning.visible === undefined) noted.add('thinking');
      for (const [name, value] of one) if (!noted.has(name)) assert.equal(other.get(name), value, name);
      for (const name of other.keys()) assert.ok(one.has(name), `${name} was made up`);
      assert.ok(marksIn(request.body).length <= 4);
    }),
    { numRuns: 300 },
  );
});
