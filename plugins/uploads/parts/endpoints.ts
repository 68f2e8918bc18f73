/** Uploads in parts, as clients of OpenAI send large files: begun, taken part by part, then joined to a file or cancelled. */
import { createHash, type Hash } from 'node:crypto';
import type { Endpoint, Exchange, Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { isObject, type JsonObject } from '../../../core/json/json.ts';
import { invalid, readBody } from '../../../core/json/request-body.ts';
import { caller } from '../../common/domain/accounts.ts';
import { type UploadedFile, type UploadedFiles, uploadedFiles } from '../../common/domain/stored-files.ts';
import { jsonAnswer, renderError } from '../../common/kit/dialects.ts';
import { cleanName, readUploadForm } from '../form.ts';
import { shapeOf } from '../shapes.ts';
import { lifetimeMs, type PartUpload, type PartUploads } from './rows.ts';

const shape = shapeOf('chat', '');
/** Bytes of one part, by OpenAI's rule. */
const mostPartBytes = 64 * 2 ** 20;
const single = new Set(['bytes', 'filename', 'mime_type', 'purpose', 'expires_after', 'part_ids', 'md5']);

export function partEndpoints(host: Host, uploads: PartUploads, timeoutMs: number): Endpoint[] {
  const files = () => host.get(uploadedFiles);
  const common = {
    method: 'POST',
    operation: 'uploads',
    timeoutMs,
    renderError: (error, exchange) => renderError(error, 'chat', exchange.id),
  } satisfies Partial<Endpoint>;
  const path = '/v1/uploads/:upload_id';
  const json = { types: ['application/json'] };
  return [
    {
      ...common,
      path: '/v1/uploads',
      keeps: 'files',
      body: 'json',
      describes: [
        {
          summary: 'Begins an upload in parts.',
          body: { ...json, required: ['bytes', 'filename', 'mime_type', 'purpose'] },
        },
      ],
      handle: async (exchange) => answer(await uploads.begin(orderOf(exchange, files())), undefined),
    },
    {
      ...common,
      path: `${path}/parts`,
      keeps: 'files',
      body: 'stream',
      describes: [{ summary: 'Takes a part.', body: { types: ['multipart/form-data'], required: ['data'] } }],
      handle: (exchange) => takePart(exchange, uploads, files()),
    },
    {
      ...common,
      path: `${path}/complete`,
      keeps: 'files',
      body: 'json',
      describes: [{ summary: 'Makes a file of the parts.', body: { ...json, required: ['part_ids'] } }],
      async handle(exchange) {
        const { upload, file } = await complete(exchange, uploads, files());
        return answer(upload, shape.one(file));
      },
    },
    {
      ...common,
      path: `${path}/cancel`,
      describes: [{ summary: 'Cancels an upload.' }],
      handle: async (exchange) => answer(await cancel(exchange, uploads, files()), undefined),
    },
  ];
}

function orderOf(exchange: Exchange, files: UploadedFiles) {
  const { json: body } = readBody(exchange.request.body, single);
  const bytes = body['bytes'];
  if (!Number.isSafeInteger(bytes) || (bytes as number) < 1)
    throw invalid('The field "bytes" must be the size of the file.', 'bytes');
  if ((bytes as number) > files.mostBytes)
    throw new GatewayError('too_large', `The file is larger than ${files.mostBytes} bytes.`, {
      field: 'bytes',
      shouldRetry: false,
    });
  const name = cleanName(textIn(body, 'filename'));
  const mediaType = textIn(body, 'mime_type');
  const members = new Map([['purpose', textIn(body, 'purpose')]]);
  const expiry = body['expires_after'] ?? undefined;
  if (expiry !== undefined && !isObject(expiry))
    throw invalid('The field "expires_after" must be an object.', 'expires_after');
  for (const member of ['anchor', 'seconds'])
    if (expiry?.[member] !== undefined) members.set(`expires_after[${member}]`, String(expiry[member]));
  const details = shape.details({ members, filename: name, mediaType });
  return { accountId: accountOf(exchange), fileId: files.newId(), bytes: bytes as number, ...details };
}

const accountOf = (exchange: Exchange) => exchange.get(caller).accountId;

function textIn(json: JsonObject, field: string): string {
  const value = json[field];
  if (typeof value === 'string' && value !== '' && value.length <= 255) return value;
  throw invalid(`The field "${field}" must be a text of 1 to 255 characters.`, field);
}

function answer(upload: PartUpload, file: object | undefined): Answer {
  const { id, bytes, name: filename, purpose, status } = upload;
  const times = { created_at: seconds(upload.createdAt), expires_at: seconds(upload.expiresAt) };
  return jsonAnswer(
    JSON.stringify({ id, object: 'upload', bytes, ...times, filename, purpose, status, file: file ?? null }),
  );
}

async function takePart(exchange: Exchange, uploads: PartUploads, files: UploadedFiles): Promise<Answer> {
  const upload = await open(exchange, uploads);
  const { accountId, id: uploadId } = upload;
  const form = await readUploadForm(exchange.request, (body) => files.receive(accountId, body), 'data');
  const { received } = form;
  try {
    if (received.bytes === 0) throw invalid('The part is empty.', 'data');
    if (received.bytes > mostPartBytes)
      throw new GatewayError('too_large', `A part has at most ${mostPartBytes} bytes.`, {
        field: 'data',
        shouldRetry: false,
      });
    const part = await uploads.addPart(upload, received.bytes);
    try {
      await files.pieces.add(accountId, part.id, 0, received, lifetimeMs);
    } catch (error) {
      await uploads.removePart(upload, part.id);
      throw error;
    }
    const created = seconds(part.createdAt);
    return jsonAnswer(JSON.stringify({ id: part.id, object: 'upload.part', created_at: created, upload_id: uploadId }));
  } finally {
    await received.discard();
  }
}

/** Joins the parts in the order that the client states; once, however often it is asked for. */
async function complete(
  exchange: Exchange,
  uploads: PartUploads,
  files: UploadedFiles,
): Promise<{ upload: PartUpload; file: UploadedFile }> {
  const { json } = readBody(exchange.request.body, single);
  const upload = await found(exchange, uploads);
  const { accountId, fileId } = upload;
  const made = await files.find(accountId, fileId);
  if (made !== undefined) return { upload: await uploads.end(upload, 'completed'), file: made };
  refuseEnded(upload);
  const ids = json['part_ids'];
  if (!Array.isArray(ids) || ids.length === 0 || new Set(ids).size !== ids.length)
    throw invalid('The field "part_ids" must be a list of the ids of all parts, in their order.', 'part_ids');
  const parts = await uploads.parts(upload);
  const unknown = ids.findIndex((id) => !parts.has(id as string));
  if (unknown !== -1) throw invalid('The upload has no such part.', `part_ids[${unknown}]`);
  const bytes = ids.reduce((sum: number, id) => sum + parts.get(id as string)!, 0);
  if (bytes !== upload.bytes)
    throw invalid(`The parts have ${bytes} bytes together, the upload was begun with ${upload.bytes}.`, 'part_ids');
  const digest = createHash('md5');
  const all = await files.receive(accountId, digested(files, accountId, ids as string[], digest));
  try {
    const md5 = json['md5'] ?? undefined;
    if (md5 !== undefined && md5 !== digest.digest('hex'))
      throw invalid('The bytes that came have another checksum than "md5".', 'md5');
    const { name, purpose, mediaType } = upload;
    const file = await files.keep(accountId, all, { name, purpose, mediaType, lifetimeMs: upload.lifetimeMs }, fileId);
    await removeParts(files, accountId, parts.keys());
    return { upload: await uploads.end(upload, 'completed'), file };
  } finally {
    await all.discard();
  }
}

async function* digested(
  files: UploadedFiles,
  accountId: string,
  ids: readonly string[],
  digest: Hash,
): AsyncGenerator<Uint8Array> {
  for (const id of ids)
    for await (const chunk of files.pieces.read(accountId, id)) {
      digest.update(chunk);
      yield chunk;
    }
}

async function cancel(exchange: Exchange, uploads: PartUploads, files: UploadedFiles): Promise<PartUpload> {
  const upload = await open(exchange, uploads);
  const ended = await uploads.end(upload, 'cancelled');
  await removeParts(files, upload.accountId, (await uploads.parts(upload)).keys());
  return ended;
}

async function removeParts(files: UploadedFiles, accountId: string, ids: Iterable<string>): Promise<void> {
  for (const id of ids) await files.pieces.remove(accountId, id);
}

async function open(exchange: Exchange, uploads: PartUploads): Promise<PartUpload> {
  const upload = await found(exchange, uploads);
  refuseEnded(upload);
  return upload;
}

/** The same for ids that never were, that have expired, and that belong to others. */
async function found(exchange: Exchange, uploads: PartUploads): Promise<PartUpload> {
  const upload = await uploads.find(accountOf(exchange), exchange.request.params['upload_id'] ?? '');
  if (upload !== undefined) return upload;
  throw new GatewayError('not_found', 'There is no such upload.', { code: 'upload_not_found', shouldRetry: false });
}

function refuseEnded({ status }: PartUpload): void {
  if (status !== 'pending') throw invalid(`The upload is ${status}.`, 'upload_id');
}

const seconds = (milliseconds: number) => Math.floor(milliseconds / 1_000);
