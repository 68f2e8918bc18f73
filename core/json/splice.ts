/** Changes members of a JSON object as it stands in bytes: members that are not named keep every byte. Pure. */

import { asBuffer } from './json.ts';

/** One member of an object: offsets into the bytes; the key's quotes and the value's own are inside. */
export interface Member {
  /** Decoded: `"mod\u0065l"` is `model`. */
  readonly key: string;
  readonly start: number;
  readonly valueStart: number;
  /** Right behind the value's last byte. */
  readonly end: number;
}

export interface ObjectScan {
  /** In order; a key that stands twice is there twice. */
  readonly members: readonly Member[];
  /** Offset right behind the opening brace. */
  readonly inside: number;
  /** Offset right behind the closing brace. */
  readonly end: number;
}

/** Nesting beyond the limit. Everything else that is wrong is a SyntaxError. */
export class DepthError extends RangeError {}

export const defaultMaxDepth = 128;

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;
const colon = 0x3a;

/**
 * Finds the members of the object that begins at or behind `from`, in one pass and without recursion. It checks structure
 * and depth (the object itself is depth 1), not the grammar of scalars: JSON.parse does that. Throws SyntaxError, DepthError.
 */
export function scanObject(bytes: Uint8Array, from = 0, maxDepth = defaultMaxDepth): ObjectScan {
  let at = skipSpace(bytes, from);
  if (bytes[at] !== openBrace) throw new SyntaxError('not a JSON object');
  const inside = at + 1;
  const members: Member[] = [];
  at = skipSpace(bytes, inside);
  if (bytes[at] === closeBrace) return { members, inside, end: at + 1 };
  for (;;) {
    if (bytes[at] !== quote) throw new SyntaxError(`a member's name is missing at byte ${at}`);
    const keyEnd = stringEnd(bytes, at);
    const key = decodeString(bytes, at, keyEnd);
    const colonAt = skipSpace(bytes, keyEnd);
    if (bytes[colonAt] !== colon) throw new SyntaxError(`a colon is missing at byte ${colonAt}`);
    const valueStart = skipSpace(bytes, colonAt + 1);
    const end = valueEnd(bytes, valueStart, maxDepth);
    members.push({ key, start: at, valueStart, end });
    at = skipSpace(bytes, end);
    if (bytes[at] === closeBrace) return { members, inside, end: at + 1 };
    if (bytes[at] !== comma) throw new SyntaxError(`a comma is missing at byte ${at}`);
    at = skipSpace(bytes, at + 1);
  }
}

/** The last member of that name, which is the one that JSON.parse keeps. */
export function findMember(scan: ObjectScan, key: string): Member | undefined {
  return scan.members.findLast((member) => member.key === key);
}

/** The place of a value: offset of its first byte, and the offset after its last. */
export type Place = Pick<Member, 'valueStart' | 'end'>;

/** The place of the value below `path` in a JSON text; undefined: there is none. Throws as `scanObject` does. */
export function findPlace(bytes: Uint8Array, path: readonly (string | number)[]): Place | undefined {
  let found: Place | undefined = { valueStart: skipSpace(bytes, 0), end: bytes.length };
  for (const step of path) {
    if (found === undefined) return undefined;
    const { valueStart } = found;
    if (typeof step === 'number') found = findElement(bytes, valueStart, step);
    else found = bytes[valueStart] === openBrace ? findMember(scanObject(bytes, valueStart), step) : undefined;
  }
  return found;
}

function findElement(bytes: Uint8Array, start: number, index: number): Place | undefined {
  if (bytes[start] !== openBracket) return undefined;
  let at = skipSpace(bytes, start + 1);
  for (let passed = 0; bytes[at] !== closeBracket; passed++) {
    const end = valueEnd(bytes, at, defaultMaxDepth);
    if (passed === index) return { valueStart: at, end };
    at = skipSpace(bytes, end);
    if (bytes[at] === comma) at = skipSpace(bytes, at + 1);
  }
  return undefined;
}

/** The changes. Keys that are not named stay as they are. Values are JSON texts. */
export interface Changes {
  /** Every member of that name gets this value. Names that are not there are left out. */
  readonly replace?: Readonly<Record<string, string>>;
  readonly remove?: ReadonlySet<string>;
  /** Added at the end. */
  readonly insert?: Readonly<Record<string, string>>;
}

/** Bytes `start`–`end` become `text`. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The edits that bring the changes about; none when nothing has to change. Offsets are those of the scanned bytes. */
export function editsFor(scan: ObjectScan, changes: Changes): Edit[] {
  const { members } = scan;
  const { replace = {}, remove = new Set(), insert = {} } = changes;
  const edits: Edit[] = [];
  let lastKept: Member | undefined;
  for (let index = 0; index < members.length; index++) {
    const member = members[index]!;
    if (!remove.has(member.key)) {
      lastKept = member;
      if (Object.hasOwn(replace, member.key))
        edits.push({ start: member.valueStart, end: member.end, text: replace[member.key]! });
      continue;
    }
    // A run of removed members goes with the comma before it, or, at the front, with the one behind it.
    const first = index;
    while (index + 1 < members.length && remove.has(members[index + 1]!.key)) index++;
    const next = members[index + 1];
    const start = first > 0 ? members[first - 1]!.end : member.start;
    edits.push({ start, end: first === 0 && next !== undefined ? next.start : members[index]!.end, text: '' });
  }
  const added = Object.entries(insert).map(([key, value]) => `${JSON.stringify(key)}:${value}`);
  if (added.length > 0) edits.push(insertion(scan, lastKept, added));
  return edits;
}

/** New members stand behind the last one that stays. */
function insertion({ inside }: ObjectScan, last: Member | undefined, added: readonly string[]): Edit {
  const at = last?.end ?? inside;
  return { start: at, end: at, text: `${last === undefined ? '' : ','}${added.join(',')}` };
}

/** The bytes with the edits made, in one copy; the same bytes when there are none. Edits must not overlap. */
export function applyEdits(bytes: Uint8Array, edits: readonly Edit[]): Uint8Array {
  if (edits.length === 0) return bytes;
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const edit of edits.toSorted((left, right) => left.start - right.start || left.end - right.end)) {
    parts.push(bytes.subarray(at, edit.start), Buffer.from(edit.text));
    at = edit.end;
  }
  parts.push(bytes.subarray(at));
  return Buffer.concat(parts);
}

/** Whether the value of this member begins as an object does. */
export function isObjectAt(bytes: Uint8Array, member: Member): boolean {
  return bytes[member.valueStart] === openBrace;
}

function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  for (;;) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at++;
  }
}

/** Strings longer than this are searched natively: a call costs as much as a short loop. */
const shortStringBytes = 48;

/** Offset right behind the closing quote of the string that begins at `start`. */
function stringEnd(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  for (const near = Math.min(bytes.length, at + shortStringBytes); at < near; at++) {
    const byte = bytes[at];
    if (byte === quote) return at + 1;
    if (byte === backslash) at++;
  }
  return longStringEnd(bytes, at);
}

function longStringEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  for (;;) {
    const found = bytes.indexOf(quote, at);
    if (found === -1) throw new SyntaxError('a string does not end');
    let before = found - 1;
    while (before >= from && bytes[before] === backslash) before--;
    if ((found - 1 - before) % 2 === 0) return found + 1;
    at = found + 1;
  }
}

function decodeString(bytes: Uint8Array, start: number, end: number): string {
  const text = asBuffer(bytes).toString('utf8', start + 1, end - 1);
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
}

/** Offset right behind the value that begins at `start`. */
function valueEnd(bytes: Uint8Array, start: number, maxDepth: number): number {
  const first = bytes[start];
  if (first === quote) return stringEnd(bytes, start);
  if (first === openBrace || first === openBracket) return containerEnd(bytes, start, maxDepth);
  let at = start;
  while (at < bytes.length && isScalarByte(bytes[at]!)) at++;
  if (at === start) throw new SyntaxError(`a value is missing at byte ${start}`);
  return at;
}

function isScalarByte(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x7a) || isNumberSign(byte);
}

function isNumberSign(byte: number): boolean {
  return byte === 0x2d || byte === 0x2e || byte === 0x2b || byte === 0x45;
}

function containerEnd(bytes: Uint8Array, start: number, maxDepth: number): number {
  // The object that holds this container is depth 1.
  let depth = 1;
  let at = start;
  while (at < bytes.length) {
    const byte = bytes[at]!;
    if (byte === quote) {
      at = stringEnd(bytes, at);
      continue;
    }
    if (byte === openBrace || byte === openBracket) {
      if (++depth > maxDepth) throw new DepthError(`nested deeper than ${maxDepth}`);
    } else if ((byte === closeBrace || byte === closeBracket) && --depth === 1) return at + 1;
    at++;
  }
  throw new SyntaxError('an object or array does not end');
}
