/** The form of a transcription, read as it comes: kept for the vendor, its members checked, the model's place noted. */
import { createHash } from 'node:crypto';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { ClientRequest } from '../../../core/contract/message.ts';
import { invalid } from '../../../core/json/request-body.ts';
import type { Edit } from '../../../core/json/splice.ts';
import type { ByteSource } from '../../common/audio/duration.ts';
import { readFormStream, type StreamedPart } from '../../common/kit/forms/form-stream.ts';
import { boundaryIn } from '../../common/kit/forms/multipart.ts';
import type { StreamedFormPart } from '../../common/kit/forms/streamed-form.ts';
import type { SpooledBody } from './spool.ts';

export interface AudioForm {
  readonly model: string;
  readonly file: ByteSource;
  readonly stream: boolean;
  /** The answer is JSON, not plain text. */
  readonly isJson: boolean;
  /** Where the model's name stands in the body. */
  readonly modelAt: { readonly start: number; readonly end: number };
  readonly parts: readonly Placed[];
}

/** A part, and where it stands in the body. */
interface Placed extends StreamedFormPart {
  readonly firstByte: number;
}

/** The texts that other plugins have replaced. */
export function replacedIn({ parts }: Pick<AudioForm, 'parts'>): Edit[] {
  return parts.flatMap(({ replacedBy, firstByte, bytes }) =>
    replacedBy === undefined ? [] : { start: firstByte, end: firstByte + bytes, text: replacedBy },
  );
}

const formats = ['json', 'verbose_json', 'diarized_json', 'text', 'srt', 'vtt'];
/** Both the gateway and the vendor read them. */
const single = new Set(['model', 'file', 'response_format', 'stream']);
const longestName = 500;
/** Bytes of one part that is not the file. */
const longestMember = 65_536;
/** Bytes of all parts but the file, with their heads and boundaries. */
export const mostOtherBytes = 1_048_576;

/** Throws invalid_request, or too_large, that names the field. */
export async function readAudioForm(
  request: Pick<ClientRequest, 'headers' | 'openBody'>,
  fileBytes: number,
  kept: SpooledBody,
): Promise<AudioForm> {
  const boundary = boundaryIn(request.headers['content-type']);
  if (boundary === undefined)
    throw invalid('The request must be a form (multipart/form-data) with a file.', 'content-type');
  const parts: Placed[] = [];
  const byName = new Map<string, Placed>();
  for await (const part of readFormStream(kept.keep(request.openBody!()), boundary)) {
    if (single.has(part.name) && byName.has(part.name))
      throw invalid(`The field "${part.name}" is there more than once.`, part.name);
    const read = await readPart(part, part.name === 'file' ? fileBytes : longestMember);
    byName.set(part.name, read);
    parts.push(read);
  }
  return { ...membersOf(byName, kept), parts };
}

async function readPart(part: StreamedPart, mostBytes: number): Promise<Placed> {
  const { name, filename, mediaType, firstByte, body } = part;
  const hash = createHash('sha256');
  const text: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > mostBytes)
      throw new GatewayError('too_large', `The field "${name.slice(0, 100)}" is larger than ${mostBytes} bytes.`, {
        field: name.slice(0, 100),
        shouldRetry: false,
      });
    hash.update(chunk);
    if (filename === undefined && name !== 'file') text.push(Buffer.from(chunk));
  }
  const isText = filename === undefined && name !== 'file';
  return {
    ...{ name, filename, mediaType, firstByte, bytes },
    sha256: hash.digest('hex'),
    text: isText ? Buffer.concat(text).toString('utf8') : undefined,
  };
}

function membersOf(parts: ReadonlyMap<string, Placed>, kept: SpooledBody): Omit<AudioForm, 'parts'> {
  const name = parts.get('model');
  const model = textOf(name, 'model');
  if (name === undefined || model === undefined || model === '')
    throw invalid('The field "model" is missing.', 'model');
  const format = textOf(parts.get('response_format'), 'response_format') ?? 'json';
  if (!formats.includes(format))
    throw invalid(`The field "response_format" must be one of: ${formats.join(', ')}.`, 'response_format');
  const file = fileIn(parts.get('file'));
  return {
    model,
    file: kept.span(file.firstByte, file.bytes),
    stream: streamOf(textOf(parts.get('stream'), 'stream')),
    isJson: format.endsWith('json'),
    modelAt: { start: name.firstByte, end: name.firstByte + name.bytes },
  };
}

function textOf(part: Placed | undefined, field: string): string | undefined {
  if (part === undefined) return undefined;
  if (part.text === undefined) throw invalid(`The field "${field}" must be a text, not a file.`, field);
  if (part.bytes > longestName) throw invalid(`The field "${field}" is too long.`, field);
  return part.text;
}

function streamOf(text: string | undefined): boolean {
  if (text === undefined || text === '' || text === 'false') return false;
  if (text === 'true') return true;
  throw invalid('The field "stream" must be true or false.', 'stream');
}

function fileIn(part: Placed | undefined): Placed {
  if (part === undefined) throw invalid('The field "file" is missing.', 'file');
  if (part.filename === undefined) throw invalid('The field "file" must be a file with a name.', 'file');
  if (part.bytes === 0) throw invalid('The field "file" is empty.', 'file');
  return part;
}
