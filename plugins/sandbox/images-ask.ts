/** What an image request asks of the vendor, and the tokens that it takes. Pure. */
import { type Directives, readDirectives } from './directives.ts';
import { badRequest } from './fault.ts';
import { type JsonObject, textOf, wholeOf } from './json.ts';
import { tokensOf } from './tokens.ts';

export interface ImageAsk {
  readonly model: string;
  readonly prompt: string;
  readonly count: number;
  readonly size: string;
  readonly quality: string;
  readonly directives: Directives;
}

const mostImages = 10;
/** What the vendor chooses where the client leaves it the choice. */
const usualSize = '1024x1024';
const usualQuality = 'medium';

/** Tokens of one image of 1024 × 1024. */
const tokensByQuality = new Map([
  ['low', 272],
  ['medium', 1_056],
  ['high', 4_160],
]);
const usualPixels = 1024 * 1024;

/** Throws a 400 fault for what this vendor would refuse. */
export function readImageAsk(body: JsonObject): ImageAsk {
  const { text: prompt, directives } = readDirectives(required(body, 'prompt'));
  const { n } = body;
  const count = n === undefined || n === null ? 1 : (wholeOf(n, 1) ?? mostImages + 1);
  if (count > mostImages) throw badRequest(`Invalid 'n': a whole number from 1 to ${mostImages} is needed.`, 'n');
  const size = chosen(body, 'size', usualSize);
  if (!/^[1-9]\d{1,3}x[1-9]\d{1,3}$/.test(size)) throw badRequest(`Invalid value: '${size}'.`, 'size', 'invalid_value');
  const quality = chosen(body, 'quality', usualQuality);
  if (!tokensByQuality.has(quality)) throw badRequest(`Invalid value: '${quality}'.`, 'quality', 'invalid_value');
  return { model: required(body, 'model'), prompt, count, size, quality, directives };
}

function required(body: JsonObject, field: string): string {
  const value = textOf(body[field]);
  if (value === undefined || value === '')
    throw badRequest(`Missing required parameter: '${field}'.`, field, 'missing_required_parameter');
  return value;
}

function chosen(body: JsonObject, field: string, usual: string): string {
  const value = textOf(body[field]);
  return value === undefined || value === 'auto' ? usual : value;
}

export function inputTokens({ prompt }: ImageAsk): number {
  return Math.max(1, tokensOf(prompt.length));
}

/** Of all images together. */
export function imageTokens({ size, quality, count }: ImageAsk): number {
  const [width, height] = size.split('x').map(Number) as [number, number];
  return count * Math.ceil((tokensByQuality.get(quality)! * width * height) / usualPixels);
}
