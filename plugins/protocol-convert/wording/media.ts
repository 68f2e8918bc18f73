/** Media by its content: what kind of bytes they are, and data URLs however they are written. Pure. */
import type { MediaPart, Source } from '../canon.ts';
import { sniffBytes } from './sniff.ts';

/** Other names of media types, and bare formats as some protocols word them. */
const aliases: Readonly<Record<string, string>> = {
  'image/jpg': 'image/jpeg',
  'image/pjpeg': 'image/jpeg',
  'image/x-png': 'image/png',
  'audio/mp3': 'audio/mpeg',
  'audio/x-mp3': 'audio/mpeg',
  'audio/mpeg3': 'audio/mpeg',
  'audio/x-wav': 'audio/wav',
  'audio/wave': 'audio/wav',
  'audio/vnd.wave': 'audio/wav',
  'audio/x-flac': 'audio/flac',
  'audio/m4a': 'audio/mp4',
  'audio/x-m4a': 'audio/mp4',
  'application/x-pdf': 'application/pdf',
};

const typesByExtension: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  bmp: 'image/bmp',
  heic: 'image/heic',
  heif: 'image/heif',
  avif: 'image/avif',
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  json: 'application/json',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  flac: 'audio/flac',
  ogg: 'audio/ogg',
  opus: 'audio/opus',
  aac: 'audio/aac',
  m4a: 'audio/mp4',
  mp4: 'video/mp4',
  mov: 'video/quicktime',
  webm: 'video/webm',
  mpeg: 'video/mpeg',
  pcm16: 'audio/pcm',
};

/** Enough base64 for every signature that is looked for. */
const headLength = 64;

/** Lower-case, without parameters, under its usual name; undefined for what is no media type. */
export function plainMediaType(declared: string | undefined): string | undefined {
  const [bare = ''] = (declared ?? '')
    .toLowerCase()
    .split(';', 1)
    .map((text) => text.trim());
  if (!/^[\w.+-]+\/[\w.+-]+$/.test(bare)) return undefined;
  return aliases[bare] ?? bare;
}

/** Of a format (`mp3`) or a file's or URL's ending, whatever query follows; undefined: not known. */
export function mediaTypeOfName(name: string): string | undefined {
  const path = name.split(/[?#]/, 1)[0]!;
  const ending = path.slice(Math.max(path.lastIndexOf('.'), path.lastIndexOf('/')) + 1).toLowerCase();
  return Object.hasOwn(typesByExtension, ending) ? typesByExtension[ending] : undefined;
}

/** The format name of a sound where chat has one. */
export function audioFormat(mediaType: string): 'mp3' | 'wav' | undefined {
  if (mediaType === 'audio/mpeg') return 'mp3';
  return mediaType === 'audio/wav' ? 'wav' : undefined;
}

/**
 * What a data URL holds, in any letter case, with parameters, without padding, with percent signs or white space; also
 * bare base64 whose content says what it is. undefined: neither of them. The type is the declared one.
 */
export function parseDataUrl(url: string): { mediaType: string; base64: string } | undefined {
  if (url.slice(0, 5).toLowerCase() !== 'data:') return parseBareBase64(url);
  const comma = url.indexOf(',');
  if (comma === -1) return undefined;
  const head = url.slice(5, comma);
  const content = url.slice(comma + 1);
  const isBase64 = /;\s*base64\s*$/i.test(head);
  const base64 = isBase64 ? plainBase64(content) : encoded(content);
  if (base64 === undefined) return undefined;
  const mediaType = plainMediaType(head) ?? sniffMediaType(base64) ?? (isBase64 ? undefined : 'text/plain');
  return { mediaType: mediaType ?? 'application/octet-stream', base64 };
}

function parseBareBase64(text: string): { mediaType: string; base64: string } | undefined {
  if (!/^\s*[A-Za-z0-9+/_-]{16}/.test(text.slice(0, headLength))) return undefined;
  const mediaType = sniffMediaType(text.slice(0, 2 * headLength).replace(/\s+/g, ''));
  const base64 = mediaType === undefined ? undefined : plainBase64(text);
  return mediaType === undefined || base64 === undefined ? undefined : { mediaType, base64 };
}

/** The standard alphabet with padding; undefined for what is no base64. */
export function plainBase64(text: string): string | undefined {
  let plain = text;
  if (/[^A-Za-z0-9+/=]/.test(plain)) {
    plain = plain.includes('%') ? (decoded(plain) ?? plain) : plain;
    plain = plain.replace(/\s+/g, '').replaceAll('-', '+').replaceAll('_', '/');
  }
  const end = plain.indexOf('=');
  const bare = end === -1 ? plain : plain.slice(0, end);
  if (/[^A-Za-z0-9+/]/.test(bare) || bare.length % 4 === 1) return undefined;
  if (end !== -1 && !/^=+$/.test(plain.slice(end))) return undefined;
  return bare + '='.repeat((4 - (bare.length % 4)) % 4);
}

function encoded(content: string): string | undefined {
  const words = decoded(content);
  return words === undefined ? undefined : Buffer.from(words, 'utf8').toString('base64');
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The media type that the first bytes tell; undefined: they tell none. */
export function sniffMediaType(base64: string): string | undefined {
  return sniffBytes(Buffer.from(base64.slice(0, headLength), 'base64'));
}

/** Bytes under the type that their content tells, else under the declared one. */
export function bytesSource(base64: string, declaredType: string | undefined): Source & { readonly form: 'bytes' } {
  const plain = plainBase64(base64) ?? base64;
  return { form: 'bytes', mediaType: truerType(sniffMediaType(plain), declaredType), base64: plain };
}

/** Content beats declaration, except that a container which may hold sound alone is what it is called. */
export function truerType(sniffed: string | undefined, declaredType: string | undefined): string {
  const declared = plainMediaType(declaredType);
  if (sniffed === undefined) return declared ?? 'application/octet-stream';
  const isContainer = sniffed === 'video/mp4' || sniffed === 'video/webm' || sniffed === 'audio/ogg';
  return isContainer && declared?.split('/')[1] === sniffed.split('/')[1] ? declared! : sniffed;
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

export function kindOfMedia(mediaType: string): MediaPart['kind'] {
  const family = mediaType.split('/', 1)[0];
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'document';
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
