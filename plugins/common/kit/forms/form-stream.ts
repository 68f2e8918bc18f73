/** Multipart forms (RFC 7578) read as they arrive: one part after the other, in bounded memory. */
import { invalid } from '../../../../core/json/request-body.ts';

/** A part; its body must be read, or left, before the next part is read. */
export interface StreamedPart extends Pick<RawPart, 'firstByte'> {
  readonly name: string;
  /** Set for files. */
  readonly filename: string | undefined;
  readonly mediaType: string | undefined;
  readonly body: AsyncIterable<Buffer>;
}

/** A part of any multipart body. */
interface RawPart {
  readonly head: string;
  /** Where its body begins in the source. */
  readonly firstByte: number;
  readonly body: AsyncIterable<Buffer>;
}

const mostParts = 100;
const mostHeadBytes = 4_096;
const mostPreambleBytes = 65_536;
const headEnd = Buffer.from('\r\n\r\n');

/** Throws invalid_request for a malformed form, or one with too many parts. What follows the last part is read and ignored. */
export async function* readFormStream(
  source: AsyncIterable<Uint8Array>,
  boundary: string,
): AsyncGenerator<StreamedPart, void> {
  for await (const { head, firstByte, body } of readPartStream(source, boundary))
    yield { ...partOf(head), firstByte, body };
}

/** The parts of any multipart body, as `readFormStream`. */
export async function* readPartStream(
  source: AsyncIterable<Uint8Array>,
  boundary: string,
): AsyncGenerator<RawPart, void> {
  const window = new Window(source);
  const mark = Buffer.from(`\r\n--${boundary}`);
  // The first boundary may be the very beginning.
  window.prepend(Buffer.from('\r\n'));
  await window.skipPast(mark, mostPreambleBytes);
  for (let count = 0; ; count++) {
    if (await window.startsWith('--')) break;
    if (count === mostParts) throw invalid(`The form has more than ${mostParts} parts.`);
    const head = await window.headUntil(headEnd);
    const body = new PartBody(window, mark);
    yield { head, firstByte: window.position, body };
    await body.finish();
  }
  await window.drain();
}

/** The bytes that have arrived and were not taken. */
class Window {
  readonly #source: AsyncIterator<Uint8Array>;
  #bytes: Buffer = Buffer.alloc(0);
  /** Where they begin in the source. */
  position = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  prepend(bytes: Buffer): void {
    this.position -= bytes.length;
    this.#bytes = Buffer.concat([bytes, this.#bytes]);
  }

  /** false: nothing more comes. */
  async #more(): Promise<boolean> {
    const { done, value } = await this.#source.next();
    if (done === true) return false;
    this.#bytes = this.#bytes.length === 0 ? Buffer.from(value) : Buffer.concat([this.#bytes, value]);
    return true;
  }

  #pass(count: number): void {
    this.#bytes = this.#bytes.subarray(count);
    this.position += count;
  }

  async skipPast(mark: Buffer, mostBytes: number): Promise<void> {
    for (;;) {
      const found = this.#bytes.indexOf(mark);
      if (found !== -1) {
        this.#pass(found + mark.length);
        return;
      }
      if (this.#bytes.length > mostBytes || !(await this.#more())) throw broken();
    }
  }

  async startsWith(text: string): Promise<boolean> {
    while (this.#bytes.length < text.length) if (!(await this.#more())) throw broken();
    return this.#bytes.toString('latin1', 0, text.length) === text;
  }

  /** The lines behind a boundary, which may be followed by white space. */
  async headUntil(mark: Buffer): Promise<string> {
    for (;;) {
      const found = this.#bytes.subarray(0, mostHeadBytes).indexOf(mark);
      if (found !== -1) {
        const head = this.#bytes.toString('utf8', 0, found);
        this.#pass(found + mark.length);
        if (!/^[ \t]*\r\n/.test(head)) throw broken();
        return head;
      }
      if (this.#bytes.length >= mostHeadBytes || !(await this.#more())) throw broken();
    }
  }

  /** The next bytes of the part that the mark ends; undefined: the mark was reached and taken. */
  async take(mark: Buffer): Promise<Buffer | undefined> {
    for (;;) {
      const found = this.#bytes.indexOf(mark);
      if (found === 0) {
        this.#pass(mark.length);
        return undefined;
      }
      // The last bytes may be the beginning of the mark.
      const certain = found === -1 ? this.#bytes.length - (mark.length - 1) : found;
      if (certain > 0) {
        const bytes = this.#bytes.subarray(0, certain);
        this.#pass(certain);
        return bytes;
      }
      if (!(await this.#more())) throw broken();
    }
  }

  async drain(): Promise<void> {
    this.#bytes = Buffer.alloc(0);
    while (!(await this.#source.next()).done);
  }
}

class PartBody implements AsyncIterable<Buffer> {
  readonly #window: Window;
  readonly #mark: Buffer;
  #ended = false;

  constructor(window: Window, mark: Buffer) {
    this.#window = window;
    this.#mark = mark;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void> {
    while (!this.#ended) {
      const bytes = await this.#window.take(this.#mark);
      if (bytes === undefined) this.#ended = true;
      else yield bytes;
    }
  }

  async finish(): Promise<void> {
    for await (const _ of this);
  }
}

function partOf(head: string): Omit<StreamedPart, 'body' | 'firstByte'> {
  const disposition = /^content-disposition:\s*form-data\s*;(.*)$/im.exec(head)?.[1];
  const name = disposition === undefined ? undefined : parameterOf(disposition, 'name');
  if (name === undefined) throw broken();
  return { name, filename: parameterOf(disposition!, 'filename'), mediaType: mediaTypeIn(head) };
}

/** The media type of a part, by its head. */
export function mediaTypeIn(head: string): string | undefined {
  return /^content-type:\s*([\w!#$&^.+-]{1,100}\/[\w!#$&^.+-]{1,100})/im.exec(head)?.[1]?.toLowerCase();
}

/** Browsers and clients percent-encode line breaks and quotes in names. */
export function parameterOf(disposition: string, parameter: string): string | undefined {
  const match = new RegExp(`(?:^|[;\\s])${parameter}=(?:"([^"]*)"|([^\\s;"]+))`, 'i').exec(disposition);
  return (match?.[1] ?? match?.[2])?.replace(/%0D/gi, '\r').replace(/%0A/gi, '\n').replaceAll('%22', '"');
}

export function broken(): Error {
  return invalid('The request body is not a valid form (multipart/form-data).');
}
