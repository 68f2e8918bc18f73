/** The responses encoders tell their final object to the one that keeps it, streamed and whole, exactly as the client gets it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { ReplyContext } from '../../../../plugins/common/canonical/codec.ts';
import { ReplyEvents } from '../../../../plugins/common/canonical/events.ts';
import type { Event, Reply } from '../../../../plugins/common/canonical/reply.ts';
import { encodeReply } from '../../../../plugins/protocol-convert/protocols/responses/encode/reply.ts';
import { ResponsesEncoder } from '../../../../plugins/protocol-convert/protocols/responses/encode/stream.ts';

function context(onResponse?: (text: string) => void): ReplyContext {
  return {
    exchangeId: 'ex',
    call: {
      protocol: 'responses',
      model: 'm',
      stream: true,
      billable: true,
      inputTokens: 1,
      maxOutputTokens: undefined,
      choices: 1,
    },
    request: { model: 'm', input: 'hi', previous_response_id: 'resp_before' },
    createdAt: 1_700_000_000,
    now: () => 1_700_000_009,
    seal: (value) => `gw1.${value}`,
    usage: () => ({ usage: { input: 7, output: 3 }, estimated: false }),
    onResponse,
  };
}

test('a stream tells the object of its last event', () => {
  const kept: string[] = [];
  const encoder = new ResponsesEncoder(context((text) => void kept.push(text)));
  let out = '';
  const sink = (event: Event) => {
    out += encoder.event(event);
  };
  const reported = new ReplyEvents(sink, { names: new Map(), idSeed: 's' });
  reported.text(0, 'hello');
  assert.deepEqual(kept, []);
  reported.stop(0, 'stop');
  out += encoder.finish();
  const last = out.trimEnd().split('\n\n').at(-1)!;
  const { response } = JSON.parse(last.slice(last.indexOf('data: ') + 6)) as { response: JsonObject };
  assert.deepEqual(
    kept.map((text) => JSON.parse(text) as JsonObject),
    [response],
  );
  assert.equal(response['previous_response_id'], 'resp_before');
  assert.equal((response['output'] as JsonObject[])[0]!['type'], 'message');
});

test('a whole answer tells the same object that the client gets', () => {
  const kept: string[] = [];
  const reply: Reply = {
    id: undefined,
    createdAt: undefined,
    serviceTier: undefined,
    choices: [{ parts: [{ kind: 'text', text: 'hello' }], stop: 'stop', sequence: undefined, cutCalls: new Set() }],
  };
  const response = encodeReply(
    reply,
    context((text) => void kept.push(text)),
  );
  assert.deepEqual(
    kept.map((text) => JSON.parse(text) as JsonObject),
    [response],
  );
  assert.deepEqual(encodeReply(reply, context()), response);
});
