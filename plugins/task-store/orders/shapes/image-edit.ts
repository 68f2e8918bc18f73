/** Parses `POST /v1/images/edits` of the official API: a form with files, or JSON with addresses and base64. Pure. */
import { type JsonObject, objectOf } from '../../../../core/json/json.ts';
import { invalid, readBody } from '../../../../core/json/request-body.ts';
import { boundaryIn, type FormPart, readMultipart } from '../../../common/kit/forms/multipart.ts';
import type { Reference } from '../../../common/media/adapters.ts';
import type { Shape, Submission } from '../../contract.ts';
import { optionalList } from './fields.ts';
import { mostReferences, prefers, submissionOf } from './image-request.ts';
import { imageTask } from './image-task.ts';
import { readImage, readImageFile } from './references.ts';

/** Official clients wait for the images; a client that prefers a task asks for it. */
export const imageEdit: Shape = { ...imageTask, read: readImageEdit };

const single = new Set(['model', 'prompt', 'n', 'size', 'quality', 'images', 'mask', 'response_format', 'stream']);

/** Throws invalid_request that names the field. */
function readImageEdit(bytes: Uint8Array, headers: Readonly<Record<string, string | undefined>>): Submission {
  const boundary = boundaryIn(headers['content-type']);
  const waits = !prefers(headers, 'respond-async');
  if (boundary !== undefined) return readForm(readMultipart(bytes, boundary), waits);
  const { json } = readBody(bytes, single);
  const images = optionalList(json, 'images').map((value, index) => readNamed(value, `images[${index}]`, 'image'));
  const mask = json['mask'] ?? undefined;
  const masks = mask === undefined ? [] : [readNamed(mask, 'mask', 'mask')];
  const fields = { references: 'images', count: 'n', ratio: 'size' };
  const shown = { references: checked(images, masks, 'images'), fields, members: ['images', 'mask'] };
  return submissionOf(json, shown, waits);
}

function checked(images: readonly Reference[], masks: readonly Reference[], field: string): Reference[] {
  if (images.length === 0) throw invalid(`The field "${field}" is missing: at least one image is needed.`, field);
  if (images.length > mostReferences)
    throw invalid(`The field "${field}" may hold at most ${mostReferences} images.`, field);
  return [...images, ...masks];
}

/** `{image_url}`, or an address or base64 as a string. */
function readNamed(value: unknown, field: string, role: 'image' | 'mask'): Reference {
  const named = objectOf(value);
  if (named === undefined) return readImage(value, field, role);
  const { image_url: imageUrl, file_id: fileId } = named;
  if ((fileId ?? undefined) !== undefined && (imageUrl ?? undefined) === undefined)
    throw invalid('Files of a vendor are not known here: use "image_url".', `${field}.file_id`);
  return readImage(objectOf(imageUrl)?.['url'] ?? imageUrl, `${field}.image_url`, role);
}

const imageNames = new Set(['image', 'image[]']);
const numbers = new Set(['n', 'output_compression', 'partial_images']);
const flags = new Set(['stream', 'watermark']);

/** Every member of a form is a text or a file. */
function readForm(parts: readonly FormPart[], waits: boolean): Submission {
  const images: Reference[] = [];
  const masks: Reference[] = [];
  const members = new Map<string, unknown>();
  for (const part of parts) {
    const { name } = part;
    if (imageNames.has(name)) images.push(readPart(part, `image[${images.length}]`, 'image'));
    else if (members.has(name) || (name === 'mask' && masks.length > 0))
      throw invalid(`The field "${name}" is there more than once.`, name);
    else if (name === 'mask') masks.push(readPart(part, 'mask', 'mask'));
    else if (part.filename !== undefined) throw invalid(`The field "${name}" takes no file.`, name);
    else members.set(name, readValue(name, part.bytes.toString('utf8')));
  }
  const json: JsonObject = Object.fromEntries(members);
  const fields = { references: 'image', count: 'n', ratio: 'size' };
  return submissionOf(json, { references: checked(images, masks, 'image'), fields, members: [] }, waits);
}

/** A file's content, or an address or base64 in a text. */
function readPart({ filename, bytes }: FormPart, field: string, role: 'image' | 'mask'): Reference {
  return filename === undefined ? readImage(bytes.toString('utf8'), field, role) : readImageFile(bytes, field, role);
}

/**
 * The value as the JSON form has it; a text that is neither number nor flag stays a text, and is refused by its field
 * name.
 */
function readValue(name: string, text: string): unknown {
  if (numbers.has(name) && /^-?\d{1,9}(?:\.\d{1,9})?$/.test(text)) return Number(text);
  if (flags.has(name) && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}
