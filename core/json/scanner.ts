/** Scans a large JSON object in steps: checks its structure, and notes where it can be taken apart into pieces of bounded size. Pure. */
import { DepthError, type Member, type ObjectScan } from './splice.ts';

/** More members and elements than the bound. */
export class BoundError extends RangeError {}

/** Either a run of small members or elements (`valueStart` is -1), or one that is large. */
export interface JsonSpan {
  readonly start: number;
  readonly end: number;
  /** For one large member or element: where its value begins, where its name ends (-1 in arrays), its parts if it is a container. */
  readonly valueStart: number;
  readonly keyEnd: number;
  readonly node: JsonNode | undefined;
}

/** A container that is larger than one piece. */
export interface JsonNode {
  readonly isObject: boolean;
  readonly spans: readonly JsonSpan[];
}

/** A container that is still open. */
interface Frame {
  readonly isObject: boolean;
  readonly start: number;
  readonly spans: JsonSpan[];
  /** The run of small values that is not closed yet; -1: none. */
  runStart: number;
  runEnd: number;
  keyStart: number;
  keyEnd: number;
}

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

const defaultRunBytes = 64 * 1024;
const maxNameBytes = 64 * 1024;
/** No number or word of JSON is longer in earnest. */
const maxScalarBytes = 1_000;
/** Strings longer than this are searched natively. */
const nearBytes = 48;

/** The tokens that may come next. */
type Expected = 'value' | 'value or end' | 'name' | 'name or end' | 'colon' | 'comma or end' | 'nothing';

export class SliceScanner {
  readonly #bytes: Buffer;
  readonly #maxValues: number;
  readonly #maxDepth: number;
  readonly #runBytes: number;
  readonly #stack: Frame[] = [];
  readonly #members: Omit<Member, 'key'>[] = [];
  readonly #keys: string[] = [];
  #at = 0;
  #values = 0;
  #expected: Expected = 'value';
  /** Where the string that is being scanned begins; -1: none is. */
  #stringStart = -1;
  /** The next quote and backslash at or behind the place where they were searched last. */
  #nextQuote = -1;
  #nextBackslash = -1;
  #root: JsonNode | undefined;
  #inside = 0;
  #end = 0;

  /** `runBytes`: runs, and containers that are parsed as a whole, are at most this large. */
  constructor(bytes: Uint8Array, maxValues: number, maxDepth: number, runBytes = defaultRunBytes) {
    this.#runBytes = runBytes;
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#maxValues = maxValues;
    this.#maxDepth = maxDepth;
  }

  get position(): number {
    return this.#at;
  }

  /** The object, once `scan` has returned true. */
  get root(): JsonNode {
    return this.#root!;
  }

  /** The object's own members, as `scanObject` finds them. */
  members(): ObjectScan {
    const members = this.#members.map((member, index) => ({ key: this.#keys[index]!, ...member }));
    return { members, inside: this.#inside, end: this.#end };
  }

  /** Goes on for about so many bytes. true: all is scanned. Throws SyntaxError, DepthError, BoundError. */
  scan(bytes: number): boolean {
    const until = Math.min(this.#bytes.length, this.#at + bytes);
    while (this.#at < until) {
      if (this.#stringStart !== -1) this.#goThroughString(until);
      else this.#step();
    }
    if (this.#at < this.#bytes.length) return false;
    if (this.#root === undefined) throw new SyntaxError('the object does not end');
    return true;
  }

  #step(): void {
    const byte = this.#bytes[this.#at]!;
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
      this.#at++;
      return;
    }
    const expected = this.#expected;
    if (expected === 'comma or end') this.#afterValue(byte);
    else if (expected === 'colon') this.#passColon(byte);
    else if (expected === 'nothing') throw this.#wrong('something follows the object');
    else if (expected === 'name' || expected === 'name or end') this.#beginName(byte, expected === 'name or end');
    else if (expected === 'value or end' && byte === closeBracket) this.#closeContainer();
    else this.#beginValue(byte);
  }

  #passColon(byte: number): void {
    if (byte !== 0x3a) throw this.#wrong('a colon is missing');
    this.#expected = 'value';
    this.#at++;
  }

  #afterValue(byte: number): void {
    const { isObject } = this.#stack.at(-1)!;
    if (byte === 0x2c) {
      this.#expected = isObject ? 'name' : 'value';
      this.#at++;
    } else if (byte === (isObject ? closeBrace : closeBracket)) this.#closeContainer();
    else throw this.#wrong('a comma is missing');
  }

  #beginName(byte: number, mayEnd: boolean): void {
    if (byte === quote) {
      this.#stack.at(-1)!.keyStart = this.#at;
      this.#stringStart = this.#at++;
    } else if (mayEnd && byte === closeBrace) this.#closeContainer();
    else throw this.#wrong("a member's name is missing");
  }

  #beginValue(byte: number): void {
    if (this.#stack.length === 0) {
      if (byte !== openBrace) throw new SyntaxError('not a JSON object');
      this.#inside = this.#at + 1;
    } else if (++this.#values > this.#maxValues) throw new BoundError(`more than ${this.#maxValues} values`);
    if (byte === quote) this.#stringStart = this.#at++;
    else if (byte === openBrace || byte === openBracket) this.#openContainer(byte === openBrace);
    else this.#goThroughScalar();
  }

  #openContainer(isObject: boolean): void {
    if (this.#stack.length >= this.#maxDepth) throw new DepthError(`nested deeper than ${this.#maxDepth}`);
    const start = this.#at++;
    this.#stack.push({ isObject, start, spans: [], runStart: -1, runEnd: -1, keyStart: -1, keyEnd: -1 });
    this.#expected = isObject ? 'name or end' : 'value or end';
  }

  #closeContainer(): void {
    const frame = this.#stack.pop()!;
    const end = ++this.#at;
    const isRoot = this.#stack.length === 0;
    let node: JsonNode | undefined;
    if (isRoot || end - frame.start > this.#runBytes) {
      closeRun(frame);
      node = { isObject: frame.isObject, spans: frame.spans };
    }
    if (isRoot) {
      this.#root = node;
      this.#end = end;
      this.#expected = 'nothing';
    } else this.#endValue(frame.start, end, node);
  }

  #goThroughScalar(): void {
    const start = this.#at;
    let at = start;
    while (isScalarByte(this.#bytes[at])) if (++at - start > maxScalarBytes) throw this.#wrong('a number is too long');
    if (at === start) throw this.#wrong('a value is missing');
    this.#at = at;
    this.#endValue(start, at, undefined);
  }

  #goThroughString(until: number): void {
    const bytes = this.#bytes;
    let at = this.#at;
    let near = at + nearBytes;
    while (at < until) {
      const byte = bytes[at];
      if (byte === quote) {
        this.#endString(at + 1);
        return;
      }
      if (byte === backslash) {
        at += 2;
        near = at + nearBytes;
      } else if (++at >= near) {
        if (this.#nextQuote < at) this.#nextQuote = placeOf(bytes, quote, at);
        if (this.#nextBackslash < at) this.#nextBackslash = placeOf(bytes, backslash, at);
        at = Math.min(this.#nextQuote, this.#nextBackslash);
        near = at + nearBytes;
      }
    }
    this.#at = Math.min(at, bytes.length);
  }

  #endString(end: number): void {
    const start = this.#stringStart;
    this.#stringStart = -1;
    this.#at = end;
    if (this.#expected !== 'name' && this.#expected !== 'name or end') {
      this.#endValue(start, end, undefined);
      return;
    }
    if (end - start > maxNameBytes) throw new BoundError(`a member's name is longer than ${maxNameBytes} bytes`);
    this.#stack.at(-1)!.keyEnd = end;
    this.#expected = 'colon';
  }

  #endValue(valueStart: number, end: number, node: JsonNode | undefined): void {
    this.#expected = 'comma or end';
    const frame = this.#stack.at(-1)!;
    const { isObject, keyEnd } = frame;
    const start = isObject ? frame.keyStart : valueStart;
    if (this.#stack.length === 1) {
      this.#members.push({ start, valueStart, end });
      this.#keys.push(this.#nameAt(start, keyEnd));
    }
    if (end - start > this.#runBytes) {
      closeRun(frame);
      frame.spans.push({ start, end, valueStart, keyEnd: isObject ? keyEnd : -1, node });
      return;
    }
    if (frame.runStart !== -1 && end - frame.runStart > this.#runBytes) closeRun(frame);
    if (frame.runStart === -1) frame.runStart = start;
    frame.runEnd = end;
  }

  #nameAt(start: number, end: number): string {
    const text = this.#bytes.toString('utf8', start + 1, end - 1);
    return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
  }

  #wrong(what: string): SyntaxError {
    return new SyntaxError(`${what} at byte ${this.#at}`);
  }
}

function closeRun(frame: Frame): void {
  if (frame.runStart === -1) return;
  frame.spans.push({ start: frame.runStart, end: frame.runEnd, valueStart: -1, keyEnd: -1, node: undefined });
  frame.runStart = -1;
}

function placeOf(bytes: Buffer, byte: number, from: number): number {
  const found = bytes.indexOf(byte, from);
  return found === -1 ? bytes.length : found;
}

/** Digits, lower-case letters, and what else numbers are made of. */
function isScalarByte(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  if ((byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x7a)) return true;
  return byte === 0x2d || byte === 0x2e || byte === 0x2b || byte === 0x45;
}
