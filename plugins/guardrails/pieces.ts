/** Texts as checks read them: parts of one message joined, and the strings of JSON one by one; and what is written back. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';
import { isObject, tryParse } from '../../core/json/json.ts';
import { membersIn } from '../../core/json/members.ts';
import { DepthError, defaultMaxDepth } from '../../core/json/splice.ts';
import type { FoundPlace, JudgedText } from '../common/guardrails/checks.ts';
import { isOneText, type PromptText, type PromptTexts } from '../common/wire/prompt-rules.ts';

/** A place of one piece with what is written there. */
export interface Change {
  readonly start: number;
  readonly end: number;
  readonly by: string;
}

/** Something that is judged as texts, and can be written back. */
export interface Piece {
  readonly texts: readonly JudgedText[];
  /** By the index of the text. */
  write(changes: ReadonlyMap<number, readonly Change[]>): void;
}

/** The places in one text, in order. Those that overlap are one: nothing that any of them names is left over. */
export function inOrder<T extends { readonly start: number; readonly end: number }>(places: readonly T[]): T[] {
  const out: T[] = [];
  for (const place of places.toSorted((one, other) => one.start - other.start || other.end - one.end)) {
    const last = out.at(-1);
    if (last === undefined || place.start >= last.end) out.push(place);
    else if (place.end > last.end) out[out.length - 1] = { ...last, end: place.end };
  }
  return out;
}

/** How many places there are in all texts; those that overlap are one. */
export function countOf(places: readonly FoundPlace[]): number {
  const byText = Map.groupBy(places, ({ text }) => text);
  return [...byText.values()].reduce((sum, list) => sum + inOrder(list).length, 0);
}

export function changed(text: string, changes: readonly Change[]): string {
  let out = '';
  let at = 0;
  for (const { start, end, by } of changes) {
    out += text.slice(at, start) + by;
    at = end;
  }
  return out + text.slice(at);
}

/** Whether a place that a check names is one of its texts. */
export function isPlace({ text, start, end }: FoundPlace, texts: readonly JudgedText[]): boolean {
  const length = texts[text]?.text.length;
  return (
    length !== undefined &&
    Number.isInteger(start) &&
    Number.isInteger(end) &&
    start >= 0 &&
    end > start &&
    end <= length
  );
}

// ------------------------------------------------------------------------------------------------------------- requests

/** The pieces of a request: what `joinedTexts` joins is one, arguments of a call are one for all of their strings. */
export function piecesOf(prompt: PromptTexts, isRead: (text: PromptText) => boolean): Piece[] {
  const pieces: Piece[] = [];
  let group: PromptText[] = [];
  const close = () => {
    if (group.length > 0) pieces.push(messagePiece(prompt, group));
    group = [];
  };
  for (const text of prompt.texts) {
    if (!isRead(text)) continue;
    const json = text.kind === 'call' || text.kind === 'result' ? requestJson(prompt, text) : undefined;
    if (json !== undefined) {
      close();
      pieces.push(json);
      continue;
    }
    const last = group.at(-1);
    if (last !== undefined && !isOneText(last, text)) close();
    group.push(text);
  }
  close();
  return pieces;
}

function requestJson(prompt: PromptTexts, text: PromptText): Piece | undefined {
  const index = prompt.texts.indexOf(text);
  try {
    return jsonPiece(text.text, text.role, (by) => prompt.replace(prompt.texts[index]!, by));
  } catch (error) {
    if (!(error instanceof DepthError)) throw error;
    const message = `${text.field} is nested deeper than ${defaultMaxDepth} levels.`;
    throw new GatewayError('invalid_request', message, { field: text.field });
  }
}

/** Takes the changes of a part from the end of the list; one that goes on behind it stays for the next part. */
function changesIn(rest: Change[], start: number, end: number): Change[] {
  const own: Change[] = [];
  for (let next = rest.at(-1); next !== undefined && next.start < end; next = rest.at(-1)) {
    // What stands for a place is written to the part that it begins in.
    const by = next.start >= start ? next.by : '';
    own.push({ start: Math.max(0, next.start - start), end: Math.min(end, next.end) - start, by });
    if (next.end > end) break;
    rest.pop();
  }
  return own;
}

function messagePiece(prompt: PromptTexts, parts: readonly PromptText[]): Piece {
  const text = parts.map((part) => part.text).join('');
  return {
    texts: [{ role: parts[0]!.role, text }],
    write(changes) {
      const rest = [...(changes.get(0) ?? [])].reverse();
      let end = 0;
      for (const part of parts) {
        const start = end;
        end += part.text.length;
        const own = changesIn(rest, start, end);
        if (own.length > 0) prompt.replace(part, changed(part.text, own));
      }
    },
  };
}

// ----------------------------------------------------------------------------------------------------------------- JSON

/** undefined: the text is no JSON object or list. Of a member that stands twice the last one is kept, so that none passes unread. Throws a DepthError. */
export function jsonPiece(text: string, role: JudgedText['role'], write: (text: string) => void): Piece | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  const json = tryParse(text);
  if (!isObject(json) && !Array.isArray(json)) return undefined;
  const leaves: string[] = [];
  let members = 0;
  mapLeaves(json, (leaf, isName) => {
    leaves.push(leaf);
    if (isName) members++;
    return leaf;
  });
  if (membersIn(Buffer.from(text)) > members) write(JSON.stringify(json));
  return {
    texts: leaves.map((leaf) => ({ role, text: leaf })),
    write(changes) {
      let index = 0;
      const made = mapLeaves(json, (leaf) => changed(leaf, changes.get(index++) ?? []));
      write(JSON.stringify(made));
    },
  };
}

/** Names of members, strings and numbers; a number that is changed becomes a text. */
function mapLeaves(value: unknown, map: (leaf: string, isName?: true) => string, depth = 0): unknown {
  if (depth > defaultMaxDepth) throw new DepthError('nested too deeply');
  if (typeof value === 'string') return map(value);
  if (typeof value === 'number') {
    const leaf = String(value);
    const made = map(leaf);
    return made === leaf ? value : made;
  }
  if (Array.isArray(value)) return value.map((one) => mapLeaves(one, map, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [map(name, true), mapLeaves(one, map, depth + 1)]),
  );
}
