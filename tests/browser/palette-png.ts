/** Reduces a screenshot to a PNG of at most 256 colours, which takes about a third of the bytes. Pure. */
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const signatureBytes = 8;
const maxColours = 256;

interface Pixels {
  readonly width: number;
  readonly height: number;
  /** Red, green, blue of each pixel, row by row. */
  readonly rgb: Uint8Array;
}

export function paletteOf(png: Buffer): Buffer {
  const { width, height, rgb } = decode(png);
  const palette = frequentColours(rgb);
  const nearest = new Map<number, number>();
  const rows = Buffer.alloc(height * (width + 1));
  for (let pixel = 0; pixel < width * height; pixel++) {
    const colour = colourAt(rgb, pixel);
    let index = nearest.get(colour);
    if (index === undefined) {
      index = indexOfNearest(palette, colour);
      nearest.set(colour, index);
    }
    rows[pixel + Math.floor(pixel / width) + 1] = index;
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([
    png.subarray(0, signatureBytes),
    chunk('IHDR', header),
    chunk('PLTE', colours),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** Reads what Chromium writes: eight bits a channel, with or without alpha, not interlaced. */
function decode(png: Buffer): Pixels {
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const channels = png[25] === 6 ? 4 : 3;
  const data: Buffer[] = [];
  for (let at = signatureBytes; at < png.length; at += png.readUInt32BE(at) + 12)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
      data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  const bytes = inflateSync(Buffer.concat(data));
  const stride = width * channels;
  const rgb = new Uint8Array(width * height * 3);
  let above = new Uint8Array(stride);
  for (let y = 0; y < height; y++) {
    const start = y * (stride + 1);
    const row = unfilter(bytes[start]!, bytes.subarray(start + 1, start + 1 + stride), above, channels);
    for (let x = 0; x < width; x++)
      for (let channel = 0; channel < 3; channel++) rgb[(y * width + x) * 3 + channel] = row[x * channels + channel]!;
    above = row;
  }
  return { width, height, rgb };
}

/** The row filters of the PNG specification, section 9.2. */
function unfilter(filter: number, filtered: Uint8Array, above: Uint8Array, channels: number): Uint8Array<ArrayBuffer> {
  const row = new Uint8Array(filtered.length);
  for (let at = 0; at < row.length; at++) {
    const left = row[at - channels] ?? 0;
    const up = above[at]!;
    const diagonal = at < channels ? 0 : above[at - channels]!;
    const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, diagonal)][filter]!;
    row[at] = filtered[at]! + predicted;
  }
  return row;
}

function paeth(left: number, up: number, diagonal: number): number {
  const estimate = left + up - diagonal;
  const [toLeft, toUp, toDiagonal] = [left, up, diagonal].map((value) => Math.abs(estimate - value)) as [
    number,
    number,
    number,
  ];
  if (toLeft <= toUp && toLeft <= toDiagonal) return left;
  return toUp <= toDiagonal ? up : diagonal;
}

/** The most frequent colour of each of the most frequent groups of similar colours. */
function frequentColours(rgb: Uint8Array): number[] {
  const counts = new Map<number, number>();
  for (let pixel = 0; pixel < rgb.length / 3; pixel++) {
    const colour = colourAt(rgb, pixel);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const groups = new Map<number, { colour: number; most: number; count: number }>();
  for (const [colour, count] of counts) {
    const name = colour & 0xf0f0f0;
    const group = groups.get(name) ?? { colour, most: 0, count: 0 };
    group.count += count;
    if (count > group.most) Object.assign(group, { colour, most: count });
    groups.set(name, group);
  }
  return [...groups.values()]
    .sort((one, other) => other.count - one.count)
    .slice(0, maxColours)
    .map(({ colour }) => colour);
}

function indexOfNearest(palette: readonly number[], colour: number): number {
  let [best, least] = [0, Number.POSITIVE_INFINITY];
  for (const [index, other] of palette.entries()) {
    const distance = [16, 8, 0].reduce(
      (sum, shift) => sum + (((colour >> shift) & 255) - ((other >> shift) & 255)) ** 2,
      0,
    );
    if (distance < least) [best, least] = [index, distance];
  }
  return best;
}

const colourAt = (rgb: Uint8Array, pixel: number) =>
  (rgb[pixel * 3]! << 16) | (rgb[pixel * 3 + 1]! << 8) | rgb[pixel * 3 + 2]!;

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const whole = Buffer.alloc(named.length + 8);
  whole.writeUInt32BE(data.length, 0);
  named.copy(whole, 4);
  whole.writeUInt32BE(crc32(named), named.length + 4);
  return whole;
}
