/** Writes H.264 (ITU-T H.264, constrained baseline): still pictures of raw samples, and frames that repeat the one before. Pure. */
import { colourAt, type Size } from './canvas.ts';

/** Bits of a NAL unit's payload, most significant first. */
class Bits {
  #bytes: number[] = [];
  #bit = 0;

  /** `count` bits of a whole number. */
  fixed(value: number, count: number): this {
    for (let at = count - 1; at >= 0; at--) this.#push((value >> at) & 1);
    return this;
  }

  /** Exponential-Golomb codes, each of a whole number of at least 0. */
  codes(...values: readonly number[]): this {
    for (const value of values) {
      const length = 31 - Math.clz32(value + 1);
      this.fixed(0, length).fixed(value + 1, length + 1);
    }
    return this;
  }

  align(): this {
    while (this.#bit !== 0) this.#push(0);
    return this;
  }

  /** Whole bytes; the writer must be aligned. */
  bytes(values: readonly number[]): this {
    for (const value of values) this.#bytes.push(value);
    return this;
  }

  /** A NAL unit with its stop bit, and with a 3 wherever the payload would look like the start of another unit. */
  unit(head: number): Buffer {
    this.#push(1);
    this.align();
    const out = [head];
    let zeros = 0;
    for (const byte of this.#bytes) {
      if (zeros >= 2 && byte <= 3) {
        out.push(3);
        zeros = 0;
      }
      out.push(byte);
      zeros = byte === 0 ? zeros + 1 : 0;
    }
    return Buffer.from(out);
  }

  #push(bit: number): void {
    if (this.#bit === 0) this.#bytes.push(0);
    const last = this.#bytes.length - 1;
    this.#bytes[last] = this.#bytes[last]! | (bit << (7 - this.#bit));
    this.#bit = (this.#bit + 1) % 8;
  }
}

/** Profile, constraints and level, as both the stream and its container tell them. */
export const profile = [66, 0xc0, 30] as const;

const blockEdge = 16;
const blocksOf = (pixels: number) => Math.ceil(pixels / blockEdge);

/** Sequence parameters (7.3.2.1): four bits of frame number, order of output is order of decoding, one reference. */
export function sequenceParameters({ width, height }: Size): Buffer {
  const [columns, rows] = [blocksOf(width), blocksOf(height)];
  const bits = new Bits();
  for (const byte of profile) bits.fixed(byte, 8);
  bits
    .codes(0, 0, 2, 1)
    .fixed(0, 1)
    .codes(columns - 1, rows - 1);
  // Whole frames, direct inference, and what is cut off on the right and below, in pairs of pixels.
  bits
    .fixed(0b11, 2)
    .fixed(1, 1)
    .codes(0, (columns * blockEdge - width) / 2, 0, (rows * blockEdge - height) / 2);
  return bits.fixed(0, 1).unit(0x67);
}

/** Picture parameters (7.3.2.2): no entropy coding but the plain one, the filter at block edges under the slices' control. */
export function pictureParameters(): Buffer {
  return new Bits().codes(0, 0).fixed(0, 2).codes(0, 0, 0).fixed(0, 3).codes(0, 0, 0).fixed(0b100, 3).unit(0x68);
}

/** A whole picture in raw samples; `number` counts such pictures, as neighbours must differ in it. */
export function wholePicture(seed: string, size: Size, moment: number, number: number): Buffer {
  const bits = new Bits()
    .codes(0, 7, 0)
    .fixed(0, 4)
    .codes(number % 2)
    .fixed(0, 2)
    .codes(0, 1);
  for (let row = 0; row < blocksOf(size.height); row++) {
    for (let column = 0; column < blocksOf(size.width); column++) {
      bits
        .codes(25)
        .align()
        .bytes(block(seed, size, column * blockEdge, row * blockEdge, moment));
    }
  }
  return bits.unit(0x65);
}

/** The picture before once more: every block is skipped. `number` counts frames since the last whole picture. */
export function repeatedPicture({ width, height }: Size, number: number): Buffer {
  const bits = new Bits()
    .codes(0, 5, 0)
    .fixed(number % 16, 4)
    .fixed(0, 3)
    .codes(0, 1);
  return bits.codes(blocksOf(width) * blocksOf(height)).unit(0x41);
}

/** 256 samples of brightness, 64 of each difference of colour (BT.601, limited range); none of them is 0. */
function block(seed: string, size: Size, left: number, top: number, moment: number): number[] {
  const samples: number[] = [];
  for (let y = top; y < top + blockEdge; y++) {
    for (let x = left; x < left + blockEdge; x++) {
      const [red, green, blue] = colourAt(seed, size, x, y, moment);
      samples.push(Math.round(16 + 0.257 * red + 0.504 * green + 0.098 * blue));
    }
  }
  for (const [ofRed, ofGreen, ofBlue] of differences) {
    for (let y = top; y < top + blockEdge; y += 2) {
      for (let x = left; x < left + blockEdge; x += 2) {
        const [red, green, blue] = colourAt(seed, size, x, y, moment);
        samples.push(Math.round(128 + ofRed * red + ofGreen * green + ofBlue * blue));
      }
    }
  }
  return samples;
}

const differences = [
  [-0.148, -0.291, 0.439],
  [0.439, -0.368, -0.071],
] as const;
