/** Sizes turned into tokens where no vendor has counted: upper-biased, so that a hold covers the bill. Pure. */
import { isObject, type JsonObject, listOf, textOf } from './json.ts';

/**
 * A prompt's text is taken as one token for each two bytes of its JSON. Measured texts need fewer (English about one for
 * four bytes, code one for three, Chinese one for two and a half); names and brackets of the JSON stand for what
 * vendors add around messages and tools.
 */
const promptBytesPerToken = 2;
/** An answer is counted closer to the truth: it is charged by this only when the vendor reported nothing. */
const answerBytesPerToken = 3;

/** An image, whatever its size: above the highest bound that vendors publish for one. */
export const imageTokens = 5_000;
/** Documents, sound and video inside the body: a floor, and one token for each 64 base64 characters. */
const mediaFloorTokens = 5_000;
const mediaCharactersPerToken = 64;
/** Documents, sound and video that the vendor fetches: their size is unknown. */
export const remoteMediaTokens = 20_000;
/** A conversation that the vendor keeps (`previous_response_id`): its size is unknown. */
export const keptStateTokens = 20_000;

/** Tokens of a text that was answered, by its bytes and by the frames it came in: a frame brings at least one. */
export function answerTokens(textBytes: number, frames: number): number {
  return Math.max(frames, Math.ceil(textBytes / answerBytesPerToken));
}

/** Tool results hold parts, which may hold a document of parts; nothing nests deeper. */
const maxNesting = 4;

/** Counted apart from text: `characters` of base64 that are no text, and the `tokens` that stand for them. */
export interface MediaSize {
  characters: number;
  tokens: number;
}

/** Tokens of a prompt: the body's bytes without its media, plus a flat bound for each medium. */
export function promptTokens(bodyBytes: number, media: MediaSize): number {
  return Math.ceil(Math.max(0, bodyBytes - media.characters) / promptBytesPerToken) + media.tokens;
}

/**
 * Adds up the media among content parts, also inside tool results. Only where a vendor takes media: base64 that is
 * put elsewhere (a text, a tool's input) is text to the vendor and counts as such.
 */
export function measureMedia(parts: unknown, size: MediaSize, depth = 0): void {
  if (depth > maxNesting) return;
  for (const part of listOf(parts)) {
    if (!isObject(part)) continue;
    const type = textOf(part['type']);
    if (type === undefined) measureTypeless(part, size, depth);
    else if (type === 'tool_result' || type === 'function_call_output' || type === 'custom_tool_call_output') {
      measureMedia(part['content'] ?? part['output'], size, depth + 1);
    } else measureTyped(type, part, size);
  }
}

/** Parts of chat, responses and messages. */
function measureTyped(type: string, part: JsonObject, size: MediaSize): void {
  if (type === 'image_url' || type === 'input_image') {
    const image = part['image_url'];
    addImage(isObject(image) ? image['url'] : image, size);
  } else if (type === 'image' || type === 'document') {
    const source = isObject(part['source']) ? part['source'] : {};
    if (source['type'] === 'text') return;
    if (source['type'] === 'content') measureMedia(source['content'], size, maxNesting);
    else if (type === 'image') addImage(source['data'], size);
    else addMedia(source['data'], size);
  } else if (type === 'input_audio') {
    addMedia(isObject(part['input_audio']) ? part['input_audio']['data'] : undefined, size);
  } else if (type === 'file' || type === 'input_file') {
    addMedia((isObject(part['file']) ? part['file'] : part)['file_data'], size);
  } else if (type === 'video_url' || type === 'audio_url') {
    const media = part[type];
    addMedia(dataUrl(isObject(media) ? media['url'] : media), size);
  }
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

/** Tokens of a document, sound or video that is in the request, by its length as base64. */
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

/** The URL when it carries its data itself, else undefined. */
function dataUrl(url: unknown): string | undefined {
  return typeof url === 'string' && url.startsWith('data:') ? url : undefined;
}
