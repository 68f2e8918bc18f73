/** JSON inside of texts of a request: how much of it is parsed is bounded, as it is beside the body's own values. Pure. */
import { tryParse } from '../../../core/json/json.ts';

const quote = 0x22;
const backslash = 0x5c;
/** Shorter texts cannot hold many values. */
const shortLength = 64;

/**
 * Members and elements of a JSON text, at all depths, and itself; an empty container counts twice. Counting stops beyond `most`.
 * A nesting deeper than 128 counts as too many.
 */
export function valuesIn(text: string, most: number): number {
  if (text.length <= shortLength) return 1;
  let values = 1;
  let depth = 0;
  for (let at = 0; at < text.length && values <= most; at++) {
    const unit = text.charCodeAt(at);
    if (unit === quote) at = closingQuote(text, at + 1);
    else if (unit === 0x2c) values++;
    else {
      const step = nesting(unit);
      depth += step;
      values += step === 1 ? 1 : 0;
    }
    if (depth > maxDepth) return most + 1;
  }
  return values;
}

const maxDepth = 128;

function nesting(unit: number): -1 | 0 | 1 {
  if (unit === 0x5b || unit === 0x7b) return 1;
  return unit === 0x5d || unit === 0x7d ? -1 : 0;
}

/** Searched natively: a long string costs little. */
function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (before >= from && text.charCodeAt(before) === backslash) before--;
    if ((at - before) % 2 === 1) return at;
  }
  return text.length;
}

/** Parses texts that may be JSON, as long as all of them together have no more values than this. */
export class JsonTexts {
  #left: number;

  constructor(most = 20_000) {
    this.#left = most;
  }

  /** undefined: no JSON, or more than is left. */
  parse(text: string): unknown {
    const values = valuesIn(text, this.#left);
    if (values > this.#left) return undefined;
    this.#left -= values;
    return tryParse(text);
  }
}
