/** Encodes parts as chat content, as far as the upstream accepts them. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { CacheMark, MediaPart, TextPart } from '../../../../common/canonical/prompt.ts';
import { audioFormat, dataUrl, fieldOf, plainText, storeScheme } from '../../../../common/encoding/media.ts';

const kindNames = { image: 'images', document: 'documents', audio: 'sounds', video: 'films' } as const;
/** Media types that the official protocol carries. */
const officialKinds: readonly MediaPart['kind'][] = ['image', 'document', 'audio'];

/** A cache mark, if the upstream accepts one. */
export function cacheMember(cache: CacheMark | undefined, { traits, dropped }: EncodeContext): JsonObject {
  if (cache === undefined) return {};
  if (traits.cache_marks !== true) {
    dropped.drop('cacheMarks');
    return {};
  }
  const isLong = cache === 'long';
  return traits.cache_mark_field === 'cache_control'
    ? { cache_control: { type: 'ephemeral', ...(isLong ? { ttl: '1h' } : {}) } }
    : { prompt_cache_breakpoint: { mode: 'explicit', ...(isLong ? { ttl: '12h' } : {}) } };
}

export function textPart({ text, cache }: Pick<TextPart, 'text' | 'cache'>, context: EncodeContext): JsonObject {
  return { type: 'text', text, ...cacheMember(cache, context) };
}

/** Whether the model accepts the medium; text documents are sent as text. */
export function canTake(part: MediaPart, { traits }: EncodeContext): boolean {
  if (part.source.form === 'file' && !isInReach(part.source.id, traits)) return false;
  if (part.kind === 'document' && plainText(part.source) !== undefined) return true;
  return (traits.inputs ?? officialKinds).includes(part.kind);
}

/** Refuses media that the model does not accept: ignoring them would change the answer. */
export function mediaParts(part: MediaPart, context: EncodeContext): JsonObject[] {
  const { dropped } = context;
  const { kind } = part;
  const source = inReach(part.source, context);
  if (source.form === 'file') dropped.refuse('file', 'cannot read files that another service keeps', fieldOf(source));
  if (!canTake(part, context)) dropped.refuse(kind, `takes no ${kindNames[kind]}`, fieldOf(source));
  if (part.citations === true) dropped.drop('documentCitations');
  const about = part.context === undefined ? [] : [textPart({ text: part.context }, context)];
  return [...about, { ...mediaPart({ ...part, source }, context), ...cacheMember(part.cache, context) }];
}

/** Whether the vendor can read the file store of this URL. */
function isInReach(id: string, { file_stores: stores = [] }: EncodeContext['traits']): boolean {
  const scheme = storeScheme(id);
  return scheme !== undefined && stores.includes(scheme);
}

/** A URL in a store that the vendor reads is treated like any other URL. */
function inReach(source: MediaPart['source'], { traits }: EncodeContext): MediaPart['source'] {
  return source.form === 'file' && isInReach(source.id, traits) ? { form: 'url', url: source.id } : source;
}

function mediaPart(part: MediaPart, context: EncodeContext): JsonObject {
  const { kind, source, detail } = part;
  if (source.form === 'file') return {};
  switch (kind) {
    case 'image':
      return {
        type: 'image_url',
        image_url: { url: dataUrl(source), ...(detail === undefined ? {} : { detail }) },
      };
    case 'video':
      return { type: 'video_url', video_url: { url: dataUrl(source) } };
    case 'audio':
      return audioPart(part, context);
    case 'document':
      return documentPart(part, context);
  }
}

function audioPart({ source }: MediaPart, { dropped }: EncodeContext): JsonObject {
  const format = source.form === 'bytes' ? audioFormat(source.mediaType) : undefined;
  if (source.form !== 'bytes' || format === undefined)
    return dropped.refuse('audio', 'takes sounds as wav and mp3 alone', fieldOf(source));
  return { type: 'input_audio', input_audio: { data: source.base64, format } };
}

function documentPart({ source, name }: MediaPart, { dropped }: EncodeContext): JsonObject {
  const text = plainText(source);
  if (text !== undefined) return { type: 'text', text: name === undefined ? text : `${name}:\n\n${text}` };
  if (source.form !== 'bytes') return dropped.refuse('document', 'takes documents by content alone', fieldOf(source));
  const type = source.mediaType.split('/')[1] ?? 'pdf';
  const filename = name === undefined ? `document.${type}` : name.includes('.') ? name : `${name}.${type}`;
  return { type: 'file', file: { filename, file_data: dataUrl(source) } };
}
