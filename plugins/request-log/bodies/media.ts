/** Finds media in texts by long runs of base64, and replaces them by type, length and digest. Pure. */
import { createHash, type Hash } from 'node:crypto';
import { sniffMediaType } from '../../common/kit/data-url.ts';

/** Longer than any word and shorter than any image. */
const shortestRun = 1_024;
/** Characters of both base64 alphabets, of percent encoding, and of JSON escapes. */
const runStart = new RegExp(`(?<![A-Za-z0-9+/=_%\\\\-])[A-Za-z0-9+/=_%\\\\-]{${shortestRun}}`, 'g');
const outside = /[^A-Za-z0-9+/=_%\\-]/g;
const openRun = new RegExp(`[A-Za-z0-9+/=_%\\\\-]{1,${shortestRun}}$`);
/** The head of a data URL. */
const declared = /data:([\w.+-]{1,60}\/[\w.+-]{1,60})?[^"',\s]{0,100},$/i;
const declaredBytes = 240;
const sniffedBytes = 88;

/** The current run; hashed in pieces, because it may be longer than memory should hold. */
interface Run {
  readonly type: string;
  readonly hash: Hash;
  length: number;
}

/** The text that replaces media: type, number of base64 characters, and the beginning of their SHA-256. */
const mediaMark = (type: string, length: number, digest: string): string =>
  `[${type}: ${length} characters, sha256 ${digest.slice(0, 16)}]`;

/** The mark of a run that is in memory. */
export function markOf(type: string, run: string): string {
  return mediaMark(type, run.length, createHash('sha256').update(run, 'latin1').digest('hex'));
}

/**
 * Transforms a text piece by piece in latin1 (one character per byte) and replaces its runs. The possible beginning of a run
 * is held back until the next piece.
 */
export class MediaMarker {
  #run: Run | undefined;
  #waiting = '';
  /** The end of the output so far, where the head of a data URL names the type. */
  #before = '';

  next(piece: string): string {
    let rest = this.#waiting + piece;
    this.#waiting = '';
    let masked = '';
    while (rest !== '') {
      if (this.#run !== undefined) {
        outside.lastIndex = 0;
        const end = outside.exec(rest)?.index ?? rest.length;
        this.#grow(this.#run, rest.slice(0, end));
        rest = rest.slice(end);
        if (rest !== '') masked += this.#close();
        continue;
      }
      runStart.lastIndex = 0;
      const start = runStart.exec(rest)?.index;
      if (start === undefined) {
        this.#waiting = openRun.exec(rest)?.[0] ?? '';
        return masked + this.#passed(rest.slice(0, rest.length - this.#waiting.length));
      }
      masked += this.#passed(rest.slice(0, start));
      rest = rest.slice(start);
      this.#run = { type: this.#typeOf(rest), hash: createHash('sha256'), length: 0 };
    }
    return masked;
  }

  /** The rest that was held back. */
  end(): string {
    const masked = this.#run === undefined ? this.#waiting : this.#close();
    this.#waiting = '';
    return masked;
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
