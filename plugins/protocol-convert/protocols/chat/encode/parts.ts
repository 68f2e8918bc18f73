/** Encodes parts as chat content, as far as the upstream accepts them. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { CacheMark, MediaPart, TextPart } from '../../../../common/canonical/prompt.ts';
import { audioFormat, dataUrl, plainText, storeScheme } from '../../../../common/encoding/media.ts';

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

/** Why the model does not accept the medium; text documents are sent as text. */
export function problemOf(part: MediaPart, context: EncodeContext): string | undefined {
  const { kind } = part;
  const source = inReach(part.source, context);
  if (source.form === 'file') return 'cannot read files that another service keeps';
  if (kind === 'document' && plainText(source) !== undefined) return undefined;
  if (!(context.traits.inputs ?? officialKinds).includes(kind)) return `takes no ${kindNames[kind]}`;
  if (kind === 'audio' && formatOf(source) === undefined) return 'takes sounds as wav and mp3 alone';
  return kind === 'document' && source.form !== 'bytes' ? 'takes documents by content alone' : undefined;
}

/** Parts for a medium that the model accepts. */
export function mediaParts(part: MediaPart, context: EncodeContext): JsonObject[] {
  if (part.citations === true) context.dropped.drop('documentCitations');
  const about = part.context === undefined ? [] : [textPart({ text: part.context }, context)];
  const source = inReach(part.source, context);
  return [...about, { ...mediaPart({ ...part, source }), ...cacheMember(part.cache, context) }];
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

function mediaPart(part: MediaPart): JsonObject {
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
      return { type: 'input_audio', input_audio: { data: base64Of(source), format: formatOf(source) } };
    case 'document':
      return documentPart(part);
  }
}

function formatOf(source: MediaPart['source']): string | undefined {
  return source.form === 'bytes' ? audioFormat(source.mediaType) : undefined;
}

function base64Of(source: MediaPart['source']): string {
  return source.form === 'bytes' ? source.base64 : '';
}

function documentPart({ source, name }: MediaPart): JsonObject {
  const text = plainText(source);
  if (text !== undefined) return { type: 'text', text: name === undefined ? text : `${name}:\n\n${text}` };
  if (source.form !== 'bytes') return {};
  const type = source.mediaType.split('/')[1] ?? 'pdf';
  const filename = name === undefined ? `document.${type}` : name.includes('.') ? name : `${name}.${type}`;
  return { type: 'file', file: { filename, file_data: dataUrl(source) } };
}
