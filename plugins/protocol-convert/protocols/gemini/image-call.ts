/** What a generate-content call to a model that makes images may cost: by images and their resolution. Pure. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../core/json/json.ts';
import type { Call } from '../../../common/domain/calls.ts';

/** Published: up to 2,000 tokens for an image; thoughts with their drafts and texts come on top. */
const outputTokensPerImage = 10_692;
/** Above what vendors publish for an image of the usual size: for answers without a report. */
export const unreportedImageTokens = 1_500;

/** Such a call is relayed, and never translated: no other protocol of conversations has these settings. */
export function imageCall(call: Call, json: JsonObject): Call {
  const { billable, choices, maxOutputTokens = choices * outputTokensPerImage } = call;
  if (!billable) return { ...call, kind: 'image', convertsTo: [] };
  return {
    ...call,
    kind: 'image',
    convertsTo: [],
    maxOutputTokens,
    images: choices,
    seconds: 0,
    media: [resolutionOf(json)],
  };
}

/** Pictures in the parts of an answer; drafts from the model's thoughts are left out. */
export function imagesIn(parts: unknown): number {
  return listOf(parts).filter((part) => {
    if (!isObject(part) || part['thought'] === true) return false;
    const inline = objectOf(part['inlineData']) ?? objectOf(part['inline_data']);
    return (textOf(inline?.['mimeType']) ?? textOf(inline?.['mime_type']))?.startsWith('image/') === true;
  }).length;
}

/** The first is the vendor's default. */
function resolutionOf(json: JsonObject): string {
  const config = objectOf(json['generationConfig']) ?? objectOf(json['generation_config']);
  const image = objectOf(config?.['imageConfig']) ?? objectOf(config?.['image_config']);
  return (textOf(image?.['imageSize']) ?? textOf(image?.['image_size']) ?? '1k').toLowerCase();
}
