/** Tags, which say what a call is for: those that a key has, and those that a request says in a header. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { Caller } from '../common/domain/accounts.ts';

/** `team=search,env=prod` */
export const tagsHeader = 'x-gateway-tags';

const mostTags = 8;
const namePattern = /^[a-z][a-z0-9_.-]{0,31}$/;
const valuePattern = /^[A-Za-z0-9_.:/@-]{1,64}$/;
const longestHeader = mostTags * (32 + 1 + 64 + 2);

/** By name; undefined: the request says the value. */
export type KeyTags = ReadonlyMap<string, string | undefined>;

/** The tags of a key as they are stored: `team=search` is on each of its calls, the value of `env` is said by a request. Throws invalid_request. */
export function validTags(entries: readonly string[] | undefined): string[] | null {
  if (entries === undefined || entries.length === 0) return null;
  return [...readTags(entries, 'tags')].map(([name, value]) => (value === undefined ? name : `${name}=${value}`));
}

/** Tags as they are stored. */
export const keyTags = (entries: readonly string[]): KeyTags => readTags(entries, 'tags');

/** The tags that each call of the key has; undefined: none. */
export function fixedTags(tags: KeyTags): Caller['tags'] {
  const fixed = [...tags].flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  return fixed.length === 0 ? undefined : new Map(fixed);
}

/** The caller with the tags of a request. Throws invalid_request for one that its key does not take. */
export function taggedCaller(caller: Caller, own: KeyTags | undefined, header: string): Caller {
  if (header.trim() === '') return caller;
  if (header.length > longestHeader) throw refusal(tagsHeader, `The header "${tagsHeader}" is too long.`);
  const tags = new Map(caller.tags);
  for (const [name, value] of readTags(header.split(','), tagsHeader)) {
    if (value === undefined) throw refusal(tagsHeader, `The tag "${name}" has no value; write it as ${name}=VALUE.`);
    if (own?.has(name) !== true) throw refusal(tagsHeader, `This key takes no tag "${name}" from requests.`);
    if ((own.get(name) ?? value) !== value)
      throw refusal(tagsHeader, `The tag "${name}" of this key is "${own.get(name)}" in all of its requests.`);
    tags.set(name, value);
  }
  return { ...caller, tags };
}

function readTags(entries: readonly string[], field: string): Map<string, string | undefined> {
  if (entries.length > mostTags) throw refusal(field, `There are at most ${mostTags} tags.`);
  const tags = new Map<string, string | undefined>();
  for (const entry of entries) {
    const [name = '', value, ...more] = entry.trim().split('=');
    if (!namePattern.test(name))
      throw refusal(field, 'The name of a tag has 1 to 32 small letters, digits, "_", "." and "-", a letter first.');
    if (more.length > 0 || (value !== undefined && !valuePattern.test(value)))
      throw refusal(field, `The value of the tag "${name}" has 1 to 64 letters, digits and characters of "_.:/@-".`);
    if (tags.has(name)) throw refusal(field, `The tag "${name}" is there twice.`);
    tags.set(name, value);
  }
  return tags;
}

const refusal = (field: string, message: string) =>
  new GatewayError('invalid_request', message, { field, code: 'invalid_tags', shouldRetry: false });
