/** Cheap looks into a frame's bytes, for frames that need not be parsed. Pure. */

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const space = 0x20;
const letterN = 0x6e;

/** A member's name as it stands in JSON, with its closing quote. Text that merely contains it has a backslash before the quote. */
export function memberName(name: string): Buffer {
  return Buffer.from(`${name}"`);
}

/** Whether a member of this name (opening quote included in `name`) is there with a value other than null. */
export function hasValue(raw: Buffer, name: Buffer): boolean {
  for (let at = raw.indexOf(name); at !== -1; at = raw.indexOf(name, at + name.length)) {
    const value = valueAt(raw, at + name.length);
    if (value !== -1 && raw[value] !== letterN) return true;
  }
  return false;
}

/** Bytes of all string values of members whose name ends with `name`; escapes count as they stand. */
export function stringBytes(raw: Buffer, name: Buffer): number {
  let sum = 0;
  for (let at = raw.indexOf(name); at !== -1; at = raw.indexOf(name, at)) {
    const value = valueAt(raw, at + name.length);
    at += name.length;
    if (value === -1 || raw[value] !== quote) continue;
    const end = closingQuote(raw, value + 1);
    sum += end - value - 1;
    at = end;
  }
  return sum;
}

/** Offset of the value behind a member's name; -1 when no colon follows, so that it is no name. */
function valueAt(raw: Buffer, from: number): number {
  let at = from;
  while (raw[at] === space) at++;
  if (raw[at] !== colon) return -1;
  at++;
  while (raw[at] === space) at++;
  return at;
}

function closingQuote(raw: Buffer, from: number): number {
  let at = from;
  while (at < raw.length && raw[at] !== quote) at += raw[at] === backslash ? 2 : 1;
  return Math.min(at, raw.length);
}

const eventField = Buffer.from('event:');

/** The `event` field when it is the frame's first line, as in all recorded vendors that send it; else undefined. */
export function leadingEvent(raw: Buffer): string | undefined {
  if (raw[0] !== 0x65 || raw.compare(eventField, 0, eventField.length, 0, eventField.length) !== 0) return undefined;
  const start = raw[eventField.length] === space ? eventField.length + 1 : eventField.length;
  let end = start;
  while (end < raw.length && raw[end] !== 0x0a && raw[end] !== 0x0d) end++;
  return raw.toString('latin1', start, end);
}
