/** Frames that are recognised by the one before are metered as if each was searched. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RepeatedFrame, textBytes, textPattern } from '../../../../plugins/protocol-convert/request/fast-scan.ts';
import { fc } from '../../../helpers/properties.ts';

const pattern = textPattern('content', 'arguments');

const text = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc
    .array(fc.constantFrom('"', '\\', 'a', '\\"', '","content":"', 'ä', '\n'), { maxLength: 5 })
    .map((parts) => parts.join('')),
);
/** Few shapes, so that most frames repeat the one before. */
const frame = fc
  .tuple(
    fc.constantFrom('content', 'arguments', 'other'),
    text,
    fc.constantFrom({}, { logprobs: null }, { content: 'x' }),
  )
  .map(([name, value, more]) => `data: ${JSON.stringify({ id: 1, delta: { [name]: value }, ...more })}\n\n`);
/** Not JSON: what is between the quotes, unchanged. */
const raw = fc.stringMatching(/^["\\a]{0,6}$/).map((value) => `data: {"content":"${value}"}\n\n`);

test('a frame is metered alike whether it is recognised or searched', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(frame, raw), { maxLength: 30 }), (frames) => {
      const repeated = new RepeatedFrame();
      for (const each of frames) {
        const latin1 = Buffer.from(each).toString('latin1');
        const recognised = repeated.textBytes(latin1);
        const found = recognised > 0 ? recognised : repeated.scan(latin1, pattern);
        assert.equal(found, textBytes(latin1, pattern), each);
        repeated.remember(latin1);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('a value ends at the first quote that no backslash escapes', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('\\', '"', 'a'), { maxLength: 12 }), (parts) => {
      const latin1 = `"content":"${parts.join('')}`;
      let end = 0;
      while (end < parts.length && parts[end] !== '"') end += parts[end] === '\\' ? 2 : 1;
      const first = Math.min(end, parts.length);
      const found = textBytes(latin1, textPattern('content'));
      assert.equal(found, first, latin1);
    }),
  );
});

test('the same shape is recognised', () => {
  const repeated = new RepeatedFrame();
  const shape = (value: string) => `data: {"delta":{"content":"${value}"}}\n\n`;
  repeated.scan(shape('one'), pattern);
  repeated.remember(shape('one'));
  assert.equal(repeated.textBytes(shape('three')), 5);
  assert.equal(repeated.textBytes(shape('')), 0);
  assert.equal(repeated.textBytes(shape('\\"')), 0);
});
