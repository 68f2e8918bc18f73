/** How many tokens an image request may take, before the vendor tells: upper bounds. Pure. */

/** As everywhere in the gateway: a text is taken as one token for each two bytes, above what texts of any language need. */
const promptBytesPerToken = 2;
/** What vendors add around a prompt. */
const framing = 32;
/** One image that is shown to the model. */
const referenceTokens = 5_000;

/**
 * Tokens of one image of a megapixel (1024 × 1024) by quality, above what is published: 272, 1,056 and 4,160
 * (https://platform.openai.com/docs/guides/image-generation#calculating-costs). Others, and what the vendor chooses
 * itself, count as twice the dearest.
 */
const tokensPerMegapixel = new Map([
  ['low', 300],
  ['medium', 1_100],
  ['high', 4_200],
]);
const otherTokensPerMegapixel = 8_400;
const megapixel = 1024 * 1024;
/** The largest of the usual sizes (1536 × 1024), where the client names none in pixels. */
const usualMegapixels = 1.5;
/** No vendor makes larger ones; a size beyond it is the vendor's to refuse. */
const mostMegapixels = 16;

export function promptTokensAtMost(prompt: string, references: number): number {
  return Math.ceil(Buffer.byteLength(prompt) / promptBytesPerToken) + framing + references * referenceTokens;
}

/** Of one image. Small ones are charged nearly as a megapixel. */
export function imageTokensAtMost(size: string | undefined, quality: string | undefined): number {
  const known = quality === undefined ? undefined : tokensPerMegapixel.get(quality);
  const megapixels = Math.min(Math.max(1, megapixelsOf(size)), mostMegapixels);
  return Math.ceil((known ?? otherTokensPerMegapixel) * megapixels);
}

function megapixelsOf(size: string | undefined): number {
  const match = /^(\d{1,5})x(\d{1,5})$/.exec(size ?? '');
  return match === null ? usualMegapixels : (Number(match[1]) * Number(match[2])) / megapixel;
}
