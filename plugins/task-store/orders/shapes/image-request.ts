/** Parses `POST /v1/images/generations`: a task's submission, or the official request that waits for its images. Pure. */
import type { JsonObject } from '../../../../core/json/json.ts';
import { invalid, readBody } from '../../../../core/json/request-body.ts';
import type { Order, Reference } from '../../../common/media/adapters.ts';
import { requestedResolution } from '../../../common/media/geometry.ts';
import type { Submission } from '../../contract.ts';
import {
  optionalAddress,
  optionalEnum,
  optionalFlag,
  optionalList,
  optionalText,
  optionalWhole,
  requiredText,
  restOf,
} from './fields.ts';
import { readImage } from './references.ts';

/** Sections 4.7 and 8 of the interface. */
export const mostImages = 10;
export const mostReferences = 14;
const mostPreviews = 3;
const resolutions = ['1k', '2k', '4k'] as const;
const forms = ['url', 'b64_json'] as const;
/** No vendor makes longer edges. */
const longestEdge = 16_384;

const members = [
  'model',
  'prompt',
  'n',
  'size',
  'resolution',
  'quality',
  'watermark',
  'response_format',
  'callback_url',
  'stream',
  'partial_images',
];
const read = new Set([...members, 'image_urls']);
const fields = { references: 'image_urls', count: 'n', ratio: 'size' } as const;

/** Throws invalid_request that names the field. */
export function readImageRequest(bytes: Uint8Array, headers: Readonly<Record<string, string | undefined>>): Submission {
  const { json } = readBody(bytes, read);
  const shown = { references: referencesOf(json), fields, members: ['image_urls'] };
  const waits = prefers(headers, 'wait') || (prefers(headers, 'respond-async') ? false : undefined);
  return submissionOf(json, shown, waits);
}

/** The references of a request. */
export interface ReferenceInput {
  readonly references: readonly Reference[];
  readonly fields: NonNullable<Order['fields']>;
  /** The members that held them. */
  readonly members: readonly string[];
}

/** The common part of all image requests. `waits`: whether the client waits where the body does not say it. */
export function submissionOf(json: JsonObject, shown: ReferenceInput, waits: boolean | undefined): Submission {
  const model = requiredText(json, 'model');
  const prompt = requiredText(json, 'prompt');
  const form = optionalEnum(json, 'response_format', forms);
  const quality = optionalText(json, 'quality')?.toLowerCase();
  const watermark = optionalFlag(json, 'watermark');
  const count = optionalWhole(json, 'n', 1, mostImages) ?? 1;
  const previews = previewsIn(json, count);
  const order: Order = {
    kind: 'image',
    model,
    prompt,
    count,
    ...geometryOf(json),
    ...(quality === undefined || quality === 'auto' ? {} : { quality }),
    ...(watermark === undefined ? {} : { watermark }),
    references: shown.references,
    ...(previews === undefined ? {} : { previews }),
    extra: restOf(json, new Set([...members, ...shown.members])),
    fields: { ...shown.fields, ...resolutionField(json) },
  };
  const callbackUrl = optionalAddress(json, 'callback_url');
  return {
    order,
    // A client that is called back has no use for a wait that its key alone asks for.
    waits: form !== undefined || previews !== undefined || (waits ?? (callbackUrl === undefined ? undefined : false)),
    // The official default.
    form: form === 'url' ? 'url' : 'base64',
    callbackUrl,
  };
}

/** Number of previews in the stream; undefined: no stream is requested. */
function previewsIn(json: JsonObject, count: number): number | undefined {
  const previews = optionalWhole(json, 'partial_images', 0, mostPreviews);
  if (optionalFlag(json, 'stream') !== true) return undefined;
  if (count > 1) throw invalid('Only one image can be streamed: leave "n" out, or "stream".', 'n');
  return previews ?? 0;
}

/** RFC 7240: a list of preferences, each with an optional value. */
export function prefers(
  { prefer }: Readonly<Record<string, string | undefined>>,
  word: 'wait' | 'respond-async',
): boolean {
  return (prefer ?? '').split(',').some((preference) => preference.split(/[=;]/, 1)[0]!.trim().toLowerCase() === word);
}

/** The member that names the resolution, if the client names one. */
function resolutionField(json: JsonObject): { resolution?: string } {
  if (optionalEnum(json, 'resolution', resolutions) !== undefined) return { resolution: 'resolution' };
  const text = optionalText(json, 'size')?.toLowerCase();
  return resolutions.some((word) => word === text) ? { resolution: 'size' } : {};
}

/** Pixels imply the resolution; without either it is 1k. */
function geometryOf(json: JsonObject): Pick<Order, 'size' | 'ratio' | 'resolution'> {
  const named = optionalEnum(json, 'resolution', resolutions);
  const text = optionalText(json, 'size')?.toLowerCase();
  // Clients of Ark put the resolution here: "2K".
  const sized = resolutions.find((word) => word === text);
  if (sized !== undefined && named !== undefined && named !== sized)
    throw invalid('The fields "size" and "resolution" name two resolutions.', 'size');
  const resolution = sized ?? named ?? '1k';
  if (text === undefined || text === 'auto' || sized !== undefined) return { resolution };
  const size = sizeOf(text);
  if (size !== undefined) {
    if (named !== undefined && requestedResolution({ size }) !== named)
      throw invalid('The fields "size" and "resolution" name two resolutions.', 'size');
    return { size };
  }
  if (/^[1-9]\d{0,3}(?:\.\d)?:[1-9]\d{0,3}(?:\.\d)?$/.test(text)) return { ratio: text, resolution };
  throw invalid(
    'The field "size" must be auto, a ratio such as 16:9, pixels such as 1024x1024, or 1K, 2K or 4K.',
    'size',
  );
}

/** `1024x768`; undefined for another form, or for sizes beyond every vendor's. */
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
