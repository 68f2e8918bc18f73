/** Reads an image request: what the gateway must know of it, checked; everything else passes. Pure. */
import { defineFact } from '../../core/contract.ts';
import { type JsonObject, listOf, textOf } from '../../core/json.ts';
import { invalid, type RequestBody, readBody } from '../../core/request-body.ts';
import type { Call } from '../../core/vocabulary.ts';
import { imageTokensAtMost, promptTokensAtMost } from './estimate.ts';

/** Section 8 of the interface. */
const mostImages = 10;
const mostReferences = 14;

/** Members that the gateway charges by: sent twice, the vendor could read others. */
const singleMembers = new Set(['model', 'prompt', 'n', 'size', 'quality', 'resolution', 'stream', 'image_urls']);

/** What the client itself has chosen, in lower case; the rest the vendor chooses. */
export interface Stated {
  readonly size: string | undefined;
  readonly quality: string | undefined;
  readonly resolution: string | undefined;
}

export interface Asked {
  readonly call: Call;
  readonly stated: Stated;
  readonly body: RequestBody;
}
export const asked = defineFact<Asked>('image request');

/** Throws invalid_request that names the field. `protocol` is what will be spoken. */
export function openRequest(bytes: Uint8Array, protocol: string): Asked {
  const body = readBody(bytes, singleMembers);
  const { json } = body;
  const model = requiredText(json, 'model');
  const prompt = requiredText(json, 'prompt');
  refuseStream(json);
  const images = imagesOf(json);
  const stated = statedIn(json);
  return {
    body,
    stated,
    call: {
      protocol,
      model,
      stream: false,
      billable: true,
      inputTokens: promptTokensAtMost(prompt, referencesOf(json)),
      maxOutputTokens: imageTokensAtMost(stated.size, stated.quality),
      choices: images,
      kind: 'image',
      images,
      ...mediaOf(stated),
    },
  };
}

function statedIn(json: JsonObject): Stated {
  const chosen = (field: string) => {
    const word = optionalText(json, field)?.toLowerCase();
    return word === 'auto' ? undefined : word;
  };
  return { size: chosen('size'), quality: chosen('quality'), resolution: chosen('resolution') };
}

/** Only where nothing is left to the vendor is it known beforehand what is made; else its own words tell, afterwards. */
function mediaOf({ size, quality, resolution }: Stated): Pick<Call, 'media'> {
  if (size === undefined || quality === undefined) return {};
  return { media: [size, quality, ...(resolution === undefined ? [] : [resolution])] };
}

function requiredText(json: JsonObject, field: string): string {
  const value = json[field];
  if (value === undefined || value === null || value === '') throw invalid(`The field "${field}" is missing.`, field);
  if (typeof value !== 'string') throw invalid(`The field "${field}" must be a string.`, field);
  return value;
}

function optionalText(json: JsonObject, field: string): string | undefined {
  const value = json[field];
  if (value !== undefined && value !== null && typeof value !== 'string')
    throw invalid(`The field "${field}" must be a string.`, field);
  return textOf(value);
}

function refuseStream({ stream }: JsonObject): void {
  if (stream === undefined || stream === null || stream === false) return;
  throw invalid('Images are answered whole here: leave "stream" out.', 'stream');
}

function imagesOf({ n }: JsonObject): number {
  if (n === undefined || n === null) return 1;
  if (typeof n === 'number' && Number.isInteger(n) && n >= 1 && n <= mostImages) return n;
  throw invalid(`The field "n" must be a whole number from 1 to ${mostImages}.`, 'n');
}

function referencesOf(json: JsonObject): number {
  const urls = json['image_urls'];
  if (urls === undefined || urls === null) return 0;
  if (!Array.isArray(urls)) throw invalid('The field "image_urls" must be a list.', 'image_urls');
  if (listOf(urls).length > mostReferences)
    throw invalid(`The field "image_urls" may hold at most ${mostReferences} images.`, 'image_urls');
  return urls.length;
}
