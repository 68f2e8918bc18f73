/** Upper bounds of the tokens that an order may use, before the vendor reports them. Pure. */
import type { Order } from '../../common/media/adapters.ts';
import { imagePixels } from '../../common/media/geometry.ts';

/** The gateway's general estimate: one token per two bytes, more than text of any language needs. */
const promptBytesPerToken = 2;
/** Tokens that vendors add around a prompt. */
const framing = 32;
/** One reference image at full detail: published are up to 6,240 and a base. */
const referenceTokens = 8_000;

export function promptTokensAtMost({ prompt, references }: Order): number {
  return Math.ceil(Buffer.byteLength(prompt) / promptBytesPerToken) + framing + references.length * referenceTokens;
}

/**
 * Tokens of one image of a megapixel (1024 × 1024) by quality: above the published counts
 * (https://platform.openai.com/docs/guides/image-generation#calculating-costs) and above what list prices of newer
 * models imply (272, 1,767 and 7,033). Other qualities, and those that the vendor chooses, count as twice the dearest.
 */
const tokensPerMegapixel = new Map([
  ['low', 400],
  ['medium', 2_000],
  ['high', 7_500],
]);
const otherTokensPerMegapixel = 15_000;
/** Text that models write beside an image, which is charged with it. */
const textTokensPerImage = 500;
const megapixel = 1024 * 1024;
/** The largest usual size (1536 × 1024), for orders that name no pixels. */
const usualMegapixels = 1.5;
/** No vendor makes larger images; the vendor refuses larger sizes. */
const mostMegapixels = 16;

/** Per image, for vendors that count by quality and area. Small images are charged nearly as a megapixel. */
export function imageTokensAtMost(order: Order): number {
  const known = order.quality === undefined ? undefined : tokensPerMegapixel.get(order.quality);
  const megapixels = Math.min(Math.max(1, megapixelsOf(order)), mostMegapixels);
  return Math.ceil((known ?? otherTokensPerMegapixel) * megapixels) + textTokensPerImage;
}

function megapixelsOf({ size, resolution }: Order): number {
  if (size !== undefined) return (size.width * size.height) / megapixel;
  const pixels = resolution === undefined ? undefined : imagePixels[resolution];
  return Math.max(usualMegapixels, (pixels ?? 0) / megapixel);
}
