/** The settings that a token fixes, put into the first message of a live session. Pure. */
import { isObject, type JsonObject, objectOf, textOf, tryParse, tryParseBytes } from '../../../core/json/json.ts';
import type { Message } from '../relay/upstream.ts';
import type { LiveToken } from './tokens.ts';

const pathFormat = /^[a-z]\w{0,63}(?:\.[a-z]\w{0,63}){0,7}$/i;
const longestMask = 4_096;

/** The paths of a field mask; undefined: it is none. */
export function pathsIn(mask: string): string[][] | undefined {
  const paths = mask === '' ? [] : mask.split(',').map((path) => path.trim());
  if (mask.length > longestMask || !paths.every((path) => pathFormat.test(path))) return undefined;
  return paths.map((path) => path.split('.').map(camel));
}

/** Whether the first message continues an earlier session. */
export function resumes({ data }: Message): boolean {
  const setup = setupIn(data) ?? {};
  const resumption = objectOf(setup['sessionResumption'] ?? setup['session_resumption']);
  return (textOf(resumption?.['handle']) ?? '') !== '';
}

/**
 * The message with the token's settings. With a mask, the fields that it names are the token's, also those that the token
 * leaves out; without one, all are the token's; without settings and mask, all are the client's.
 */
export function constrained(
  message: Message,
  { setup, fieldMask = '' }: Pick<LiveToken, 'setup' | 'fieldMask'>,
): Message {
  const requested = setupIn(message.data);
  if (requested === undefined || (setup === undefined && fieldMask === '')) return message;
  const fixed = objectOf(setup === undefined ? {} : tryParse(setup)) ?? {};
  const made = fieldMask === '' ? whole(fixed, requested) : masked(requested, fixed, pathsIn(fieldMask) ?? []);
  return { data: Buffer.from(JSON.stringify({ setup: made })), isBinary: message.isBinary };
}

function setupIn(data: Buffer): JsonObject | undefined {
  return objectOf(objectOf(tryParseBytes(data))?.['setup']);
}

/** Resumption belongs to the connection, not to the settings. */
function whole(fixed: JsonObject, requested: JsonObject): JsonObject {
  const resumption = requested['sessionResumption'] ?? requested['session_resumption'];
  return {
    ...(resumption === undefined ? {} : { sessionResumption: resumption }),
    ...(requested['model'] === undefined ? {} : { model: requested['model'] }),
    ...fixed,
  };
}

type Members = Record<string, unknown>;

function masked(requested: JsonObject, fixed: JsonObject, paths: readonly string[][]): JsonObject {
  const made: Members = structuredClone(requested);
  for (const path of paths) remove(made, path);
  for (const path of paths) {
    const value = path.reduce<unknown>((at, name) => (isObject(at) ? at[nameIn(at, name) ?? name] : undefined), fixed);
    if (value !== undefined) put(made, path, value);
  }
  return made;
}

/** Members may be written in either case; each spelling goes. */
function remove(object: Members, [first, ...rest]: readonly string[]): void {
  for (const name of Object.keys(object)) {
    if (camel(name) !== first) continue;
    const value = object[name];
    if (rest.length === 0) delete object[name];
    else if (isObject(value)) remove(value, rest);
  }
}

function put(object: Members, path: readonly string[], value: unknown): void {
  let at = object;
  for (const step of path.slice(0, -1)) {
    const name = nameIn(at, step) ?? step;
    const next = at[name];
    const inner: Members = isObject(next) ? next : {};
    at[name] = inner;
    at = inner;
  }
  at[path.at(-1)!] = value;
}

function nameIn(object: JsonObject, wanted: string): string | undefined {
  return Object.keys(object).find((name) => camel(name) === wanted);
}

function camel(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
