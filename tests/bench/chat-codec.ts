/** Measures what a translated chat chunk costs: parse, event, encode. Run: `node --import tsx tests/bench/chat-codec.ts`. */
import type { ReplyContext } from '../../plugins/protocol-convert/codec.ts';
import type { JsonObject } from '../../plugins/protocol-convert/json.ts';
import { chatCodec } from '../../plugins/protocol-convert/protocols/chat/codec.ts';
import { ReplyEvents } from '../../plugins/protocol-convert/reply-events.ts';

const rounds = 300_000;
const content = 'lorem ipsum dolor sit amet';

function chunk(delta: object): string {
  return JSON.stringify({
    id: 'chatcmpl-0123456789abcdef',
    object: 'chat.completion.chunk',
    created: 1_800_000_000,
    model: 'some-model-2026',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: null }],
  });
}

function measure(name: string, delta: object): void {
  const text = chunk(delta);
  const context = {
    exchangeId: '0198',
    call: { model: 'some-model' },
    request: {},
    createdAt: 1_800_000_000,
    seal: (value: string) => value,
    usage: () => ({ usage: {}, estimated: false }),
  } as unknown as ReplyContext;
  const encoder = chatCodec.createEncoder(context);
  let bytes = 0;
  const events = new ReplyEvents((event) => (bytes += encoder.event(event).length), { names: new Map(), idSeed: 's' });
  const decoder = chatCodec.createDecoder(events);
  const run = (count: number) => {
    const start = process.hrtime.bigint();
    for (let round = 0; round < count; round++) decoder.payload(JSON.parse(text) as JsonObject, undefined);
    return Number(process.hrtime.bigint() - start) / count / 1000;
  };
  if (name.startsWith('call'))
    decoder.payload(
      JSON.parse(chunk({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f' } }] })) as JsonObject,
      undefined,
    );
  run(rounds / 10);
  const best = Math.min(run(rounds), run(rounds), run(rounds));
  console.log(`${name}: ${text.length + 8} bytes, ${best.toFixed(2)} µs a chunk (${bytes} bytes out)`);
}

measure('text', { content });
measure('reasoning', { reasoning_content: content });
measure('call input', { tool_calls: [{ index: 0, function: { arguments: content } }] });
