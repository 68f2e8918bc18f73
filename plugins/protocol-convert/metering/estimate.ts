/** Estimates of tokens from sizes where no vendor has counted: biased upwards, so that a hold covers the bill. Pure. */
import { table } from '../../../core/contract/table.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../core/json/json.ts';

/**
 * The text of a prompt counts as one token for two bytes of its JSON. Measured texts need fewer (English about one for
 * four bytes, code one for three, Chinese one for two and a half); names and brackets of the JSON make up for what
 * vendors add around messages and tools.
 */
const promptBytesPerToken = 2;
/** An answer is estimated closer to reality: the estimate is charged only when the vendor reports nothing. */
const answerBytesPerToken = 3;

/** An image of any size: above the highest bound that vendors publish. */
export const imageTokens = 5_000;
/** Documents, audio and video in the body: a minimum, and one token for each 64 base64 characters. */
const mediaFloorTokens = 5_000;
const mediaCharactersPerToken = 64;
/** Documents, audio and video that the vendor fetches: their size is unknown. */
export const remoteMediaTokens = 20_000;
/** A conversation that the vendor stores (`previous_response_id`): its size is unknown. */
export const keptStateTokens = 20_000;

/** Tokens of an answered text, by its bytes and its number of frames: each frame holds at least one token. */
export function answerTokens(textBytes: number, frames: number): number {
  return Math.max(frames, Math.ceil(textBytes / answerBytesPerToken));
}

/** Tool results hold parts, which may hold a document of parts; no protocol nests deeper. */
const maxNesting = 4;

/** Counted apart from text: `characters` of base64 that are no text, and the `tokens` that replace them. */
export interface MediaSize {
  characters: number;
  tokens: number;
}

/** Tokens of a prompt: the body's bytes without its media, plus a flat bound for each medium. */
export function promptTokens(bodyBytes: number, media: MediaSize): number {
  return Math.ceil(Math.max(0, bodyBytes - media.characters) / promptBytesPerToken) + media.tokens;
}

/**
 * Adds up the media among content parts, also inside tool results. Only where a vendor accepts media: base64 elsewhere
 * (in a text, in a tool's input) is text to the vendor and counts as text.
 */
export function measureMedia(parts: unknown, size: MediaSize, depth = 0): void {
  if (depth > maxNesting) return;
  for (const part of listOf(parts)) {
    if (!isObject(part)) continue;
    const type = textOf(part['type']);
    if (type === undefined) measureTypeless(part, size, depth);
    else if (type === 'tool_result' || type === 'function_call_output' || type === 'custom_tool_call_output') {
      measureMedia(part['content'] ?? part['output'], size, depth + 1);
    } else measures[type]?.(part, size);
  }
}

type Measure = (part: JsonObject, size: MediaSize) => void;

/** Parts of chat, responses and messages by their type; the others hold no media. */
const measures: Readonly<Record<string, Measure>> = table({
  image_url: measureImageUrl,
  input_image: measureImageUrl,
  image: (part, size) => measureSource(part, size, addImage),
  document: (part, size) => measureSource(part, size, addMedia),
  input_audio: (part, size) => addMedia(objectOf(part['input_audio'])?.['data'], size),
  file: measureFile,
  input_file: measureFile,
  video_url: (part, size) => addMedia(dataUrl(urlOf(part['video_url'])), size),
  audio_url: (part, size) => addMedia(dataUrl(urlOf(part['audio_url'])), size),
});

function measureImageUrl(part: JsonObject, size: MediaSize): void {
  addImage(urlOf(part['image_url']), size);
}

function measureFile(part: JsonObject, size: MediaSize): void {
  addMedia((objectOf(part['file']) ?? part)['file_data'], size);
}

function measureSource(part: JsonObject, size: MediaSize, add: (data: unknown, size: MediaSize) => void): void {
  const source = objectOf(part['source']) ?? {};
  if (source['type'] === 'content') measureMedia(source['content'], size, maxNesting);
  else if (source['type'] !== 'text') add(source['data'], size);
}

/** Some members hold the address itself, others an object with it. */
function urlOf(member: unknown): unknown {
  return isObject(member) ? member['url'] : member;
}

/** Parts of generate-content. */
function measureTypeless(part: JsonObject, size: MediaSize, depth: number): void {
  const inline = part['inlineData'] ?? part['inline_data'];
  if (isObject(inline)) {
    const mime = textOf(inline['mimeType'] ?? inline['mime_type']) ?? '';
    if (mime.startsWith('image/')) addImage(inline['data'], size);
    else if (!mime.startsWith('text/')) addMedia(inline['data'], size);
  }
  if (isObject(part['fileData'] ?? part['file_data'])) addMedia(undefined, size);
  const reply = part['functionResponse'] ?? part['function_response'];
  if (isObject(reply)) measureMedia(reply['parts'], size, depth + 1);
}

/** Tokens of a document, audio or video in the request, by its length as base64. */
export function mediaTokens(base64Length: number): number {
  return Math.max(mediaFloorTokens, Math.ceil(base64Length / mediaCharactersPerToken));
}

function addImage(data: unknown, size: MediaSize): void {
  size.tokens += imageTokens;
  size.characters += typeof data === 'string' ? data.length : 0;
}

function addMedia(data: unknown, size: MediaSize): void {
  if (typeof data !== 'string') {
    size.tokens += remoteMediaTokens;
    return;
  }
  size.tokens += mediaTokens(data.length);
  size.characters += data.length;
}

/** The URL if it is a data URL, else undefined. */
function dataUrl(url: unknown): string | undefined {
  return typeof url === 'string' && url.startsWith('data:') ? url : undefined;
}
