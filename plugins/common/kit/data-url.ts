/** Data URLs and base64 however they are written, and what they hold by content. Pure. */
import { plainMediaType } from './media-types.ts';
import { sniffBytes } from './sniff.ts';

/** Enough base64 for every signature that is looked for. */
const headLength = 88;

/**
 * What a data URL holds, in any letter case, with parameters, without padding, with percent signs or white space; also
 * bare base64 with a recognized content. undefined: neither of them. The type is the declared one.
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

/** Longer texts are looked at natively first: an expression takes milliseconds for a megabyte. */
const longTextLength = 64 * 1024;

/** Characters of base64 that are decoded at once, into bytes that are used again. */
const pieceLength = 64 * 1024;
const scratch = Buffer.allocUnsafeSlow((pieceLength / 4) * 3);

/** Whether it is base64 in the standard alphabet, with its padding: nothing is left out when it is decoded. */
function isPlain(text: string): boolean {
  if (text.length % 4 !== 0 || text.includes('-') || text.includes('_')) return false;
  for (let at = 0; at < text.length; at += pieceLength) {
    const piece = text.slice(at, at + pieceLength);
    const isLast = at + pieceLength >= text.length;
    const padding = !isLast ? 0 : piece.endsWith('==') ? 2 : piece.endsWith('=') ? 1 : 0;
    if (scratch.write(piece, 'base64') !== (piece.length / 4) * 3 - padding) return false;
  }
  return true;
}

/** The standard alphabet with padding; undefined for other texts. */
export function plainBase64(text: string): string | undefined {
  if (text.length > longTextLength && isPlain(text)) return text;
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
  const text = decoded(content);
  return text === undefined ? undefined : Buffer.from(text, 'utf8').toString('base64');
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The media type by the first bytes; undefined: not known. */
export function sniffMediaType(base64: string): string | undefined {
  return sniffBytes(Buffer.from(base64.slice(0, headLength), 'base64'));
}
