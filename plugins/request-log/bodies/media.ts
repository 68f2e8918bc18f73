/** Media inside texts: found by their long runs of base64, and replaced by what they are, how long, and a digest. Pure. */
import { createHash, type Hash } from 'node:crypto';
import { sniffMediaType } from '../../../core/data-url.ts';

/** No word of any language is as long; the shortest image is longer. */
const shortestRun = 1_024;
/** Letters of both alphabets of base64, of percent signs, and of JSON's escapes inside of it. */
const runStart = new RegExp(`(?<![A-Za-z0-9+/=_%\\\\-])[A-Za-z0-9+/=_%\\\\-]{${shortestRun}}`, 'g');
const outside = /[^A-Za-z0-9+/=_%\\-]/g;
const openRun = new RegExp(`[A-Za-z0-9+/=_%\\\\-]{1,${shortestRun}}$`);
/** What stands before the comma of a data URL. */
const declared = /data:([\w.+-]{1,60}\/[\w.+-]{1,60})?[^"',\s]{0,100},$/i;
const declaredBytes = 240;
const sniffedBytes = 88;

/** A run on its way: it may be longer than memory should hold. */
interface Run {
  readonly type: string;
  readonly hash: Hash;
  length: number;
}

/** Words in place of media: their type, how many characters of base64, and the beginning of the SHA-256 of these. */
export const mediaMark = (type: string, length: number, digest: string): string =>
  `[${type}: ${length} characters, sha256 ${digest.slice(0, 16)}]`;

/** A short one at once. */
export function markOf(type: string, run: string): string {
  return mediaMark(type, run.length, createHash('sha256').update(run, 'latin1').digest('hex'));
}

/**
 * Reads a text piece by piece, in latin1 (each byte a character), and gives it back with its runs replaced. What may be
 * the beginning of a run waits for the next piece.
 */
export class MediaMarker {
  #run: Run | undefined;
  #waiting = '';
  /** The end of what was given back, where a data URL says its type. */
  #before = '';

  next(piece: string): string {
    let rest = this.#waiting + piece;
    this.#waiting = '';
    let told = '';
    while (rest !== '') {
      if (this.#run !== undefined) {
        outside.lastIndex = 0;
        const end = outside.exec(rest)?.index ?? rest.length;
        this.#grow(this.#run, rest.slice(0, end));
        rest = rest.slice(end);
        if (rest !== '') told += this.#close();
        continue;
      }
      runStart.lastIndex = 0;
      const start = runStart.exec(rest)?.index;
      if (start === undefined) {
        this.#waiting = openRun.exec(rest)?.[0] ?? '';
        return told + this.#passed(rest.slice(0, rest.length - this.#waiting.length));
      }
      told += this.#passed(rest.slice(0, start));
      rest = rest.slice(start);
      this.#run = { type: this.#typeOf(rest), hash: createHash('sha256'), length: 0 };
    }
    return told;
  }

  /** What still waits. */
  end(): string {
    const told = this.#run === undefined ? this.#waiting : this.#close();
    this.#waiting = '';
    return told;
  }

  #passed(text: string): string {
    this.#before = (this.#before + text).slice(-declaredBytes);
    return text;
  }

  #typeOf(run: string): string {
    const url = declared.exec(this.#before);
    return url?.[1]?.toLowerCase() ?? sniffMediaType(run.slice(0, sniffedBytes)) ?? 'base64';
  }

  #grow(run: Run, text: string): void {
    run.hash.update(text, 'latin1');
    run.length += text.length;
  }

  #close(): string {
    const { type, length, hash } = this.#run!;
    this.#run = undefined;
    this.#before = '';
    return mediaMark(type, length, hash.digest('hex'));
  }
}
