/** Reads `POST /v1/images/generations`: a task's submission, and the official request that is answered with its images. Pure. */
import type { JsonObject } from '../../../core/json.ts';
import { invalid, readBody } from '../../../core/request-body.ts';
import type { Order, Submission } from '../contract.ts';
import {
  optionalAddress,
  optionalFlag,
  optionalList,
  optionalText,
  optionalWhole,
  optionalWord,
  requiredText,
  restOf,
} from './fields.ts';
import { readImage } from './references.ts';

/** Sections 4.7 and 8 of the interface. */
const mostImages = 10;
const mostReferences = 14;
const resolutions = ['1k', '2k', '4k'] as const;
const forms = ['url', 'b64_json'] as const;
/** No vendor makes longer edges. */
const longestEdge = 16_384;

const read = new Set([
  'model',
  'prompt',
  'n',
  'size',
  'resolution',
  'quality',
  'image_urls',
  'watermark',
  'response_format',
  'callback_url',
  'stream',
]);
const fields = { references: 'image_urls', count: 'n', ratio: 'size' } as const;

/** Throws invalid_request that names the field. */
export function readImageRequest(bytes: Uint8Array, headers: Readonly<Record<string, string | undefined>>): Submission {
  const { json } = readBody(bytes, read);
  const model = requiredText(json, 'model');
  const prompt = requiredText(json, 'prompt');
  if (optionalFlag(json, 'stream') === true)
    throw invalid('Images are not streamed here: leave "stream" out.', 'stream');
  const form = optionalWord(json, 'response_format', forms);
  const quality = optionalText(json, 'quality')?.toLowerCase();
  const watermark = optionalFlag(json, 'watermark');
  const order: Order = {
    kind: 'image',
    model,
    prompt,
    count: optionalWhole(json, 'n', 1, mostImages) ?? 1,
    ...geometryOf(json),
    ...(quality === undefined || quality === 'auto' ? {} : { quality }),
    ...(watermark === undefined ? {} : { watermark }),
    references: referencesOf(json),
    extra: restOf(json, read),
    fields,
  };
  return {
    order,
    waits: form !== undefined || prefersWaiting(headers['prefer']),
    // As the official answer is today when nothing is said.
    form: form === 'url' ? 'url' : 'base64',
    callbackUrl: optionalAddress(json, 'callback_url'),
  };
}

/** RFC 7240: preferences stand in a list, each with an optional value. */
function prefersWaiting(prefer: string | undefined): boolean {
  return (prefer ?? '').split(',').some((preference) => /^\s*wait\s*(?:=|;|$)/i.test(preference));
}

/** Pixels say the resolution too; else it is 1k where nothing is said. */
function geometryOf(json: JsonObject): Pick<Order, 'size' | 'ratio' | 'resolution'> {
  const resolution = optionalWord(json, 'resolution', resolutions) ?? '1k';
  const text = optionalText(json, 'size')?.toLowerCase();
  if (text === undefined || text === 'auto') return { resolution };
  const size = sizeOf(text);
  if (size !== undefined) return { size };
  if (/^[1-9]\d{0,3}(?:\.\d)?:[1-9]\d{0,3}(?:\.\d)?$/.test(text)) return { ratio: text, resolution };
  throw invalid('The field "size" must be auto, a ratio such as 16:9, or pixels such as 1024x1024.', 'size');
}

/** `1024x768`; undefined for what is none, or larger than anything. */
export function sizeOf(text: string): Order['size'] {
  const match = /^([1-9]\d{0,4})x([1-9]\d{0,4})$/.exec(text);
  if (match === null) return undefined;
  const [width, height] = [Number(match[1]), Number(match[2])];
  return Math.max(width, height) <= longestEdge ? { width, height } : undefined;
}

function referencesOf(json: JsonObject): Order['references'] {
  const values = optionalList(json, 'image_urls');
  if (values.length > mostReferences)
    throw invalid(`The field "image_urls" may hold at most ${mostReferences} images.`, 'image_urls');
  return values.map((value, index) => readImage(value, `image_urls[${index}]`));
}
