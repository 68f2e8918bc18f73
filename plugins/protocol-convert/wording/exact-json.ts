/** Reads JSON that is written again so that no digit of its numbers is lost. Pure. */

/** As in the language's proposal for source text access, which the runtime has and its types do not name yet. */
const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): unknown };

/** Numbers that a double may not hold: many digits, or a large exponent. */
const suspect = /\d{16}|\d[eE]\+?\d{3}/;

/**
 * As `JSON.parse`, for values that are only written again: a number that would come out as another one is an object that
 * `JSON.stringify` writes as it stood. Throws SyntaxError.
 */
export function parseExact(text: string): unknown {
  if (!suspect.test(text)) return JSON.parse(text) as unknown;
  const keep = (_key: string, value: unknown, context?: { readonly source?: string }): unknown => {
    const source = context?.source;
    if (typeof value !== 'number' || source === undefined || !suspect.test(source)) return value;
    return String(value) === source ? value : rawJSON(source);
  };
  return JSON.parse(text, keep) as unknown;
}
