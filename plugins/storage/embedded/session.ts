/** One client of the embedded server: collects its messages into groups that no other client may interrupt. */
import type { Socket } from 'node:net';
import {
  closedName,
  closeStatement,
  encryptionRefused,
  executeNothing,
  fatal,
  type Message,
  MessageReader,
  maxMessageBytes,
  ProtocolError,
  parse,
  parsedName,
  query,
  type Status,
  statementText,
  sync,
  welcome,
} from './wire.ts';

const maxWaitingBytes = 32 * 2 ** 20;
const maxWaitingGroups = 1_000;
const maxStatements = 10_000;
/** A client that reads slower than this gets no further group run. */
const maxUnreadBytes = 16 * 2 ** 20;

/** COPY needs data that follows its own group: the only backend would wait for it and block all other clients. */
const copyIn = /(?:^|;)\s*copy\b[^;]*\bfrom\s+stdin\b/i;
const listen = /^\s*listen\b/i;
const copyRefused =
  "do $$begin raise exception 'COPY FROM STDIN is not available in the embedded database' using errcode = '0A000'; end$$";

/** Remaining messages of a refused COPY, and unrequested passwords. */
const ignored = new Set(['d', 'c', 'f', 'p']);

/** Messages that end with a Sync, a simple Query or a Flush. */
export interface Group {
  readonly bytes: Buffer;
  /** Ends with Sync, so ReadyForQuery must come. */
  readonly synced: boolean;
}

export interface SessionOptions {
  readonly settings: Readonly<Record<string, string>>;
  /** There may be something to run now. */
  readonly onWork: (session: Session) => void;
  readonly onLeave: (session: Session) => void;
}

export class Session {
  /** Status in the last ReadyForQuery. */
  status: Status = 'I';
  /** Messages have run and their Sync has not arrived: the unnamed statement and portal are still needed. */
  open = false;
  /** It gets the notifications of all channels. */
  listens = false;
  readonly #socket: Socket;
  readonly #options: SessionOptions;
  readonly #reader = new MessageReader();
  #parts: Buffer[] = [];
  #partBytes = 0;
  readonly #groups: Group[] = [];
  #waitingBytes = 0;
  /** Names of prepared statements. They are dropped when the client has left: the backend outlives it. */
  readonly #statements = new Set<string>();
  #terminated = false;
  #left = false;
  #cleaned = false;

  constructor(socket: Socket, options: SessionOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('drain', () => options.onWork(this));
    socket.on('error', () => undefined); // "close" follows.
    socket.on('close', () => this.#leave());
  }

  /** Something can be run for this client now. */
  get ready(): boolean {
    if (this.#left) return this.#groups.length > 0 || !this.#cleaned;
    return this.#groups.length > 0 && this.#socket.writableLength < maxUnreadBytes;
  }

  /** No other client may run a statement before this one continues. */
  get holds(): boolean {
    return this.open || this.status !== 'I';
  }

  /** The next group, or what undoes the traces of a client that has left. */
  take(): Group | undefined {
    const group = this.#groups.shift();
    if (group === undefined) return this.#left && !this.#cleaned ? this.#cleanUp() : undefined;
    this.#waitingBytes -= group.bytes.length;
    if (this.#socket.isPaused() && this.#waitingBytes < maxWaitingBytes / 2) this.#socket.resume();
    return group;
  }

  write(bytes: Uint8Array): void {
    if (!this.#socket.destroyed) this.#socket.write(bytes);
  }

  /** Ends the connection with a reason; `code` is a SQLSTATE. */
  end(code: string, reason: string): void {
    if (!this.#socket.destroyed) this.#socket.end(fatal(code, reason));
    this.#socket.destroySoon();
    this.#leave();
  }

  #receive(chunk: Buffer): void {
    try {
      for (const message of this.#reader.push(chunk)) this.#handle(message);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.end('08P01', error.message);
    }
  }

  #handle(message: Message): void {
    if (this.#terminated) return;
    if (message.kind === 'encryption') this.write(encryptionRefused);
    else if (message.kind === 'startup') this.write(welcome(this.#options.settings, process.pid));
    // One backend runs one statement to its end: there is nothing that a cancel could interrupt.
    else if (message.kind === 'X' || message.kind === 'cancel') this.#terminate();
    else if (!ignored.has(message.kind)) this.#collect(message);
  }

  #terminate(): void {
    this.#terminated = true;
    this.#socket.end();
  }

  #collect(message: Message): void {
    const bytes = this.#checked(message);
    this.#parts.push(bytes);
    this.#partBytes += bytes.length;
    if (this.#partBytes > maxMessageBytes) throw new ProtocolError('a group of messages is too large');
    if ('QHS'.includes(message.kind)) this.#close(message.kind === 'S');
  }

  /** The bytes for the backend of a message. */
  #checked(message: Message): Buffer {
    switch (message.kind) {
      case 'P': {
        const name = parsedName(message);
        if (name !== '') this.#statements.add(name);
        if (this.#statements.size > maxStatements) throw new ProtocolError('there are too many prepared statements');
        return copyIn.test(statementText(message)) ? parse(name, copyRefused) : message.bytes;
      }
      case 'C':
        this.#statements.delete(closedName(message) ?? '');
        return message.bytes;
      case 'Q':
        this.listens ||= listen.test(statementText(message));
        return copyIn.test(statementText(message)) ? query(copyRefused) : message.bytes;
      case 'B':
      case 'D':
      case 'E':
      case 'H':
      case 'S':
        return message.bytes;
      default:
        throw new ProtocolError('a message of unknown kind is not accepted');
    }
  }

  #close(synced: boolean): void {
    this.#groups.push({ bytes: this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts), synced });
    this.#waitingBytes += this.#partBytes;
    this.#parts = [];
    this.#partBytes = 0;
    if (this.#waitingBytes > maxWaitingBytes || this.#groups.length > maxWaitingGroups) this.#socket.pause();
    this.#options.onWork(this);
  }

  #leave(): void {
    if (this.#left) return;
    this.#left = true;
    if (!this.#terminated) this.#groups.length = 0;
    this.#parts = [];
    this.#options.onLeave(this);
  }

  #cleanUp(): Group | undefined {
    this.#cleaned = true;
    const parts: Buffer[] = [];
    if (this.open) parts.push(executeNothing, sync);
    if (this.holds) parts.push(query('rollback'));
    if (this.#statements.size > 0) parts.push(...[...this.#statements].map(closeStatement));
    return parts.length === 0 ? undefined : { bytes: Buffer.concat([...parts, sync]), synced: true };
  }
}
