/** Regular expressions in linear time: no pattern and no text can make one hang. */
import { RE2JS } from 're2js';

export interface Match {
  readonly start: number;
  readonly end: number;
  readonly text: string;
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

  *matches(text: string): Generator<Match> {
    const matcher = this.#compiled.matcher(text);
    while (matcher.find()) {
      const [start, end] = [matcher.start(), matcher.end()];
      if (end > start) yield { start, end, text: text.slice(start, end) };
    }
  }
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
