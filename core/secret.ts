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

/** Prefixed keys, and long tokens behind a short prefix. */
const keyPattern = /\b(?:sk|pk|rk|gsk|sess)-[A-Za-z0-9_-]{8,}|(?<=\b[a-z]{2,4}-)[A-Za-z0-9]{24,}/g;
const cloudKeyPattern = /\bAIza[A-Za-z0-9_-]{20,}/g;
const bearerPattern = /(?<=Bearer\s)[^\s"',]{8,}/g;
/** Passwords inside URLs. */
const passwordPattern = /(?<=:\/\/[^\s:@/]*:)[^\s@/]+(?=@)/g;
/** Nothing shorter is taken for a credential. */
const shortest = '://:x@'.length;

/** Replaces whatever looks like a credential by `***`. Each pattern is looked for only where what it begins with stands. */
export function maskSecrets(text: string): string {
  if (text.length < shortest) return text;
  let masked = text;
  if (text.includes('-')) masked = masked.replace(keyPattern, mask);
  if (text.includes('AIza')) masked = masked.replace(cloudKeyPattern, mask);
  if (text.includes('Bearer')) masked = masked.replace(bearerPattern, mask);
  if (text.includes('://')) masked = masked.replace(passwordPattern, mask);
  return masked;
}
