/** The sandbox's pictures: a gradient of two colours from the prompt, and a moving bar. Pure. */
import { createHash } from 'node:crypto';

export interface Size {
  readonly width: number;
  readonly height: number;
}

export type Colour = readonly [red: number, green: number, blue: number];

/** Identity of a picture: letters and digits derived from its parameters. */
export function seedOf(...values: readonly (string | number)[]): string {
  return createHash('sha256').update(values.join('\n')).digest('hex').slice(0, 12);
}

/** The same aspect ratio with `edge` pixels on the shorter side and at most four times as many on the other; both even. */
export function smaller({ width, height }: Size, edge: number): Size {
  const shape = Math.min(4, Math.max(1 / 4, width / height));
  const even = (pixels: number) => 2 * Math.round(pixels / 2);
  return shape >= 1 ? { width: even(edge * shape), height: edge } : { width: edge, height: even(edge / shape) };
}

/** The colour of a point; `moment` is 0 at the beginning and 1 at the end. */
export function colourAt(seed: string, size: Size, x: number, y: number, moment: number): Colour {
  const bar = Math.floor(moment * size.width);
  if (Math.abs(x - bar) < 3) return [240, 240, 240];
  const share = (x / size.width + y / size.height) / 2;
  const mix = (at: number) => {
    const [from, to] = [byteAt(seed, at), byteAt(seed, at + 3)];
    return Math.round(from + (to - from) * share);
  };
  return [mix(0), mix(1), mix(2)];
}

/** 24 to 231: bright enough to be seen. */
function byteAt(seed: string, index: number): number {
  return 24 + (Number.parseInt(seed.slice(2 * index, 2 * index + 2), 16) * 207) / 255;
}
