/** The kinds of media in a request, in whatever protocol it is written. Pure. */
import { isObject, type JsonObject, objectOf, textOf } from '../../../core/json/json.ts';
import { mediaTypeOfName } from '../../common/encoding/media.ts';
import { parseDataUrl } from '../../common/kit/data-url.ts';
import { kindOfMedia } from '../../common/kit/media-types.ts';

/** Parts by their type. */
const kinds = new Map([
  ...['image', 'image_url', 'input_image', 'computer_screenshot'].map((type) => [type, 'image'] as const),
  ...['input_audio', 'audio_url', 'audio'].map((type) => [type, 'audio'] as const),
  ...['video_url', 'input_video', 'video'].map((type) => [type, 'video'] as const),
  ...['file', 'input_file', 'document'].map((type) => [type, 'document'] as const),
]);

/** Lists of parts, and what holds further ones. */
const holders = ['content', 'parts', 'output', 'functionResponse', 'function_response'];
const deepest = 6;

/** Kinds of media in all turns. */
export function mediaKindsIn(json: JsonObject): ReadonlySet<string> {
  const found = new Set<string>();
  read(json['messages'] ?? json['input'] ?? json['contents'], found, 0);
  return found;
}

function read(value: unknown, found: Set<string>, depth: number): void {
  if (depth > deepest || typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) read(value[index], found, depth + 1);
    return;
  }
  if (!isObject(value)) return;
  const kind = kindOf(value);
  if (kind !== undefined) found.add(kind);
  for (let index = 0; index < holders.length; index++) read(value[holders[index]!], found, depth + 1);
}

function kindOf(part: JsonObject): string | undefined {
  const kind = kinds.get(textOf(part['type']) ?? '');
  if (kind === 'document') return documentKind(part);
  if (kind !== undefined) return kind;
  if (Array.isArray(part['images']) && part['images'].length > 0) return 'image';
  const data = objectOf(part['inlineData'] ?? part['inline_data'] ?? part['fileData'] ?? part['file_data']);
  if (data === undefined) return undefined;
  return kindOfMedia(textOf(data['mimeType'] ?? data['mime_type']) ?? 'application/octet-stream');
}

/** A file may be a picture. */
function documentKind(part: JsonObject): string {
  const file = objectOf(part['file']) ?? part;
  const type =
    parseDataUrl(textOf(file['file_data']) ?? '')?.mediaType ?? mediaTypeOfName(textOf(file['filename']) ?? '');
  return type === undefined ? 'document' : kindOfMedia(type);
}
