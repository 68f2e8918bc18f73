/** Frames that are recognised by the one before are metered as if each was searched. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessagesUsageMeter } from '../../../../plugins/protocol-convert/protocols/messages/usage-meter.ts';
import {
  isDeltaEvent,
  leadingEvent,
  RepeatedFrame,
  textBytes,
  textPattern,
} from '../../../../plugins/protocol-convert/request/fast-scan.ts';
import { mayHoldIds } from '../../../../plugins/protocol-convert/request/vendor-ids.ts';
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

test('a frame of the same shape is recognised', () => {
  const repeated = new RepeatedFrame();
  const shape = (value: string) => `data: {"delta":{"content":"${value}"}}\n\n`;
  repeated.scan(shape('one'), pattern);
  repeated.remember(shape('one'));
  assert.equal(repeated.textBytes(shape('three')), 5);
  assert.equal(repeated.textBytes(shape('')), 0);
  assert.equal(repeated.textBytes(shape('\\"')), 0);
});

test('deltas of messages are metered alike, repeated or not', () => {
  const types = ['text_delta', 'input_json_delta', 'thinking_delta'] as const;
  const named = { text_delta: 'text', input_json_delta: 'partial_json', thinking_delta: 'thinking' };
  const delta = fc.tuple(fc.constantFrom(...types), text, fc.constantFrom(0, 1)).map(([type, value, index]) => {
    const payload = { type: 'content_block_delta', index, delta: { type, [named[type]]: value } };
    return Buffer.from(`event: content_block_delta\ndata: ${JSON.stringify(payload)}\n\n`);
  });
  const other = fc.constantFrom(
    'event: ping\ndata: {"type": "ping"}\n\n',
    'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
  );
  const frames = fc.array(
    fc.oneof(
      delta,
      delta,
      other.map((frame) => Buffer.from(frame)),
    ),
    { maxLength: 20 },
  );
  let seen = 0;
  fc.assert(
    fc.property(frames, (all) => {
      const meter = new MessagesUsageMeter();
      let alone = 0;
      for (const frame of all) {
        const fresh = new MessagesUsageMeter();
        assert.equal(meter.frame(frame), fresh.frame(frame));
        alone += fresh.text.bytes;
        assert.equal(meter.text.bytes, alone);
      }
      seen += alone;
    }),
    { numRuns: 500 },
  );
  assert.ok(seen > 1_000);
});

test('an event is one of deltas exactly where its name ends so', () => {
  const name = fc.oneof(
    fc.constantFrom('.delta', 'a.delta', 'response.output_text.delta', 'a.deltas', 'delta', ''),
    text,
  );
  const line = fc.tuple(fc.constantFrom('event: ', 'event:', 'data: ', 'e'), name, fc.constantFrom('\n', '\r\n', ''));
  fc.assert(
    fc.property(line, ([field, value, end]) => {
      const raw = Buffer.from(`${field}${value}${end}data: {}`);
      assert.equal(isDeltaEvent(raw), leadingEvent(raw)?.endsWith('.delta') === true, raw.toString());
    }),
    { numRuns: 2_000 },
  );
  assert.ok(isDeltaEvent(Buffer.from('event: response.output_text.delta\ndata: {}')));
});

test('a frame may hold ids where a member of that name has a value', () => {
  const holds = (json: string) => mayHoldIds(Buffer.from(`data: ${json}\n\n`));
  for (const name of ['file_id', 'file_ids', 'container_id', 'container'])
    assert.ok(holds(`{"text":"${'a'.repeat(5_000)}","${name}" : "x"}`), name);
  for (const json of ['{"file_id":null}', '{"text":"\\"file_id\\":1"}', '{"files":1,"contain":2}', '{}'])
    assert.ok(!holds(json), json);
});
