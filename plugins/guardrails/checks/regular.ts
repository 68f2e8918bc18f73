/** Regular expressions in linear time: no pattern and no text can make one hang. */
import { RE2JS } from 're2js';

export interface Match {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Characters that one search reads: about 15 ms of the slowest expressions. */
export const mostAtOnce = 8_192;
/** A match that begins in one part is found in the next one if it is no longer; one that is longer still, where nothing ends it. */
const longestMatch = 4_096;
const longestPart = 65_536;

interface Part {
  readonly found: readonly Match[];
  /** Where the next one begins. */
  readonly next: number;
}

export class Regular {
  readonly #compiled: RE2JS;

  /** Throws an Error with a sentence for a pattern that is none. */
  constructor(pattern: string, ignoresCase: boolean) {
    try {
      this.#compiled = RE2JS.compile(pattern, ignoresCase ? RE2JS.CASE_INSENSITIVE : 0);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`"${pattern}" is no regular expression of RE2: ${why}`);
    }
  }

  /** The matches in parts of a text, each read in little time. A match that fills its part is looked for in the next one, which is longer. */
  *parts(text: string): Generator<readonly Match[]> {
    let most = mostAtOnce;
    for (let from = 0; from < text.length; ) {
      if (most > longestPart) throw new Error('a text has a match that is too long');
      const part = this.#part(text, from, most);
      yield part.found;
      most = part.next === from ? most * 2 : mostAtOnce;
      from = part.next;
    }
  }

  /** A longer part ends behind its first match. */
  #part(text: string, from: number, most: number): Part {
    const end = wholeSigns(text, from + most);
    const isOpen = end < text.length;
    const matcher = this.#compiled.matcher(isOpen ? text.slice(0, end) : text);
    const found: Match[] = [];
    let at = from;
    while (at <= end && matcher.find(at)) {
      const [start, stop] = [matcher.start(), matcher.end()];
      if (isOpen && stop === end) return { found, next: start };
      if (stop > start) found.push({ start, end: stop, text: text.slice(start, stop) });
      at = Math.max(stop, at + 1);
      if (most > mostAtOnce) return { found, next: at };
    }
    return { found, next: isOpen ? Math.max(at, end - longestMatch) : end };
  }

  *matches(text: string): Generator<Match> {
    const matcher = this.#compiled.matcher(text);
    while (matcher.find()) {
      const [start, end] = [matcher.start(), matcher.end()];
      if (end > start) yield { start, end, text: text.slice(start, end) };
    }
  }
}

/** A place that cuts no sign in two. */
function wholeSigns(text: string, end: number): number {
  if (end >= text.length) return text.length;
  return text.slice(end - 1, end).isWellFormed() ? end : end - 1;
}

/** Expressions of our own that no text makes slow, in the engine's own form, which is many times faster. */
export class Native {
  readonly #pattern: RegExp;

  /** `pattern` has the flag `g`. */
  constructor(pattern: RegExp) {
    this.#pattern = pattern;
  }

  *matches(text: string): Generator<Match> {
    for (const { 0: found, index } of text.matchAll(this.#pattern))
      if (found !== '') yield { start: index, end: index + found.length, text: found };
  }
}

/** Whether the pattern is one of RE2. */
export function isRegular(pattern: string): boolean {
  try {
    return new Regular(pattern, false) !== undefined;
  } catch {
    return false;
  }
}
