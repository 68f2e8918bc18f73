/** Reads whole JSON answers: all of a small one, the usage alone of a large one that is passed on. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { asBuffer, isObject, type JsonObject, tryParseBytes } from '../../core/json/json.ts';
import { slicedAboveBytes } from '../../core/json/request-body.ts';
import { parseInSlices } from '../../core/json/slices.ts';
import { scanObject } from '../../core/json/splice.ts';
import { unreadable } from './errors.ts';

/** An answer is bounded by the server's limit in bytes; a number of a vector takes two of them at least. */
const mostValues = 200_000_000;
const maxDepth = 32;

/** The whole answer; a large one is parsed in slices, so that others are served meanwhile. Throws an UpstreamRefusal. */
export async function parseAnswer(body: Uint8Array): Promise<JsonObject> {
  if (body.length <= slicedAboveBytes) {
    const json = tryParseBytes(body);
    if (!isObject(json)) throw unreadable('the body is no JSON object');
    return json;
  }
  try {
    const options = { maxValues: mostValues, maxDepth, pause: () => nextTurn() };
    return (await parseInSlices(body, options)).json;
  } catch {
    throw unreadable('the body is no JSON object');
  }
}

/** The member `name` of an answer, which is an object. Vectors and base64 contain no quotes, so the name is found as it stands. */
export function objectMember(body: Uint8Array, name: string): JsonObject | undefined {
  const bytes = asBuffer(body);
  if (body.length <= slicedAboveBytes) {
    const json = tryParseBytes(body);
    if (!isObject(json)) throw unreadable('the body is no JSON object');
    return isObject(json[name]) ? json[name] : undefined;
  }
  const quoted = `"${name}"`;
  for (const at of [bytes.lastIndexOf(quoted), bytes.indexOf(quoted)]) {
    const found = at === -1 ? undefined : objectAfter(bytes, at + quoted.length);
    if (found !== undefined) return found;
  }
  return undefined;
}

function objectAfter(bytes: Buffer, from: number): JsonObject | undefined {
  const start = bytes.indexOf('{', from);
  if (start === -1 || !/^\s*:\s*$/.test(bytes.toString('latin1', from, Math.min(start, from + 64)))) return undefined;
  try {
    const value = tryParseBytes(bytes.subarray(start, scanObject(bytes, start, maxDepth).end));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
