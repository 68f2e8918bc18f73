/** Decodes the content of a client's items: texts, images, files, refusals. Throws invalid_request that names the field. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { CacheMark, MediaPart, Part, Source, TextPart } from '../../../../common/canonical/prompt.ts';
import {
  bytesSource,
  kindOfMedia,
  mediaTypeOfName,
  parseDataUrl,
  urlSource,
  withField,
} from '../../../../common/encoding/media.ts';
import type { JsonTexts } from '../../../encoding/json-text.ts';
import { invalid } from '../../../request/checks.ts';
import { citationOf } from './details.ts';

/** A message's content: a string or a list of parts. `field`: its name, as `input[2].content`. */
export function decodeContent(content: unknown, field: string): Part[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  if (content === undefined || content === null) return [];
  if (!Array.isArray(content)) throw invalid(`The field "${field}" must be a string or a list.`, field);
  return content.map((part: unknown, index) => decodePart(part, `${field}[${index}]`));
}

/** A tool's output: like `decodeContent`; other values are passed on as JSON text. */
export function decodeOutput(output: unknown, field: string): (TextPart | MediaPart)[] {
  if (isObject(output) && isPart(output)) return decodeOutput([output], field);
  const isPlainOutput = output === undefined || output === null || typeof output === 'string';
  if (!isPlainOutput && !(Array.isArray(output) && output.every(isPart))) {
    return [{ kind: 'text', text: JSON.stringify(output) }];
  }
  return decodeContent(output, field).map((part) => {
    if (part.kind === 'refusal') return { kind: 'text', text: part.text };
    return part as TextPart | MediaPart;
  });
}

/** Like `decodeOutput`; some clients send the list of parts as JSON text. */
export function decodeCustomOutput(output: unknown, field: string, texts: JsonTexts): (TextPart | MediaPart)[] {
  const list = typeof output === 'string' && output.trimStart().startsWith('[') ? texts.parse(output) : undefined;
  const isParts = Array.isArray(list) && list.length > 0 && list.every(isPart);
  return decodeOutput(isParts ? list : output, field);
}

const partTypes = /^(input_(text|image|file|audio)|output_text|text|computer_screenshot)$/;

function isPart(value: unknown): boolean {
  return isObject(value) && partTypes.test(textOf(value['type']) ?? '');
}

function decodePart(value: unknown, field: string): Part {
  if (typeof value === 'string') return { kind: 'text', text: value };
  const part = objectOf(value);
  if (part === undefined) throw invalid(`The field "${field}" must be an object.`, field);
  switch (part['type']) {
    case 'input_text':
    case 'output_text':
    case 'text':
    case 'summary_text':
      return decodeText(part, field);
    case 'refusal':
      return { kind: 'refusal', text: requireText(part, 'refusal', field) };
    case 'input_image':
    case 'computer_screenshot':
      return decodeImage(part, field);
    case 'input_file':
      return decodeFile(part, field);
    case 'input_audio':
      return decodeAudio(part, field);
    default:
      throw invalid(`The field "${field}.type" must be one of input_text, input_image, input_file.`, `${field}.type`);
  }
}

function decodeText(part: JsonObject, field: string): TextPart {
  const citations = listOf(part['annotations']).flatMap((annotation) => citationOf(annotation) ?? []);
  return {
    kind: 'text',
    text: requireText(part, 'text', field),
    ...(citations.length === 0 ? {} : { citations }),
    ...cacheOf(part),
  };
}

function decodeImage(part: JsonObject, field: string): MediaPart {
  const url = textOf(part['image_url']) ?? textOf(objectOf(part['image_url'])?.['url']);
  const id = textOf(part['file_id']);
  if (url === undefined && id === undefined) {
    throw invalid(`The field "${field}" needs an "image_url" or a "file_id".`, field);
  }
  const detail = textOf(part['detail']);
  const source: Source = url === undefined ? { form: 'file', id: id! } : addressed(url, `${field}.image_url`);
  return {
    kind: 'image',
    source: withField(source, field),
    ...(detail === undefined || detail === 'auto' ? {} : { detail }),
    ...cacheOf(part),
  };
}

function decodeFile(part: JsonObject, field: string): MediaPart {
  const name = textOf(part['filename']);
  const source = withField(fileSource(part, name, field), field);
  const mediaType = source.form === 'bytes' || source.form === 'url' ? source.mediaType : undefined;
  return {
    kind: mediaType === undefined ? 'document' : kindOfMedia(mediaType),
    source,
    ...(name === undefined ? {} : { name }),
    ...cacheOf(part),
  };
}

function fileSource(part: JsonObject, name: string | undefined, field: string): Source {
  const data = textOf(part['file_data']);
  if (data !== undefined) {
    const parsed = parseDataUrl(data);
    if (parsed === undefined)
      throw invalid(`The field "${field}.file_data" is not valid base64.`, `${field}.file_data`);
    const isGeneric = parsed.mediaType === 'application/octet-stream' || parsed.mediaType === '';
    const declared = isGeneric && name !== undefined ? mediaTypeOfName(name) : parsed.mediaType;
    return bytesSource(parsed.base64, declared);
  }
  const url = textOf(part['file_url']);
  if (url !== undefined) return addressed(url, `${field}.file_url`);
  const id = textOf(part['file_id']);
  if (id !== undefined) return { form: 'file', id };
  throw invalid(`The field "${field}" needs "file_data", a "file_url" or a "file_id".`, field);
}

function decodeAudio(part: JsonObject, field: string): MediaPart {
  const audio = objectOf(part['input_audio']) ?? part;
  const data = requireText(audio, 'data', `${field}.input_audio`);
  const source = bytesSource(data, `audio/${textOf(audio['format']) ?? 'wav'}`);
  return { kind: 'audio', source: withField(source, field), ...cacheOf(part) };
}

/** A data URL or a URL that can be fetched. */
function addressed(url: string, field: string): Source {
  const source = urlSource(url);
  if (source.form === 'url' && !/^https?:\/\//i.test(url)) {
    throw invalid(`The field "${field}" must be an http(s) or a data URL.`, field);
  }
  return source;
}

function requireText(part: JsonObject, member: string, field: string): string {
  const value = part[member];
  if (typeof value === 'string') return value;
  throw invalid(`The field "${field}.${member}" must be a string.`, `${field}.${member}`);
}

function cacheOf(part: JsonObject): { readonly cache?: CacheMark } {
  const breakpoint = objectOf(part['prompt_cache_breakpoint']);
  if (breakpoint === undefined) return {};
  return { cache: breakpoint['ttl'] === '12h' ? 'long' : 'short' };
}
