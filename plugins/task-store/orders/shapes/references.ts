/** Parses references: an address, a data URL or bare base64, with the type sniffed from the content. Pure. */

import { invalid } from '../../../../core/json/request-body.ts';
import { parseDataUrl, sniffMediaType } from '../../../common/kit/data-url.ts';
import { kindOfMedia } from '../../../common/kit/media-types.ts';
import type { Reference } from '../../../common/media/adapters.ts';
import { isWebAddress } from './fields.ts';

/** Limit of one decoded reference in a body. */
const mostBytes = 20 * 2 ** 20;

/** Throws invalid_request that names `field`. */
export function readImage(value: unknown, field: string, role: Reference['role'] = 'image'): Reference {
  if (typeof value !== 'string' || value === '') throw invalid(`The field "${field}" must be a URL or base64.`, field);
  if (isWebAddress(value)) return { role, field, source: { url: value } };
  const inline = /^(?!data:)[a-z][a-z0-9+.-]*:/i.test(value) ? undefined : parseDataUrl(value);
  if (inline === undefined)
    throw invalid(`The field "${field}" must be an http or https URL, or an image as base64.`, field);
  const { base64 } = inline;
  const mediaType = imageTypeOf(base64, field);
  if (mediaType === undefined) throw invalid(`The field "${field}" holds no image of a known type.`, field);
  return { role, field, source: { base64, mediaType } };
}

/** A file uploaded in a form. Throws invalid_request that names `field`. */
export function readImageFile(bytes: Buffer, field: string, role: Reference['role'] = 'image'): Reference {
  if (bytes.length === 0) throw invalid(`The file in "${field}" is empty.`, field);
  const base64 = bytes.toString('base64');
  const mediaType = imageTypeOf(base64, field);
  if (mediaType !== undefined) return { role, field, source: { base64, mediaType } };
  throw invalid(`The file in "${field}" is not an image of a known type, such as PNG, JPEG or WebP.`, field);
}

/** The type by the content; undefined: no image. */
function imageTypeOf(base64: string, field: string): string | undefined {
  if ((base64.length / 4) * 3 > mostBytes)
    throw invalid(`The image in "${field}" must not be larger than ${mostBytes / 2 ** 20} MiB.`, field);
  const mediaType = sniffMediaType(base64);
  return mediaType !== undefined && kindOfMedia(mediaType) === 'image' ? mediaType : undefined;
}

/** The address of a video or sound; the body never holds its bytes. */
export function readAddress(value: unknown, field: string, role: Reference['role']): Reference {
  if (typeof value === 'string' && isWebAddress(value)) return { role, field, source: { url: value } };
  throw invalid(`The field "${field}" must be an http or https URL.`, field);
}
