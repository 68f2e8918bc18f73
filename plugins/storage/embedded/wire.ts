/** The Postgres wire protocol, version 3, as far as the embedded server must know it: cuts and makes messages. Pure. */

/** https://www.postgresql.org/docs/current/protocol-message-formats.html */
const startupVersion = 3;
const cancelCode = 80877102;
const sslCode = 80877103;
const gssCode = 80877104;

const maxStartupBytes = 10_000;
export const maxMessageBytes = 64 * 2 ** 20;

type Opening = 'startup' | 'encryption' | 'cancel';

/** One whole frontend message with its header. `kind` is the type byte as a letter, or what an opening packet asks for. */
export interface Message {
  readonly kind: string;
  readonly bytes: Buffer;
}

/** The client does not speak the protocol; the connection cannot be kept. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** Cuts a byte stream, split anywhere, into frontend messages. */
export class MessageReader {
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Bytes without which no further message can be whole. */
  #neededBytes = 8;
  #opened = false;

  /** The messages that are whole with this chunk. Throws a ProtocolError on bytes that are no message. */
  push(chunk: Buffer): Message[] {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    const messages: Message[] = [];
    while (this.#bytes >= this.#neededBytes) {
      const message = this.#cut();
      if (message !== undefined) messages.push(message);
    }
    return messages;
  }

  /** One message off the front, or undefined after it was learned how many bytes the next one needs. */
  #cut(): Message | undefined {
    const bytes = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks, this.#bytes);
    const length = this.#opened ? frameLength(bytes) : openingLength(bytes);
    if (bytes.length < length) {
      this.#chunks = [bytes];
      this.#neededBytes = length;
      return undefined;
    }
    const kind = this.#opened ? String.fromCharCode(bytes[0]!) : openingKind(bytes);
    if (kind === 'startup') this.#opened = true;
    const rest = bytes.subarray(length);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
    this.#neededBytes = this.#opened ? 5 : 8;
    return { kind, bytes: bytes.subarray(0, length) };
  }
}

function frameLength(bytes: Buffer): number {
  const length = bytes.readUInt32BE(1) + 1;
  if (length < 5 || length > maxMessageBytes) throw new ProtocolError(`a message of ${length} bytes is not accepted`);
  return length;
}

function openingLength(bytes: Buffer): number {
  const length = bytes.readUInt32BE(0);
  if (length < 8 || length > maxStartupBytes) throw new ProtocolError('the first bytes are no startup packet');
  return length;
}

function openingKind(bytes: Buffer): Opening {
  const code = bytes.readUInt32BE(4);
  if (code === sslCode || code === gssCode) return 'encryption';
  if (code === cancelCode) return 'cancel';
  if (code >>> 16 === startupVersion) return 'startup';
  throw new ProtocolError('only version 3 of the protocol is spoken');
}

/** The name of the prepared statement that a Parse makes; empty for the unnamed one. */
export function parsedName(message: Message): string {
  return textAt(message.bytes, 5);
}

/** The name of the prepared statement that a Close drops; undefined when it closes a portal. */
export function closedName(message: Message): string | undefined {
  return message.bytes[5] === 0x53 ? textAt(message.bytes, 6) : undefined;
}

/** The SQL of a Query or Parse. */
export function statementText({ kind, bytes }: Message): string {
  const start = kind === 'P' ? bytes.indexOf(0, 5) + 1 : 5;
  return textAt(bytes, start);
}

function textAt(bytes: Buffer, start: number): string {
  const end = bytes.indexOf(0, start);
  if (start === 0 || end === -1) throw new ProtocolError('a message lacks the end of its text');
  return bytes.toString('utf8', start, end);
}

function frame(kind: string, ...fields: (string | Buffer)[]): Buffer {
  const body = Buffer.concat(fields.map((field) => (typeof field === 'string' ? Buffer.from(`${field}\0`) : field)));
  const header = Buffer.alloc(5);
  header.write(kind, 'latin1');
  header.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([header, body]);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

// ------------------------------------------------------------------------------------------------------------- frontend

export const sync = frame('S');

export function query(text: string): Buffer {
  return frame('Q', text);
}

/** A Parse without parameter types. */
export function parse(name: string, text: string): Buffer {
  return frame('P', name, text, Buffer.alloc(2));
}

export function closeStatement(name: string): Buffer {
  return frame('C', Buffer.from('S'), name);
}

/** Fails on purpose: what runs since the last Sync is undone instead of committed by the next one. */
export const executeNothing = frame('E', 'no such portal', int32(0));

// -------------------------------------------------------------------------------------------------------------- backend

export const encryptionRefused = Buffer.from('N');

/** Answer to a startup packet: every client is accepted, these are the settings, ready. */
export function welcome(settings: Readonly<Record<string, string>>, processId: number): Buffer {
  return Buffer.concat([
    frame('R', int32(0)),
    ...Object.entries(settings).map(([name, value]) => frame('S', name, value)),
    frame('K', int32(processId), int32(0)),
    frame('Z', Buffer.from('I')),
  ]);
}

/** An ErrorResponse that ends the connection. `code` is a SQLSTATE. */
export function fatal(code: string, message: string): Buffer {
  const fields = { S: 'FATAL', V: 'FATAL', C: code, M: message };
  return frame('E', ...Object.entries(fields).map(([field, value]) => field + value), Buffer.alloc(1));
}

/** Transaction status in ReadyForQuery: idle, in a transaction, in a failed one. */
export type Status = 'I' | 'T' | 'E';

/** Follows backend bytes, split anywhere, for what the server must know of them. */
export class AnswerScanner {
  /** Status in the last ReadyForQuery; undefined when none has come. */
  status: Status | undefined;
  errors = 0;
  /** The backend waits for COPY data, which it would look for beyond the end of the group. */
  copyIn = false;
  /** Whole NotificationResponse messages: the one backend has them for every client that listens. */
  readonly notifications: Buffer[] = [];
  #notification: Buffer[] = [];
  #header = Buffer.alloc(5);
  #headerBytes = 0;
  #bodyBytes = 0;

  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#headerBytes === 5) {
        if (this.#header[0] === 0x5a) this.status = String.fromCharCode(chunk[at]!) as Status;
        const taken = Math.min(this.#bodyBytes, chunk.length - at);
        if (this.#header[0] === 0x41) this.#collect(chunk.subarray(at, at + taken));
        at += taken;
        this.#bodyBytes -= taken;
        if (this.#bodyBytes === 0) this.#headerBytes = 0;
        continue;
      }
      this.#header[this.#headerBytes++] = chunk[at++]!;
      if (this.#headerBytes === 5) this.#note();
    }
  }

  /** Part of a notification, or the last of it. The bytes are valid during the call alone. */
  #collect(part: Uint8Array): void {
    if (this.#notification.length === 0) this.#notification.push(Buffer.from(this.#header));
    this.#notification.push(Buffer.from(part));
    if (part.length < this.#bodyBytes) return;
    this.notifications.push(Buffer.concat(this.#notification));
    this.#notification = [];
  }

  #note(): void {
    const kind = this.#header[0];
    if (kind === 0x45) this.errors += 1;
    if (kind === 0x47 || kind === 0x57) this.copyIn = true;
    this.#bodyBytes = this.#header.readUInt32BE(1) - 4;
    if (this.#bodyBytes === 0) this.#headerBytes = 0;
  }
}
