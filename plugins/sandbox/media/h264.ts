/** Writes H.264 (ITU-T H.264, constrained baseline): still pictures of one colour, and frames that repeat the one before. Pure. */
import type { Colour, Size } from './canvas.ts';

/** Profile, constraints and level, as both the stream and its container tell them. */
export const profile = [66, 0xc0, 30] as const;

const blockEdge = 16;
const blocksOf = (pixels: number) => Math.ceil(pixels / blockEdge);

/** The bits of a whole number as text, most significant first. */
const fixed = (value: number, count: number) => value.toString(2).padStart(count, '0');

/** Exponential-Golomb codes, each of a whole number of at least 0. */
const codes = (...values: readonly number[]) =>
  values.map((value) => fixed(value + 1, 63 - 2 * Math.clz32(value + 1))).join('');

/** Filled up with zeros. */
const bytesOf = (bits: string) =>
  Buffer.from((bits.match(/.{1,8}/g) ?? []).map((byte) => Number(`0b${byte.padEnd(8, '0')}`)));

/** A NAL unit, with a 3 wherever the payload would look like the start of another unit. */
function unit(head: number, payload: Buffer): Buffer {
  const out = [head];
  let zeros = 0;
  for (const byte of payload) {
    if (zeros >= 2 && byte <= 3) {
      out.push(3);
      zeros = 0;
    }
    out.push(byte);
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return Buffer.from(out);
}

/** Sequence parameters (7.3.2.1): four bits of frame number, order of output is order of decoding, one reference. */
export function sequenceParameters({ width, height }: Size): Buffer {
  const [columns, rows] = [blocksOf(width), blocksOf(height)];
  const head = profile.map((byte) => fixed(byte, 8)).join('') + codes(0, 0, 2, 1) + '0' + codes(columns - 1, rows - 1);
  // Whole frames, direct inference, and the cut-off part on the right and below, in pairs of pixels.
  const cut = codes(0, (columns * blockEdge - width) / 2, 0, (rows * blockEdge - height) / 2);
  return unit(0x67, bytesOf(`${head}111${cut}01`));
}

/** Picture parameters (7.3.2.2): no entropy coding but the plain one, the filter at block edges under the slices' control. */
export function pictureParameters(): Buffer {
  return unit(0x68, bytesOf(`${codes(0, 0)}00${codes(0, 0, 0)}000${codes(0, 0, 0)}1001`));
}

/** A whole picture in raw samples; `number` counts such pictures, as neighbours must differ in it. */
export function wholePicture({ width, height }: Size, colour: Colour, number: number): Buffer {
  const head = `${codes(0, 7, 0)}0000${codes(number % 2)}00${codes(0, 1)}`;
  const samples = samplesOf(colour);
  const blocks = Array.from({ length: blocksOf(width) * blocksOf(height) }, (_, at) => [
    bytesOf((at === 0 ? head : '') + codes(25)),
    samples,
  ]);
  return unit(0x65, Buffer.concat([...blocks.flat(), Buffer.of(0x80)]));
}

/** The picture before once more: every block is skipped. `number` counts frames since the last whole picture. */
export function repeatedPicture({ width, height }: Size, number: number): Buffer {
  const skipped = codes(blocksOf(width) * blocksOf(height));
  return unit(0x41, bytesOf(`${codes(0, 5, 0)}${fixed(number % 16, 4)}000${codes(0, 1)}${skipped}1`));
}

/** A block's 256 samples of brightness, 64 of each difference of colour (BT.601, limited range); none of them is 0. */
function samplesOf([red, green, blue]: Colour): Buffer {
  return Buffer.concat([
    Buffer.alloc(256, Math.round(16 + 0.257 * red + 0.504 * green + 0.098 * blue)),
    Buffer.alloc(64, Math.round(128 - 0.148 * red - 0.291 * green + 0.439 * blue)),
    Buffer.alloc(64, Math.round(128 + 0.439 * red - 0.368 * green - 0.071 * blue)),
  ]);
}
