/** Decodes the content of chat messages, including forms of other protocols that clients mix in. Pure. */
import { table } from '../../../../../core/contract/table.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { DecodeContext } from '../../../../common/canonical/codec.ts';
import type {
  CacheMark,
  MediaPart,
  Part,
  Source,
  TextPart,
  ToolResultPart,
} from '../../../../common/canonical/prompt.ts';
import { bytesSource, kindOfMedia, mediaTypeOfName, urlSource, withField } from '../../../../common/encoding/media.ts';
import { plainBase64 } from '../../../../common/kit/data-url.ts';
import { invalid } from '../../../request/checks.ts';
import { reasoningPart } from './reasoning.ts';

/** A string, a list of parts, or nothing. Throws invalid_request that names `field`. */
export function decodeContent(content: unknown, field: string, context: DecodeContext): Part[] {
  if (content === undefined || content === null || content === '') return [];
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  if (!Array.isArray(content)) throw invalid(`The field "${field}" must be a string or a list.`, field);
  return content.flatMap((part, index) => decodePart(part, `${field}[${index}]`, context));
}

/** Some clients send bare strings in a list. */
function decodePart(value: unknown, field: string, context: DecodeContext): Part[] {
  if (typeof value === 'string') return [{ kind: 'text', text: value }];
  if (!isObject(value)) throw invalid(`The field "${field}" must be an object.`, field);
  const part = readPart(value, field, context);
  const cache = cacheMark(value);
  if (part === undefined) return [];
  return [cache === undefined || part.kind === 'reasoning' || part.kind === 'refusal' ? part : { ...part, cache }];
}

function readPart(
  part: JsonObject,
  field: string,
  context: DecodeContext,
): Exclude<Part, { kind: 'search' }> | undefined {
  switch (part['type']) {
    case 'text':
    case 'input_text':
    case 'output_text':
      return { kind: 'text', text: textAt(part, 'text', field) };
    case 'refusal':
      return { kind: 'refusal', text: textAt(part, 'refusal', field) };
    case 'tool_use':
      return {
        kind: 'tool-call',
        id: textOf(part['id']) ?? '',
        name: textAt(part, 'name', field),
        input: JSON.stringify(part['input'] ?? {}),
      };
    case 'tool_result':
      return toolResult(part, field, context);
    case 'thinking':
    case 'redacted_thinking':
      return reasoningPart(part, field, context);
    default: {
      const media = mediaPart(part, field);
      withField(media.source, `${field}.${placeNames[String(part['type'])] ?? part['type']}`);
      return media;
    }
  }
}

/** Members that hold the medium where their name differs from the part's type. */
const placeNames: Readonly<Record<string, string>> = table({
  input_image: 'image_url',
  input_file: 'file_data',
  image: 'source',
  document: 'source',
});

/** An image, audio, video or file part. Throws invalid_request for any other. */
function mediaPart(part: JsonObject, field: string): MediaPart {
  switch (part['type']) {
    case 'image_url':
    case 'input_image':
      return imagePart(part, field);
    case 'input_audio':
      return audioPart(part, field);
    case 'audio_url':
      return { kind: 'audio', source: addressAt(part, 'audio_url', field) };
    case 'video_url':
      return { kind: 'video', source: addressAt(part, 'video_url', field) };
    case 'file':
    case 'input_file':
      return filePart(part, field);
    case 'image':
    case 'document':
      return sourcePart(part, field);
    default:
      throw invalid(`The field "${field}.type" does not name a kind of content.`, `${field}.type`);
  }
}

function imagePart(part: JsonObject, field: string): MediaPart {
  const detail = textOf(objectOf(part['image_url'])?.['detail']) ?? textOf(part['detail']);
  return { kind: 'image', source: addressAt(part, 'image_url', field), ...(detail === undefined ? {} : { detail }) };
}

/** An image beside the content: in the form of answers, only its URL, or only its base64. */
export function generatedImage(image: unknown, field: string): MediaPart {
  const bytes = typeof image === 'string' ? plainBase64(image) : undefined;
  if (bytes !== undefined && bytes !== '' && !/^[a-z]+:/i.test(bytes))
    return { kind: 'image', source: withField(bytesSource(bytes, 'image/png'), field) };
  const holder = typeof image === 'string' ? { image_url: image } : image;
  if (!isObject(holder)) throw invalid(`The field "${field}" must be an object.`, field);
  const { source } = imagePart(holder, field);
  return { kind: 'image', source: withField(source, field) };
}

/** `{url}` or a bare string: an http URL, a data URL, or a reference into a vendor's file store. */
function addressAt(part: JsonObject, name: string, field: string): Source {
  const isBare = typeof part[name] === 'string';
  const at = isBare ? `${field}.${name}` : `${field}.${name}.url`;
  const url = textOf(isBare ? part[name] : objectOf(part[name])?.['url']);
  if (url === undefined) throw invalid(`The field "${at}" must be a string.`, at);
  const source = urlSource(url);
  if (source.form === 'url' && !/^[a-z][a-z0-9+.-]*:\/\//i.test(url))
    throw invalid(`The field "${at}" must be an address or a data URL that can be read.`, at);
  return source;
}

function audioPart(part: JsonObject, field: string): MediaPart {
  const audio = objectOf(part['input_audio']) ?? {};
  const data = textAt(audio, 'data', `${field}.input_audio`);
  const format = textOf(audio['format']) ?? 'wav';
  const source = urlSource(data);
  if (source.form === 'bytes') return { kind: 'audio', source };
  return { kind: 'audio', source: bytesSource(data, mediaTypeOfName(format) ?? `audio/${format}`) };
}

function filePart(part: JsonObject, field: string): MediaPart {
  const isNested = isObject(part['file']);
  const file = isNested ? (part['file'] as JsonObject) : part;
  const at = isNested ? `${field}.file` : field;
  const name = textOf(file['filename']);
  const data = textOf(file['file_data']);
  const url = textOf(file['file_url']);
  const id = textOf(file['file_id']);
  const named = name === undefined ? {} : { name };
  if (id !== undefined && data === undefined) return { kind: 'document', source: { form: 'file', id }, ...named };
  if (data === undefined && url === undefined)
    throw invalid(`The field "${at}.file_data" is missing.`, `${at}.file_data`);
  const source = data === undefined ? urlSource(url!) : fileSource(data, name);
  const mediaType = source.form === 'bytes' ? source.mediaType : 'application/pdf';
  return { kind: kindOfMedia(mediaType), source, ...named };
}

/** A data URL, a URL, or bare base64 with the type only in the file name. */
function fileSource(data: string, name: string | undefined): Source {
  const source = urlSource(data);
  if (source.form === 'bytes' || /^https?:\/\//i.test(data)) return source;
  return bytesSource(data, name === undefined ? undefined : mediaTypeOfName(name));
}

/** An image or document with a `source`, as in the messages protocol. */
function sourcePart(part: JsonObject, field: string): MediaPart {
  const kind = part['type'] as 'image' | 'document';
  const source = objectOf(part['source']) ?? {};
  const name = textOf(part['title']);
  const named = name === undefined ? {} : { name };
  switch (source['type']) {
    case 'base64': {
      const read = bytesSource(textAt(source, 'data', `${field}.source`), textOf(source['media_type']));
      return { kind, source: read, ...named };
    }
    case 'url':
      return { kind, source: urlSource(textAt(source, 'url', `${field}.source`)), ...named };
    case 'text':
      return { kind, source: { form: 'text', text: textAt(source, 'data', `${field}.source`) }, ...named };
    default:
      throw invalid(`The field "${field}.source" must hold base64, url or text.`, `${field}.source`);
  }
}

function toolResult(part: JsonObject, field: string, context: DecodeContext): ToolResultPart {
  return {
    kind: 'tool-result',
    callId: textOf(part['tool_use_id']) ?? '',
    parts: decodeResult(part['content'], `${field}.content`, context),
    ...(part['is_error'] === true ? { isError: true } : {}),
  };
}

/** A tool's output: text, parts, or any other JSON, which is passed on as text. */
export function decodeResult(content: unknown, field: string, context: DecodeContext): (TextPart | MediaPart)[] {
  const isParts = Array.isArray(content) && content.every((part) => typeof objectOf(part)?.['type'] === 'string');
  if (typeof content === 'object' && content !== null && !isParts)
    return [{ kind: 'text', text: JSON.stringify(content) }];
  if (typeof content === 'number' || typeof content === 'boolean') return [{ kind: 'text', text: String(content) }];
  return listOf(isParts ? content : [content]).flatMap((part, index) => {
    if (part === undefined || part === null || part === '') return [];
    if (typeof part === 'string') return [{ kind: 'text', text: part } as const];
    return resultPart(part as JsonObject, `${field}[${index}]`, context);
  });
}

const resultTypes = ['text', 'input_text', 'image_url', 'input_image', 'input_audio', 'file', 'image', 'document'];

function resultPart(part: JsonObject, field: string, context: DecodeContext): (TextPart | MediaPart)[] {
  if (!resultTypes.includes(part['type'] as string)) return [{ kind: 'text', text: JSON.stringify(part) }];
  return decodePart(part, field, context) as (TextPart | MediaPart)[];
}

/** Both spellings of a cache mark. */
export function cacheMark(holder: JsonObject): CacheMark | undefined {
  const mark = objectOf(holder['cache_control']) ?? objectOf(holder['prompt_cache_breakpoint']);
  if (mark === undefined) return undefined;
  return mark['ttl'] === '1h' || mark['ttl'] === '12h' || mark['ttl'] === '24h' ? 'long' : 'short';
}

/** Throws invalid_request unless it is a string; it may be empty. */
function textAt(holder: JsonObject, name: string, field: string): string {
  const value = holder[name];
  if (typeof value === 'string') return value;
  throw invalid(`The field "${field}.${name}" must be a string.`, `${field}.${name}`);
}
