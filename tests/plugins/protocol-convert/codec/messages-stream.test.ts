/** The messages codec on streams: recorded answers, hard cases, and the official SDK as the reader of what comes out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event } from '../../../../plugins/common/canonical/reply.ts';
import { messagesCodec } from '../../../../plugins/protocol-convert/protocols/messages/codec.ts';
import { MessagesUsageMeter } from '../../../../plugins/protocol-convert/protocols/messages/usage-meter.ts';
import { recordings } from '../../../helpers/recordings.ts';
import { encoded, essence, eventsOf, payloadsOf, plainSeal, replyContext, throughSdk } from './messages-harness.ts';

const answered = recordings('messages').filter((one) => one.status === 200);

function starts(events: readonly Event[]): number {
  return events.filter(({ type }) => type.endsWith('-start') && type !== 'reply-start').length;
}

for (const recording of answered.filter((one) => one.isStream)) {
  test(`${recording.name} goes through the common tongue without loss, as the official SDK reads it`, async () => {
    const events = eventsOf(payloadsOf(recording.response));
    const tap = new MessagesUsageMeter();
    for (const payload of payloadsOf(recording.response))
      tap.frame(Buffer.from(`event: ${String(payload['type'])}\ndata: ${JSON.stringify(payload)}\n\n`));
    const context = replyContext({ seal: plainSeal, usage: tap.reading.usage });
    const [before, after] = [await throughSdk(recording.response), await throughSdk(encoded(events, context))];
    assert.deepEqual(essence(after), essence(before));
    assert.equal(starts(events), events.filter(({ type }) => type.endsWith('-end')).length);
    assert.equal(events.filter(({ type }) => type === 'stop').length, 1);
    const { usage } = after;
    assert.equal(usage.input_tokens, before.usage.input_tokens);
    assert.equal(usage.output_tokens, before.usage.output_tokens);
    assert.equal(usage.cache_read_input_tokens, before.usage.cache_read_input_tokens ?? 0);
    assert.equal(usage.cache_creation_input_tokens, before.usage.cache_creation_input_tokens ?? 0);
  });
}

const start = (number: number, more: object = {}): Event => ({
  type: 'tool-start',
  block: number,
  choice: 0,
  id: `call_${number}`,
  name: `tool${number}`,
  namespace: undefined,
  custom: false,
  ...more,
});
const grow = (number: number, text: string): Event => ({ type: 'tool-delta', block: number, choice: 0, text });
const end = (number: number, opaqueState?: string): Event => ({
  type: 'tool-end',
  block: number,
  choice: 0,
  opaqueState: opaqueState,
  isCut: false,
});

test('a tool with eager input streams its arguments as they come', () => {
  const context = replyContext({ request: { tools: [{ name: 'tool0', eager_input_streaming: true }] } });
  const encoder = messagesCodec.createEncoder(context);
  assert.ok(encoder.event(start(0)).includes('content_block_start'));
  assert.ok(encoder.event(grow(0, '{"a"')).includes('"partial_json":"{\\"a\\""'));
  assert.ok(encoder.event(grow(0, ':1}')).includes('"partial_json":":1}"'));
  assert.ok(encoder.event(end(0)).startsWith('event: content_block_stop'));
});

test('a call that is held tells that it is alive', () => {
  const encoder = messagesCodec.createEncoder(replyContext());
  encoder.event(start(0));
  const frames = Array.from({ length: 10 }, () => encoder.event(grow(0, ' '.repeat(500)))).filter(
    (text) => text !== '',
  );
  assert.deepEqual(frames, Array(2).fill('event: ping\ndata: {"type":"ping"}\n\n'));
});
