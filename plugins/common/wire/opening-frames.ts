/** Opening frames of a stream: they say that an answer begins, and hold nothing yet that a client can use. Pure. */
import type { JsonObject } from '../../../core/json/json.ts';
import { readFrame } from './frame.ts';

/** Within so many bytes a frame names its type; the rest may repeat a whole request. */
const typeWithin = 512;
/** Frames that are judged by their content are short. */
const longestEmpty = 4_096;

export type IsOpening = (raw: Buffer) => boolean;

/** Frames of these events, by the name of the event or the `type` of its data, open an answer. */
export function openingNamed(...names: readonly string[]): IsOpening {
  const name = names.map((one) => one.replaceAll('.', '\\.')).join('|');
  const pattern = new RegExp(`^event: ?(?:${name})\\s|"type"\\s*:\\s*"(?:${name})"`);
  return (raw) => pattern.test(raw.toString('latin1', 0, typeWithin));
}

/** Short frames with content that says nothing yet open an answer. */
export function openingWhere(saysNothing: (json: JsonObject) => boolean): IsOpening {
  return (raw) => {
    const json = raw.length > longestEmpty ? undefined : readFrame(raw)?.json;
    return json !== undefined && saysNothing(json);
  };
}

export const isBlank = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

/** Whether no member but these says anything. */
export function isBlankBut(json: JsonObject, ...names: readonly string[]): boolean {
  return Object.entries(json).every(([name, value]) => names.includes(name) || isBlank(value));
}
