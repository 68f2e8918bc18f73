/** Images in the protocol of Ark: priced by image, single images may fail inside a 200. Pure. */
import { table } from '../../../core/contract/table.ts';
import { badRequest, type Fault } from '../fault.ts';
import { type JsonObject, listOf, textOf } from '../json.ts';
import { parseDirectives } from '../script/directives.ts';
import type { ImageParams, Picture, PictureDialect } from './dialect.ts';
import { chosen, pixelsIn, required } from './members.ts';

const mostReferences = 14;
const edges: Readonly<Record<string, number>> = table({ '1K': 1_024, '2K': 2_048, '4K': 4_096 });

export const arkPictures: PictureDialect = {
  decode(body): ImageParams {
    const { text: prompt, directives } = parseDirectives(required(body, 'prompt'));
    if (body['n'] !== undefined) throw badRequest('The parameter `n` is not supported.', 'n', 'InvalidParameter');
    return {
      model: required(body, 'model'),
      prompt,
      count: 1,
      size: sizeIn(body),
      quality: 'medium',
      references: referencesIn(body),
      asBytes: chosen(body, 'response_format', 'url', ['url', 'b64_json']) === 'b64_json',
      directives,
    };
  },

  usage: (_, made) => ({ image: made }),

  encode(params, pictures, created) {
    const { width, height } = params.size;
    const made = pictures.filter(Boolean).length;
    const tokens = made * Math.floor((width * height) / 256);
    const usage = { generated_images: made, output_tokens: tokens, total_tokens: tokens };
    const data = pictures.map((picture) => entryOf(picture, `${width}x${height}`));
    return { model: params.model, created, data, ...(params.directives.no_usage ? {} : { usage }) };
  },

  moderated: (params) => ({
    status: 200,
    body: {
      model: params.model,
      created: 0,
      data: [
        {
          error: { code: 'OutputImageSensitiveContentDetected', message: 'The output may contain sensitive content.' },
        },
      ],
      usage: { generated_images: 0, output_tokens: 0, total_tokens: 0 },
    },
  }),

  fault: arkFault,
};

function entryOf(picture: Picture, size: string): object {
  if (picture === undefined)
    return { error: { code: 'InternalServiceError', message: 'This image could not be made.' } };
  return 'url' in picture ? { url: picture.url, size } : { b64_json: picture.base64, size };
}

function sizeIn(body: JsonObject): ImageParams['size'] {
  const size = chosen(body, 'size', '2K');
  const edge = edges[size.toUpperCase()];
  return edge === undefined ? pixelsIn(size, 'size') : { width: edge, height: edge };
}

function referencesIn({ image }: JsonObject): number {
  if (textOf(image) !== undefined) return 1;
  const images = listOf(image);
  if (images.length > mostReferences || images.some((one) => textOf(one) === undefined))
    throw badRequest('The parameter `image` is not valid.', 'image', 'InvalidParameter');
  return images.length;
}

const codes: Readonly<Record<number, string>> = {
  400: 'InvalidParameter',
  401: 'AuthenticationError',
  403: 'AccessDenied',
  404: 'InvalidEndpointOrModel.NotFound',
  429: 'RateLimitExceeded.EndpointRPMExceeded',
};

/** Errors are `{error: {code, message, param, type}}`, and messages end with an id. */
export function arkFault(fault: Fault, id: string): { body: string; headers: Record<string, string> } {
  const code = codes[fault.status] ?? 'InternalServiceError';
  const type = fault.status >= 500 ? 'InternalServerError' : fault.status === 429 ? 'TooManyRequests' : 'BadRequest';
  const message = `${fault.message} Request id: ${id}`;
  const headers: Record<string, string> = { 'x-request-id': id };
  if (fault.retryAfter !== undefined) headers['retry-after'] = String(fault.retryAfter);
  return { body: JSON.stringify({ error: { code, message, param: fault.field ?? '', type } }), headers };
}
