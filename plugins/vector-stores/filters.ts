/** Filters by attributes of files, as the official API has them. Pure. */
import { table } from '../../core/contract/table.ts';
import { isObject, listOf } from '../../core/json/json.ts';
import { invalid } from '../../core/json/request-body.ts';

export type Attributes = Readonly<Record<string, string | number | boolean>>;
export type Filter = (attributes: Attributes) => boolean;

const mostDepth = 8;
const mostParts = 100;
type Value = string | number | boolean;

const comparisons: Readonly<Record<string, (given: Value | undefined, wanted: Value) => boolean>> = table({
  eq: (given, wanted) => given === wanted,
  ne: (given, wanted) => given !== wanted,
  gt: (given, wanted) => typeof given === 'number' && given > (wanted as number),
  gte: (given, wanted) => typeof given === 'number' && given >= (wanted as number),
  lt: (given, wanted) => typeof given === 'number' && given < (wanted as number),
  lte: (given, wanted) => typeof given === 'number' && given <= (wanted as number),
});
const ordered = new Set(['gt', 'gte', 'lt', 'lte']);

/** undefined: none. Throws invalid_request. */
export function filterIn(value: unknown, field: string): Filter | undefined {
  if (value === undefined || value === null) return undefined;
  let parts = 0;
  const read = (one: unknown, at: string, depth: number): Filter => {
    parts += 1;
    if (depth > mostDepth || parts > mostParts)
      throw invalid(`A filter has at most ${mostParts} parts in ${mostDepth} levels.`, field);
    if (!isObject(one)) throw invalid('A filter is an object.', at);
    const { type } = one;
    if (type !== 'and' && type !== 'or') return comparisonIn(one, at);
    const filters = listOf(one['filters']).map((part, index) => read(part, `${at}.filters[${index}]`, depth + 1));
    if (filters.length === 0) throw invalid('This is a list of at least one filter.', `${at}.filters`);
    if (type === 'and') return (attributes) => filters.every((filter) => filter(attributes));
    return (attributes) => filters.some((filter) => filter(attributes));
  };
  return read(value, field, 1);
}

function comparisonIn({ type, key, value }: Readonly<Record<string, unknown>>, field: string): Filter {
  if (typeof key !== 'string' || key === '') throw invalid('This is the name of an attribute.', `${field}.key`);
  const of = (attributes: Attributes) => (Object.hasOwn(attributes, key) ? attributes[key] : undefined);
  if (type === 'in' || type === 'nin') {
    const wanted = new Set(listOf(value));
    if (!Array.isArray(value) || value.length > mostParts || !value.every(isValue))
      throw invalid(`This is a list of at most ${mostParts} texts or numbers.`, `${field}.value`);
    return (attributes) => wanted.has(of(attributes)) === (type === 'in');
  }
  const compare = typeof type === 'string' ? comparisons[type] : undefined;
  if (compare === undefined) throw invalid('This is eq, ne, gt, gte, lt, lte, in, nin, and, or.', `${field}.type`);
  if (!isValue(value) || (ordered.has(String(type)) && typeof value !== 'number'))
    throw invalid(
      ordered.has(String(type)) ? 'This is a number.' : 'This is a text, a number, true or false.',
      `${field}.value`,
    );
  return (attributes) => compare(of(attributes), value);
}

export const isValue = (value: unknown): value is Value =>
  typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value));
