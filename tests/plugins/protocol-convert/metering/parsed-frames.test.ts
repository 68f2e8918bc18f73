/** Frames that are parsed by the one before give the same JSON, the same usage and the same end as frames that are parsed whole. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrameReader } from '../../../../plugins/common/kit/sse.ts';
import { readFrame } from '../../../../plugins/common/wire/frame.ts';
import type { UsageMeter } from '../../../../plugins/common/wire/usage-meter.ts';
import { protocolNamed } from '../../../../plugins/protocol-convert/protocols/index.ts';
import { FrameParser } from '../../../../plugins/protocol-convert/translate/frame-parser.ts';
import { fc } from '../../../helpers/properties.ts';
import { type Family, families, recordings } from '../../../helpers/recordings.ts';

const call = {
  protocol: 'chat',
  model: 'm',
  stream: true,
  choices: 1,
  inputTokens: 1,
  maxOutputTokens: undefined,
  billable: true,
};

function meterOf(family: Family): UsageMeter {
  return protocolNamed(family)!.createUsageMeter(call, { withholdUsage: false });
}

const stateOf = ({ text, complete, error, reading, upstreamId, finish }: UsageMeter) => ({
  ...{ bytes: text.bytes, frames: text.frames, reports: text.reports },
  ...{ unreported: [text.bytesUnreported, text.framesUnreported], complete, error, reading, upstreamId, finish },
});

/** How many of the frames repeated the one before. */
function compare(family: Family, frames: readonly Buffer[]): number {
  const parser = new FrameParser(protocolNamed(family)!.codec.deltaPaths);
  const [expected, found] = [meterOf(family), meterOf(family)];
  let repeated = 0;
  for (const raw of frames) {
    const whole = readFrame(raw);
    const read = parser.read(raw);
    assert.deepEqual(read && { json: read.json, event: read.event }, whole && { json: whole.json, event: whole.event });
    if (read === undefined) continue;
    const passes = read.growth !== undefined && found.again?.(read.growth) === true;
    const verdict = passes ? 'pass' : found.payload(read.json, read.event);
    assert.equal(verdict, expected.payload(whole!.json, whole!.event), String(raw));
    assert.deepEqual(stateOf(found), stateOf(expected), String(raw));
    if (read.growth !== undefined) repeated++;
  }
  return repeated;
}

for (const family of families) {
  test(`recorded streams of ${family} are metered alike by both ways`, () => {
    for (const { isStream, response } of recordings(family)) {
      if (!isStream) continue;
      const frames: Buffer[] = [];
      const reader = new FrameReader((raw) => frames.push(Buffer.from(raw)));
      reader.feed(response);
      compare(family, frames);
    }
  });
}

const piece = fc.constantFrom(
  '"',
  '\\',
  'a',
  '\\"',
  '\\u0041',
  '\\u00e9',
  'ä',
  '😀',
  '\ud800',
  '\t',
  '\n',
  '","content":"',
  ' ',
);
const text = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.array(piece, { maxLength: 4 }).map((parts) => parts.join('')),
);
/** Valid where `quoted` is JSON; as it stands otherwise. */
const value = fc.oneof(
  text.map((plain) => JSON.stringify(plain)),
  text.map((plain) => `"${plain}"`),
  fc.constantFrom('""', 'null', '1', '"a" ', '"a"\n', '["b"]'),
);
const usages = ['', ',"usage":{"prompt_tokens":1,"completion_tokens":2}'];
const ends = ['"finish_reason":null', '"finish_reason":"stop"', '"delta":{"content":"x"}', '"content":"x"'];
const chatFrame = fc
  .tuple(fc.constantFrom('content', 'reasoning', 'audio'), value, fc.constantFrom(...ends), fc.constantFrom(...usages))
  .map(
    ([name, quoted, end, usage]) => `{"id":"1","choices":[{"index":0,"delta":{"${name}":${quoted}},${end}}]${usage}}`,
  );
const geminiFrame = fc
  .tuple(
    value,
    fc.constantFrom('', ',"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}', ',"a":{"text":"a"}'),
  )
  .map(([quoted, more]) => `{"candidates":[{"content":{"parts":[{"text":${quoted}}]}}]${more}}`);
const messagesFrame = fc
  .tuple(fc.constantFrom('text', 'thinking', 'partial_json'), value)
  .map(
    ([name, quoted]) => `{"type":"content_block_delta","index":0,"delta":{"type":"${name}_delta","${name}":${quoted}}}`,
  );
/** Some vendors put a random number of spaces behind their data. */
const padded = (payload: string, spaces: number) =>
  `${payload.slice(0, -1)}${' '.repeat(spaces)}}${' '.repeat(spaces)}`;
const frames = { chat: chatFrame, gemini: geminiFrame, messages: messagesFrame };

for (const [family, frame] of Object.entries(frames) as [keyof typeof frames, fc.Arbitrary<string>][]) {
  test(`random frames of ${family} are metered alike by both ways`, () => {
    let repeated = 0;
    // Frames in a row are of few shapes, so that many repeat the one before.
    const rows = fc.array(fc.tuple(frame, fc.array(value, { maxLength: 3 })), { maxLength: 8 });
    fc.assert(
      fc.property(rows, fc.array(fc.nat(3), { minLength: 1, maxLength: 4 }), (all, pads) => {
        const payloads = all.flatMap(([first, more]) => [
          first,
          ...more.map((quoted) =>
            first.replace(/("(?:content|text|thinking)":)"(?:[^"\\]|\\.)*"/s, (_, name) => name + quoted),
          ),
        ]);
        repeated += compare(
          family,
          payloads.map((payload, index) => Buffer.from(`data: ${padded(payload, pads[index % pads.length]!)}\n\n`)),
        );
      }),
      { numRuns: 1_000 },
    );
    assert(repeated > 300, `${repeated} frames repeated the one before`);
  });
}

test('a stream whose frames never repeat is parsed whole after a few of them', () => {
  const frameOf = (text: string, id: number) =>
    Buffer.from(`data: {"id":"${id}","choices":[{"index":0,"delta":{"content":"${text}"}}]}\n\n`);
  assert.equal(
    compare(
      'chat',
      Array.from({ length: 20 }, (_, index) => frameOf('a', index)),
    ),
    0,
  );
  const same = Array.from({ length: 20 }, (_, index) => frameOf('a'.repeat(index + 1), 1));
  assert.equal(compare('chat', same), 19);
  const spaced = same.map((raw, index) => Buffer.from(String(raw).replace('}}]}', `}}]}${' '.repeat(index % 5)}`)));
  assert.equal(compare('chat', spaced), 19);
});
