/** Texts of a request that the answer's object repeats, as the client has written them. Pure. */
import type { JsonObject } from '../../../core/json/json.ts';

type Write = (text: string) => string;

/** The JSON of a value with each of its texts written by `by`. */
export const jsonOfRepeated = (value: unknown, by: Write): string =>
  JSON.stringify(value, (_name, one) => (typeof one === 'string' ? by(one) : one));

export function withRepeated(object: JsonObject, names: readonly string[], by: Write): JsonObject {
  const known = names.filter((name) => object[name] !== undefined);
  return {
    ...object,
    ...Object.fromEntries(known.map((name) => [name, JSON.parse(jsonOfRepeated(object[name], by))])),
  };
}
