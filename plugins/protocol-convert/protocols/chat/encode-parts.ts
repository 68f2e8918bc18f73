/** Words parts as chat content, as far as the upstream can take them. */
import type { CacheMark, MediaPart, TextPart } from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { audioFormat, dataUrl, placeOf, plainText } from '../../wording/media.ts';

const kindNames = { image: 'images', document: 'documents', audio: 'sounds', video: 'films' } as const;
/** What the protocol officially carries. */
const officialKinds: readonly MediaPart['kind'][] = ['image', 'document', 'audio'];

/** A mark to cache, where the upstream takes one. */
export function cacheMember(cache: CacheMark | undefined, { traits, losses }: EncodeContext): JsonObject {
  if (cache === undefined) return {};
  if (traits.cache_marks !== true) {
    losses.drop('cacheMarks');
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

/** Whether the model can see or hear it; documents of text go as text. */
export function canTake(part: MediaPart, { traits }: EncodeContext): boolean {
  if (part.source.form === 'file') return false;
  if (part.kind === 'document' && plainText(part.source) !== undefined) return true;
  return (traits.inputs ?? officialKinds).includes(part.kind);
}

/** Refuses what the model cannot see or hear: an answer that ignores it would be another answer. */
export function mediaParts(part: MediaPart, context: EncodeContext): JsonObject[] {
  const { losses } = context;
  const { kind, source } = part;
  if (source.form === 'file') losses.refuse('file', 'cannot read files that another service keeps', placeOf(source));
  if (!canTake(part, context)) losses.refuse(kind, `takes no ${kindNames[kind]}`, placeOf(source));
  if (part.citations === true) losses.drop('documentCitations');
  const about = part.context === undefined ? [] : [textPart({ text: part.context }, context)];
  return [...about, { ...mediaPart(part, context), ...cacheMember(part.cache, context) }];
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

function audioPart({ source }: MediaPart, { losses }: EncodeContext): JsonObject {
  const format = source.form === 'bytes' ? audioFormat(source.mediaType) : undefined;
  if (source.form !== 'bytes' || format === undefined)
    return losses.refuse('audio', 'takes sounds as wav and mp3 alone', placeOf(source));
  return { type: 'input_audio', input_audio: { data: source.base64, format } };
}

function documentPart({ source, name }: MediaPart, { losses }: EncodeContext): JsonObject {
  const text = plainText(source);
  if (text !== undefined) return { type: 'text', text: name === undefined ? text : `${name}:\n\n${text}` };
  if (source.form !== 'bytes') return losses.refuse('document', 'takes documents by content alone', placeOf(source));
  const type = source.mediaType.split('/')[1] ?? 'pdf';
  const filename = name === undefined ? `document.${type}` : name.includes('.') ? name : `${name}.${type}`;
  return { type: 'file', file: { filename, file_data: dataUrl(source) } };
}
