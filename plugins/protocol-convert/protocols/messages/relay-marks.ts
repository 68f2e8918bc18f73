/** Marks for the prompt cache in a relayed request: added where the client has set none, or taken out. All other bytes stay. Pure. */
import { isObject, type JsonObject, listOf } from '../../../../core/json/json.ts';
import { type Edit, editsFor, findPlace, scanObject } from '../../../../core/json/splice.ts';
import type { MemberChanges } from '../../../common/kit/body-edits.ts';
import type { RequestBody } from '../../../common/wire/protocols.ts';

type Path = readonly (string | number)[];

const member = 'cache_control';
const mark = JSON.stringify({ type: 'ephemeral' });
const quoted = JSON.stringify(member);
/** Number of user turns that get a mark: the last one, and the one before. */
const markedUserTurns = 2;
/** A request with more of them is refused by every upstream. */
const mostRemoved = 64;

/** The changes of a request's own members, without the mark that stands there, which is for all of it. */
export function withoutOwnMark(changes: MemberChanges | undefined): MemberChanges {
  return { ...changes, remove: [...(changes?.remove ?? []), member] };
}

/** `without`: members of the request that are changed otherwise. */
export function markEdits(body: RequestBody, mode: 'auto' | 'off', without: ReadonlySet<string>): Edit[] {
  const bytes = Buffer.from(body.bytes.buffer, body.bytes.byteOffset, body.bytes.byteLength);
  const hasMarks = bytes.includes(quoted);
  if (hasMarks === (mode === 'auto')) return [];
  const paths = mode === 'auto' ? usualPlaces(body.json) : markedPlaces(body.json).slice(0, mostRemoved);
  return paths.flatMap((path) => {
    const place = without.has(String(path[0])) ? undefined : findPlace(bytes, path);
    if (place === undefined) return [];
    if (mode === 'off') return editsFor(scanObject(bytes, place.valueStart), { remove: new Set([member]) });
    if (bytes[place.valueStart] === 0x7b)
      return editsFor(scanObject(bytes, place.valueStart), { insert: { [member]: mark } });
    const { valueStart: start, end } = place;
    return [
      { start, end: start, text: '[{"type":"text","text":' },
      { start: end, end, text: `,${quoted}:${mark}}]` },
    ];
  });
}

/**
 * The end of the tools, of the system prompt, and of the last two user turns, as for translated requests. A prompt without tools and
 * history gets none: it may never be repeated, and cache writes cost more than plain input.
 */
function usualPlaces({ tools, system, messages }: JsonObject): Path[] {
  const turns = listOf(messages);
  const hasHistory = turns.some((turn) => isObject(turn) && turn['role'] === 'assistant');
  if (listOf(tools).length === 0 && !hasHistory) return [];
  const users = turns.flatMap((turn, index) => (isObject(turn) && turn['role'] === 'user' ? [index] : []));
  return [
    ...lastOf(tools, ['tools']),
    ...lastOf(system, ['system']),
    ...users.slice(-markedUserTurns).flatMap((index) => {
      const { content } = turns[index] as JsonObject;
      return lastOf(content, ['messages', index, 'content']);
    }),
  ];
}

/** A text, or the last block of a list; none where it cannot have a mark. */
function lastOf(value: unknown, path: Path): Path[] {
  if (typeof value === 'string') return value.trim() === '' ? [] : [path];
  const blocks = listOf(value);
  const last = blocks.at(-1);
  if (!isObject(last)) return [];
  const { type, text } = last;
  const isMarkable = type !== 'thinking' && type !== 'redacted_thinking' && (type !== 'text' || text !== '');
  return isMarkable ? [[...path, blocks.length - 1]] : [];
}

function markedPlaces(json: JsonObject): Path[] {
  const turns = listOf(json['messages']).flatMap((turn, index) =>
    isObject(turn) ? markedIn(turn['content'], ['messages', index, 'content']) : [],
  );
  return [...markedIn(json['tools'], ['tools']), ...markedIn(json['system'], ['system']), ...turns];
}

function markedIn(value: unknown, path: Path): Path[] {
  return listOf(value).flatMap((block, index): Path[] => {
    if (!isObject(block)) return [];
    const place = [...path, index];
    const inner = block['type'] === 'tool_result' ? markedIn(block['content'], [...place, 'content']) : [];
    return Object.hasOwn(block, member) ? [place, ...inner] : inner;
  });
}
