/** What is kept of one body while it passes: its beginning, with media replaced, within a bound of bytes. */
import { createHash, type Hash } from 'node:crypto';
import { MediaMarker } from './media.ts';

/** What was kept of a body; nothing in it is masked yet. */
export interface Kept {
  readonly text: string;
  /** Length of the whole body. */
  readonly bytes: number;
  /** How many of them the text does not tell of. */
  readonly leftOut: number;
}

export interface Excerpt {
  /** Copies what it keeps. */
  add(bytes: Uint8Array): void;
  /** undefined: the body was empty. Called once. */
  end(): Kept | undefined;
}

/** Asks for memory, and gives back with a negative number; false: there is no more. */
export type Take = (bytes: number) => boolean;

const firstBytes = 4 * 1024;
const pieceBytes = 64 * 1024;

/**
 * A text. As long as the body fits, its bytes are copied and nothing is looked at; a longer one is read for media from
 * then on, so that an image in front does not push out the words behind it.
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

  /** `take` was asked for nothing yet; who gives this excerpt up, gives back what it was granted. */
  constructor(mostBytes: number, take: Take) {
    this.#mostBytes = mostBytes;
    this.#take = take;
    this.#buffer = Buffer.alloc(0);
  }

  /** There was no memory for it: nothing of it is told. */
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
    // A letter that was cut in the middle is no letter.
    const text = Buffer.from(this.#text, 'latin1').toString('utf8');
    return { text: this.#leftOut > 0 ? text.replace(/\ufffd$/, '') : text, bytes: this.#bytes, leftOut: this.#leftOut };
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
    // A piece at a time: of a long text nothing is looked at once there is no more room.
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      if (this.#leftOut > 0) {
        this.#leftOut += bytes.length - at;
        return;
      }
      this.#put(this.#marker.next(latin1(bytes.subarray(at, at + pieceBytes))));
    }
  }

  /** From here on what is kept is the text. */
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

/** A body that is no text: what it is, how long, and its digest. */
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
    return { text: blobMark(this.#type, this.#bytes, this.#hash.digest('hex')), bytes: this.#bytes, leftOut: 0 };
  }
}

/** Words in place of bytes. */
export const blobMark = (type: string, bytes: number, digest: string): string =>
  `[${type || 'bytes'}: ${bytes} bytes, sha256 ${digest.slice(0, 16)}]`;

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
