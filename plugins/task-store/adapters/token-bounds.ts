/** How many tokens an order may take, before the vendor tells: upper bounds. Pure. */
import type { Order } from '../contract.ts';
import { imagePixels } from './geometry.ts';

/** As everywhere in the gateway: a text is taken as one token for each two bytes, above what texts of any language need. */
const promptBytesPerToken = 2;
/** What vendors add around a prompt. */
const framing = 32;
/** One image that is shown to the model with all its details: published are up to 6,240 and a base. */
const referenceTokens = 8_000;

export function promptTokensAtMost({ prompt, references }: Order): number {
  return Math.ceil(Buffer.byteLength(prompt) / promptBytesPerToken) + framing + references.length * referenceTokens;
}

/**
 * Tokens of one image of a megapixel (1024 × 1024) by quality, above what is published
 * (https://platform.openai.com/docs/guides/image-generation#calculating-costs) and what list prices of newer models come to:
 * 272, 1,767 and 7,033. Others, and what the vendor chooses itself, count as twice the dearest.
 */
const tokensPerMegapixel = new Map([
  ['low', 400],
  ['medium', 2_000],
  ['high', 7_500],
]);
const otherTokensPerMegapixel = 15_000;
/** Words that models write beside an image and that are counted with it. */
const wordsPerImage = 500;
const megapixel = 1024 * 1024;
/** The largest of the usual sizes (1536 × 1024), where the client names none in pixels. */
const usualMegapixels = 1.5;
/** No vendor makes larger ones; a size beyond it is the vendor's to refuse. */
const mostMegapixels = 16;

/** Of one image, for vendors that count by quality and area. Small ones are charged nearly as a megapixel. */
export function imageTokensAtMost(order: Order): number {
  const known = order.quality === undefined ? undefined : tokensPerMegapixel.get(order.quality);
  const megapixels = Math.min(Math.max(1, megapixelsOf(order)), mostMegapixels);
  return Math.ceil((known ?? otherTokensPerMegapixel) * megapixels) + wordsPerImage;
}

function megapixelsOf({ size, resolution }: Order): number {
  if (size !== undefined) return (size.width * size.height) / megapixel;
  const pixels = resolution === undefined ? undefined : imagePixels[resolution];
  return Math.max(usualMegapixels, (pixels ?? 0) / megapixel);
}
