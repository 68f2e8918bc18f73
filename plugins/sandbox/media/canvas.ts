/** The sandbox's pictures: a gradient of two colours from the prompt. Pure. */
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

/** The colour at a share of the way from the seed's first colour to its second. */
export function colourAt(seed: string, share: number): Colour {
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
