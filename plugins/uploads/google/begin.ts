/** `POST /upload/…/files`: begins a resumable upload, or takes the whole file at once. */
import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { isObject, type JsonObject, objectOf, textOf, tryParse } from '../../../core/json/json.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { caller } from '../../common/domain/accounts.ts';
import {
  mayBeChosen,
  nameTaken,
  pieceUnitBytes,
  type UploadDetails,
  type UploadedFile,
} from '../../common/domain/stored-files.ts';
import { mediaTypeIn, readPartStream } from '../../common/kit/forms/form-stream.ts';
import { boundaryIn } from '../../common/kit/forms/multipart.ts';
import { cleanName } from '../form.ts';
import { final, type ResumableTools } from './resumable.ts';

const mostMetadataBytes = 65_536;
const anyType = 'application/octet-stream';
const typeFormat = /^[\w!#$&^.+-]{1,100}\/[\w!#$&^.+-]{1,100}(?:\s*;.*)?$/;

export async function beginUpload(exchange: Exchange, tools: ResumableTools): Promise<Answer> {
  const { headers, query } = exchange.request;
  const protocol = headers['x-goog-upload-protocol'] ?? query.get('upload_protocol') ?? query.get('uploadType') ?? '';
  switch (protocol.toLowerCase()) {
    case 'resumable':
      return beginSession(exchange, tools);
    case 'multipart':
      return final(tools, await keepRelated(exchange, tools));
    case 'raw':
    case 'media':
      return final(tools, await keepRaw(exchange, tools));
    default:
      throw invalid(
        'The header "X-Goog-Upload-Protocol" must be "resumable", "multipart" or "raw".',
        'X-Goog-Upload-Protocol',
      );
  }
}

async function beginSession(exchange: Exchange, { files, sessions }: ResumableTools): Promise<Answer> {
  const { request } = exchange;
  const { headers } = request;
  if (headers['x-goog-upload-command']?.trim().toLowerCase() !== 'start')
    throw invalid('An upload begins with the header "X-Goog-Upload-Command: start".', 'X-Goog-Upload-Command');
  const { accountId, keyId } = exchange.get(caller);
  const bytes = announcedBytes(headers['x-goog-upload-header-content-length'], files.mostBytes);
  const details = detailsOf(await metadataIn(request.openBody!()), {
    mediaType: headers['x-goog-upload-header-content-type'],
    name: headers['x-goog-upload-file-name'],
  });
  if (details.chosenName !== undefined && (await files.find(accountId, `files/${details.chosenName}`)) !== undefined)
    throw nameTaken(details.chosenName);
  const secret = await sessions.begin({ accountId, keyId, fileId: files.newId(), ...details, bytes });
  const address = `${files.origin(headers['host'])}${request.path}/${secret}`;
  return {
    status: 200,
    headers: {
      'x-goog-upload-status': 'active',
      'x-goog-upload-url': address,
      'x-goog-upload-control-url': address,
      'x-goog-upload-chunk-granularity': String(pieceUnitBytes),
      'cache-control': 'no-store',
    },
    body: '',
  };
}

function announcedBytes(text: string | undefined, mostBytes: number): number | undefined {
  if (text === undefined) return undefined;
  const name = 'X-Goog-Upload-Header-Content-Length';
  if (!/^\d{1,15}$/.test(text)) throw invalid(`The header "${name}" must be a number of bytes.`, name);
  if (Number(text) <= mostBytes) return Number(text);
  throw new GatewayError('too_large', `The file is larger than ${mostBytes} bytes.`, {
    field: name,
    shouldRetry: false,
  });
}

/** The metadata, then the content. */
async function keepRelated(exchange: Exchange, { files }: ResumableTools): Promise<UploadedFile> {
  const { request } = exchange;
  const { accountId } = exchange.get(caller);
  const boundary = boundaryIn(request.headers['content-type'], 'related');
  if (boundary === undefined)
    throw invalid('The request must have the type multipart/related, with a boundary.', 'content-type');
  let metadata: JsonObject | undefined;
  for await (const { head, body } of readPartStream(request.openBody!(), boundary)) {
    if (metadata === undefined) {
      metadata = await metadataIn(body);
      continue;
    }
    const details = detailsOf(metadata, { mediaType: mediaTypeIn(head), name: undefined });
    return files.keep(accountId, await files.receive(accountId, body), details);
  }
  throw invalid('The request must have two parts: the metadata as JSON, and the content.');
}

async function keepRaw(exchange: Exchange, { files }: ResumableTools): Promise<UploadedFile> {
  const { headers, openBody } = exchange.request;
  const { accountId } = exchange.get(caller);
  const details = detailsOf(
    {},
    {
      mediaType: headers['x-goog-upload-header-content-type'] ?? headers['content-type'],
      name: headers['x-goog-upload-file-name'],
    },
  );
  return files.keep(accountId, await files.receive(accountId, openBody!()), details);
}

/** Resolves with the member `file` of the metadata. */
async function metadataIn(body: AsyncIterable<Uint8Array>): Promise<JsonObject> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > mostMetadataBytes)
      throw new GatewayError('too_large', `The metadata has more than ${mostMetadataBytes} bytes.`);
    chunks.push(chunk);
  }
  if (bytes === 0) return {};
  const json = tryParse(Buffer.concat(chunks).toString('utf8'));
  if (!isObject(json)) throw invalid('The metadata must be a JSON object.');
  const file = objectOf(json['file'] ?? {});
  if (file === undefined) throw invalid('The field "file" must be an object.', 'file');
  return file;
}

type Given = { readonly mediaType: string | undefined; readonly name: string | undefined };

function detailsOf(file: JsonObject, given: Given): UploadDetails {
  const displayName = textIn(file, 'displayName', 'display_name') ?? given.name ?? '';
  const mediaType = given.mediaType ?? textIn(file, 'mimeType', 'mime_type') ?? anyType;
  if (!typeFormat.test(mediaType)) throw invalid('The media type of the file is not valid.', 'file.mimeType');
  return {
    name: cleanName(displayName),
    chosenName: chosenNameIn(file),
    mediaType: mediaType.split(';')[0]!.trim().toLowerCase(),
    purpose: 'user_data',
  };
}

function chosenNameIn(file: JsonObject): string | undefined {
  const name = (textIn(file, 'name') ?? '').replace(/^files\//, '');
  if (name === '' || mayBeChosen(name)) return name || undefined;
  throw invalid(
    'The field "file.name" must be "files/" and at most 40 small letters, digits and dashes, without a dash at an end.',
    'file.name',
  );
}

function textIn(file: JsonObject, ...names: string[]): string | undefined {
  for (const name of names) {
    if (file[name] === undefined) continue;
    const text = textOf(file[name]);
    if (text === undefined) throw invalid(`The field "file.${name}" must be a text.`, `file.${name}`);
    return text;
  }
  return undefined;
}
