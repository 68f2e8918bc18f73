import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UpstreamError } from '../../core/contract/upstream-failures.ts';
import { FrameReader, formatFrame, keepAliveFrame, parseFrame, type SseEvent } from '../../plugins/common/kit/sse.ts';
import { fc } from '../helpers/properties.ts';

interface Read {
  readonly frames: Buffer[];
  readonly events: SseEvent[];
  readonly rest: Buffer | undefined;
}

function read(chunks: readonly Uint8Array[]): Read {
  const frames: Buffer[] = [];
  const reader = new FrameReader((raw) => frames.push(Buffer.from(raw)));
  for (const chunk of chunks) reader.feed(chunk);
  const rest = reader.end();
  const all = rest === undefined ? frames : [...frames, rest];
  return { frames, rest, events: all.map(parseFrame).filter((event) => event !== undefined) };
}

function cut(bytes: Buffer, offsets: readonly number[]): Buffer[] {
  const ends = [...new Set(offsets.map((at) => at % (bytes.length + 1)))].sort((one, two) => one - two);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}

/** A plain reading of the WHATWG rules over the whole text, to compare with. */
function referenceEvents(text: string): SseEvent[] {
  const events: SseEvent[] = [];
  let event: string | undefined;
  let data: string[] = [];
  const dispatch = () => {
    if (data.length > 0) events.push({ event, data: data.join('\n') });
    event = undefined;
    data = [];
  };
  for (const line of text.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/)) {
    if (line === '') {
      dispatch();
      continue;
    }
    const match = /^([^:]*)(?:: ?([\s\S]*))?$/.exec(line)!;
    if (match[1] === 'data') data.push(match[2] ?? '');
    if (match[1] === 'event') event = match[2] ?? '';
  }
  dispatch();
  return events;
}

const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
const word = fc.string({
  unit: fc.constantFrom('a', '"', '{', ':', ' ', 'é', '漢', '😀', '\u2028', '\u000b', '\\'),
  maxLength: 12,
});
const line = fc.oneof(
  fc
    .tuple(fc.constantFrom('data', 'event', 'id', 'retry', 'other'), fc.constantFrom(':', ': ', ':  '), word)
    .map((parts) => parts.join('')),
  word.map((text) => `: ${text}`),
  fc.constantFrom('data', 'event', '', ''),
);
const anyStream = fc
  .tuple(fc.boolean(), fc.array(fc.tuple(line, lineEnd), { maxLength: 24 }), fc.boolean())
  .map(([bom, lines, last]) => `${bom ? '\uFEFF' : ''}${lines.flat().join('')}${last ? 'data: end' : ''}`);

test('any chunks of any stream give the same frames, which together are the stream', () => {
  fc.assert(
    fc.property(anyStream, fc.array(fc.nat(), { maxLength: 20 }), (text, offsets) => {
      const bytes = Buffer.from(text);
      const whole = read([bytes]);
      const pieces = read(cut(bytes, offsets));
      assert.deepEqual(pieces, whole);
      assert.equal(Buffer.concat([...whole.frames, ...(whole.rest ? [whole.rest] : [])]).toString(), text);
    }),
    { numRuns: 2000 },
  );
});

test("single bytes give the events that the format's rules give", () => {
  fc.assert(
    fc.property(anyStream, (text) => {
      const bytes = Buffer.from(text);
      assert.deepEqual(read([...bytes].map((byte) => Buffer.from([byte]))).events, referenceEvents(text));
    }),
    { numRuns: 2000 },
  );
});

test("a frame within one chunk is a view of it, and its offset is the next one's beginning", () => {
  const chunk = Buffer.from('data: 1\n\nevent: x\r\ndata: 2\r\n\r\ndata: 3');
  const seen: [string, number, boolean][] = [];
  const reader = new FrameReader((raw, end) => seen.push([raw.toString(), end, raw.buffer === chunk.buffer]));
  reader.feed(chunk);
  assert.deepEqual(seen, [
    ['data: 1\n\n', 9, true],
    ['event: x\r\ndata: 2\r\n\r\n', 30, true],
  ]);
  assert.equal(reader.pendingBytes, 7);
  assert.equal(reader.end()?.toString(), 'data: 3');
  assert.equal(reader.pendingBytes, 0);
});

test('a stream of bare carriage returns gives each frame at once', () => {
  const frames: string[] = [];
  const reader = new FrameReader((raw) => frames.push(raw.toString()));
  reader.feed(Buffer.from('data: 1\r\r'));
  assert.deepEqual(frames, ['data: 1\r\r']);
});

test('only one space after the colon is removed, and none is required', () => {
  assert.equal(parseFrame(Buffer.from('data:{"a":1}\n\n'))?.data, '{"a":1}');
  assert.equal(parseFrame(Buffer.from('data: {"a":1}\n\n'))?.data, '{"a":1}');
  assert.equal(parseFrame(Buffer.from('data:  x\n\n'))?.data, ' x');
});

test('several data lines are joined by line feeds; comments and lone fields give no event', () => {
  assert.deepEqual(parseFrame(Buffer.from(': note\nevent: tick\ndata: a\ndata\ndata: b\n\n')), {
    event: 'tick',
    data: 'a\n\nb',
  });
  assert.equal(parseFrame(Buffer.from(': keep-alive\n\n')), undefined);
  assert.equal(parseFrame(keepAliveFrame), undefined);
  assert.equal(parseFrame(Buffer.from('event: ping\n\n')), undefined);
});

test('a frame beyond the limit breaks the stream instead of filling memory', () => {
  const reader = new FrameReader(() => {}, 1000);
  reader.feed(Buffer.from(`data: ${'x'.repeat(900)}`));
  assert.throws(() => reader.feed(Buffer.from('x'.repeat(100))), UpstreamError);
});

test('an encoded frame decodes to its content', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.option(fc.constantFrom('a', 'response.failed')), (data, event) => {
      const normal = data.replace(/\r\n|\r/g, '\n');
      const { events, rest } = read([Buffer.from(formatFrame(data, event ?? undefined))]);
      assert.deepEqual(events, [{ event: event ?? undefined, data: Buffer.from(normal).toString() }]);
      assert.equal(rest, undefined);
    }),
  );
});
