/** Images in generateContent: one for each answer, as bytes, with the prompt's tokens in the usage. Pure. */
import { table } from '../../../core/contract/table.ts';
import { badRequest } from '../fault.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.ts';
import { parseDirectives } from '../script/directives.ts';
import { tokensOf, tokensPerMedium } from '../script/tokens.ts';
import type { ImageParams, Picture } from './dialect.ts';
import { chosen, sizeOf } from './members.ts';

const ratios = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'];
const pixels: Readonly<Record<string, number>> = table({
  '512': 262_144,
  '1K': 1_048_576,
  '2K': 4_194_304,
  '4K': 16_777_216,
});
const tokensPerImage = 1_120;
const tokensPerImageOf4k = 2_000;

/** Whether a request asks for an image; all others ask for text. Models with this word in their name make images unasked. */
export function wantsPicture(body: JsonObject, model = ''): boolean {
  const modalities = listOf(objectOf(body['generationConfig'])['responseModalities']);
  return modalities.length === 0 ? model.includes('-image') : modalities.includes('IMAGE');
}

export function decodeGeminiImages(body: JsonObject, model: string): ImageParams {
  const parts = listOf(body['contents'])
    .flatMap((content) => listOf(objectOf(content)['parts']))
    .filter(isObject);
  const text = parts.map((part) => textOf(part['text']) ?? '').join('');
  if (text === '') throw badRequest('* GenerateContentRequest.contents: contents is not specified', 'contents');
  const { text: prompt, directives } = parseDirectives(text);
  const config = objectOf(objectOf(body['generationConfig'])['imageConfig']);
  const size = chosen(config, 'imageSize', '1K', Object.keys(pixels));
  return {
    model,
    prompt,
    count: 1,
    size: sizeOf(chosen(config, 'aspectRatio', '1:1', ratios), pixels[size]!),
    quality: 'medium',
    references: parts.filter((part) => isObject(part['inlineData'] ?? part['fileData'])).length,
    asBytes: true,
    directives,
  };
}

export const geminiPictures = {
  usage: (params: ImageParams, made: number) => {
    const shown = params.references * tokensPerMedium;
    const { input, output } = tokensFor(params);
    return { input, ...(shown === 0 ? {} : { input_image: shown }), output_image: output, image: made };
  },

  encode(params: ImageParams, pictures: readonly Picture[]): object {
    const shown = pictures.flatMap((picture) =>
      picture === undefined || 'url' in picture
        ? []
        : [{ inlineData: { mimeType: 'image/png', data: picture.base64 } }],
    );
    const parts = [{ text: 'Here it is.', thought: true }, ...shown];
    const reason = shown.length === 0 ? 'NO_IMAGE' : 'STOP';
    const candidate = { content: { role: 'model', parts }, finishReason: reason, index: 0 };
    return answerOf(params, candidate, shown.length > 0);
  },

  moderated: (params: ImageParams) => ({
    status: 200,
    body: answerOf(params, { finishReason: 'IMAGE_SAFETY', index: 0 }, false),
  }),
};

function answerOf(params: ImageParams, candidate: object, painted: boolean): object {
  const shown = params.references * tokensPerMedium;
  const { input, output } = tokensFor(params);
  const usageMetadata = {
    promptTokenCount: input + shown,
    ...(painted ? { candidatesTokenCount: output } : {}),
    totalTokenCount: input + shown + (painted ? output : 0),
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: input },
      ...(shown === 0 ? [] : [{ modality: 'IMAGE', tokenCount: shown }]),
    ],
    ...(painted ? { candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: output }] } : {}),
  };
  return {
    candidates: [candidate],
    ...(params.directives.no_usage ? {} : { usageMetadata }),
    modelVersion: params.model,
  };
}

function tokensFor({ prompt, size }: ImageParams): { input: number; output: number } {
  const isLarge = size.width * size.height > pixels['2K']! * 2;
  return { input: Math.max(1, tokensOf(prompt.length)), output: isLarge ? tokensPerImageOf4k : tokensPerImage };
}
