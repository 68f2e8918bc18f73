/** Media types by the first bytes of a file. Signatures: the formats' own specifications, as in https://mimesniff.spec.whatwg.org. Pure. */
import { table } from '../../../core/contract/table.ts';

/** Bytes in latin1 that a file begins with, and the type. */
const beginnings: readonly (readonly [string, string])[] = [
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['\xff\xd8\xff', 'image/jpeg'],
  ['GIF87a', 'image/gif'],
  ['GIF89a', 'image/gif'],
  ['II*\0', 'image/tiff'],
  ['MM\0*', 'image/tiff'],
  ['%PDF-', 'application/pdf'],
  ['ID3', 'audio/mpeg'],
  ['fLaC', 'audio/flac'],
  ['OggS', 'audio/ogg'],
];

/** By the four letters at 8 of a RIFF file. */
const riffs: Readonly<Record<string, string>> = table({ WEBP: 'image/webp', WAVE: 'audio/wav', 'AVI ': 'video/avi' });

/** By the brand of a file of ISO boxes; others are films. */
const brands: Readonly<Record<string, string>> = table({
  avif: 'image/avif',
  avis: 'image/avif',
  heic: 'image/heic',
  heix: 'image/heic',
  mif1: 'image/heif',
  msf1: 'image/heif',
  'M4A ': 'audio/mp4',
  'M4B ': 'audio/mp4',
  'qt  ': 'video/quicktime',
});

/** Enough of a file for every signature. */
const headBytes = 64;

/** The type that the first bytes (64 are enough) indicate; undefined: not known. */
export function sniffBytes(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, headBytes)).toString('latin1');
  for (const [beginning, type] of beginnings) if (head.startsWith(beginning)) return type;
  if (head.startsWith('RIFF')) return riffs[head.slice(8, 12)];
  if (head.startsWith('FORM') && /^AIF[FC]$/.test(head.slice(8, 12))) return 'audio/aiff';
  // The document's type stands in the first element; where it comes late, the commoner of the two is meant.
  if (head.startsWith('\x1aE\xdf\xa3')) return head.includes('matroska') ? 'video/x-matroska' : 'video/webm';
  if (head.slice(4, 8) === 'ftyp') return brands[head.slice(8, 12)] ?? 'video/mp4';
  // A bitmap's two letters are too few by themselves: its reserved bytes must be zero.
  if (head.startsWith('BM') && head.slice(6, 10) === '\0\0\0\0') return 'image/bmp';
  return frameType(bytes);
}

/** Sounds that begin with a frame: eleven bits set, then version and layer. */
function frameType(bytes: Uint8Array): string | undefined {
  const [first = 0, second = 0, third = 0] = bytes;
  if (first !== 0xff || bytes.length < 3) return undefined;
  if ((second & 0xf6) === 0xf0) return 'audio/aac';
  const hasLayer = (second & 0xe6) === 0xe2;
  const isRate = (third & 0xf0) !== 0xf0 && (third & 0xf0) !== 0 && (third & 0x0c) !== 0x0c;
  return hasLayer && isRate ? 'audio/mpeg' : undefined;
}
