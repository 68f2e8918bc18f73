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
