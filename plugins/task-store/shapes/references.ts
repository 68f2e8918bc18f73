/** Reads what a client shows: an address, a data URL or bare base64, whose content says what it is. Pure. */
import { invalid } from '../../../core/request-body.ts';
import type { Reference } from '../contract.ts';
import { isWebAddress } from './fields.ts';

/** Of one reference in a body, decoded. */
const mostBytes = 20 * 2 ** 20;

/** How the first bytes of each kind of image look, as hexadecimal digits; dots stand for any. */
const beginnings: readonly (readonly [RegExp, string])[] = [
  [/^89504e470d0a1a0a/, 'image/png'],
  [/^ffd8ff/, 'image/jpeg'],
  [/^474946383[79]61/, 'image/gif'],
  [/^52494646.{8}57454250/, 'image/webp'],
  [/^424d/, 'image/bmp'],
  [/^(?:49492a00|4d4d002a)/, 'image/tiff'],
  [/^.{8}66747970(?:68656963|68656978|6d696631|6d736631)/, 'image/heic'],
  [/^.{8}6674797061766966/, 'image/avif'],
];

/** Throws invalid_request that names `field`. */
export function readImage(value: unknown, field: string, role: Reference['role'] = 'image'): Reference {
  if (typeof value !== 'string' || value === '') throw invalid(`The field "${field}" must be a URL or base64.`, field);
  if (isWebAddress(value)) return { role, field, source: { url: value } };
  const base64 = base64Of(value);
  if (base64 === undefined)
    throw invalid(`The field "${field}" must be an http or https URL, or an image as base64.`, field);
  if ((base64.length / 4) * 3 > mostBytes)
    throw invalid(`The image in "${field}" must not be larger than ${mostBytes / 2 ** 20} MiB.`, field);
  const mediaType = typeOf(base64);
  if (mediaType === undefined) throw invalid(`The field "${field}" holds no image of a known type.`, field);
  return { role, field, source: { base64, mediaType } };
}

/** Of a video or a sound, which is never in the body. */
export function readAddress(value: unknown, field: string, role: Reference['role']): Reference {
  if (typeof value === 'string' && isWebAddress(value)) return { role, field, source: { url: value } };
  throw invalid(`The field "${field}" must be an http or https URL.`, field);
}

const dataUrl = /^data:[^,;]{0,100}(?:;[^,;]{1,100}){0,5};base64,/i;

/** Digits without line breaks, or undefined for anything else. */
function base64Of(text: string): string | undefined {
  const head = dataUrl.exec(text.slice(0, 1_000))?.[0].length ?? 0;
  if (head === 0 && /^[a-z][a-z0-9+.-]*:/i.test(text)) return undefined;
  const digits = text.slice(head).replace(/[\r\n]/g, '');
  return digits !== '' && digits.length % 4 !== 1 && /^[A-Za-z0-9+/]+={0,2}$/.test(digits) ? digits : undefined;
}

function typeOf(base64: string): string | undefined {
  const hex = Buffer.from(base64.slice(0, 24), 'base64').toString('hex');
  return beginnings.find(([pattern]) => pattern.test(hex))?.[1];
}
