/** Finds every string of a JSON text with its place and what encloses it, in one pass; a member that stands twice is there twice. Pure. */
import { asBuffer } from '../../core/json/json.ts';
import { invalid } from '../../core/json/request-body.ts';
import { defaultMaxDepth } from '../../core/json/splice.ts';

/** An object or a list of the text. */
export interface Enclosing {
  readonly parent: Enclosing | undefined;
  /** Its name or index in the parent; undefined: the whole text. */
  readonly key: string | number | undefined;
  /** The members of an object that say what it is, wherever they stand in it. */
  role?: string;
  type?: string;
  /** It stands in a member that may hold data of a call: names and numbers in it are found too. */
  mayBeData?: boolean;
}

export interface FoundString {
  readonly within: Enclosing;
  readonly key: string | number;
  /** Offsets of its quotes: of the first, and right behind the last. */
  readonly start: number;
  readonly end: number;
  /** Absent: it is a value in quotes. */
  readonly form?: 'name' | 'number';
}

export interface Found {
  readonly strings: readonly FoundString[];
  /** Lists with a number in them. */
  readonly numbers: readonly Enclosing[];
}

const dataMembers = new Set(['arguments', 'args', 'partial_args', 'input', 'response']);

/** Strings of one request, which are in memory together. */
const mostStrings = 100_000;

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/** Throws invalid_request for a text that is no JSON object, or is nested too deep. Its scalars are not checked. */
export function scanStrings(bytes: Uint8Array): Found {
  const scan = new Scan(asBuffer(bytes));
  scan.run();
  return scan;
}

/** The string between these places. */
export function stringAt(bytes: Uint8Array, { start, end }: Pick<FoundString, 'start' | 'end'>): string {
  return JSON.parse(asBuffer(bytes).toString('utf8', start, end)) as string;
}

class Scan implements Found {
  readonly strings: FoundString[] = [];
  readonly numbers: Enclosing[] = [];
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  run(): void {
    this.#skipTo();
    if (this.#bytes[this.#at] !== openBrace) throw broken();
    this.#object({ parent: undefined, key: undefined }, 1);
  }

  /** Stands at an opening brace, and ends right behind the closing one. */
  #object(self: Enclosing, depth: number): void {
    for (this.#at++; this.#next() !== closeBrace; ) {
      const start = this.#at;
      const end = this.#string();
      const key = stringAt(this.#bytes, { start, end });
      if (self.mayBeData === true) this.#found({ within: self, key, start, end, form: 'name' });
      this.#next();
      const value = this.#at;
      this.#value(self, key, depth);
      if ((key === 'role' || key === 'type') && this.#bytes[value] === quote)
        self[key] = stringAt(this.#bytes, { start: value, end: this.#at });
    }
    this.#at++;
  }

  #list(self: Enclosing, depth: number): void {
    this.#at++;
    for (let index = 0; this.#next() !== closeBracket; index++) this.#value(self, index, depth);
    this.#at++;
  }

  #value(within: Enclosing, key: string | number, depth: number): void {
    const first = this.#bytes[this.#at];
    if (first === quote) {
      const start = this.#at;
      this.#found({ within, key, start, end: this.#string() });
    } else if (first === openBrace || first === openBracket) {
      if (depth === defaultMaxDepth) throw invalid(`The request is nested deeper than ${defaultMaxDepth} levels.`);
      const self: Enclosing = { parent: within, key };
      const isDataMember = within.parent !== undefined && dataMembers.has(String(key));
      if (within.mayBeData === true || isDataMember) self.mayBeData = true;
      if (first === openBrace) this.#object(self, depth + 1);
      else this.#list(self, depth + 1);
    } else this.#scalar(within, key);
  }

  #scalar(within: Enclosing, key: string | number): void {
    const start = this.#at;
    while (isScalar(this.#bytes[this.#at])) this.#at++;
    if (this.#at === start) throw broken();
    if (this.#bytes[start]! >= 0x3a) return;
    if (within.mayBeData === true) this.#found({ within, key, start, end: this.#at, form: 'number' });
    if (typeof key === 'number' && this.numbers.at(-1) !== within) this.numbers.push(within);
  }

  #found(found: FoundString): void {
    if (this.strings.length === mostStrings) throw invalid(`The request has more than ${mostStrings} texts.`);
    this.strings.push(found);
  }

  /** Passes the string that begins here; the offset right behind it. */
  #string(): number {
    const start = this.#at + 1;
    if (this.#bytes[this.#at] !== quote) throw broken();
    for (let from = start; ; ) {
      const found = this.#bytes.indexOf(quote, from);
      if (found === -1) throw broken();
      let before = found - 1;
      while (before >= start && this.#bytes[before] === backslash) before--;
      from = found + 1;
      if ((found - 1 - before) % 2 !== 0) continue;
      this.#at = from;
      return from;
    }
  }

  /** Passes spaces, commas and colons; the byte that follows. */
  #next(): number {
    this.#skipTo();
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw broken();
    return byte;
  }

  #skipTo(): void {
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09 && byte !== 0x2c && byte !== 0x3a) return;
      this.#at++;
    }
  }
}

/** Letters, digits and signs of numbers. */
function isScalar(byte: number | undefined): boolean {
  return byte !== undefined && ((byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x7a) || isSign(byte));
}

const isSign = (byte: number) => byte === 0x2b || byte === 0x2d || byte === 0x2e || byte === 0x45;

function broken() {
  return invalid('The message is not valid JSON.');
}
