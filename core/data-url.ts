/** Data URLs and base64 however they are written, and what they hold by content. Pure. */
import { plainMediaType } from './media-types.ts';
import { sniffBytes } from './sniff.ts';

/** Enough base64 for every signature that is looked for. */
const headLength = 88;

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
