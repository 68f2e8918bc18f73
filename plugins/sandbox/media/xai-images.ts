/** Images in the protocol of xAI: priced by image, at URLs that expire. Pure. */
import { table } from '../../../core/contract/table.ts';
import { badRequest, type Fault } from '../fault.ts';
import { isObject, type JsonObject, listOf, textOf } from '../json.ts';
import { parseDirectives } from '../script/directives.ts';
import type { ImageParams, Picture, PictureDialect } from './dialect.ts';
import { chosen, countIn, required, sizeOf } from './members.ts';

const mostImages = 10;
const ratios = '1:1 16:9 9:16 4:3 3:4 3:2 2:3 2:1 1:2 19.5:9 9:19.5 20:9 9:20'.split(' ');
const pixels: Readonly<Record<string, number>> = table({ '1k': 1_048_576, '2k': 4_194_304 });
/** Ten-thousand-millionths of a dollar. */
const ticksPerImage = 200_000_000;

export const xaiPictures: PictureDialect = {
  decode(body, edits): ImageParams {
    const { text: prompt, directives } = parseDirectives(required(body, 'prompt'));
    for (const field of ['size', 'mask']) {
      if (body[field] !== undefined) throw badRequest(`Argument not supported: ${field}`, field);
    }
    const ratio = chosen(body, 'aspect_ratio', '1:1', ratios);
    const resolution = chosen(body, 'resolution', '1k', Object.keys(pixels));
    return {
      model: required(body, 'model'),
      prompt,
      count: countIn(body, 'n', mostImages),
      size: sizeOf(ratio, pixels[resolution]!),
      quality: chosen(body, 'quality', 'medium'),
      references: edits ? referencesIn(body) : 0,
      asBytes: chosen(body, 'response_format', 'url', ['url', 'b64_json']) === 'b64_json',
      directives,
    };
  },

  usage: (_, made) => ({ image: made }),

  encode: (params, pictures) => ({
    data: pictures.map(entryOf),
    ...(params.directives.no_usage
      ? {}
      : { usage: { cost_in_usd_ticks: pictures.filter(Boolean).length * ticksPerImage } }),
  }),

  moderated: (params) => ({
    status: 200,
    body: { data: Array.from({ length: params.count }, () => entryOf(undefined)), usage: { cost_in_usd_ticks: 0 } },
  }),

  fault: xaiFault,
};

function entryOf(picture: Picture): object {
  if (picture === undefined) return { url: '', respect_moderation: false };
  const where = 'url' in picture ? { url: picture.url } : { b64_json: picture.base64 };
  return { ...where, mime_type: 'image/png', respect_moderation: true };
}

function referencesIn(body: JsonObject): number {
  const images = isObject(body['image']) ? [body['image']] : listOf(body['images']);
  if (images.length === 0) throw badRequest('An image is needed.', 'image');
  for (const image of images) {
    if (!isObject(image) || textOf(image['url']) === undefined) throw badRequest('An image needs an url.', 'image');
  }
  return images.length;
}

/** Errors are `{code, error}`, the second a text. */
export function xaiFault(fault: Fault): { body: string; headers: Record<string, string> } {
  const code = fault.code ?? `status ${fault.status}`;
  const headers: Record<string, string> =
    fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) };
  return { body: JSON.stringify({ code, error: fault.message }), headers };
}
