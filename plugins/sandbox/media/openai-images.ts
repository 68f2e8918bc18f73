/** Images as the protocol of OpenAI has them: sold by tokens, always as bytes. Pure. */
import { chatFault } from '../chat-faults.ts';
import { readDirectives } from '../directives.ts';
import { badRequest } from '../fault.ts';
import { isObject, type JsonObject, listOf, textOf } from '../json.ts';
import { tokensOf } from '../tokens.ts';
import type { Picture, PictureAsk, PictureDialect } from './dialect.ts';
import { chosen, countIn, pixelsIn, required } from './members.ts';

const mostImages = 10;
const mostReferences = 16;
/** What the vendor chooses where the client leaves it the choice. */
const usualSize = '1024x1024';
const usualQuality = 'medium';
/** Tokens of one image that is shown. */
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

  read(body, edits): PictureAsk {
    const { text: prompt, directives } = readDirectives(required(body, 'prompt'));
    const count = countIn(body, 'n', mostImages);
    const size = pixelsIn(chosen(body, 'size', usualSize), 'size');
    const quality = chosen(body, 'quality', usualQuality, [...tokensByQuality.keys()]);
    const references = edits ? referencesIn(body) : 0;
    return { model: required(body, 'model'), prompt, count, size, quality, references, asBytes: true, directives };
  },

  usage(ask, made) {
    const input = inputTokens(ask);
    const shown = ask.references * referenceTokens;
    return { input, ...(shown === 0 ? {} : { input_image: shown }), output_image: outputTokens(ask), image: made };
  },

  word(ask, pictures, created) {
    const [text, image, output] = [inputTokens(ask), ask.references * referenceTokens, outputTokens(ask)];
    const usage = {
      input_tokens: text + image,
      input_tokens_details: { image_tokens: image, text_tokens: text },
      output_tokens: output,
      output_tokens_details: { image_tokens: output, text_tokens: 0 },
      total_tokens: text + image + output,
    };
    return {
      created,
      background: 'opaque',
      data: pictures.map(entryOf),
      output_format: 'png',
      quality: ask.quality,
      size: `${ask.size.width}x${ask.size.height}`,
      ...(ask.directives.no_usage ? {} : { usage }),
    };
  },

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
};

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

function inputTokens({ prompt }: PictureAsk): number {
  return Math.max(1, tokensOf(prompt.length));
}

/** Of all images together. */
function outputTokens({ size, quality, count }: PictureAsk): number {
  return count * Math.ceil((tokensByQuality.get(quality)! * size.width * size.height) / usualPixels);
}
