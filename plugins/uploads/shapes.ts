/** Files in the forms of three protocols: their objects, lists, and what an upload may ask for. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';
import { invalid } from '../../core/json/request-body.ts';
import { fileIdOf, type UploadDetails, type UploadedFile, type UploadQuery } from '../common/domain/stored-files.ts';
import type { Dialect } from '../common/kit/dialects.ts';
import type { UploadForm } from './form.ts';

export interface FileShape {
  /** The upload that a form describes. */
  details(form: Omit<UploadForm, 'received'>): UploadDetails;
  query(query: URLSearchParams): UploadQuery;
  one(file: UploadedFile): object;
  list(files: readonly UploadedFile[], more: boolean): object;
  deleted(id: string): object;
}

/** Purposes that a client may give. */
const purposes = ['assistants', 'batch', 'fine-tune', 'vision', 'user_data', 'evals'];
const mostListed = 1_000;

/** `origin`: where clients reach the gateway, for addresses of files. */
export function shapeOf(dialect: Dialect, origin: string): FileShape {
  if (dialect === 'gemini') return googleShape(origin);
  return dialect === 'messages' ? messagesShape : chatShape;
}

/** What a path names a file by; it may end in a method. */
export function fileIdIn(name: string): string {
  return fileIdOf(name.replace(/:download$/, ''));
}

const chatShape: FileShape = {
  details({ members, filename, mediaType }) {
    const purpose = members.get('purpose');
    if (purpose === undefined || !purposes.includes(purpose))
      throw invalid(`The field "purpose" must be one of: ${purposes.join(', ')}.`, 'purpose');
    const anchor = members.get('expires_after[anchor]');
    if (anchor !== undefined && anchor !== 'created_at')
      throw invalid('The field "expires_after.anchor" must be "created_at".', 'expires_after.anchor');
    const lifetimeMs = secondsIn(members, 'expires_after[seconds]', 'expires_after.seconds', 2_592_000);
    return { name: filename, purpose, mediaType, ...(lifetimeMs === undefined ? {} : { lifetimeMs }) };
  },
  query(query) {
    const order = query.get('order') ?? 'desc';
    if (order !== 'asc' && order !== 'desc') throw wrong('order', '"order" is "asc" or "desc".');
    return {
      order,
      // The official upper limit is higher; pages follow.
      limit: Math.min(limitIn(query, 10_000, mostListed), mostListed),
      purpose: query.get('purpose') ?? undefined,
      after: query.get('after') ?? undefined,
    };
  },
  one: ({ id, bytes, createdAt, expiresAt, name, purpose }) => ({
    id,
    object: 'file',
    bytes,
    created_at: seconds(createdAt),
    expires_at: seconds(expiresAt),
    filename: name,
    purpose,
    status: 'processed',
    status_details: null,
  }),
  list: (files, more) => ({
    object: 'list',
    data: files.map((file) => chatShape.one(file)),
    first_id: files[0]?.id ?? null,
    last_id: files.at(-1)?.id ?? null,
    has_more: more,
  }),
  deleted: (id) => ({ id, object: 'file', deleted: true }),
};

const messagesShape: FileShape = {
  details({ members, filename, mediaType }) {
    const lifetimeMs = secondsIn(members, 'expires_in_seconds', 'expires_in_seconds', 7_776_000);
    return { name: filename, purpose: 'user_data', mediaType, ...(lifetimeMs === undefined ? {} : { lifetimeMs }) };
  },
  query(query) {
    if (query.has('before_id')) throw wrong('before_id', '"before_id" is not supported: pages follow by "after_id".');
    return {
      order: 'desc',
      limit: limitIn(query, 1_000, 20),
      after: query.get('page') ?? query.get('after_id') ?? undefined,
    };
  },
  one: ({ id, bytes, createdAt, expiresAt, name, mediaType }) => ({
    id,
    type: 'file',
    filename: name,
    mime_type: mediaType,
    size_bytes: bytes,
    created_at: new Date(createdAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
    downloadable: true,
  }),
  list: (files, more) => ({
    data: files.map((file) => messagesShape.one(file)),
    first_id: files[0]?.id ?? null,
    last_id: files.at(-1)?.id ?? null,
    has_more: more,
    next_page: more ? files.at(-1)!.id : null,
  }),
  deleted: (id) => ({ id, type: 'file_deleted' }),
};

export function googleShape(origin: string): FileShape {
  const shape: FileShape = {
    details({ filename, mediaType }) {
      return { name: filename, purpose: 'user_data', mediaType };
    },
    query: (query) => {
      const token = query.get('pageToken') ?? '';
      return {
        order: 'desc',
        limit: Math.min(limitIn(query, 1_000, 10, 'pageSize'), 100),
        after: token === '' ? undefined : fileIdIn(token),
      };
    },
    one: ({ id, bytes, createdAt, expiresAt, name, chosenName, mediaType, purpose, sha256 }) => {
      const ownName = `files/${chosenName ?? id.slice('file-'.length)}`;
      const created = new Date(createdAt).toISOString();
      return {
        name: ownName,
        displayName: name,
        mimeType: mediaType,
        sizeBytes: String(bytes),
        createTime: created,
        updateTime: created,
        expirationTime: new Date(expiresAt).toISOString(),
        // Google's base64 is of the hexadecimal digits.
        ...(sha256 === undefined ? {} : { sha256Hash: Buffer.from(sha256).toString('base64') }),
        uri: `${origin}/v1beta/${ownName}`,
        state: 'ACTIVE',
        source: purpose === 'batch_output' ? 'GENERATED' : 'UPLOADED',
      };
    },
    list: (files, more) => ({
      files: files.map((file) => shape.one(file)),
      ...(more ? { nextPageToken: files.at(-1)!.id.slice('file-'.length) } : {}),
    }),
    deleted: () => ({}),
  };
  return shape;
}

function secondsIn(
  members: ReadonlyMap<string, string>,
  name: string,
  field: string,
  most: number,
): number | undefined {
  const text = members.get(name);
  if (text === undefined) return undefined;
  const value = /^\d{1,8}$/.test(text) ? Number(text) : 0;
  if (value >= 3_600 && value <= most) return value * 1_000;
  throw invalid(`The field "${field}" must be a whole number of seconds from 3600 to ${most}.`, field);
}

function limitIn(query: URLSearchParams, most: number, usual: number, name = 'limit'): number {
  const text = query.get(name);
  if (text === null) return usual;
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= most) return limit;
  throw wrong(name, `"${name}" is a whole number from 1 to ${most}.`);
}

function wrong(field: string, message: string): GatewayError {
  return new GatewayError('invalid_request', message, { field, shouldRetry: false });
}

const seconds = (milliseconds: number) => Math.floor(milliseconds / 1000);
