/** Media sources of a prompt: bytes with their detected type, data URLs as bytes. Pure. */

import type { MediaPart, Part, Source } from '../canonical/prompt.ts';
import { parseDataUrl, plainBase64, sniffMediaType } from '../kit/data-url.ts';
import { mediaTypeOfName, plainMediaType, truerType } from '../kit/media-types.ts';

export { parseDataUrl, sniffMediaType } from '../kit/data-url.ts';
export { kindOfMedia, mediaTypeOfName, plainMediaType, truerType } from '../kit/media-types.ts';

/** Whether the part is an image, a sound, a video or a document. */
export function isMedia(part: Part): part is MediaPart {
  return 'source' in part;
}

/** The format name of audio where chat has one. */
export function audioFormat(mediaType: string): 'mp3' | 'wav' | undefined {
  if (mediaType === 'audio/mpeg') return 'mp3';
  return mediaType === 'audio/wav' ? 'wav' : undefined;
}

/** Bytes with the type detected from their content, else with the declared one. */
export function bytesSource(base64: string, declaredType: string | undefined): BytesSource {
  return plainSource(plainBase64(base64) ?? base64, declaredType);
}

type BytesSource = Source & { readonly form: 'bytes' };

function plainSource(base64: string, declaredType: string | undefined): BytesSource {
  return { form: 'bytes', mediaType: truerType(sniffMediaType(base64), declaredType), base64 };
}

/** Pages and stores without a file behind their addresses, except for the vendor of the generate-content protocol. */
const keptHosts = new Set([
  ...['www.youtube.com', 'youtube.com', 'm.youtube.com', 'youtu.be'],
  'generativelanguage.googleapis.com',
]);

/** Schemes of stores that need an account: only vendors with access can read from them. */
const storeSchemes = new Set(['gs', 's3']);

/** The scheme of an address in such a store. */
export function storeScheme(url: string): string | undefined {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase();
  return scheme !== undefined && storeSchemes.has(scheme) ? scheme : undefined;
}

/** A medium in a request. An address in a vendor's store is that vendor's file. */
export function urlSource(url: string, declaredType?: string): Source {
  const source = answeredSource(url, declaredType);
  if (source.form !== 'url' || storeScheme(url) === undefined) return source;
  const { mediaType } = source;
  return { form: 'file', id: url, ...(mediaType === undefined ? {} : { mediaType }) };
}

/**
 * Data URLs become bytes; other addresses stay, with a type from the declaration or the file extension. An address
 * that no client can fetch is a vendor's file.
 */
export function answeredSource(url: string, declaredType?: string): Source {
  const data = parseDataUrl(url);
  if (data !== undefined) return plainSource(data.base64, declaredType ?? data.mediaType);
  const mediaType = plainMediaType(declaredType) ?? mediaTypeOfName(url);
  const host = URL.parse(url)?.host ?? '';
  if (keptHosts.has(host)) {
    const kept = declaredType ?? (host.includes('youtu') ? 'video/*' : undefined);
    return { form: 'file', id: url, ...(kept === undefined ? {} : { mediaType: kept }) };
  }
  return mediaType === undefined ? { form: 'url', url } : { form: 'url', url, mediaType };
}

/** The source as an address: a data URL of the bytes, or its own URL. A vendor's file has none. */
export function dataUrl(source: Exclude<Source, { form: 'file' }>): string {
  if (source.form === 'url') return source.url;
  if (source.form === 'text') return `data:text/plain;base64,${Buffer.from(source.text, 'utf8').toString('base64')}`;
  return `data:${source.mediaType};base64,${source.base64}`;
}

/** Media of an answer as a text: a markdown image or link. */
export function mediaLink({ kind, name, source }: MediaPart): string {
  if (source.form === 'text') return source.text;
  const url = source.form === 'file' ? source.id : dataUrl(source);
  return `${kind === 'image' ? '!' : ''}[${name ?? kind}](${url})`;
}

/** The text of a plain-text document, given as text or as bytes; undefined for any other. */
export function plainText(source: Source): string | undefined {
  if (source.form === 'text') return source.text;
  if (source.form !== 'bytes' || !source.mediaType.startsWith('text/')) return undefined;
  return Buffer.from(source.base64, 'base64').toString('utf8');
}

/**
 * A file name as a title that every upstream accepts: without extension, only letters, digits, spaces, `-`, `(`, `)`,
 * `[`, `]`.
 */
export function documentTitle(name: string): string {
  const bare = name.replace(/\.[A-Za-z0-9]{1,8}$/, '');
  const plain = bare.replace(/[^\p{L}\p{N}\s()[\]-]+/gu, ' ').replace(/\s+/g, ' ');
  return plain.trim().slice(0, 200) || 'document';
}

const places = new WeakMap<Source, string>();

/** The same source with the name of its field in the client's request, for error messages. */
export function withField<S extends Source>(source: S, field: string): S {
  places.set(source, field);
  return source;
}

/** The field that `placed` recorded; undefined: unknown. */
export function fieldOf(source: Source): string | undefined {
  return places.get(source);
}
