/** What both forms of decisions check and read alike. Pure. */
import { isObject, type JsonObject, objectOf } from '../../../core/json/json.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { readCount, type Usage } from '../../common/domain/usage.ts';
import { checkLength, isAbsent } from '../checks.ts';
import { unreadable } from '../errors.ts';

/** Options of one choice, and levels of one score. */
const mostOptions = 255;

/** A question as it was sent. Throws for other values, and for too many options. */
export function questionOf(value: unknown, field: string, lists: readonly string[]): JsonObject {
  if (!isObject(value)) throw invalid(`The field "${field}" must be an object.`, field);
  if (typeof value['type'] !== 'string') throw invalid(`The field "${field}.type" must be a string.`, `${field}.type`);
  for (const name of lists) {
    const options = value[name];
    if (Array.isArray(options)) checkLength(options, `${field}.${name}`, mostOptions);
    else if (isObject(options)) checkLength(Object.keys(options), `${field}.${name}`, mostOptions);
  }
  return value;
}

export function optionalText(json: JsonObject, name: string, field: string): string | undefined {
  const value = json[name];
  if (isAbsent(value)) return undefined;
  if (typeof value === 'string') return value;
  throw invalid(`The field "${field}.${name}" must be a string.`, `${field}.${name}`);
}

/** A text as it is, anything else as JSON; undefined: absent. */
export function describedAs(value: unknown): string | undefined {
  if (isAbsent(value)) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export function listIn(json: JsonObject, name: string, field: string): readonly unknown[] {
  const value = json[name];
  if (Array.isArray(value) && value.length > 0) return value;
  throw invalid(`The field "${field}.${name}" must be a list with entries.`, `${field}.${name}`);
}

/** A number of an answer. Throws an UpstreamRefusal. */
export function numberOf(json: JsonObject | undefined, name: string): number {
  const value = json?.[name];
  if (typeof value !== 'number') throw unreadable(`an answer has no ${name}`);
  return value;
}

export function typeMismatch(): Error {
  return unreadable('an answer is of another type than its question');
}

/** Input tokens include those that were read from the cache and written to it, output tokens those of reasoning. */
export function decisionUsage(json: JsonObject): Usage | undefined {
  const usage = objectOf(json['usage']);
  const all = readCount(usage?.['input_tokens']);
  if (all === undefined) return undefined;
  const inputDetails = objectOf(usage?.['input_tokens_details']);
  const cached = readCount(inputDetails?.['cached_tokens']) ?? 0;
  const written = readCount(inputDetails?.['cache_write_tokens']) ?? 0;
  const output = readCount(usage?.['output_tokens']) ?? 0;
  const reasoning = readCount(objectOf(usage?.['output_tokens_details'])?.['reasoning_tokens']) ?? 0;
  return {
    ...(cached + written > all ? { input: all } : split('input', all, { cache_read: cached, cache_write_5m: written })),
    ...(reasoning > output ? { output } : split('output', output, { reasoning })),
  };
}

function split(name: 'input' | 'output', all: number, parts: Usage): Usage {
  const counted = Object.entries(parts).filter(([, count]) => count > 0);
  const rest = all - counted.reduce((sum, [, count]) => sum + count, 0);
  return { ...(name === 'input' || rest > 0 ? { [name]: rest } : {}), ...Object.fromEntries(counted) };
}
