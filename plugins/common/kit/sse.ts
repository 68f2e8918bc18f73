/** Server-Sent Events: cut a byte stream into frames however it was chunked, read one frame, write one. Pure. */
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** Frames above this are not believed to end: 64 MB, several times the largest image that vendors stream. */
export const defaultMaxFrameBytes = 64 * 2 ** 20;

/**
 * One whole frame as it came, line ends and blank line included. `end` is the offset right behind it in the chunk that
 * completed it (0 when only the next chunk showed that it was complete).
 */
export type OnFrame = (raw: Buffer, end: number) => void;

/**
 * Finds the frames of a stream that is fed in any chunks; concatenated, they are the stream. Nothing is decoded and no
 * chunk is changed, so the very same chunk can be passed on; a frame that lies within one chunk is a view of it.
 * Line ends are LF, CRLF or CR, also mixed (WHATWG HTML, 9.2.6).
 */
export class FrameReader {
  readonly #onFrame: OnFrame;
  readonly #maxBytes: number;
  /** Earlier chunks' part of the frame that is not complete yet. */
  #pieces: Buffer[] = [];
  #pendingBytes = 0;
  /** The current line has no bytes yet: another line end here ends the frame. */
  #lineIsEmpty = true;
  #lastLineEndedByCr = false;
  /** The last byte was a CR; an LF may follow. */
  #openCr = false;
  #openCrEndsFrame = false;
  /** A frame was ended by a bare CR: an LF right behind it is no line of its own. */
  #skipLineFeed = false;

  constructor(onFrame: OnFrame, maxFrameBytes = defaultMaxFrameBytes) {
    this.#onFrame = onFrame;
    this.#maxBytes = maxFrameBytes;
  }

  /** Bytes of the frame that is not complete yet. 0: the stream stands between two frames. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Calls `onFrame` for each frame that this chunk completes. Throws an UpstreamError when a frame grows beyond the limit. */
  feed(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    const bytes = asBuffer(chunk);
    const frameStart = this.#scan(bytes);
    if (frameStart === bytes.length) return;
    this.#pieces.push(frameStart === 0 ? bytes : bytes.subarray(frameStart));
    this.#pendingBytes += bytes.length - frameStart;
    if (this.#pendingBytes > this.#maxBytes) throw new UpstreamError('body', 'a stream frame is too large');
  }

  /** The rest when the stream has ended: the last frame without its blank line; undefined when there is nothing. */
  end(): Buffer | undefined {
    const rest = this.#pieces.length === 0 ? undefined : Buffer.concat(this.#pieces, this.#pendingBytes);
    this.#pieces = [];
    this.#pendingBytes = 0;
    return rest;
  }

  /** Returns where the incomplete frame begins. */
  #scan(bytes: Buffer): number {
    if (!this.#openCr) return this.#scanLines(bytes, 0, 0);
    const at = bytes[0] === lineFeed ? 1 : 0;
    this.#openCr = false;
    this.#lastLineEndedByCr = at === 0;
    return this.#scanLines(bytes, at, this.#openCrEndsFrame ? this.#complete(bytes, 0, at) : 0);
  }

  #scanLines(bytes: Buffer, from: number, firstFrameStart: number): number {
    const length = bytes.length;
    let frameStart = firstFrameStart;
    let at = from;
    let nextLf = -1;
    let nextCr = -1;
    while (at < length) {
      if (this.#skipLineFeed && this.#skips(bytes[at]!)) {
        at++;
        continue;
      }
      if (nextLf < at) nextLf = indexOrEnd(bytes, lineFeed, at);
      if (nextCr < at) nextCr = indexOrEnd(bytes, carriageReturn, at);
      const end = Math.min(nextLf, nextCr);
      if (end === length) {
        this.#lineIsEmpty = false;
        return frameStart;
      }
      const endsFrame = this.#lineIsEmpty && end === at;
      at = this.#lineEnd(bytes, end, endsFrame);
      this.#lineIsEmpty = true;
      if (endsFrame && !this.#openCr) frameStart = this.#complete(bytes, frameStart, at);
    }
    return frameStart;
  }

  /** Whether this byte is the line feed to skip; no later one is. */
  #skips(byte: number): boolean {
    this.#skipLineFeed = false;
    return byte === lineFeed;
  }

  /** Steps over the line end at `end`. A CR at the chunk's edge stays open, unless bare CRs are this stream's habit. */
  #lineEnd(bytes: Buffer, end: number, endsFrame: boolean): number {
    if (bytes[end] === lineFeed) {
      this.#lastLineEndedByCr = false;
      return end + 1;
    }
    if (endsFrame && this.#lastLineEndedByCr) {
      this.#skipLineFeed = true;
      return end + 1;
    }
    if (end + 1 === bytes.length) {
      this.#openCr = true;
      this.#openCrEndsFrame = endsFrame;
      return end + 1;
    }
    const isCrLf = bytes[end + 1] === lineFeed;
    this.#lastLineEndedByCr = !isCrLf;
    return isCrLf ? end + 2 : end + 1;
  }

  #complete(bytes: Buffer, start: number, end: number): number {
    const own = start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
    let raw = own;
    if (this.#pieces.length > 0) {
      this.#pieces.push(own);
      raw = Buffer.concat(this.#pieces, this.#pendingBytes + own.length);
      this.#pieces = [];
      this.#pendingBytes = 0;
    }
    this.#onFrame(raw, end);
    return end;
  }
}

/** The very bytes. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function indexOrEnd(bytes: Buffer, value: number, from: number): number {
  const index = bytes.indexOf(value, from);
  return index === -1 ? bytes.length : index;
}

/** The content of a frame. */
export interface SseEvent {
  /** The `event` field; undefined when the frame names none. */
  readonly event: string | undefined;
  /** All `data` fields, joined by line feeds. */
  readonly data: string;
}

/** Reads one frame; undefined when it has no data (comments, blank lines, lone fields). A byte order mark in front is skipped. */
export function parseFrame(raw: Uint8Array): SseEvent | undefined {
  const text = asBuffer(raw).toString('utf8');
  const hasCr = text.includes('\r');
  let event: string | undefined;
  let data: string | undefined;
  for (let start = text.charCodeAt(0) === 0xfeff ? 1 : 0; start < text.length; ) {
    const end = lineEnd(text, start, hasCr);
    const colon = text.indexOf(':', start);
    const fieldEnd = colon === -1 || colon > end ? end : colon;
    const value = valueIn(text, fieldEnd, end);
    if (isField('data', text, start, fieldEnd)) data = data === undefined ? value : `${data}\n${value}`;
    else if (isField('event', text, start, fieldEnd)) event = value;
    start = end + 1;
  }
  return data === undefined ? undefined : { event, data };
}

function isField(name: string, text: string, start: number, end: number): boolean {
  return end === start + name.length && text.startsWith(name, start);
}

/** The text after the colon at `fieldEnd`, without one space. */
function valueIn(text: string, fieldEnd: number, end: number): string {
  const start = text.charCodeAt(fieldEnd + 1) === 0x20 ? fieldEnd + 2 : fieldEnd + 1;
  return start >= end ? '' : text.slice(start, end);
}

/** Only CR, LF and CRLF end a line, of which CRLF makes an empty line more; U+2028 and its like are text. */
function lineEnd(text: string, from: number, hasCr: boolean): number {
  const lf = text.indexOf('\n', from);
  const cr = hasCr ? text.indexOf('\r', from) : -1;
  if (lf === -1) return cr === -1 ? text.length : cr;
  return cr === -1 || lf < cr ? lf : cr;
}

/** One frame as bytes of text, ended by its blank line. `data` may have several lines. */
export function formatFrame(data: string, event?: string): string {
  const head = event === undefined ? '' : `event: ${event}\n`;
  const body = data.includes('\n') || data.includes('\r') ? data.split(/\r\n|\n|\r/).join('\ndata: ') : data;
  return `${head}data: ${body}\n\n`;
}

/** A frame that clients skip: keeps a silent stream alive. */
export const keepAliveFrame: Uint8Array = Buffer.from(': keep-alive\n\n');

/** The same without a blank line, which OpenAI's clients in Python and Go read as the end of an event without data, and fail. */
export const keepAliveLine: Uint8Array = Buffer.from(': keep-alive\n');
