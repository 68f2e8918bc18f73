/** Measures what a translated messages chunk costs: parse, event, encode. Run: `node --import tsx tests/bench/messages-codec.ts`. */
import { parseFrame } from '../../core/sse.ts';
import type { ReplyContext } from '../../plugins/protocol-convert/codec.ts';
import type { JsonObject } from '../../plugins/protocol-convert/json.ts';
import { messagesCodec } from '../../plugins/protocol-convert/protocols/messages/codec.ts';
import { ReplyEvents } from '../../plugins/protocol-convert/reply-events.ts';

const rounds = 300_000;
const words = 'The quick brown "fox" jumps over the lazy dog. '.repeat(5).slice(0, 200);

function measure(name: string, block: object, delta: object): void {
  const context = {
    exchangeId: '0198',
    call: { model: 'some-model', inputTokens: 1 },
    request: { tools: [{ name: 'f', eager_input_streaming: true }] },
    createdAt: 1_800_000_000,
    seal: (value: string) => value,
    usage: () => ({ usage: {}, estimated: false }),
  } as unknown as ReplyContext;
  const encoder = messagesCodec.createEncoder(context);
  let bytes = 0;
  const events = new ReplyEvents((event) => (bytes += encoder.event(event).length), { names: new Map(), idSeed: 's' });
  const decoder = messagesCodec.createDecoder(events);
  decoder.payload({ type: 'content_block_start', index: 0, content_block: block }, undefined);
  const payload = JSON.stringify({ type: 'content_block_delta', index: 0, delta });
  const frame = Buffer.from(`event: content_block_delta\ndata: ${payload}\n\n`);
  const run = (count: number) => {
    const start = process.hrtime.bigint();
    for (let round = 0; round < count; round++) {
      const parsed = parseFrame(frame)!;
      decoder.payload(JSON.parse(parsed.data) as JsonObject, parsed.event);
    }
    return Number(process.hrtime.bigint() - start) / count / 1000;
  };
  run(rounds / 10);
  const best = Math.min(run(rounds), run(rounds), run(rounds));
  console.log(`${name}: ${frame.length} bytes, ${best.toFixed(2)} µs a chunk (${bytes} bytes out)`);
}

measure('text', { type: 'text', text: '' }, { type: 'text_delta', text: words });
measure('thinking', { type: 'thinking', thinking: '' }, { type: 'thinking_delta', thinking: words });
measure(
  'eager call',
  { type: 'tool_use', id: 't', name: 'f', input: {} },
  { type: 'input_json_delta', partial_json: `{${words}` },
);
measure(
  'held call',
  { type: 'tool_use', id: 't', name: 'g', input: {} },
  { type: 'input_json_delta', partial_json: `{${words}` },
);
