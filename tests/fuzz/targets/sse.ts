/** Event streams: frames are the same however the bytes were cut, and say what the format's own rules say. */
import assert from 'node:assert/strict';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { FrameReader, type OnFrame, parseFrame } from '../../../plugins/common/kit/sse.ts';
import type { StreamReader } from '../../../plugins/common/wire/protocols.ts';
import { JsonArrayReader } from '../../../plugins/protocol-convert/protocols/gemini/encode/json-array.ts';
import { families, recordings } from '../../helpers/recordings.ts';
import { cut, type Target } from '../target.ts';
import { jsonDictionary } from './body.ts';

const maxFrameBytes = 16 * 1024;

/** Recorded streams, long ones without their middle: what opens and what ends an answer is where the rules are. */
export const streamBodies = (family: (typeof families)[number]): readonly Buffer[] =>
  recordings(family).flatMap(({ isStream, response }) => (isStream ? [withoutMiddle(response)] : []));

function withoutMiddle(stream: Buffer, most = 4_096): Buffer {
  if (stream.length <= most) return stream;
  const head = stream.lastIndexOf('\n\n', most / 2);
  const tail = stream.indexOf('\n\n', stream.length - most / 2);
  return head === -1 || tail === -1
    ? stream.subarray(0, most)
    : Buffer.concat([stream.subarray(0, head), stream.subarray(tail)]);
}

interface Read {
  readonly frames: readonly Buffer[];
  readonly rest: Buffer | undefined;
}

/** undefined: refused as too large. */
function read(createReader: (onFrame: OnFrame) => StreamReader, chunks: readonly Buffer[]): Read | undefined {
  const frames: Buffer[] = [];
  const reader = createReader((raw) => frames.push(Buffer.from(raw)));
  try {
    for (const chunk of chunks) reader.feed(chunk);
  } catch (error) {
    if (error instanceof UpstreamError) return undefined;
    throw error;
  }
  const { pendingBytes } = reader;
  const rest = reader.end();
  assert.equal(pendingBytes, rest?.length ?? 0, 'pendingBytes');
  return { frames, rest };
}

export const sse: Target = {
  name: 'sse',
  corpus: [
    ...families.flatMap((family) => streamBodies(family).slice(0, 20)),
    ...['data: 1\r\rdata: 2\r\r', '\ufeffdata: a\n\n', 'event: x\r\ndata\r\ndata:b\r\n\r\n: c\n\n'].map((text) =>
      Buffer.from(text),
    ),
  ],
  dictionary: [
    '\n',
    '\r',
    '\r\n',
    '\n\n',
    '\r\r',
    '\r\n\r\n',
    'data:',
    'data: ',
    'event:',
    'id: 1',
    ':',
    '\u00ef\u00bb\u00bf',
    'data',
  ],
  check(bytes, chance) {
    const createReader = (onFrame: OnFrame) => new FrameReader(onFrame, maxFrameBytes);
    const whole = read(createReader, [bytes]);
    const pieces = read(createReader, cut(bytes, chance));
    // A frame beyond the limit is seen only while it is incomplete, which depends on the cut.
    if (whole === undefined || pieces === undefined) {
      assert.ok(bytes.length > maxFrameBytes, 'a short stream was refused');
      return;
    }
    assert.deepEqual(pieces, whole);
    const all = whole.rest === undefined ? whole.frames : [...whole.frames, whole.rest];
    assert.ok(Buffer.concat(all).equals(bytes), 'the frames are not the stream');
    const events = all.map(parseFrame).filter((event) => event !== undefined);
    // Undecodable bytes at a frame's edge could be joined by decoding the whole.
    if (isUtf8(bytes)) assert.deepEqual(events, reference(bytes.toString('utf8')));
  },
};

export const jsonArray: Target = {
  name: 'json-array',
  corpus: [
    ...streamBodies('gemini').filter((stream) => stream[0] === 0x5b),
    Buffer.from('[{"a":"}{\\"]"},\r\n{"b":[{"c":{}}]}\n]'),
    Buffer.from('{"a":1}{"b":2}'),
  ],
  dictionary: jsonDictionary,
  check(bytes, chance) {
    const createReader = (onFrame: OnFrame) => new JsonArrayReader(onFrame, maxFrameBytes);
    const whole = read(createReader, [bytes]);
    const pieces = read(createReader, cut(bytes, chance));
    if (whole === undefined || pieces === undefined) {
      assert.ok(bytes.length > maxFrameBytes, 'a short stream was refused');
      return;
    }
    assert.deepEqual(pieces, whole);
    for (const frame of whole.frames) assert.ok(frame[0] === 0x7b && frame.at(-1) === 0x7d, 'no object');
    const parsed = parseArray(bytes);
    if (parsed !== undefined)
      assert.deepEqual(
        whole.frames.map((frame) => JSON.parse(frame.toString('utf8'))),
        parsed,
      );
  },
};

/** The elements, if all of it is a JSON array of objects. */
function parseArray(bytes: Buffer): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    const isOfObjects = Array.isArray(value) && value.every((item) => item?.constructor === Object);
    return isOfObjects ? value : undefined;
  } catch {
    return undefined;
  }
}

function isUtf8(bytes: Buffer): boolean {
  return Buffer.from(bytes.toString('utf8')).equals(bytes);
}

/** A plain reading of the WHATWG rules over the whole text; a byte order mark may stand in front of any frame. */
function reference(text: string): { event: string | undefined; data: string }[] {
  const events: { event: string | undefined; data: string }[] = [];
  let event: string | undefined;
  let data: string[] | undefined;
  let isFirst = true;
  for (const whole of [...text.split(/\r\n|\r|\n/), '']) {
    // A line that holds nothing but the mark is not blank, so that the frame goes on.
    const line: string = isFirst && whole !== '\ufeff' ? whole.replace(/^\ufeff/, '') : whole;
    isFirst = line === '';
    const [, name, value = ''] = /^([^:]*)(?:: ?([\s\S]*))?$/.exec(line)!;
    if (name === 'data' && line !== '') data = [...(data ?? []), value];
    if (name === 'event') event = value;
    if (line !== '') continue;
    if (data !== undefined) events.push({ event, data: data.join('\n') });
    event = undefined;
    data = undefined;
  }
  return events;
}
