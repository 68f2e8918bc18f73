/** Replaces ids of files that the gateway keeps by their content in requests. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { asBuffer, isObject, type JsonObject, textOf, tryParseBytes } from '../../../core/json/json.ts';
import { parseAhead, type RequestBody, slicedAboveBytes } from '../../../core/json/request-body.ts';
import { applyEdits, type Edit, findMember, findPlace, scanObject } from '../../../core/json/splice.ts';
import { caller } from '../../common/domain/accounts.ts';
import { bytesOf, fileIdOf, type UploadedFile, type UploadedFiles } from '../../common/domain/stored-files.ts';
import { mediaTypeOfName, truerType } from '../../common/kit/media-types.ts';
import { sniffBytes } from '../../common/kit/sniff.ts';
import { notFound } from '../../common/wire/named.ts';
import type { VendorId } from '../../common/wire/protocols.ts';
import type { ProtocolConvertConfig } from '../config.ts';
import { invalid, readRequestBody, refusedForSize } from './checks.ts';
import { vendorIdsIn } from './vendor-ids.ts';

const mebibyte = 2 ** 20;
/** Bytes of all files of one request. */
const mostRequestBytes = 50 * mebibyte;
/** Bytes of the files in all running requests, of one account and of all. */
const mostAccountBytes = 100 * mebibyte;
const mostBytes = 400 * mebibyte;
/** The values of the request itself were bounded before. */
const mostValues = 1_000_000;

/** A request without any of them names no file. */
const signs = ['"file-', '"fileUri"', '"file_uri"'];
const idFormat = /^file-[0-9a-f]{32}$/;
/** Google's form: the name, or the address on whatever host the client calls the gateway by. */
const addressFormat = /(?:^|\/v\d+[a-z0-9]*\/)files\/([a-z0-9-]{1,40})$/;

/** Bytes that are searched in one turn of the event loop. */
const searchedBytes = 2 ** 20;
const longestSign = 16;

async function isSignedInTurns(bytes: Buffer): Promise<boolean> {
  for (let at = 0; at < bytes.length; at += searchedBytes) {
    const part = bytes.subarray(at, at + searchedBytes + longestSign);
    if (signs.some((sign) => part.includes(sign))) return true;
    await nextTurn();
  }
  return false;
}

/** The id of a kept file in either form; undefined: it is no such id. */
function idIn(text: string): string | undefined {
  if (idFormat.test(text)) return text;
  const name = addressFormat.exec(text)?.[1];
  return name === undefined ? undefined : fileIdOf(name);
}

/** A text in the form of a kept file's id or address, and its place. */
interface KeptId extends VendorId {
  readonly fileId: string;
}

/** An id in a request, and the file that it names. */
interface Named {
  readonly field: string;
  readonly file: UploadedFile;
}

export class KeptFiles {
  readonly #files: () => UploadedFiles | undefined;
  #config: ProtocolConvertConfig['media'];
  readonly #heldBytes = new Map<string, number>();
  #allBytes = 0;

  constructor(files: () => UploadedFiles | undefined, config: ProtocolConvertConfig['media']) {
    this.#files = files;
    this.#config = config;
  }

  applyConfig(config: ProtocolConvertConfig['media']): void {
    this.#config = config;
  }

  /**
   * The request with the files; undefined: it has no id of the form of kept files. Unknown ids and chosen names stay as they
   * are, unknown addresses of the gateway's own ids are refused: a vendor would fetch them.
   */
  insert(exchange: Exchange, body: RequestBody): Promise<RequestBody> | undefined {
    const bytes = asBuffer(body.bytes);
    if (bytes.length > searchedBytes)
      return isSignedInTurns(bytes).then(
        (isSigned) => (isSigned ? this.#insertFound(exchange, body) : undefined) ?? body,
      );
    let isSigned = false;
    for (const sign of signs) isSigned ||= bytes.includes(sign);
    return isSigned ? this.#insertFound(exchange, body) : undefined;
  }

  #insertFound(exchange: Exchange, body: RequestBody): Promise<RequestBody> | undefined {
    const files = this.#files();
    if (files === undefined) return undefined;
    const ids = vendorIdsIn(body.json).flatMap((found) => {
      const fileId = found.isEcho ? undefined : idIn(found.id);
      return fileId === undefined ? [] : [{ ...found, fileId }];
    });
    return ids.length === 0 ? undefined : this.#insert(exchange, body, ids, files);
  }

  /** Items of a kept conversation with the files that they name. */
  async fill(exchange: Exchange, items: readonly JsonObject[]): Promise<readonly JsonObject[]> {
    const text = JSON.stringify({ input: items });
    if (!signs.some((sign) => text.includes(sign))) return items;
    const filled = await this.insert(exchange, readRequestBody(Buffer.from(text)));
    return filled === undefined ? items : (filled.json['input'] as readonly JsonObject[]);
  }

  async #insert(
    exchange: Exchange,
    body: RequestBody,
    ids: readonly KeptId[],
    files: UploadedFiles,
  ): Promise<RequestBody> {
    const accountId = exchange.find(caller)?.accountId ?? '';
    const named = await this.#named(accountId, ids, files);
    if (named.length === 0) return body;
    this.#hold(exchange, accountId, this.#sizeOf(named));
    const edits: Edit[] = [];
    for (const { field, file } of named) {
      const edit = await editFor(body.bytes, field, file, () => contentOf(files, accountId, file, field));
      if (edit !== undefined) edits.push(edit);
    }
    const bytes = applyEdits(body.bytes, edits);
    if (bytes.length > slicedAboveBytes) await parseAhead(bytes, mostValues, () => nextTurn());
    return readRequestBody(bytes);
  }

  async #named(accountId: string, ids: readonly KeptId[], files: UploadedFiles): Promise<Named[]> {
    const { per_request: most } = this.#config;
    const different = new Set(ids.map(({ fileId }) => fileId));
    if (ids.length > most)
      throw invalid(`The request names ${ids.length} files; at most ${most} may be in one request.`);
    const found = new Map<string, UploadedFile>();
    for (const id of different) {
      const file = await files.find(accountId, id);
      if (file !== undefined) found.set(id, file);
    }
    return ids.flatMap((one) => {
      const file = found.get(one.fileId);
      if (file !== undefined) return [{ field: one.field, file }];
      if (one.id !== one.fileId && idFormat.test(one.fileId)) throw notFound(one);
      return [];
    });
  }

  #sizeOf(named: readonly Named[]): number {
    const { max_bytes: most } = this.#config;
    let bytes = 0;
    for (const { field, file } of named) {
      if (file.bytes > most) throw refusedForSize(`The file has more than ${most} bytes.`, field);
      bytes += file.bytes;
      if (bytes > mostRequestBytes)
        throw refusedForSize(`The files of a request may have ${mostRequestBytes} bytes together.`, field);
    }
    return bytes;
  }

  /** Counts the bytes until the exchange has ended. */
  #hold(exchange: Exchange, accountId: string, bytes: number): void {
    const held = this.#heldBytes.get(accountId) ?? 0;
    const isOwn = held + bytes > mostAccountBytes;
    if (isOwn || this.#allBytes + bytes > mostBytes)
      throw new GatewayError(
        isOwn ? 'rate_limited' : 'overloaded',
        isOwn
          ? 'Too many requests of this account with large files run at the same time.'
          : 'The gateway holds too many large files at the moment.',
        { ...(isOwn ? { code: 'request_bytes' } : {}), retryAfterMs: 1_000 },
      );
    this.#count(accountId, bytes);
    exchange.defer(() => this.#count(accountId, -bytes));
  }

  #count(accountId: string, bytes: number): void {
    this.#allBytes += bytes;
    const held = (this.#heldBytes.get(accountId) ?? 0) + bytes;
    if (held === 0) this.#heldBytes.delete(accountId);
    else this.#heldBytes.set(accountId, held);
  }
}

/** undefined: the id is not in a part that can carry content; it stays and is refused like a vendor's id. */
async function editFor(
  bytes: Uint8Array,
  field: string,
  file: UploadedFile,
  read: () => Promise<Buffer>,
): Promise<Edit | undefined> {
  const steps = stepsOf(field);
  const path = steps.slice(0, -1);
  if (steps.at(-1) === 'fileUri' || steps.at(-1) === 'file_uri') return googleEdit(bytes, path, file, await read());
  const place = findPlace(bytes, path);
  const holder = place && tryParseBytes(bytes.subarray(place.valueStart, place.end));
  if (place === undefined || !isObject(holder)) return undefined;
  const form = formOf(holder, path.at(-1));
  if (form === undefined) return undefined;
  const part = form(holder, file, await read());
  return { start: place.valueStart, end: place.end, text: JSON.stringify(part) };
}

/** `fileData` of a part becomes `inlineData`, in the case that the client writes; the part's other members stay. */
function googleEdit(
  bytes: Uint8Array,
  path: readonly (string | number)[],
  file: UploadedFile,
  content: Buffer,
): Edit | undefined {
  const name = path.at(-1);
  const part = findPlace(bytes, path.slice(0, -1));
  if (part === undefined || (name !== 'fileData' && name !== 'file_data')) return undefined;
  const { start, end } = findMember(scanObject(bytes, part.valueStart), name)!;
  const [member, type] = name === 'fileData' ? ['inlineData', 'mimeType'] : ['inline_data', 'mime_type'];
  const blob = { [type!]: typeOf(file, content), data: content.toString('base64') };
  return { start, end, text: `${JSON.stringify(member)}:${JSON.stringify(blob)}` };
}

/** `input[0].content[1].file_id` as names and indexes. */
function stepsOf(field: string): (string | number)[] {
  return [...field.matchAll(/[^.[\]]+/g)].map(([step]) => (/^\d+$/.test(step) ? Number(step) : step));
}

type Form = (holder: JsonObject, file: UploadedFile, content: Buffer) => object;

/** The form in which the object with the id carries content: parts of responses, sources of messages, files of chat. */
function formOf({ type }: JsonObject, name: string | number | undefined): Form | undefined {
  if (type === 'input_file') return asFile;
  if (type === 'input_image') return asImage;
  if (type === 'file' && name === 'source') return asSource;
  return type === undefined && name === 'file' ? asFile : undefined;
}

const asFile: Form = ({ file_id: _id, ...others }, file, content) => ({
  ...others,
  filename: textOf(others['filename']) ?? file.name,
  file_data: dataUrl(file, content),
});

const asImage: Form = ({ file_id: _id, ...others }, file, content) => ({
  ...others,
  image_url: dataUrl(file, content),
});

const asSource: Form = (_holder, file, content) => {
  const mediaType = typeOf(file, content);
  return mediaType.startsWith('text/')
    ? { type: 'text', media_type: 'text/plain', data: content.toString('utf8') }
    : { type: 'base64', media_type: mediaType, data: content.toString('base64') };
};

function dataUrl(file: UploadedFile, content: Buffer): string {
  return `data:${typeOf(file, content)};base64,${content.toString('base64')}`;
}

/** The media type by content, else as declared, else by name. */
function typeOf({ mediaType, name }: UploadedFile, content: Buffer): string {
  const declared = mediaType === 'application/octet-stream' ? mediaTypeOfName(name) : mediaType;
  return truerType(sniffBytes(content), declared);
}

async function contentOf(files: UploadedFiles, accountId: string, { id }: UploadedFile, field: string) {
  const opened = await files.open(accountId, id);
  if (opened === undefined) throw invalid('The file is not there any more.', field);
  return bytesOf(opened);
}
