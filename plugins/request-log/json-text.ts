/** JSON that is put together from short parts: written as bytes, since joined strings would be an object for each part. */

const usualBytes = 16 * 1024;
/** Decimal digits of the largest number that is written digit by digit, and more than any other number's. */
const numberBytes = 32;
const largestSmall = 0x3fff_ffff;
const zero = 0x30;

/** One text at a time, used again for the next. */
export class JsonText {
  #bytes = Buffer.allocUnsafeSlow(usualBytes);
  #at = 0;

  /** Drops the written text. */
  begin(): void {
    this.#at = 0;
    if (this.#bytes.length > usualBytes) this.#bytes = Buffer.allocUnsafeSlow(usualBytes);
  }

  /** Characters of Latin 1 alone, as they are. */
  put(text: string): void {
    const { length } = text;
    if (this.#at + length > this.#bytes.length) this.#grow(length);
    const bytes = this.#bytes;
    let at = this.#at;
    for (let index = 0; index < length; index++) bytes[at++] = text.charCodeAt(index);
    this.#at = at;
  }

  /** As JSON.stringify writes it. */
  putNumber(value: number): void {
    if (value < 0 || value > largestSmall || (value | 0) !== value) {
      this.put(Number.isFinite(value) ? String(value) : 'null');
      return;
    }
    if (this.#at + numberBytes > this.#bytes.length) this.#grow(numberBytes);
    let digits = 1;
    for (let rest = value; rest >= 10; rest = (rest / 10) | 0) digits++;
    this.#at += digits;
    let rest = value;
    for (let place = this.#at - 1; digits > 0; digits--, place--) {
      const shorter = (rest / 10) | 0;
      this.#bytes[place] = zero + rest - shorter * 10;
      rest = shorter;
    }
  }

  #grow(more: number): void {
    const larger = Buffer.allocUnsafeSlow(2 * (this.#at + more));
    larger.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = larger;
  }

  get text(): string {
    return this.#bytes.toString('latin1', 0, this.#at);
  }
}

/** A text as a literal of JSON, without a character beyond Latin 1. */
export function latinLiteral(text: string): string {
  return JSON.stringify(text).replace(
    /[^\0-\xff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
