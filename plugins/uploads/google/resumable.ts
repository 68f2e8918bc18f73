/** Resumable uploads: pieces go to the store as they come, and become a file at the end. */
import type { Exchange, Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { keyring } from '../../common/domain/accounts.ts';
import { pieceUnitBytes, type UploadedFile, type UploadedFiles } from '../../common/domain/stored-files.ts';
import { sessionLifetimeMs, type UploadSession, type UploadSessions } from './sessions.ts';

export interface ResumableTools {
  readonly host: Pick<Host, 'get'>;
  readonly files: UploadedFiles;
  readonly sessions: UploadSessions;
  /** The answer that describes the file. */
  readonly answer: (file: UploadedFile) => Answer;
}

/** Bytes that a broken connection loses at most. */
const pieceBytes = 32 * pieceUnitBytes;
const known = ['upload', 'finalize', 'query', 'cancel'];

/** One request to the address of an upload. */
export async function continueUpload(exchange: Exchange, secret: string, tools: ResumableTools): Promise<Answer> {
  const { request } = exchange;
  const { host, files, sessions } = tools;
  const commands = commandsIn(request.headers['x-goog-upload-command']);
  const session = await sessions.find(secret);
  if (session === undefined)
    throw new GatewayError('not_found', 'There is no such upload: it has ended or expired.', { shouldRetry: false });
  const { accountId, keyId, fileId } = session;
  const { retention } = await host.get(keyring).callerOf(keyId, request.remoteAddress);
  const made = await files.find(accountId, fileId);
  if (made !== undefined) return final(tools, made);
  if (commands.has('cancel')) {
    await sessions.remove(secret);
    await files.pieces.remove(accountId, fileId);
    return { status: 200, headers: { 'x-goog-upload-status': 'cancelled' }, body: '' };
  }
  const received = await files.pieces.received(accountId, fileId);
  if (commands.has('query')) return active(received);
  if (retention === 'none') throw filesNotKept();
  const upload = new Upload(session, files, commands.has('finalize'));
  const end = commands.has('upload') ? await upload.take(exchange, received) : received;
  if (typeof end !== 'number') return final(tools, end);
  return commands.has('finalize') ? final(tools, await upload.join(end)) : active(end);
}

/** The upload was begun before nothing of its account was to be kept. */
const filesNotKept = () =>
  new GatewayError('forbidden', 'Nothing of this account is kept any more (retention "none"): cancel the upload.', {
    code: 'retention_none',
    shouldRetry: false,
  });

function commandsIn(header = ''): ReadonlySet<string> {
  const commands = header.split(',').map((name) => name.trim().toLowerCase());
  if (commands.every((name) => known.includes(name))) return new Set(commands);
  throw invalid(
    `The header "X-Goog-Upload-Command" must be of: ${known.join(', ')}, such as "upload, finalize".`,
    'X-Goog-Upload-Command',
  );
}

function active(received: number): Answer {
  const headers = { 'x-goog-upload-status': 'active', 'x-goog-upload-size-received': String(received) };
  return { status: 200, headers, body: '' };
}

/** The file is made. */
export function final({ answer }: ResumableTools, file: UploadedFile): Answer {
  const made = answer(file);
  Object.assign(made.headers, { 'x-goog-upload-status': 'final', 'x-goog-upload-size-received': String(file.bytes) });
  return made;
}

class Upload {
  readonly #session: UploadSession;
  readonly #files: UploadedFiles;
  readonly #isLast: boolean;

  constructor(session: UploadSession, files: UploadedFiles, isLast: boolean) {
    this.#session = session;
    this.#files = files;
    this.#isLast = isLast;
  }

  /** Resolves with how many bytes have come now, or with the file where one piece was all of it. */
  async take({ request }: Exchange, received: number): Promise<number | UploadedFile> {
    const { accountId, fileId } = this.#session;
    const offset = request.headers['x-goog-upload-offset'] ?? '';
    if (!/^\d{1,15}$/.test(offset) || Number(offset) !== received)
      throw refusedAt(received, `The header "X-Goog-Upload-Offset" must be ${received}, as so many bytes have come.`);
    const { pieces } = this.#files;
    const cuts = new Cuts(request.openBody!());
    let end = received;
    while (await cuts.hasMore()) {
      const piece = await this.#files.receive(accountId, cuts.next(pieceBytes));
      try {
        this.#check(end, piece.bytes);
        if (end === 0 && this.#isLast && !(await cuts.hasMore())) return await this.#keep(piece);
        const isWhole = piece.bytes % pieceUnitBytes === 0;
        if (!isWhole && !this.#isLast)
          throw refusedAt(end, `All pieces but the last must have a multiple of ${pieceUnitBytes} bytes.`);
        await pieces.add(accountId, fileId, end, piece, sessionLifetimeMs);
      } finally {
        await piece.discard();
      }
      end += piece.bytes;
      if ((await pieces.received(accountId, fileId)) !== end)
        throw new GatewayError('conflict', 'Another request sends the same bytes of this upload.', {
          retryAfterMs: 1_000,
        });
    }
    return end;
  }

  #check(end: number, bytes: number): void {
    const { mostBytes } = this.#files;
    const { bytes: announced = mostBytes } = this.#session;
    if (end + bytes > mostBytes)
      throw new GatewayError('too_large', `The file is larger than ${mostBytes} bytes.`, { shouldRetry: false });
    if (end + bytes > announced) throw refusedAt(end, `The file has more than the announced ${announced} bytes.`);
  }

  /** Makes the file of the received bytes; once, however often it is requested. */
  async join(received: number): Promise<UploadedFile> {
    const { accountId, fileId, bytes: announced = received } = this.#session;
    if (announced !== received)
      throw refusedAt(received, `${received} of the announced ${announced} bytes have come: the upload cannot end.`);
    const { pieces } = this.#files;
    const all = await this.#files.receive(accountId, pieces.read(accountId, fileId));
    const file = await this.#keep(all);
    await pieces.remove(accountId, fileId);
    return file;
  }

  #keep(received: Parameters<UploadedFiles['keep']>[1]): Promise<UploadedFile> {
    const { accountId, fileId, name, chosenName, mediaType, bytes: announced = received.bytes } = this.#session;
    if (announced !== received.bytes)
      throw refusedAt(0, `${received.bytes} of the announced ${announced} bytes have come: the upload cannot end.`);
    return this.#files.keep(accountId, received, { name, chosenName, mediaType, purpose: 'user_data' }, fileId);
  }
}

/** The upload goes on where it was. */
function refusedAt(received: number, message: string): GatewayError {
  const headers = { 'x-goog-upload-status': 'active', 'x-goog-upload-size-received': String(received) };
  return new GatewayError('invalid_request', message, { shouldRetry: false, headers });
}

/** A body, cut into pieces while it arrives. */
class Cuts {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();
  #ended = false;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async hasMore(): Promise<boolean> {
    while (this.#rest.length === 0 && !this.#ended) {
      const { done, value } = await this.#source.next();
      if (done === true) this.#ended = true;
      else this.#rest = value;
    }
    return this.#rest.length > 0;
  }

  /** The next bytes, so many at most. */
  async *next(mostBytes: number): AsyncGenerator<Uint8Array> {
    for (let left = mostBytes; left > 0 && (await this.hasMore()); ) {
      const bytes = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(bytes.length);
      left -= bytes.length;
      yield bytes;
    }
  }
}
