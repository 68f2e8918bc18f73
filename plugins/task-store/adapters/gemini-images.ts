/** `gemini-images`: generateContent with images in the response; one per call, returned at once, as bytes. Pure. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../core/json/json.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { readCount, type Usage } from '../../common/domain/usage.ts';
import { mediaTypeOfName } from '../../common/kit/media-types.ts';
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
import { raisedResolution, ratioAmong, requestedResolution, resolutionAmong } from '../../common/media/geometry.ts';
import { failed, readObject, unreadable } from '../../common/media/outcome.ts';
import { droppedMembers, pickExtras, refuseRoles } from '../../common/media/refuse.ts';
import { promptTokensAtMost } from './token-bounds.ts';

const roles = new Set(['image']);
const supportedExtras = new Set(['seed']);
const ratios = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'];

/** Published: 1,120 for 1K and 2K, 1,290 for the older model, 2,000 for 4K. */
const tokensPerImage = 1_500;
const tokensPerImageOf4k = 2_500;
/** Thoughts (including drafts) and text beside the image. */
const textTokensPerImage = 8_192;

/** Finish reasons for content rules and for a missing image; see `finishReason` and `blockReason` of the protocol. */
const forbidden = /SAFETY|PROHIBITED|RECITATION|BLOCKLIST|SPII/;
const ending = 'STOP';

export const geminiImages: MediaAdapter = {
  name: 'gemini-images',
  path: '/models',
  kind: 'image',
  auth: { header: 'x-goog-api-key', value: '{key}' },
  needsBytes: true,
  mostPerCall: 1,

  create: encodeRequest,
  readCreated,
  bounds,
};

function encodeRequest(order: Order, target: Target): VendorRequest {
  refuseRoles(order, roles);
  const { extras, dropped } = pickExtras(order, supportedExtras);
  const shown = order.references.map(partOf);
  const generationConfig = { responseModalities: ['TEXT', 'IMAGE'], ...imageConfigFor(order, target), ...extras };
  const body = { contents: [{ role: 'user', parts: [...shown, { text: order.prompt }] }], generationConfig };
  const unread = [...dropped, ...droppedMembers(order, 'quality', 'watermark')];
  if (order.size === undefined)
    unread.push(...raisedResolution(order, resolutionAmong(order, ['1k', '2k', '4k'], target.traits)));
  return { method: 'POST', path: `/models/${encodeURIComponent(target.model)}:generateContent`, body, dropped: unread };
}

/**
 * When the request is sent, the gateway has fetched every address; when an order is only checked, the address is still
 * here.
 */
function partOf({ source }: Reference): JsonObject {
  if ('base64' in source) return { inlineData: { mimeType: source.mediaType, data: source.base64 } };
  return { fileData: { mimeType: mediaTypeOfName(source.url) ?? 'image/jpeg', fileUri: source.url } };
}

/** Empty where the model chooses everything: older models accept neither the first resolution's name nor an empty object. */
function imageConfigFor(order: Order, { traits }: Target): JsonObject {
  const aspectRatio = ratioAmong(order, ratios);
  const resolution = resolutionAmong(order, ['1k', '2k', '4k'], traits);
  const imageConfig = {
    ...(aspectRatio === undefined ? {} : { aspectRatio }),
    ...(resolution === undefined || resolution === '1k' ? {} : { imageSize: resolution.toUpperCase() }),
  };
  return Object.keys(imageConfig).length === 0 ? {} : { imageConfig };
}

function readCreated(answer: VendorAnswer, order: Order): Step {
  const read = readObject(answer);
  if ('failed' in read) return read.failed;
  const { json } = read;
  const candidates = listOf(json['candidates']).filter(isObject);
  const files = candidates.flatMap(filesOf).slice(0, order.count);
  if (files.length === 0) return failedFor(json, candidates);
  const counted = tokensOf(objectOf(json['usageMetadata']));
  const usage: Usage = { image: files.length, ...(counted ?? estimatedTokens(order)) };
  return { state: 'done', files, made: { usage, estimated: counted === undefined, media: mediaOf(order) } };
}

function bounds(order: Order): Bounds {
  return {
    inputTokens: order.count * promptTokensAtMost(order),
    outputTokens: order.count * (imageTokensAtMost(order) + textTokensPerImage),
    images: order.count,
    seconds: 0,
    media: mediaOf(order),
  };
}

/** Drafts from the model's thoughts are left out. */
function filesOf(candidate: JsonObject): MadeFile[] {
  return listOf(objectOf(candidate['content'])?.['parts']).flatMap((part) => {
    if (!isObject(part) || part['thought'] === true) return [];
    const inline = objectOf(part['inlineData']) ?? objectOf(part['inline_data']);
    const base64 = textOf(inline?.['data']);
    const mediaType = textOf(inline?.['mimeType']) ?? textOf(inline?.['mime_type']);
    return base64 === undefined ? [] : [{ base64, ...(mediaType === undefined ? {} : { mediaType }) }];
  });
}

function failedFor(json: JsonObject, candidates: readonly JsonObject[]): Step {
  const blocked = textOf(objectOf(json['promptFeedback'])?.['blockReason']);
  if (blocked !== undefined) return failed('content_policy');
  const reason = candidates.map((candidate) => textOf(candidate['finishReason'])).find((word) => word !== undefined);
  if (reason === undefined) throw unreadable('the answer has neither a picture nor a reason');
  if (forbidden.test(reason)) return failed('content_policy');
  return failed(reason === ending || reason === 'NO_IMAGE' ? 'no_image' : 'generation_failed');
}

/** Totals with their details by modality. Thought tokens are counted apart from the candidates' tokens. */
function tokensOf(usage: JsonObject | undefined): Usage | undefined {
  if (usage === undefined) return undefined;
  const prompt = readCount(usage['promptTokenCount']);
  const answered = readCount(usage['candidatesTokenCount']);
  if (prompt === undefined || answered === undefined) return undefined;
  const cached = Math.min(readCount(usage['cachedContentTokenCount']) ?? 0, prompt);
  const shown = Math.min(modality(usage['promptTokensDetails'], 'IMAGE'), prompt - cached);
  const painted = Math.min(modality(usage['candidatesTokensDetails'], 'IMAGE'), answered);
  return {
    input: prompt - cached - shown,
    cache_read: cached,
    input_image: shown,
    output: answered - painted,
    output_image: painted,
    reasoning: readCount(usage['thoughtsTokenCount']) ?? 0,
  };
}

function modality(details: unknown, name: string): number {
  let sum = 0;
  for (const detail of listOf(details)) {
    if (isObject(detail) && detail['modality'] === name) sum += readCount(detail['tokenCount']) ?? 0;
  }
  return sum;
}

/** By resolution alone; the first is the vendor's default. */
function mediaOf(order: Order): string[] {
  return [requestedResolution(order) ?? '1k'];
}

function imageTokensAtMost(order: Order): number {
  return requestedResolution(order) === '4k' ? tokensPerImageOf4k : tokensPerImage;
}

function estimatedTokens(order: Order): Usage {
  return { input: promptTokensAtMost(order), output_image: imageTokensAtMost(order) };
}
