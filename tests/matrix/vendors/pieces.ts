/** What the scripted vendors share: texts in pieces, and the reading of what they were sent. */
import assert from 'node:assert/strict';

/** A text in three pieces, as models give it; a short one in fewer. */
export function pieces(text: string): string[] {
  const letters = [...text];
  const size = Math.max(1, Math.ceil(letters.length / 3));
  const found: string[] = [];
  for (let at = 0; at < letters.length; at += size) found.push(letters.slice(at, at + size).join(''));
  return found;
}

export type Json = Record<string, unknown>;

export function object(value: unknown, what: string): Json {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), `${what} is an object`);
  return value as Json;
}

export function list(value: unknown, what: string): Json[] {
  assert.ok(Array.isArray(value), `${what} is a list`);
  return value as Json[];
}

export function text(value: unknown, what: string): string {
  assert.equal(typeof value, 'string', `${what} is a text`);
  return value as string;
}

/** Throws when there are members that this vendor does not know: official vendors answer 400 to them. */
export function onlyMembers(value: Json, known: readonly string[], what: string): void {
  const unknown = Object.keys(value).filter((key) => !known.includes(key));
  assert.deepEqual(unknown, [], `${what} has members that this vendor does not know`);
}

export function dataUrl(url: unknown): { mediaType: string; base64: string } {
  const match = /^data:([a-z]+\/[a-z0-9.+-]+);base64,([A-Za-z0-9+/=]+)$/.exec(text(url, 'a data URL'));
  assert.ok(match, 'a data URL');
  return { mediaType: match[1]!, base64: match[2]! };
}

export const toolName = /^[a-zA-Z0-9_-]{1,64}$/;
