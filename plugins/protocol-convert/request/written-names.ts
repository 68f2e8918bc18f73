/** The names that a request has for settings which its protocol, or clients of it, write in several ways. Pure. */
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';

/** By the official name: the names of a setting, and where they are. */
export type WrittenNames = Readonly<
  Record<string, { readonly names: readonly string[]; readonly in?: 'messages' | 'anywhere' }>
>;

/** The first of the names that the request has; the official name if it has none of them. */
export function writtenName(json: JsonObject, known: WrittenNames, official: string): string {
  const entry = Object.hasOwn(known, official) ? known[official] : undefined;
  if (entry === undefined) return official;
  const has =
    entry.in === 'anywhere'
      ? (name: string) => hasMember(json, name)
      : entry.in === 'messages'
        ? (name: string) => listOf(json['messages']).some((message) => isObject(message) && isGiven(message[name]))
        : (name: string) => isGiven(valueAt(json, name));
  return entry.names.find(has) ?? official;
}

function valueAt(json: JsonObject, path: string): unknown {
  return path.split('.').reduce<unknown>((value, step) => (isObject(value) ? value[step] : undefined), json);
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false;
}

function hasMember(value: unknown, name: string): boolean {
  if (Array.isArray(value)) return value.some((element) => hasMember(element, name));
  return isObject(value) && (isGiven(value[name]) || Object.values(value).some((member) => hasMember(member, name)));
}
