/** A body as it may be kept: the same text without its secrets, whether it is JSON, a stream of events or plain words. Pure. */
import { scrubText } from '../../../core/scrub.ts';
import type { Kept } from './excerpt.ts';
import { type JsonListener, readJson } from './json-strings.ts';
import { mask, type Range, type Secrets } from './secrets.ts';

/** JSON inside of strings inside of JSON … */
const deepest = 4;
/** What a cut may have left of a secret is no longer to be told by its form: so much of the last word goes. */
const longestWord = 4_096;
const secretLetter = /[\w+/=.~:@-]/;
const shortestWord = 6;
const longestKnown = 100;
const mostKnown = 1_000;

/** The text as it may be kept. */
export function maskBody({ text, leftOut }: Kept, secrets: Secrets): string {
  const isCut = leftOut > 0;
  const masker = new BodyMasker(secrets, deepest, isCut);
  masker.read(isCut ? withoutLastWord(text) : text);
  return storableText(masker.end());
}

/** Without the last word, and without digits that may belong to a longer number. */
function withoutLastWord(text: string): string {
  const from = Math.max(0, text.length - longestWord);
  const tail = text.slice(from).replace(/[^\s"]*$/, '');
  return text.slice(0, from) + tail.replace(/[\d \t-]*$/, '');
}

/** Where the last word of letters as secrets have them begins; a short one tells nothing. */
function lastWordOf(text: string): number {
  let start = text.length;
  while (start > 0 && text.length - start < longestWord && secretLetter.test(text[start - 1]!)) start--;
  return text.length - start < shortestWord ? text.length : start;
}

/** What a JSON string may hold and a database's text may not is replaced. */
const storableText = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd');

/** A string's place in the masked text; strings of one path go on in one another from event to event. */
interface Piece {
  readonly decoded: string;
  readonly raw: string;
  readonly path: string;
  /** What is hidden of it because of what stands in the strings beside it. */
  hidden: Range[];
  /** A secret goes on in the string before or behind. */
  isTorn: boolean;
}

class BodyMasker implements JsonListener {
  readonly #secrets: Secrets;
  readonly #depth: number;
  readonly #isCut: boolean;
  readonly #parts: (string | Piece)[] = [];
  /** Strings of the document that is being read, and of all documents by path and place. */
  #document: Piece[] = [];
  #indices = '';
  #isBroken = false;
  readonly #threads = new Map<string, Piece[]>();
  /** What each event of a stream repeats is looked at once. */
  readonly #known = new Map<string, string>();

  constructor(secrets: Secrets, depth: number, isCut = false) {
    this.#secrets = secrets;
    this.#depth = depth;
    this.#isCut = isCut;
  }

  /** Each line for itself where the text is a stream of events or of documents. */
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
    const told = this.#parts.map((part) => (typeof part === 'string' ? part : this.#told(part))).join('');
    // Where names and values stand is not certain then.
    return this.#isBroken ? this.#secrets.masked(told) : told;
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

  /** A secret that a stream tells by the syllable is hidden in each of them. */
  #hideAcross(thread: readonly Piece[]): void {
    const [first] = thread;
    // An id that each event repeats is no secret that goes on.
    if (thread.every(({ decoded }) => decoded === first!.decoded)) return;
    const whole = thread.map(({ decoded }) => decoded).join('');
    const ranges = this.#secrets.within(whole);
    // Of what was cut, the last word may be the beginning of a secret here too.
    const cut = this.#isCut ? Math.max(lastWordOf(whole), ranges.at(-1)?.[1] ?? 0) : whole.length;
    if (cut < whole.length) ranges.push([cut, whole.length]);
    let at = 0;
    let next = 0;
    for (const piece of thread) {
      const end = at + piece.decoded.length;
      while (next < ranges.length && ranges[next]![1] <= at) next++;
      for (let index = next; index < ranges.length && ranges[index]![0] < end; index++) {
        const [from, until, words] = ranges[index]!;
        const isWhole = from >= at && until <= end;
        if (!isWhole) piece.isTorn = true;
        piece.hidden.push([Math.max(from, at) - at, Math.min(until, end) - at, isWhole ? words : undefined]);
      }
      at = end;
    }
  }

  #told({ raw, decoded, hidden, isTorn }: Piece): string {
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

const isJson = (text: string): boolean => /^\s*[[{"]/.test(text);

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
