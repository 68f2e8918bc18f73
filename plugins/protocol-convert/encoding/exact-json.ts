/** Parsing of JSON that is serialised again, without loss of digits in numbers. Pure. */
import { parseJson } from '../../../core/json/parse.ts';

/** From the language's proposal for source text access: the runtime has it, its types do not. */
const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): unknown };

/** Numbers that a double may not represent: many digits, or a large exponent. */
const suspect = /\d{16}|\d[eE]\+?\d{3}/;

/**
 * As `JSON.parse`, for values that are only serialised again: a number that would change becomes an object that
 * `JSON.stringify` writes unchanged. Throws SyntaxError.
 */
export function parseExact(text: string): unknown {
  if (!suspect.test(text)) return parseJson(text);
  const keep = (_key: string, value: unknown, context?: { readonly source?: string }): unknown => {
    const source = context?.source;
    if (typeof value !== 'number' || source === undefined || !suspect.test(source)) return value;
    return String(value) === source ? value : rawJSON(source);
  };
  return JSON.parse(text, keep) as unknown;
}
