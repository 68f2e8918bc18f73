/** Measures what a translated chunk of about 200 bytes costs, all protocols to all. Run: `npm run bench:codecs`. */
import type { ReplyContext } from '../../plugins/common/canonical/codec.ts';
import { protocolNamed } from '../../plugins/protocol-convert/protocols/index.ts';
import { ResponseTranslation } from '../../plugins/protocol-convert/translate/response-mapping.ts';
import { type Kind, kinds, names, type ProtocolName, wordsOf } from './words.ts';

/** Chunks in one stream: some encoders keep the answer's text. */
const chunks = 2_000;
const streams = 40;
const rounds = 5;
const frameBytes = 200;
/** As good for texts as for arguments. */
const words = `{"a": "${'word "x" '.repeat(20)}`;

const context = (client: ProtocolName): Omit<ReplyContext, 'usage'> => ({
  exchangeId: '01890000-0000-7000-8000-000000000001',
  call: {
    protocol: client,
    model: 'bench',
    stream: true,
    choices: 1,
    inputTokens: 100,
    maxOutputTokens: undefined,
    billable: true,
  },
  request: {
    contents: [],
    generationConfig: { thinkingConfig: { includeThoughts: true } },
    tools: [{ name: 'f', eager_input_streaming: true }],
  },
  createdAt: 1,
  now: () => 2,
  seal: (opaqueState) => opaqueState,
});

function translation(client: ProtocolName, upstream: ProtocolName): ResponseTranslation {
  return new ResponseTranslation({
    client: protocolNamed(client)!.codec,
    upstream: protocolNamed(upstream)!.codec,
    way: { names: new Map(), wrapped: new Set() },
    context: context(client),
    clientStreams: true,
    streamType: 'text/event-stream',
    idleFrame: 'none',
    callId: (id) => id,
    collector: undefined,
    transforms: undefined,
  });
}

function take(stream: ResponseTranslation, frame: Buffer): void {
  stream.frame(frame, stream.read(frame));
  stream.flush();
}

/** The vendor's delta, filled up to 200 bytes where that leaves room for words. */
function frameOf(upstream: ProtocolName, kind: Kind): Buffer | undefined {
  const { delta } = wordsOf(upstream);
  const empty = delta(kind, '');
  return empty === undefined
    ? undefined
    : Buffer.from(delta(kind, words.slice(0, Math.max(16, frameBytes - empty.length - 6)))!);
}

/** Processor time in microseconds for one chunk, from the upstream's bytes to the client's; best of several rounds. */
function measure(client: ProtocolName, upstream: ProtocolName, kind: Kind, frame: Buffer): number {
  const head = wordsOf(upstream)
    .head(kind)
    .split(/(?<=\n\n)/);
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const all = Array.from({ length: streams }, () => translation(client, upstream));
    for (const stream of all) for (const opening of head) take(stream, Buffer.from(opening));
    const start = process.cpuUsage();
    for (const stream of all) for (let count = 0; count < chunks; count++) take(stream, frame);
    const { user, system } = process.cpuUsage(start);
    best = Math.min(best, (user + system) / streams / chunks);
  }
  return best;
}

const cells = (...texts: string[]) => console.log(`  ${texts.map((text) => text.padEnd(18)).join('')}`);
console.log('µs for a chunk: from the upstream (rows) to the client (columns)');
cells('', ...names);
for (const kind of kinds) {
  for (const upstream of names) {
    const frame = frameOf(upstream, kind);
    if (frame === undefined) continue;
    const costs = names.map((client) => measure(client, upstream, kind, frame).toFixed(2));
    cells(`${upstream}, ${kind}`, ...costs, `${frame.length} bytes`);
  }
}
