/** Streams and answers of responses upstreams: recordings are read without loss, and odd ones as they are meant. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import { responsesCodec } from '../../../../plugins/protocol-convert/protocols/responses/codec.ts';
import {
  endOf,
  eventsOf,
  eventsOfReply,
  framesOf,
  readBySdk,
  recordings,
  replyContext,
  replyOf,
  saidIn,
  streamOf,
} from './responses-helpers.ts';

const answered = recordings.filter(({ status, body }) => status === 200 && body.includes('output'));

for (const { name, body, isStream } of answered) {
  if (body.includes('response.failed')) continue;
  test(`${name}: decoded and encoded again, the answer says the same`, async () => {
    const original = isStream ? endOf(body) : (JSON.parse(body) as JsonObject);
    const events = isStream ? eventsOf(framesOf(body)) : eventsOfReply(original);
    const stream = streamOf(events);
    const wanted = saidIn(original);
    assert.deepEqual(saidIn(endOf(stream)), wanted);
    const whole = responsesCodec.encodeReply(replyOf(events), replyContext());
    assert.deepEqual(saidIn(whole), wanted);
    const read = await readBySdk(stream);
    assert.deepEqual(saidIn(read as unknown as JsonObject), wanted);
  });
}
