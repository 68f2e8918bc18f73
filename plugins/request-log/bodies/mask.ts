/** Masks the secrets of a body, whether it is JSON, an event stream or plain text. Pure. */
import { scrubText } from '../../common/kit/scrub.ts';
import type { Kept } from './excerpt.ts';
import { type JsonListener, readJson } from './json-strings.ts';
import { mask, type Range, type Secrets } from './secrets.ts';

/** Levels of JSON nested in JSON strings. */
const deepest = 4;
/** A secret that was cut cannot be recognised by its form, so up to this much of the last word is removed. */
const longestWord = 4_096;
const secretLetter = /[\w+/=.~:@-]/;
const shortestWord = 6;
const longestKnown = 100;
const mostKnown = 1_000;

/** The masked text. */
export function maskBody({ text, omittedBytes: leftOut }: Kept, secrets: Secrets): string {
  const isCut = leftOut > 0;
  const masker = new BodyMasker(secrets, deepest, isCut);
  masker.read(isCut ? withoutLastWord(text) : text);
  return storableText(masker.end());
}

/** Removes the last word, and trailing digits that may belong to a longer number. */
function withoutLastWord(text: string): string {
  const from = Math.max(0, text.length - longestWord);
  const tail = text.slice(from).replace(/[^\s"]*$/, '');
  return text.slice(0, from) + tail.replace(/[\d \t-]*$/, '');
}

/** Start of the last word of characters that secrets consist of; a short word reveals nothing. */
function lastWordOf(text: string): number {
  let start = text.length;
  while (start > 0 && text.length - start < longestWord && secretLetter.test(text[start - 1]!)) start--;
  return text.length - start < shortestWord ? text.length : start;
}

/** Replaces characters that JSON strings allow and Postgres text does not. */
const storableText = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd');

/** One string of the text; strings of the same path continue one another from event to event. */
interface Piece {
  readonly decoded: string;
  readonly raw: string;
  readonly path: string;
  /** Ranges hidden because of the strings next to it. */
  hidden: Range[];
  /** A secret continues from the previous string or into the next. */
  isTorn: boolean;
}

class BodyMasker implements JsonListener {
  readonly #secrets: Secrets;
  readonly #depth: number;
  readonly #isCut: boolean;
  readonly #parts: (string | Piece)[] = [];
  /** Strings of the current document, and of all documents by path and index. */
  #document: Piece[] = [];
  #indices = '';
  #isBroken = false;
  readonly #threads = new Map<string, Piece[]>();
  /** Results for strings that the events of a stream repeat. */
  readonly #known = new Map<string, string>();

  constructor(secrets: Secrets, depth: number, isCut = false) {
    this.#secrets = secrets;
    this.#depth = depth;
    this.#isCut = isCut;
  }

  /** Reads event streams and JSON lines line by line. */
  read(text: string): void {
    if (isJson(text)) {
      this.#json(text);
      return;
    }
    let plain = '';
    for (const line of text.split(/(?<=[\r\n])/)) {
      const head = /^[a-z]{1,10}: ?(?=[[{"])/.exec(line)?.[0];
      if (head === undefined) {
        plain += line;
        continue;
      }
      this.#plain(plain);
      plain = '';
      this.#parts.push(head);
      this.#json(line.slice(head.length));
    }
    this.#plain(plain);
  }

  end(): string {
    this.documentEnd();
    for (const thread of this.#threads.values()) this.#hideAcross(thread);
    const masked = this.#parts.map((part) => (typeof part === 'string' ? part : this.#maskedPiece(part))).join('');
    // In broken JSON the positions of names and values are uncertain.
    return this.#isBroken ? this.#secrets.masked(masked) : masked;
  }

  between(text: string, hidden: boolean): void {
    if (hidden) this.#parts.push(text.replace(/[^\s:]+/g, `"${mask}"`));
    else this.#parts.push(text.length < 8 ? text : this.#secrets.masked(text));
  }

  name(raw: string, decoded: string): void {
    const clean = this.#masked(decoded);
    this.#parts.push(clean === decoded ? raw : JSON.stringify(clean));
  }

  value(raw: string, decoded: string, path: string, hidden: boolean): void {
    if (hidden) {
      this.#parts.push(`"${mask}"`);
      return;
    }
    const piece: Piece = { raw, decoded, path, hidden: [], isTorn: false };
    this.#parts.push(piece);
    this.#document.push(piece);
  }

  index(name: string, value: string): void {
    this.#indices += ` ${name}${value.slice(0, 12)}`;
  }

  documentEnd(): void {
    for (const piece of this.#document) {
      const key = piece.path + this.#indices;
      const thread = this.#threads.get(key);
      if (thread === undefined) this.#threads.set(key, [piece]);
      else thread.push(piece);
    }
    this.#document = [];
    this.#indices = '';
  }

  #json(text: string): void {
    if (!parses(text)) this.#isBroken = true;
    readJson(text, (name) => this.#secrets.hides(name), this);
    this.documentEnd();
  }

  #plain(text: string): void {
    if (text !== '') this.#parts.push(text.length < 8 ? text : scrubText(this.#secrets.masked(text)));
  }

  /** Hides a secret that is spread over the strings of several events. */
  #hideAcross(thread: readonly Piece[]): void {
    const [first] = thread;
    // An id that every event repeats is not a secret in pieces.
    if (thread.every(({ decoded }) => decoded === first!.decoded)) return;
    const whole = thread.map(({ decoded }) => decoded).join('');
    const ranges = this.#secrets.within(whole);
    // If the body was cut, the last word may be the beginning of a secret.
    const cut = this.#isCut ? Math.max(lastWordOf(whole), ranges.at(-1)?.[1] ?? 0) : whole.length;
    if (cut < whole.length) ranges.push([cut, whole.length]);
    let at = 0;
    let next = 0;
    for (const piece of thread) {
      while (next < ranges.length && ranges[next]![1] <= at) next++;
      hideIn(piece, at, ranges, next);
      at += piece.decoded.length;
    }
  }

  #maskedPiece({ raw, decoded, hidden, isTorn }: Piece): string {
    const isNested = !isTorn && this.#depth > 0 && /^\s*[[{]/.test(decoded) && parses(decoded);
    const clean = isNested ? this.#nested(decoded) : this.#masked(decoded, hidden);
    return clean === decoded ? raw : JSON.stringify(clean);
  }

  #masked(text: string, hidden: readonly Range[] = []): string {
    if (hidden.length > 0 || text.length > longestKnown) return this.#secrets.masked(text, hidden);
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const clean = this.#secrets.masked(text);
    if (this.#known.size < mostKnown) this.#known.set(text, clean);
    return clean;
  }

  #nested(text: string): string {
    const inner = new BodyMasker(this.#secrets, this.#depth - 1);
    inner.read(text);
    return inner.end();
  }
}

/** Hides in a piece, which begins at `start` of its thread, what lies in the ranges from `first` on. */
function hideIn(piece: Piece, start: number, ranges: readonly Range[], first: number): void {
  const end = start + piece.decoded.length;
  for (let index = first; index < ranges.length && ranges[index]![0] < end; index++) {
    const [from, until, words] = ranges[index]!;
    const isWhole = from >= start && until <= end;
    if (!isWhole) piece.isTorn = true;
    piece.hidden.push([Math.max(from, start) - start, Math.min(until, end) - start, isWhole ? words : undefined]);
  }
}

const isJson = (text: string): boolean => /^\s*[[{"]/.test(text);

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
