/** Sizes, ratios and resolutions: how what a client wants becomes what a vendor takes. Pure. */
import type { Traits } from '../../../core/traits.ts';
import type { Order } from '../contract.ts';
import { fieldOf, unsupported } from './refuse.ts';

export type Resolution = NonNullable<Order['resolution']>;

/** Pixels of a picture of each resolution; 1k is a megapixel (1024 × 1024), each further one four times as much. */
export const imagePixels: { readonly [R in Resolution]?: number } = {
  '1k': 1_048_576,
  '2k': 4_194_304,
  '4k': 16_777_216,
};

/** A named shape may differ from a wanted one by this factor and still stand for it. */
const nearEnough = 1.15;

/** `16:9` → 1.78. undefined for what is no ratio. */
export function shapeOf(ratio: string): number | undefined {
  const match = /^(\d{1,5}(?:\.\d{1,2})?):(\d{1,5}(?:\.\d{1,2})?)$/.exec(ratio);
  const shape = match === null ? Number.NaN : Number(match[1]) / Number(match[2]);
  return shape > 0 && Number.isFinite(shape) ? shape : undefined;
}

/**
 * The ratio that a vendor with these has for the order; undefined: the vendor chooses. A ratio that the client named must be
 * among them; a size in pixels takes the nearest of them, unless none is near.
 */
export function ratioAmong(order: Order, ratios: readonly string[]): string | undefined {
  const { ratio, size } = order;
  if (size !== undefined) return nearestRatio(order, size.width / size.height, ratios);
  if (ratio === undefined || ratios.includes(ratio)) return ratio;
  const field = fieldOf(order, 'ratio');
  throw unsupported(`The model makes no ${ratio}; it makes ${ratios.join(', ')}.`, field);
}

function nearestRatio(order: Order, wanted: number, ratios: readonly string[]): string {
  let best: { readonly ratio: string; readonly off: number } | undefined;
  for (const ratio of ratios) {
    const shape = shapeOf(ratio)!;
    const off = Math.max(shape / wanted, wanted / shape);
    if (best === undefined || off < best.off) best = { ratio, off };
  }
  if (best !== undefined && best.off <= nearEnough) return best.ratio;
  const { width, height } = order.size!;
  throw unsupported(`The model makes nothing of the shape ${width}x${height}.`, fieldOf(order, 'size'));
}

/**
 * The resolution for an order among those that the vendor (or, by its traits, the model) makes, smallest first. A size in
 * pixels needs the smallest that is as large; a smaller wish than the smallest gets that. undefined: nothing was asked for.
 */
export function resolutionAmong(order: Order, known: readonly Resolution[], traits: Traits): Resolution | undefined {
  const made = traits.resolutions ?? known;
  const wanted = wishedResolution(order);
  if (wanted === undefined) return traits.resolutions === undefined ? undefined : made[0];
  const found = made.find((resolution) => ranks[resolution] >= ranks[wanted]);
  if (found !== undefined) return found;
  const member = order.resolution === undefined ? 'size' : 'resolution';
  throw unsupported(`The model makes nothing that large; it makes ${made.join(', ')}.`, fieldOf(order, member));
}

/** The resolution that the client named, itself or by pixels. */
export function wishedResolution({ resolution, size }: Order): Resolution | undefined {
  return resolution ?? (size === undefined ? undefined : resolutionOf(size));
}

const ranks: Readonly<Record<Resolution, number>> = { '480p': 1, '720p': 2, '1080p': 3, '1k': 4, '2k': 5, '4k': 6 };

/** Vendors round: what is at most a sixteenth larger still counts as of that resolution. */
const roundedUp = 1.0625;
/** Usual sizes of the first resolution that are half a megapixel larger, as 1536 × 1024. */
const largestOf1k = 1_600_000;

function resolutionOf({ width, height }: { readonly width: number; readonly height: number }): Resolution {
  const pixels = width * height;
  if (pixels <= largestOf1k) return '1k';
  return pixels <= imagePixels['2k']! * roundedUp ? '2k' : '4k';
}

/** Width and height of about so many pixels, never more, in this shape; both multiples of 16. */
export function pixelsFor(
  ratio: string,
  pixels: number,
  longestEdge: number,
): { readonly width: number; readonly height: number } {
  const shape = shapeOf(ratio) ?? 1;
  const width = Math.min(Math.sqrt(pixels * shape), longestEdge, longestEdge * shape);
  return { width: stepped(width), height: stepped(width / shape) };
}

/** Down to the grid, but for what is on it save for the last bits of a division. */
function stepped(edge: number): number {
  return Math.floor((edge + 1e-6) / 16) * 16;
}

export function sizeText({ width, height }: { readonly width: number; readonly height: number }): string {
  return `${width}x${height}`;
}
