/** `ark-images`: `/images/generations` of Ark; one image per call, and single images may fail inside a 200. Pure. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../core/json/json.ts';
import type { Traits } from '../../common/domain/traits.ts';
import type { Bounds, MadeFile, MediaAdapter, Order, Step, VendorRequest } from '../../common/media/adapters.ts';
import {
  imagePixels,
  pixelsFor,
  raisedResolution,
  resolutionAmong,
  shapeOf,
  sizeText,
} from '../../common/media/geometry.ts';
import { failed, failedTask, isModeration, readObject, unreadable } from '../../common/media/outcome.ts';
import { addressOf } from '../../common/media/references.ts';
import { droppedMembers, fieldOf, pickExtras, refuseRoles, unsupported } from '../../common/media/refuse.ts';

const mostReferences = 14;
const known = ['1k', '2k', '4k'] as const;
const roles = new Set(['image']);
const supportedExtras = new Set([
  'seed',
  'guidance_scale',
  'optimize_prompt',
  'optimize_prompt_options',
  'output_format',
]);
/** Longest allowed ratio of the two edges. */
const longestShape = 16;
const longestEdge = 16_384;

export const arkImages: MediaAdapter = {
  name: 'ark-images',
  path: '/images/generations',
  kind: 'image',
  needsBytes: false,
  // The protocol has no image count: a "set" is one work in several images, and the model decides how many.
  mostPerCall: 1,

  create(order, target): VendorRequest {
    refuseRoles(order, roles);
    if (order.references.length > mostReferences)
      throw unsupported(`The model takes at most ${mostReferences} images.`, fieldOf(order, 'references'));
    const { extras, dropped } = pickExtras(order, supportedExtras);
    const size = sizeOf(order, target.traits);
    const images = order.references.map(addressOf);
    const body: JsonObject = {
      model: target.model,
      prompt: order.prompt,
      ...(images.length === 0 ? {} : { image: images.length === 1 ? images[0] : images }),
      ...(size === undefined ? {} : { size }),
      sequential_image_generation: 'disabled',
      response_format: 'url',
      ...(order.watermark === undefined ? {} : { watermark: order.watermark }),
      ...extras,
    };
    const made = order.size === undefined ? resolutionAmong(order, known, target.traits) : undefined;
    const unread = [...dropped, ...droppedMembers(order, 'quality'), ...raisedResolution(order, made)];
    return { method: 'POST', path: '/images/generations', body, dropped: unread };
  },

  readCreated(answer, order): Step {
    const read = readObject(answer);
    if ('failed' in read) return read.failed;
    const { json } = read;
    const entries = listOf(json['data']).filter(isObject);
    const files = entries.flatMap((entry) => fileOf(entry, json)).slice(0, order.count);
    if (files.length === 0) return failedFor(json, entries);
    // Priced per image; the tokens are informational. Images that failed are not charged.
    const made = { usage: { image: files.length }, estimated: false, media: mediaOf(entries, order) };
    return { state: 'done', files, made };
  },

  bounds(order): Bounds {
    const stated = order.size === undefined ? {} : { media: [sizeText(order.size)] };
    return { inputTokens: 0, outputTokens: 0, images: order.count, seconds: 0, ...stated };
  },
};

/** Without a ratio only the resolution is sent, and the model chooses the shape; undefined leaves it both. */
function sizeOf(order: Order, traits: Traits): string | undefined {
  if (order.size !== undefined) return checkedSize(order, order.size, traits);
  const resolution = resolutionAmong(order, known, traits);
  if (order.ratio === undefined) return resolution?.toUpperCase();
  const shape = shapeOf(order.ratio);
  if (shape === undefined || Math.max(shape, 1 / shape) > longestShape)
    throw unsupported(`The model makes no ${order.ratio}: at most sixteen to one.`, fieldOf(order, 'ratio'));
  return sizeText(pixelsFor(order.ratio, imagePixels[resolution ?? '1k']!, longestEdge));
}

/** The published minimum of 2k is 2560x1440, the maximum of 4k is 4096x4096. */
const leastShare = 0.87;

/** Where the model's sizes are known, a size must lie between the smallest and the largest. */
function checkedSize(order: Order, size: NonNullable<Order['size']>, { resolutions }: Traits): string {
  const made = (resolutions ?? []).flatMap((resolution) => imagePixels[resolution] ?? []);
  const pixels = size.width * size.height;
  if (made.length === 0 || (pixels >= Math.min(...made) * leastShare && pixels <= Math.max(...made)))
    return sizeText(size);
  const message = `The model does not make ${sizeText(size)}: it makes ${resolutions!.join(', ')}.`;
  throw unsupported(message, fieldOf(order, 'size'));
}

function fileOf(entry: JsonObject, json: JsonObject): MadeFile[] {
  const format = textOf(entry['output_format']) ?? textOf(json['output_format']);
  const typed = format === undefined ? {} : { mediaType: `image/${format}` };
  const url = textOf(entry['url']);
  if (url !== undefined) return [{ url, ...typed }];
  const base64 = textOf(entry['b64_json']);
  return base64 === undefined ? [] : [{ base64, ...typed }];
}

/** Every image failed, each with its own reason; content rules take precedence over other reasons. */
function failedFor(json: JsonObject, entries: readonly JsonObject[]): Step {
  const reasons = [json, ...entries].map((holder) => objectOf(holder['error'])).filter((error) => error !== undefined);
  if (reasons.length === 0) {
    if (!Array.isArray(json['data'])) throw unreadable('the answer holds no list of images');
    return failed('no_image');
  }
  return failedTask(reasons.find(isModeration) ?? reasons[0]);
}

/** The size that the vendor reports; the client's choice where it reports none. */
function mediaOf(entries: readonly JsonObject[], order: Order): string[] {
  const reported = entries.map((entry) => textOf(entry['size'])?.toLowerCase()).filter((size) => size !== undefined);
  if (reported.length > 0) return [...new Set(reported)];
  return order.size === undefined ? [] : [sizeText(order.size)];
}
