/** A text that never shows itself: in strings, JSON, logs and inspections it reads `***`. Pure. */
import type { Secret } from './vocabulary.ts';

const mask = '***';

class HiddenText implements Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return mask;
  }

  toJSON(): string {
    return mask;
  }

  /** Template strings, concatenation and Number() included. */
  [Symbol.toPrimitive](): string {
    return mask;
  }

  /** What util.inspect and console.log print: https://nodejs.org/api/util.html#custom-inspection-functions-on-objects */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return mask;
  }
}

/** Hides a text; only `reveal()` gives it back. */
export function secret(text: string): Secret {
  return new HiddenText(text);
}

/** Prefixed keys, long tokens behind a short prefix, bearer tokens, and passwords inside URLs. */
const secretPattern =
  /\b(?:sk|pk|rk|gsk|sess)-[A-Za-z0-9_-]{8,}|(?<=\b[a-z]{2,4}-)[A-Za-z0-9]{24,}|\bAIza[A-Za-z0-9_-]{20,}|(?<=Bearer\s)[^\s"',]{8,}|(?<=:\/\/[^\s:@/]*:)[^\s@/]+(?=@)/g;

/** Replaces whatever looks like a credential by `***`. */
export function maskSecrets(text: string): string {
  return text.replace(secretPattern, '***');
}
