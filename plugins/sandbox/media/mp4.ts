/** Writes an MP4 (ISO/IEC 14496-12, -15): one silent H.264 track, 24 frames a second, playable from its first bytes. Pure. */
import { colourAt, type Size } from './canvas.ts';
import { pictureParameters, profile, repeatedPicture, sequenceParameters, wholePicture } from './h264.ts';

export const framesPerSecond = 24;

/** `seconds` is whole. Each second has another colour. */
export function mp4Of(seed: string, size: Size, seconds: number): Buffer {
  const frames: Buffer[] = [];
  for (let second = 0; second < seconds; second++) {
    frames.push(sample(wholePicture(size, colourAt(seed, second / seconds), second)));
    for (let frame = 1; frame < framesPerSecond; frame++) frames.push(sample(repeatedPicture(size, frame)));
  }
  const type = box('ftyp', text('isom'), u32(512), text('isomiso2avc1mp41'));
  const lengthOfMovie = movie(size, frames, 0).length;
  const mediaAt = type.length + lengthOfMovie + 8;
  return Buffer.concat([type, movie(size, frames, mediaAt), box('mdat', ...frames)]);
}

/** A frame as MP4 keeps it: its length before it. */
function sample(unit: Buffer): Buffer {
  return Buffer.concat([u32(unit.length), unit]);
}

const identity = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000];

function movie(size: Size, frames: readonly Buffer[], mediaAt: number): Buffer {
  const ticks = frames.length;
  const next = u32(0, 0, 0, 0, 0, 0, 2);
  const header = full(
    'mvhd',
    0,
    u32(0, 0, framesPerSecond, ticks, 0x10000),
    u16(0x100, 0),
    u32(0, 0, ...identity),
    next,
  );
  const trackHeader = full('tkhd', 3, u32(0, 0, 1, 0, ticks, 0, 0), u16(0, 0, 0, 0), u32(...identity), edges(size));
  const mediaHeader = full('mdhd', 0, u32(0, 0, framesPerSecond, ticks), u16(0x55c4, 0));
  const handler = full('hdlr', 0, u32(0), text('vide'), u32(0, 0, 0), text('sandbox\0'));
  const where = box('dinf', full('dref', 0, u32(1), full('url ', 1)));
  const information = box('minf', full('vmhd', 1, u16(0, 0, 0, 0)), where, table(size, frames, mediaAt));
  const track = box('trak', trackHeader, box('mdia', mediaHeader, handler, information));
  return box('moov', header, track);
}

/** Width and height in 16.16 fixed point. */
function edges({ width, height }: Size): Buffer {
  return u32(width * 0x10000, height * 0x10000);
}

function table(size: Size, frames: readonly Buffer[], mediaAt: number): Buffer {
  const wholes = frames.flatMap((_, index) => (index % framesPerSecond === 0 ? [index + 1] : []));
  return box(
    'stbl',
    full('stsd', 0, u32(1), entry(size)),
    full('stts', 0, u32(1, frames.length, 1)),
    full('stss', 0, u32(wholes.length, ...wholes)),
    full('stsc', 0, u32(1, 1, frames.length, 1)),
    full('stsz', 0, u32(0, frames.length, ...frames.map(({ length }) => length))),
    full('stco', 0, u32(1, mediaAt)),
  );
}

function entry(size: Size): Buffer {
  const [sequence, picture] = [sequenceParameters(size), pictureParameters()];
  const settings = box(
    'avcC',
    Buffer.from([1, ...profile, 0xff, 0xe1]),
    u16(sequence.length),
    sequence,
    Buffer.from([1]),
    u16(picture.length),
    picture,
  );
  const resolution = u32(0x480000, 0x480000, 0);
  const head = [u32(0), u16(0, 1), u32(0, 0, 0, 0), u16(size.width, size.height), resolution, u16(1)];
  return box('avc1', ...head, Buffer.alloc(32), u16(24, 0xffff), settings);
}

function box(type: string, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([u32(body.length + 8), text(type), body]);
}

/** A box with a version, which is 0, and flags. */
function full(type: string, flags: number, ...parts: readonly Buffer[]): Buffer {
  return box(type, u32(flags), ...parts);
}

function text(letters: string): Buffer {
  return Buffer.from(letters, 'latin1');
}

function u32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index);
  return bytes;
}

function u16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt16BE(value, 2 * index);
  return bytes;
}
