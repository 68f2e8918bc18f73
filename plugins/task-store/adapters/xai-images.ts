/**
 * `xai-images`: `/images/generations`, and with references `/images/edits`, both JSON; returned at once, at addresses
 * that expire. Pure.
 */
import { isObject, type JsonObject, listOf, textOf } from '../../../core/json/json.ts';
import type { Bounds, MadeFile, MediaAdapter, Order, Step, VendorRequest } from '../../common/media/adapters.ts';
import { raisedResolution, ratioAmong, requestedResolution, resolutionAmong } from '../../common/media/geometry.ts';
import { failed, readObject, unreadable } from '../../common/media/outcome.ts';
import { addressOf } from '../../common/media/references.ts';
import { droppedMembers, pickExtras, refuseRoles } from '../../common/media/refuse.ts';

const roles = new Set(['image']);
const supportedExtras = new Set(['output_format', 'user']);
const ratios = '1:1 16:9 9:16 4:3 3:4 3:2 2:3 2:1 1:2 19.5:9 9:19.5 20:9 9:20'.split(' ');

export const xaiImages: MediaAdapter = {
  name: 'xai-images',
  path: '/images/generations',
  kind: 'image',
  needsBytes: false,
  mostPerCall: 10,

  create(order, target): VendorRequest {
    refuseRoles(order, roles);
    const { extras, dropped } = pickExtras(order, supportedExtras);
    const ratio = ratioAmong(order, ratios);
    const resolution = resolutionAmong(order, ['1k', '2k'], target.traits);
    const body: JsonObject = {
      model: target.model,
      prompt: order.prompt,
      n: order.count,
      ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
      ...(resolution === undefined ? {} : { resolution }),
      ...(order.quality === undefined ? {} : { quality: order.quality }),
      response_format: 'url',
      ...imageMembers(order),
      ...extras,
    };
    const path = order.references.length > 0 ? '/images/edits' : '/images/generations';
    const unread = [...dropped, ...droppedMembers(order, 'watermark'), ...raisedResolution(order, resolution)];
    return { method: 'POST', path, body, dropped: unread };
  },

  readCreated(answer, order): Step {
    const read = readObject(answer);
    if ('failed' in read) return read.failed;
    const { data } = read.json;
    if (!Array.isArray(data)) throw unreadable('the answer holds no list of images');
    const allowed = listOf(data).filter(isObject).filter(isAllowed);
    const files = allowed.flatMap(fileOf).slice(0, order.count);
    if (files.length === 0) return failed(allowed.length < data.length ? 'content_policy' : 'no_image');
    // The vendor reports only its own price, which clients do not see.
    return {
      state: 'done',
      files,
      made: { usage: { image: files.length }, estimated: false, media: mediaOf(order) },
    };
  },

  bounds(order): Bounds {
    return { inputTokens: 0, outputTokens: 0, images: order.count, seconds: 0, media: mediaOf(order) };
  },
};

/** One reference is an object, several are a list. */
function imageMembers({ references }: Order): JsonObject {
  const images = references.map((reference) => ({ type: 'image_url', url: addressOf(reference) }));
  if (images.length === 0) return {};
  return images.length === 1 ? { image: images[0] } : { images };
}

/** By resolution alone; the first is the vendor's default. */
function mediaOf(order: Order): string[] {
  return [requestedResolution(order) ?? '1k'];
}

/** Filtered images are entries of the list, with or without an address. */
function isAllowed(entry: JsonObject): boolean {
  return entry['respect_moderation'] !== false;
}

function fileOf(entry: JsonObject): MadeFile[] {
  const type = textOf(entry['mime_type']);
  const typed = type === undefined ? {} : { mediaType: type };
  const url = textOf(entry['url']);
  if (url !== undefined) return [{ url, ...typed }];
  const base64 = textOf(entry['b64_json']);
  return base64 === undefined ? [] : [{ base64, ...typed }];
}
