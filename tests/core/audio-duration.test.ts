/** Durations of audio files from their headers: each container, and bytes that are none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audioSeconds as secondsOf, sourceOf } from '../../plugins/common/audio/duration.ts';
import { AudioFrames } from '../../plugins/common/audio/frames.ts';
import { mp3Silence, wavTone } from '../../plugins/sandbox/endpoints/tones.ts';
import { fc } from '../helpers/properties.ts';

const audioSeconds = (bytes: Uint8Array) => secondsOf(sourceOf(bytes));
const near = (actual: number | undefined, expected: number) =>
  assert.ok(actual !== undefined && Math.abs(actual - expected) < 0.03, `${actual} is not ${expected}`);

const ascii = (text: string) => Buffer.from(text, 'latin1');
const number = (bytes: number, value: number) => {
  const buffer = Buffer.alloc(bytes);
  if (bytes === 8) buffer.writeBigUInt64BE(BigInt(value));
  else buffer.writeUIntBE(value, 0, bytes);
  return buffer;
};
const box = (name: string, ...content: Buffer[]) => {
  const body = Buffer.concat(content);
  return Buffer.concat([number(4, body.length + 8), ascii(name), body]);
};

test('WAV: the duration follows from the byte rate; a length that a streaming writer could not know is taken from the file', async () => {
  const wav = wavTone(3.5);
  near(await audioSeconds(wav), 3.5);
  wav.writeUInt32LE(0xffffffff, 40);
  near(await audioSeconds(wav), 3.5);
  const extra = Buffer.concat([
    wav.subarray(0, 12),
    ascii('LIST'),
    Buffer.from([3, 0, 0, 0, 1, 2, 3, 0]),
    wav.subarray(12),
  ]);
  near(await audioSeconds(extra), 3.5);
});

test('MP3: the duration is counted by frames, with any tag before them and in any chunks', async () => {
  const tag = Buffer.concat([ascii('ID3'), Buffer.from([4, 0, 0, 0, 0, 1, 0]), Buffer.alloc(128, 0xff)]);
  const mp3 = Buffer.concat([tag, mp3Silence(10)]);
  near(await audioSeconds(mp3), 10);
  fc.assert(
    fc.property(fc.array(fc.nat(mp3.length), { maxLength: 8 }), (cuts) => {
      const frames = new AudioFrames();
      const offsets = [0, ...cuts.sort((left, right) => left - right), mp3.length];
      for (const [index, from] of offsets.slice(0, -1).entries()) frames.feed(mp3.subarray(from, offsets[index + 1]));
      near(frames.seconds, 10);
    }),
  );
});

test('AAC: a frame counts 1,024 samples', async () => {
  const frame = Buffer.alloc(100);
  // MPEG-4, 44.1 kHz, 100 bytes.
  frame.set([0xff, 0xf1, 0x50, 0x80, 100 >> 3, ((100 & 7) << 5) | 0x1f, 0xfc]);
  near(await audioSeconds(Buffer.concat(Array.from({ length: 431 }, () => frame))), (431 * 1_024) / 44_100);
});

test('FLAC, Ogg, MP4 and WebM: the duration is read from the headers', async () => {
  const info = Buffer.concat([Buffer.alloc(10), number(3, 44_100 << 4), number(5, 441_000)]);
  near(await audioSeconds(Buffer.concat([ascii('fLaC'), Buffer.from([0, 0, 0, 34]), info, Buffer.alloc(16)])), 10);
  const page = (granule: number, body: Buffer) => {
    const head = Buffer.alloc(27);
    head.write('OggS', 'latin1');
    head.writeBigUInt64LE(BigInt(granule), 6);
    return Buffer.concat([head, body]);
  };
  near(await audioSeconds(Buffer.concat([page(0, ascii('OpusHead')), page(96_000, Buffer.alloc(50))])), 2);
  const vorbis = Buffer.concat([ascii('\x01vorbis'), Buffer.alloc(5), Buffer.from([0x44, 0xac, 0, 0])]);
  near(await audioSeconds(Buffer.concat([page(0, vorbis), page(88_200, Buffer.alloc(50))])), 2);
  const short = box('mvhd', Buffer.alloc(12), number(4, 600), number(4, 4_500));
  const long = box('mvhd', Buffer.from([1, 0, 0, 0]), Buffer.alloc(16), number(4, 600), number(8, 4_500));
  for (const mvhd of [short, long])
    near(
      await audioSeconds(Buffer.concat([box('ftyp', ascii('M4A ')), box('mdat', Buffer.alloc(99)), box('moov', mvhd)])),
      7.5,
    );
  const duration = Buffer.alloc(8);
  duration.writeDoubleBE(6_500);
  const magic = Buffer.from('1a45dfa3', 'hex');
  const segment = Buffer.from('1549a966902ad7b1830f4240', 'hex');
  near(
    await audioSeconds(Buffer.concat([magic, Buffer.alloc(20), segment, Buffer.from('448988', 'hex'), duration])),
    6.5,
  );
  const cluster = Buffer.from('1f43b6758fe7821388a3', 'hex');
  near(
    await audioSeconds(Buffer.concat([magic, Buffer.alloc(20), segment, Buffer.alloc(40), cluster, Buffer.alloc(64)])),
    5,
  );
});

test('bytes that are no audio have no duration, and no header throws or gives weeks', async () => {
  assert.equal(await audioSeconds(Buffer.from('hello')), undefined);
  assert.equal(await audioSeconds(Buffer.alloc(0)), undefined);
  const starts = ['RIFF', 'fLaC', 'OggS', '\0\0\0\x10ftyp', '\x1aE\xdf\xa3', 'ID3', '\xff\xfb\x50\xc4', ''].map(ascii);
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...starts), fc.uint8Array({ maxLength: 400 }), async (start, rest) => {
      const seconds = await audioSeconds(Buffer.concat([start, rest]));
      assert.ok(seconds === undefined || (seconds > 0 && seconds <= 7 * 86_400));
    }),
    { numRuns: 2_000 },
  );
});
