/** The form of a transcription: its members checked, and the model's name exchanged without a copy of the file. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { ClientRequest } from '../../../core/contract/message.ts';
import { asBuffer } from '../../../core/json/json.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { boundaryIn, type FormPart, readMultipart } from '../../common/kit/forms/multipart.ts';
import type { Limits } from '../description.ts';

export interface AudioForm {
  readonly model: string;
  readonly file: Buffer;
  readonly stream: boolean;
  /** The answer is JSON, not plain text. */
  readonly isJson: boolean;
  /** The whole body, and where the model's name stands in it. */
  readonly body: Uint8Array;
  readonly modelAt: { readonly start: number; readonly end: number };
}

const formats = ['json', 'verbose_json', 'diarized_json', 'text', 'srt', 'vtt'];
/** Both the gateway and the vendor read them. */
const single = new Set(['model', 'file', 'response_format', 'stream']);
const longestName = 500;

/** Throws invalid_request, or too_large, that names the field. */
export function readAudioForm({ body, headers }: Pick<ClientRequest, 'body' | 'headers'>, limits: Limits): AudioForm {
  const boundary = boundaryIn(headers['content-type']);
  if (boundary === undefined)
    throw invalid('The request must be a form (multipart/form-data) with a file.', 'content-type');
  const parts = partsOf(readMultipart(body, boundary));
  const name = parts.get('model');
  const model = textOf(name, 'model');
  if (name === undefined || model === undefined || model === '')
    throw invalid('The field "model" is missing.', 'model');
  const format = textOf(parts.get('response_format'), 'response_format') ?? 'json';
  if (!formats.includes(format))
    throw invalid(`The field "response_format" must be one of: ${formats.join(', ')}.`, 'response_format');
  const start = name.bytes.byteOffset - body.byteOffset;
  return {
    model,
    file: fileOf(parts.get('file'), limits),
    stream: streamOf(textOf(parts.get('stream'), 'stream')),
    isJson: format.endsWith('json'),
    body,
    modelAt: { start, end: start + name.bytes.length },
  };
}

function partsOf(parts: readonly FormPart[]): Map<string, FormPart> {
  const byName = new Map<string, FormPart>();
  for (const part of parts) {
    if (single.has(part.name) && byName.has(part.name))
      throw invalid(`The field "${part.name}" is there more than once.`, part.name);
    byName.set(part.name, part);
  }
  return byName;
}

function textOf(part: FormPart | undefined, field: string): string | undefined {
  if (part === undefined) return undefined;
  if (part.filename !== undefined) throw invalid(`The field "${field}" must be a text, not a file.`, field);
  if (part.bytes.length > longestName) throw invalid(`The field "${field}" is too long.`, field);
  return part.bytes.toString('utf8');
}

function streamOf(text: string | undefined): boolean {
  if (text === undefined || text === '' || text === 'false') return false;
  if (text === 'true') return true;
  throw invalid('The field "stream" must be true or false.', 'stream');
}

function fileOf(part: FormPart | undefined, { fileBytes }: Limits): Buffer {
  if (part === undefined) throw invalid('The field "file" is missing.', 'file');
  if (part.filename === undefined) throw invalid('The field "file" must be a file with a name.', 'file');
  if (part.bytes.length === 0) throw invalid('The field "file" is empty.', 'file');
  if (part.bytes.length <= fileBytes) return part.bytes;
  throw new GatewayError('too_large', `The field "file" is larger than ${fileBytes} bytes.`, {
    field: 'file',
    shouldRetry: false,
  });
}

/** The same bytes where the vendor knows the model by the same name. */
export function withModel({ body, model, modelAt }: AudioForm, name: string): Uint8Array | readonly Uint8Array[] {
  if (name === model) return body;
  const bytes = asBuffer(body);
  return [bytes.subarray(0, modelAt.start), Buffer.from(name), bytes.subarray(modelAt.end)];
}
