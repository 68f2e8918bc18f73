/** Media as sources of a prompt: bytes under the type that they have, data URLs as bytes. Pure. */
import { parseDataUrl, plainBase64, sniffMediaType } from '../../../core/data-url.ts';
import { mediaTypeOfName, plainMediaType, truerType } from '../../../core/media-types.ts';
import type { Source } from '../canon.ts';

export { parseDataUrl, plainBase64, sniffMediaType } from '../../../core/data-url.ts';
export { kindOfMedia, mediaTypeOfName, plainMediaType, truerType } from '../../../core/media-types.ts';

/** The format name of a sound where chat has one. */
export function audioFormat(mediaType: string): 'mp3' | 'wav' | undefined {
  if (mediaType === 'audio/mpeg') return 'mp3';
  return mediaType === 'audio/wav' ? 'wav' : undefined;
}

/** Bytes under the type that their content tells, else under the declared one. */
export function bytesSource(base64: string, declaredType: string | undefined): Source & { readonly form: 'bytes' } {
  const plain = plainBase64(base64) ?? base64;
  return { form: 'bytes', mediaType: truerType(sniffMediaType(plain), declaredType), base64: plain };
}

/** Pages and stores behind whose addresses no file lies, but for the vendor of the generate-content protocol. */
const keptHosts = new Set([
  ...['www.youtube.com', 'youtube.com', 'm.youtube.com', 'youtu.be'],
  'generativelanguage.googleapis.com',
]);

/**
 * Data URLs become bytes; other addresses stay, with a type where it is told or where their ending tells it. What no
 * client can fetch is a vendor's file.
 */
export function urlSource(url: string, declaredType?: string): Source {
  const data = parseDataUrl(url);
  if (data !== undefined) return bytesSource(data.base64, declaredType ?? data.mediaType);
  const mediaType = plainMediaType(declaredType) ?? mediaTypeOfName(url);
  const host = URL.parse(url)?.host ?? '';
  if (keptHosts.has(host)) {
    const kept = declaredType ?? (host.includes('youtu') ? 'video/*' : undefined);
    return { form: 'file', id: url, ...(kept === undefined ? {} : { mediaType: kept }) };
  }
  return mediaType === undefined ? { form: 'url', url } : { form: 'url', url, mediaType };
}

/** The source as an address: a data URL of what is here, or its own. A vendor's file has none. */
export function dataUrl(source: Exclude<Source, { form: 'file' }>): string {
  if (source.form === 'url') return source.url;
  if (source.form === 'text') return `data:text/plain;base64,${Buffer.from(source.text, 'utf8').toString('base64')}`;
  return `data:${source.mediaType};base64,${source.base64}`;
}

/** The words of a document that is text, given as such or as bytes; undefined for any other. */
export function plainText(source: Source): string | undefined {
  if (source.form === 'text') return source.text;
  if (source.form !== 'bytes' || !source.mediaType.startsWith('text/')) return undefined;
  return Buffer.from(source.base64, 'base64').toString('utf8');
}

/** A file's name as a title that every upstream takes: without ending, only letters, digits, spaces, `-`, `(`, `)`, `[`, `]`. */
export function documentTitle(name: string): string {
  const bare = name.replace(/\.[A-Za-z0-9]{1,8}$/, '');
  const plain = bare.replace(/[^\p{L}\p{N}\s()[\]-]+/gu, ' ').replace(/\s+/g, ' ');
  return plain.trim().slice(0, 200) || 'document';
}

const places = new WeakMap<Source, string>();

/** The same source, of which is known how its client calls the field that it stands in: refusals name it. */
export function placed<S extends Source>(source: S, field: string): S {
  places.set(source, field);
  return source;
}

/** As `placed` was told; undefined: unknown. */
export function placeOf(source: Source): string | undefined {
  return places.get(source);
}
