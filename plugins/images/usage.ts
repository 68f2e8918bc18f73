/** What an image answer has consumed: images that came, and tokens in disjoint classes as the vendor counted them. Pure. */
import { isObject, type JsonObject, objectOf, textOf } from '../../core/json.ts';
import { readCount, type Usage } from '../../core/usage.ts';
import type { Call, UsageReport } from '../../core/vocabulary.ts';
import type { Asked } from './request.ts';

export type Question = Pick<Asked, 'call' | 'stated'>;

/** Without the vendor's count of tokens, as of models that are sold by the image, tokens are estimated from sizes. */
export function reportOf(json: JsonObject, data: readonly unknown[], { call, stated }: Question): UsageReport {
  const image = data.filter(isImage).length;
  const counted = tokensOf(objectOf(json['usage']));
  const media = [wordOf(json['size'], stated.size), wordOf(json['quality'], stated.quality), stated.resolution].filter(
    (word) => word !== undefined,
  );
  return {
    usage: { image, ...(counted ?? estimated(image, call)) },
    estimated: counted === undefined,
    terminal: true,
    upstreamId: undefined,
    finish: undefined,
    ...(media.length === 0 ? {} : { media }),
  };
}

/** What the vendor says that it made; the client's choice where it says nothing. */
function wordOf(told: unknown, stated: string | undefined): string | undefined {
  return textOf(told)?.toLowerCase() ?? stated;
}

/** One that failed stands in the list without a picture. */
function isImage(entry: unknown): boolean {
  return isObject(entry) && (textOf(entry['b64_json']) !== undefined || textOf(entry['url']) !== undefined);
}

/** `input_tokens` and `output_tokens` are totals; the details say which of them are what. Parts never exceed their total. */
function tokensOf(usage: JsonObject | undefined): Usage | undefined {
  const inputTotal = readCount(usage?.['input_tokens']);
  const outputTotal = readCount(usage?.['output_tokens']);
  if (usage === undefined || inputTotal === undefined || outputTotal === undefined) return undefined;
  const inputParts = objectOf(usage['input_tokens_details']) ?? {};
  const cached = Math.min(readCount(inputParts['cached_tokens']) ?? 0, inputTotal);
  const cachedImages = readCount(objectOf(inputParts['cached_tokens_details'])?.['image_tokens']) ?? 0;
  const shown = Math.max(0, (readCount(inputParts['image_tokens']) ?? 0) - cachedImages);
  const images = Math.min(shown, inputTotal - cached);
  const outputParts = objectOf(usage['output_tokens_details']) ?? {};
  const words = Math.min(readCount(outputParts['text_tokens']) ?? 0, outputTotal);
  return {
    input: inputTotal - cached - images,
    cache_read: cached,
    input_image: images,
    output: words,
    output_image: outputTotal - words,
  };
}

function estimated(images: number, { inputTokens, maxOutputTokens = 0 }: Call): Usage {
  return { input: inputTokens, output_image: images * maxOutputTokens };
}
