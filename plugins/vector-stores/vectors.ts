/** Vectors of length 1 as bytes, and the best of many by their cosine. Pure. */

/** Little-endian 32-bit floats in base64, as embeddings come; undefined: they are none, or have no direction. */
export function unitOf(base64: unknown): Float32Array | undefined {
  if (typeof base64 !== 'string') return undefined;
  const vector = vectorOf(base64);
  if (vector === undefined) return undefined;
  let squares = 0;
  for (const value of vector) squares += value * value;
  if (!Number.isFinite(squares) || squares === 0) return undefined;
  const length = Math.sqrt(squares);
  return vector.map((value) => value / length);
}

/** undefined: no whole number of floats. */
export function vectorOf(base64: string): Float32Array | undefined {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length === 0 || bytes.length % 4 !== 0) return undefined;
  // A view needs bytes that begin at a multiple of 4.
  return new Float32Array(new Uint8Array(bytes).buffer);
}

export const base64Of = (vector: Float32Array): string =>
  Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');

/** The vectors have length 1; those of different lengths have nothing in common. */
export function cosine(one: Float32Array, other: Float32Array): number {
  if (one.length !== other.length) return 0;
  let product = 0;
  for (let at = 0; at < one.length; at++) product += one[at]! * other[at]!;
  return product;
}

export interface Scored {
  readonly file: string;
  readonly number: number;
  readonly score: number;
}

/** Keeps so many of the best that it sees; of equal ones, those that come first. */
export class Best {
  readonly #most: number;
  readonly #kept: Scored[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  add(one: Scored): void {
    const last = this.#kept.at(-1);
    if (this.#kept.length === this.#most && last !== undefined && last.score >= one.score) return;
    const place = this.#kept.findLastIndex(({ score }) => score >= one.score) + 1;
    this.#kept.splice(place, 0, one);
    if (this.#kept.length > this.#most) this.#kept.pop();
  }

  /** The best first. */
  get all(): readonly Scored[] {
    return this.#kept;
  }
}
