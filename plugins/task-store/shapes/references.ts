/** Reads what a client shows: an address, a data URL or bare base64, whose content says what it is. Pure. */
import { parseDataUrl, sniffMediaType } from '../../../core/data-url.ts';
import { kindOfMedia } from '../../../core/media-types.ts';
import { invalid } from '../../../core/request-body.ts';
import type { Reference } from '../contract.ts';
import { isWebAddress } from './fields.ts';

/** Of one reference in a body, decoded. */
const mostBytes = 20 * 2 ** 20;

/** Throws invalid_request that names `field`. */
export function readImage(value: unknown, field: string, role: Reference['role'] = 'image'): Reference {
  if (typeof value !== 'string' || value === '') throw invalid(`The field "${field}" must be a URL or base64.`, field);
  if (isWebAddress(value)) return { role, field, source: { url: value } };
  const inline = /^(?!data:)[a-z][a-z0-9+.-]*:/i.test(value) ? undefined : parseDataUrl(value);
  if (inline === undefined)
    throw invalid(`The field "${field}" must be an http or https URL, or an image as base64.`, field);
  const { base64 } = inline;
  if ((base64.length / 4) * 3 > mostBytes)
    throw invalid(`The image in "${field}" must not be larger than ${mostBytes / 2 ** 20} MiB.`, field);
  const mediaType = sniffMediaType(base64);
  if (mediaType === undefined || kindOfMedia(mediaType) !== 'image')
    throw invalid(`The field "${field}" holds no image of a known type.`, field);
  return { role, field, source: { base64, mediaType } };
}

/** Of a video or a sound, which is never in the body. */
export function readAddress(value: unknown, field: string, role: Reference['role']): Reference {
  if (typeof value === 'string' && isWebAddress(value)) return { role, field, source: { url: value } };
  throw invalid(`The field "${field}" must be an http or https URL.`, field);
}
