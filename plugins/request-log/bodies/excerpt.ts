/** Excerpts: the beginning of a body, copied while it passes, with media replaced, within a bound of bytes. */
import { createHash, type Hash } from 'node:crypto';
import { MediaMarker } from './media.ts';

/** An excerpt, not yet masked. */
export interface Kept {
  readonly text: string;
  /** Length of the whole body. */
  readonly bytes: number;
  /** Bytes that the text does not cover. */
  readonly omittedBytes: number;
}

export interface Excerpt {
  /** Copies what it keeps. */
  add(bytes: Uint8Array): void;
  /** undefined: the body was empty. Called once. */
  end(): Kept | undefined;
}

/** Reserves memory, or releases it with a negative number; false: the budget is used up. */
export type Take = (bytes: number) => boolean;

const firstBytes = 4 * 1024;
const pieceBytes = 64 * 1024;

/**
 * A text. While the body fits, its bytes are copied without inspection; a longer one is then scanned for media, so that an
 * image at the beginning does not displace the text behind it.
 */
export class TextExcerpt implements Excerpt {
  readonly #mostBytes: number;
  readonly #take: Take;
  #buffer: Buffer;
  #used = 0;
  #bytes = 0;
  #marker: MediaMarker | undefined;
  #text = '';
  #leftOut = 0;
  #refused = false;

  /** Reserves nothing yet. A discarded excerpt must release what it has reserved. */
  constructor(mostBytes: number, take: Take) {
    this.#mostBytes = mostBytes;
    this.#take = take;
    this.#buffer = Buffer.alloc(0);
  }

  /** The memory budget was used up, so nothing is kept. */
  get refused(): boolean {
    return this.#refused;
  }

  add(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    if (this.#refused) return;
    if (this.#marker === undefined && this.#used + bytes.length <= this.#mostBytes) this.#copy(bytes);
    else this.#read(bytes);
  }

  end(): Kept | undefined {
    if (this.#bytes === 0 || this.#refused) return undefined;
    this.#marker ??= this.#beginReading();
    this.#put(this.#marker.end());
    // A UTF-8 sequence that was cut is dropped.
    const text = Buffer.from(this.#text, 'latin1').toString('utf8');
    return {
      text: this.#leftOut > 0 ? text.replace(/\ufffd$/, '') : text,
      bytes: this.#bytes,
      omittedBytes: this.#leftOut,
    };
  }

  #copy(bytes: Uint8Array): void {
    const wanted = this.#used + bytes.length;
    if (wanted > this.#buffer.length) {
      const length = Math.min(this.#mostBytes, Math.max(firstBytes, wanted, 2 * this.#buffer.length));
      if (!this.#granted(length - this.#buffer.length)) return;
      const larger = Buffer.allocUnsafeSlow(length);
      larger.set(this.#buffer.subarray(0, this.#used));
      this.#buffer = larger;
    }
    this.#buffer.set(bytes, this.#used);
    this.#used = wanted;
  }

  #read(bytes: Uint8Array): void {
    if (this.#marker === undefined) {
      if (!this.#granted(this.#mostBytes - this.#buffer.length)) return;
      this.#marker = this.#beginReading();
    }
    // In pieces, so that scanning stops as soon as the excerpt is full.
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      if (this.#leftOut > 0) {
        this.#leftOut += bytes.length - at;
        return;
      }
      this.#put(this.#marker.next(latin1(bytes.subarray(at, at + pieceBytes))));
    }
  }

  /** Switches from copied bytes to scanned text. */
  #beginReading(): MediaMarker {
    const marker = new MediaMarker();
    this.#put(marker.next(this.#buffer.toString('latin1', 0, this.#used)));
    this.#buffer = Buffer.alloc(0);
    return marker;
  }

  #put(text: string): void {
    const room = this.#mostBytes - this.#text.length;
    this.#text += text.slice(0, Math.max(0, room));
    this.#leftOut += Math.max(0, text.length - room);
  }

  #granted(bytes: number): boolean {
    if (this.#take(bytes)) return true;
    this.#refused = true;
    this.#buffer = Buffer.alloc(0);
    return false;
  }
}

/** A body that is not text: its type, length and digest. */
export class OpaqueExcerpt implements Excerpt {
  readonly #type: string;
  readonly #hash: Hash = createHash('sha256');
  #bytes = 0;

  constructor(type: string) {
    this.#type = type;
  }

  add(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    this.#hash.update(bytes);
  }

  end(): Kept | undefined {
    if (this.#bytes === 0) return undefined;
    return { text: blobMark(this.#type, this.#bytes, this.#hash.digest('hex')), bytes: this.#bytes, omittedBytes: 0 };
  }
}

/** The text that replaces binary content. */
export const blobMark = (type: string, bytes: number, digest: string): string =>
  `[${type || 'bytes'}: ${bytes} bytes, sha256 ${digest.slice(0, 16)}]`;

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
