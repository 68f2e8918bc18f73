/**
 * `openai-images`: `/images/generations`, and with references `/images/edits` as a form or in JSON; returned at once,
 * always as bytes. Pure.
 */

import { table } from '../../../core/contract/table.ts';
import { isObject, type JsonObject, objectOf, textOf } from '../../../core/json/json.ts';
import type { Traits } from '../../common/domain/traits.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { readCount, type Usage } from '../../common/domain/usage.ts';
import type { FormMember } from '../../common/kit/forms/multipart.ts';
import { extensionOf } from '../../common/kit/media-types.ts';
import type {
  Bounds,
  MadeFile,
  MediaAdapter,
  Order,
  Reference,
  Step,
  VendorAnswer,
  VendorRequest,
} from '../../common/media/adapters.ts';
import { imagePixels, pixelsFor, resolutionAmong, shapeOf, sizeText } from '../../common/media/geometry.ts';
import { failed, isModeration, moderated, readObject, unreadable } from '../../common/media/outcome.ts';
import { addressOf } from '../../common/media/references.ts';
import { droppedMembers, fieldOf, pickExtras, refuseRoles, unsupported } from '../../common/media/refuse.ts';
import { previewTokens, streamingOf } from './image-previews.ts';
import { imageTokensAtMost, promptTokensAtMost } from './token-bounds.ts';

/** Limit of the JSON form of edits. */
const mostReferences = 16;
const roles = new Set(['image', 'mask']);
const supportedEditExtras = new Set([
  ...['background', 'output_format', 'output_compression', 'moderation', 'user', 'safety_identifier', 'mask'],
  ...['input_fidelity', 'complexity', 'frame_count', 'frame_duration_ms'],
]);
const supportedExtras = new Set([...supportedEditExtras, 'svg', 'prompt_rewriter'].filter((name) => name !== 'mask'));

/** The protocol's limits on sizes: multiples of 16, at most 3840 × 2160 pixels, a ratio of at most 3:1. */
const step = 16;
const longestEdge = 3_840;
const mostPixels = 3_840 * 2_160;
const longestShape = 3;
/** Sizes that every model of the protocol accepts, by ratio. */
const usualSizes: Readonly<Record<string, string>> = table({
  '1:1': '1024x1024',
  '3:2': '1536x1024',
  '2:3': '1024x1536',
});

export const openaiImages: MediaAdapter = {
  name: 'openai-images',
  path: '/images/generations',
  kind: 'image',
  needsBytes: false,
  mostPerCall: 10,
  create: encodeRequest,
  readCreated,
  streams: streamingOf({ create: encodeRequest, readCreated }),

  bounds(order): Bounds {
    return {
      inputTokens: promptTokensAtMost(order),
      outputTokens:
        order.count * imageTokensAtMost(order) + (order.previews ?? 0) * previewTokens + authorTokensAtMost(order),
      images: order.count,
      seconds: 0,
      ...statedMedia(order),
      ...(isWritten(order) ? { writes: 'output_format' } : {}),
    };
  },
};

function readCreated(answer: VendorAnswer, order: Order): Step {
  const read = readObject(answer);
  if ('failed' in read) return read.failed;
  const { json } = read;
  if (!Array.isArray(json['data'])) {
    if (isObject(json['error']) && isModeration(json['error'])) return moderated(json['error']);
    throw unreadable('the answer holds no list of images');
  }
  const files = json['data'].flatMap((entry) => fileOf(entry, json)).slice(0, order.count);
  if (files.length === 0) return failed('no_image');
  const counted = tokensOf(objectOf(json['usage']));
  const usage = withAuthor({ image: files.length, ...(counted ?? estimatedTokens(order, files.length)) }, json);
  const background = textOf(json['background']);
  const made = { usage, estimated: counted === undefined, media: mediaOf(json, order) };
  return { state: 'done', files, made: { ...made, ...(background === undefined ? {} : { background }) } };
}

function encodeRequest(order: Order, target: Target): VendorRequest {
  refuseRoles(order, roles);
  const shown = order.references;
  if (shown.filter(({ role }) => role === 'image').length > mostReferences)
    throw unsupported(`The model takes at most ${mostReferences} images.`, fieldOf(order, 'references'));
  const edits = shown.length > 0;
  const { extras, dropped } = pickExtras(order, edits ? supportedEditExtras : supportedExtras);
  const size = sizeOf(order, target.traits);
  const members: JsonObject = {
    model: target.model,
    prompt: order.prompt,
    n: order.count,
    ...(size === undefined ? {} : { size }),
    ...(order.quality === undefined ? {} : { quality: order.quality }),
    ...extras,
  };
  const common = { method: 'POST', dropped: [...dropped, ...droppedMembers(order, 'watermark')] } as const;
  if (!edits) return { ...common, path: '/images/generations', body: members };
  const path = '/images/edits';
  const form = formOf(members, shown);
  return form === undefined
    ? { ...common, path, body: { ...members, ...addressed(shown) } }
    : { ...common, path, form };
}

/**
 * The form with files, which all vendors of this protocol accept; undefined: some reference is an address, or a member
 * is no text.
 */
function formOf(members: JsonObject, shown: readonly Reference[]): FormMember[] | undefined {
  const form: FormMember[] = [];
  for (const [name, value] of Object.entries(members)) {
    // A mask among the members came as JSON from the client.
    if (typeof value === 'object' || name === 'mask') return undefined;
    form.push({ name, text: String(value) });
  }
  for (const [index, { source, role }] of shown.entries()) {
    if ('url' in source) return undefined;
    const { mediaType, base64 } = source;
    const filename = `${role}-${index}.${extensionOf(mediaType)}`;
    form.push({ name: role === 'mask' ? 'mask' : 'image[]', filename, mediaType, base64 });
  }
  return form;
}

/** The JSON form, which accepts addresses. */
function addressed(shown: readonly Reference[]): JsonObject {
  const named = (role: Reference['role']) =>
    shown.filter((each) => each.role === role).map((reference) => ({ image_url: addressOf(reference) }));
  const [mask] = named('mask');
  return { images: named('image'), ...(mask === undefined ? {} : { mask }) };
}

/** undefined: the vendor chooses. The first resolution is the vendor's default. */
function sizeOf(order: Order, traits: Traits): string | undefined {
  if (order.size !== undefined) return checkedSize(order, order.size);
  const resolution = resolutionAmong(order, ['1k', '2k', '4k'], traits) ?? '1k';
  if (order.ratio === undefined && resolution === '1k') return undefined;
  const ratio = order.ratio ?? '1:1';
  const shape = shapeOf(ratio);
  if (shape === undefined || Math.max(shape, 1 / shape) > longestShape)
    throw unsupported(`The model makes no ${ratio}: at most three to one.`, fieldOf(order, 'ratio'));
  const usual = resolution === '1k' ? usualSizes[ratio] : undefined;
  return usual ?? sizeText(pixelsFor(ratio, Math.min(imagePixels[resolution]!, mostPixels), longestEdge));
}

function checkedSize(order: Order, size: NonNullable<Order['size']>): string {
  const { width, height } = size;
  const isTaken =
    width % step === 0 &&
    height % step === 0 &&
    Math.max(width, height) <= longestEdge &&
    width * height <= mostPixels &&
    Math.max(width / height, height / width) <= longestShape;
  if (isTaken) return sizeText(size);
  const rules = `multiples of ${step}, at most ${longestEdge} pixels an edge and 3840x2160 in all, at most three to one`;
  throw unsupported(`The model does not make ${sizeText(size)}: ${rules}.`, fieldOf(order, 'size'));
}

/** A failed image is an entry of the list without image data. */
function fileOf(entry: unknown, json: JsonObject): MadeFile[] {
  if (!isObject(entry)) return [];
  const format = textOf(json['output_format']);
  const type = textOf(entry['media_type']) ?? (format === undefined ? undefined : `image/${format}`);
  const typed = type === undefined ? {} : { mediaType: type };
  const base64 = textOf(entry['b64_json']);
  if (base64 !== undefined) return [{ base64, ...typed }];
  const url = textOf(entry['url']);
  return url === undefined ? [] : [{ url, ...typed }];
}

/** The media are known beforehand only if the client chose both size and quality. */
function statedMedia({ size, quality }: Order): Pick<Bounds, 'media'> {
  return size === undefined || quality === undefined ? {} : { media: [sizeText(size), quality] };
}

/** The size and quality that the vendor reports; the client's choice where it reports none. */
function mediaOf(json: JsonObject, order: Order): string[] {
  const stated = order.size === undefined ? undefined : sizeText(order.size);
  const words = [
    textOf(json['size'])?.toLowerCase() ?? stated,
    textOf(json['quality'])?.toLowerCase() ?? order.quality,
    order.resolution,
  ];
  return words.filter((word) => word !== undefined);
}

/** An SVG is written by a language model, which is charged as text of the model that paints. */
export function withAuthor(usage: Usage, { svg_usage: reported }: JsonObject): Usage {
  const [read, written] = ['input_tokens', 'output_tokens'].map((name) => readCount(objectOf(reported)?.[name]) ?? 0);
  if (read === 0 && written === 0) return usage;
  return { ...usage, input: (usage.input ?? 0) + read!, output: (usage.output ?? 0) + written! };
}

/**
 * `input_tokens` and `output_tokens` are totals (`prompt_tokens` and `completion_tokens` with vendors that imitate the
 * protocol); the details divide them by kind. A detail never exceeds its total.
 */
export function tokensOf(usage: JsonObject | undefined): Usage | undefined {
  if (usage === undefined) return undefined;
  const inputTotal = readCount(usage['input_tokens'] ?? usage['prompt_tokens']);
  const outputTotal = readCount(usage['output_tokens'] ?? usage['completion_tokens']);
  if (inputTotal === undefined || outputTotal === undefined) return undefined;
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

/** Output tokens of the model that writes an SVG. */
const authorTokens = 32_768;
const authorTokensAtMost = (order: Order): number => (isWritten(order) ? authorTokens : 0);
const isWritten = ({ extra }: Order): boolean => extra['output_format'] === 'svg';

/** Usage at vendors that report no tokens, such as those of models priced per image. */
function estimatedTokens(order: Order, images: number): Usage {
  return { input: promptTokensAtMost(order), output_image: images * imageTokensAtMost(order) };
}
