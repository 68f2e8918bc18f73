/** Sizes, ratios and resolutions: converts what a client asks for to what a vendor accepts. Pure. */
import type { Traits } from '../domain/traits.ts';
import type { Order } from './adapters.ts';
import { fieldOf, unsupported } from './refuse.ts';

export type Resolution = NonNullable<Order['resolution']>;

/** Pixels of an image per resolution; 1k is a megapixel (1024 × 1024), each further one has four times as many. */
export const imagePixels: { readonly [R in Resolution]?: number } = {
  '1k': 1_048_576,
  '2k': 4_194_304,
  '4k': 16_777_216,
};

/** A named shape may stand for a requested shape that differs by at most this factor. */
const nearEnough = 1.15;

/** `16:9` → 1.78; undefined for text that is no ratio. */
export function shapeOf(ratio: string): number | undefined {
  const match = /^(\d{1,5}(?:\.\d{1,2})?):(\d{1,5}(?:\.\d{1,2})?)$/.exec(ratio);
  const shape = match === null ? Number.NaN : Number(match[1]) / Number(match[2]);
  return shape > 0 && Number.isFinite(shape) ? shape : undefined;
}

/**
 * The vendor's ratio for the order; undefined: the vendor chooses. A ratio named by the client must be in the list; a
 * size in pixels takes the nearest, unless none is near enough.
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
 * The resolution for an order among those of the vendor (or of the model, by its traits), smallest first. A size in
 * pixels takes the smallest resolution that is at least as large; a request below the smallest gets the smallest.
 * undefined: the order names none.
 */
export function resolutionAmong(order: Order, known: readonly Resolution[], traits: Traits): Resolution | undefined {
  const made = traits.resolutions ?? known;
  const wanted = requestedResolution(order);
  if (wanted === undefined) return traits.resolutions === undefined ? undefined : made[0];
  const found = made.find((resolution) => ranks[resolution] >= ranks[wanted]);
  if (found !== undefined) return found;
  const member = order.resolution === undefined ? 'size' : 'resolution';
  throw unsupported(`The model makes nothing that large; it makes ${made.join(', ')}.`, fieldOf(order, member));
}

/** The client's name of a resolution that it gave and that the model makes larger. */
export function raisedResolution(order: Order, made: Resolution | undefined): string[] {
  const isGiven = order.kind === 'video' || order.fields?.resolution !== undefined;
  const { resolution } = order;
  return resolution === undefined || made === undefined || made === resolution || !isGiven
    ? []
    : [fieldOf(order, 'resolution')];
}

/** The resolution that the client asked for, by name or by pixels. */
export function requestedResolution({ resolution, size }: Pick<Order, 'resolution' | 'size'>): Resolution | undefined {
  return resolution ?? (size === undefined ? undefined : resolutionOf(size));
}

const ranks: Readonly<Record<Resolution, number>> = { '480p': 1, '720p': 2, '1080p': 3, '1k': 4, '2k': 5, '4k': 6 };

/** Vendors round: up to a sixteenth more pixels still count as the resolution. */
const roundedUp = 1.0625;
/** Usual sizes of the first resolution that are half a megapixel larger, such as 1536 × 1024. */
const largestOf1k = 1_600_000;

function resolutionOf({ width, height }: { readonly width: number; readonly height: number }): Resolution {
  const pixels = width * height;
  if (pixels <= largestOf1k) return '1k';
  return pixels <= imagePixels['2k']! * roundedUp ? '2k' : '4k';
}

/** Width and height with about this many pixels, never more, in this shape; both multiples of 16. */
export function pixelsFor(
  ratio: string,
  pixels: number,
  longestEdge: number,
): { readonly width: number; readonly height: number } {
  const shape = shapeOf(ratio) ?? 1;
  const width = Math.min(Math.sqrt(pixels * shape), longestEdge, longestEdge * shape);
  return { width: stepped(width), height: stepped(width / shape) };
}

/** Rounds down to the grid, with tolerance for the rounding error of a division. */
function stepped(edge: number): number {
  return Math.floor((edge + 1e-6) / 16) * 16;
}

export function sizeText({ width, height }: { readonly width: number; readonly height: number }): string {
  return `${width}x${height}`;
}
