/** Images in the protocol of OpenAI: priced by tokens, always as bytes. Pure. */

import type { Usage } from '../../common/domain/usage.ts';
import { formatFrame } from '../../common/kit/sse.ts';
import { badRequest } from '../fault.ts';
import { isObject, type JsonObject, listOf, textOf, wholeOf } from '../json.ts';
import { chatFault, wireFault } from '../protocols/chat-faults.ts';
import { parseDirectives } from '../script/directives.ts';
import { tokensOf } from '../script/tokens.ts';
import type { ImageParams, Picture, PictureDialect, PictureStreaming } from './dialect.ts';
import { chosen, countIn, pixelsIn, required } from './members.ts';

const mostImages = 10;
const mostReferences = 16;
const mostPreviews = 3;
const previewTokens = 100;
/** The vendor's choice if the client leaves it open. */
const usualSize = '1024x1024';
const usualQuality = 'medium';
/** Tokens of one reference image. */
const referenceTokens = 194;

/** Tokens of one image of 1024 × 1024. */
const tokensByQuality = new Map([
  ['low', 272],
  ['medium', 1_056],
  ['high', 4_160],
]);
const usualPixels = 1024 * 1024;

export const openaiPictures: PictureDialect = {
  takesForms: true,

  decode: decodeReference,
  usage: (params, made) => ({ ...inputUsage(params), output_image: outputTokens(params), image: made }),
  encode: (params, pictures, created) => ({
    created,
    background: 'opaque',
    data: pictures.map(entryOf),
    ...looksOf(params),
    ...usageIn(params),
  }),

  moderated: () => ({
    status: 400,
    body: {
      error: {
        message: 'Your request was rejected by the safety system.',
        type: 'image_generation_user_error',
        param: null,
        code: 'moderation_blocked',
      },
    },
  }),

  fault: (fault) => chatFault({ fault }),

  streaming: streaming(),
};

function decodeReference(body: JsonObject, edits: boolean): ImageParams {
  const { text: prompt, directives } = parseDirectives(required(body, 'prompt'));
  const count = countIn(body, 'n', mostImages);
  const size = pixelsIn(chosen(body, 'size', usualSize), 'size');
  const quality = chosen(body, 'quality', usualQuality, [...tokensByQuality.keys()]);
  const references = edits ? referencesIn(body) : 0;
  const common = { model: required(body, 'model'), prompt, count, size, quality, references, directives };
  return { ...common, asBytes: true, ...streamIn(body, count) };
}

/** Previews are the picture itself. */
function streaming(): PictureStreaming {
  return {
    preview: (params, picture, index, created) =>
      eventOf(params, 'partial_image', { ...headOf(picture, created), partial_image_index: index }),
    completed: (params, picture, created) =>
      eventOf(params, 'completed', { ...headOf(picture, created), ...usageIn(params) }),
    fault: (fault) => formatFrame(JSON.stringify({ type: 'error', error: wireFault(fault) }), 'error'),
    usage: (params) => ({ ...inputUsage(params), output_image: outputTokens(params), image: 1 }),
    usageOfPreviews: (params, previews) => ({ ...inputUsage(params), output_image: previews * previewTokens }),
  };
}

function eventOf(params: ImageParams, kind: 'partial_image' | 'completed', members: object): string {
  const type = `${params.references > 0 ? 'image_edit' : 'image_generation'}.${kind}`;
  return formatFrame(JSON.stringify({ type, ...members, background: 'opaque', ...looksOf(params) }), type);
}

function headOf(picture: Picture, created: number): object {
  return { created_at: created, ...entryOf(picture) };
}

function looksOf({ quality, size }: ImageParams): object {
  return { output_format: 'png', quality, size: `${size.width}x${size.height}` };
}

function usageIn(params: ImageParams): { readonly usage?: object } {
  if (params.directives.no_usage) return {};
  const [text, image, output] = [inputTokens(params), params.references * referenceTokens, outputTokens(params)];
  return {
    usage: {
      input_tokens: text + image,
      input_tokens_details: { image_tokens: image, text_tokens: text },
      output_tokens: output,
      output_tokens_details: { image_tokens: output, text_tokens: 0 },
      total_tokens: text + image + output,
    },
  };
}

function streamIn(body: JsonObject, count: number): Pick<ImageParams, 'previews'> {
  if (body['stream'] !== true) return {};
  if (count > 1) throw badRequest('Streaming is only supported with n=1.', 'n');
  const previews = body['partial_images'] ?? 0;
  if (previews !== 0 && (wholeOf(previews, 0) ?? mostPreviews + 1) > mostPreviews)
    throw badRequest(`Invalid 'partial_images': a whole number from 0 to ${mostPreviews} is needed.`, 'partial_images');
  return { previews: Number(previews) };
}

function entryOf(picture: Picture): object {
  if (picture === undefined) return {};
  return 'url' in picture ? { url: picture.url } : { b64_json: picture.base64 };
}

/** Each by its address (a data URL too) or by a file's id. */
function referencesIn(body: JsonObject): number {
  const images = listOf(body['images']);
  if (images.length === 0)
    throw badRequest("Missing required parameter: 'images'.", 'images', 'missing_required_parameter');
  if (images.length > mostReferences) throw badRequest(`Invalid 'images': at most ${mostReferences}.`, 'images');
  for (const [index, image] of images.entries()) {
    const named = isObject(image) ? (textOf(image['image_url']) ?? textOf(image['file_id'])) : undefined;
    if (named === undefined)
      throw badRequest('Invalid image data.', `images[${index}].image_url`, 'invalid_image_file');
  }
  return images.length;
}

function inputTokens({ prompt }: ImageParams): number {
  return Math.max(1, tokensOf(prompt.length));
}

function inputUsage(params: ImageParams): Usage {
  const shown = params.references * referenceTokens;
  return { input: inputTokens(params), ...(shown === 0 ? {} : { input_image: shown }) };
}

/** Output tokens of all images and their previews. */
function outputTokens({ size, quality, count, previews = 0 }: ImageParams): number {
  const painted = count * Math.ceil((tokensByQuality.get(quality)! * size.width * size.height) / usualPixels);
  return painted + previews * previewTokens;
}
