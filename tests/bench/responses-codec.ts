/** Measures one chunk of a translated stream, responses on both sides: parse, decode, encode. `node --import tsx tests/bench/responses-codec.ts` */

import type { JsonObject } from '../../plugins/protocol-convert/json.ts';
import { responsesCodec } from '../../plugins/protocol-convert/protocols/responses/codec.ts';
import { ReplyEvents } from '../../plugins/protocol-convert/reply-events.ts';
import { replyContext } from '../plugins/protocol-convert/codec/responses-helpers.ts';

const chunks = 200_000;
const rounds = 7;

const head = '{"type":"response.output_text.delta","content_index":0,"item_id":"msg_0123456789abcdef","logprobs":[],';
const text = 'The quick brown fox jumps over the lazy dog, ';
const data = `${head}"output_index":1,"sequence_number":17,"delta":"${text.padEnd(200 - head.length - 50, 'x')}"}`;

function measure(): { microseconds: number; bytesOut: number } {
  const encoder = responsesCodec.createEncoder(replyContext());
  let bytesOut = 0;
  const events = new ReplyEvents((event) => (bytesOut += encoder.event(event).length), {
    names: new Map(),
    idSeed: 's',
  });
  const decoder = responsesCodec.createDecoder(events);
  const start = process.hrtime.bigint();
  for (let count = 0; count < chunks; count++) {
    decoder.payload(JSON.parse(data) as JsonObject, 'response.output_text.delta');
  }
  return { microseconds: Number(process.hrtime.bigint() - start) / 1000 / chunks, bytesOut };
}

const results = Array.from({ length: rounds }, measure).map(({ microseconds }) => microseconds);
results.sort((one, other) => one - other);
console.log(`chunk of ${data.length} bytes: median ${results[3]!.toFixed(2)} µs, best ${results[0]!.toFixed(2)} µs`);
