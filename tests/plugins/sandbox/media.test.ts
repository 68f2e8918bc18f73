/** The sandbox's files are real ones: a PNG and an MP4 whose structure and samples are read back here. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32, inflateSync } from 'node:zlib';
import { colourAt, seedOf, smaller } from '../../../plugins/sandbox/media/canvas.ts';
import { imageLink, mediaAt, videoLink } from '../../../plugins/sandbox/media/links.ts';
import { mp4Of } from '../../../plugins/sandbox/media/mp4.ts';
import { pngOf } from '../../../plugins/sandbox/media/png.ts';

const seed = seedOf('A cat on a mat');

test('the same words give the same picture, and other words another one', () => {
  assert.equal(seedOf('a', 1), seedOf('a', 1));
  assert.notEqual(seedOf('a', 1), seedOf('a', 2));
  assert.deepEqual(smaller({ width: 1920, height: 1080 }, 96), { width: 170, height: 96 });
  assert.deepEqual(smaller({ width: 10, height: 9_000 }, 96), { width: 96, height: 384 });
});

test('a PNG has valid chunks, and its pixels are the generated ones', () => {
  const size = { width: 40, height: 20 };
  const png = pngOf(seed, size);
  assert.equal(png.subarray(0, 8).toString('hex'), '89504e470d0a1a0a');
  const chunks: Record<string, Buffer> = {};
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const named = png.subarray(at + 4, at + 8 + length);
    assert.equal(png.readUInt32BE(at + 8 + length), crc32(named));
    chunks[named.toString('latin1', 0, 4)] = named.subarray(4);
    at += length + 12;
  }
  assert.deepEqual(Object.keys(chunks), ['IHDR', 'IDAT', 'IEND']);
  assert.deepEqual([chunks['IHDR']!.readUInt32BE(0), chunks['IHDR']!.readUInt32BE(4)], [40, 20]);
  const rows = inflateSync(chunks['IDAT']!);
  assert.equal(rows.length, 20 * (1 + 3 * 40));
  const at = 7 * (1 + 3 * 40) + 1 + 3 * 11;
  assert.deepEqual([...rows.subarray(at, at + 3)], [...colourAt(seed, (11 / 40 + 7 / 20) / 2)]);
});

interface Box {
  readonly type: string;
  readonly body: Buffer;
  /** Offset of the body in the file. */
  readonly at: number;
}

function boxes(bytes: Buffer, offset = 0): Box[] {
  const found: Box[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    assert.ok(length >= 8 && at + length <= bytes.length, 'a box ends within its parent');
    found.push({
      type: bytes.toString('latin1', at + 4, at + 8),
      body: bytes.subarray(at + 8, at + length),
      at: offset + at + 8,
    });
    at += length;
  }
  return found;
}

/** The box at a path of types. */
function inside(bytes: Buffer, ...path: string[]): Buffer {
  let body = bytes;
  for (const type of path) {
    const box = boxes(body).find((one) => one.type === type);
    assert.ok(box !== undefined, type);
    body = box.body;
  }
  return body;
}

test('an MP4 has one track of 24 frames a second, whose samples lie where its tables say', () => {
  const size = { width: 170, height: 96 };
  const mp4 = mp4Of(seed, size, 3);
  assert.deepEqual(
    boxes(mp4).map(({ type }) => type),
    ['ftyp', 'moov', 'mdat'],
  );
  const movie = inside(mp4, 'moov', 'mvhd');
  assert.deepEqual([movie.readUInt32BE(12), movie.readUInt32BE(16)], [24, 72]);
  const trackHeader = inside(mp4, 'moov', 'trak', 'tkhd');
  assert.deepEqual([trackHeader.readUInt32BE(76) >> 16, trackHeader.readUInt32BE(80) >> 16], [170, 96]);
  const table = inside(mp4, 'moov', 'trak', 'mdia', 'minf', 'stbl');
  const sizes = inside(table, 'stsz');
  const count = sizes.readUInt32BE(8);
  assert.equal(count, 72);
  let at = inside(table, 'stco').readUInt32BE(8);
  assert.equal(at, boxes(mp4)[2]!.at);
  const kinds: number[] = [];
  for (let index = 0; index < count; index++) {
    const length = sizes.readUInt32BE(12 + 4 * index);
    assert.equal(mp4.readUInt32BE(at), length - 4);
    kinds.push(mp4[at + 4]! & 31);
    at += length;
  }
  assert.equal(at, mp4.length);
  // A whole picture each second, which the table of those names; all others repeat it.
  assert.deepEqual(
    kinds,
    kinds.map((_, index) => (index % 24 === 0 ? 5 : 1)),
  );
  const wholes = inside(table, 'stss');
  assert.deepEqual(
    [4, 8, 12, 16].map((offset) => wholes.readUInt32BE(offset)),
    [3, 1, 25, 49],
  );
});

test('a frame of a video has raw samples, the first of which are the brightness of its first row', () => {
  const size = { width: 64, height: 64 };
  const mp4 = mp4Of(seed, size, 1);
  const mdat = boxes(mp4)[2]!.body;
  // One byte says what the unit is, 20 bits are the slice's head, 9 the kind of block, zeros to the next byte.
  const samplesAt = 5;
  const unit = mdat.subarray(4, 4 + mdat.readUInt32BE(0));
  const [red, green, blue] = colourAt(seed, 0);
  for (const x of [0, 8, 15])
    assert.equal(unit[samplesAt + x], Math.round(16 + 0.257 * red + 0.504 * green + 0.098 * blue));
  assert.ok(unit.length > 16 * 384 && unit.length < 16 * 384 + 64, String(unit.length));
});

test('an address contains its content until it expires', () => {
  const size = { width: 1024, height: 1024 };
  const at = (link: string, now: number) => {
    const url = new URL(link);
    return mediaAt(url.pathname, url.searchParams, now);
  };
  const image = imageLink('http://v', seed, size, 1_000, 500);
  const found = at(image, 1_499);
  assert.ok(typeof found === 'object');
  assert.deepEqual([found.type, found.bytes.subarray(1, 4).toString()], ['image/png', 'PNG']);
  assert.equal(at(image, 1_500), 'expired');
  const video = at(videoLink('http://v', seed, size, 15, 0), 0);
  assert.ok(typeof video === 'object');
  assert.deepEqual([video.type, video.bytes.toString('latin1', 4, 8)], ['video/mp4', 'ftyp']);
  for (const path of ['/files/x.png', `/files/${seed}-0x1.png`, `/files/${seed}-1x1.gif`, `/files/../${seed}-1x1.png`])
    assert.equal(mediaAt(path, new URLSearchParams('until=9'), 0), undefined);
});
