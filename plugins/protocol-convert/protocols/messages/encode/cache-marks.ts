/** Chooses the cache marks for an upstream of the messages protocol: the client's own, or defaults. Pure. */
import type { JsonObject } from '../../../../../core/json/json.ts';
import { marked } from './blocks.ts';
import type { Messages } from './turns.ts';

/** Upstreams refuse more marks. */
const maxMarks = 4;
/** Number of user turns that get a default mark: the last one of the prompt, and the one before. */
const markedUserTurns = 2;

export interface Marked extends Messages {
  readonly tools: readonly JsonObject[];
}

/** Kinds of blocks that cannot have a mark. */
const unmarkable = new Set(['thinking', 'redacted_thinking']);

/** Places cache marks in the order of caching: tools, system, messages. `client`: none but the client's own; `off`: none at all. */
export function placeCacheMarks(
  request: Marked,
  mode: 'auto' | 'client' | 'off',
): { readonly request: Marked; readonly lost: boolean } {
  const marks = blocksOf(request).filter((block) => block['cache_control'] !== undefined);
  if (mode === 'off') return { request: rewritten(request, () => undefined), lost: marks.length > 0 };
  if (marks.length === 0) {
    const chosen = new Set(mode === 'auto' ? usualPlaces(request) : []);
    return { request: rewritten(request, (block) => (chosen.has(block) ? 'short' : undefined)), lost: false };
  }
  const kept = new Set(marks.length <= maxMarks ? marks : mostUseful(request, marks));
  const long = longMarks([...kept]);
  const placed = rewritten(request, (block) => (kept.has(block) ? (long.has(block) ? 'long' : 'short') : undefined));
  return { request: placed, lost: kept.size < marks.length };
}

function blocksOf({ tools, system, messages }: Marked): JsonObject[] {
  return [...tools, ...system, ...messages.flatMap((message) => message.content)].flatMap((block) => [
    ...(Array.isArray(block['content']) && block['type'] === 'tool_result' ? (block['content'] as JsonObject[]) : []),
    block,
  ]);
}

/**
 * Default marks: the end of the tools, of the system prompt, and of the last two user turns. A prompt without tools and
 * history gets none: it may never be repeated, and cache writes cost more than plain input.
 */
function usualPlaces({ tools, system, messages }: Marked): JsonObject[] {
  if (tools.length === 0 && !messages.some((message) => message.role === 'assistant')) return [];
  const users = messages.filter((message) => message.role === 'user').slice(-markedUserTurns);
  const places = [tools.at(-1), system.at(-1), ...users.map((message) => message.content.at(-1))];
  return places.filter((block) => block !== undefined && !unmarkable.has(String(block['type']))) as JsonObject[];
}

/** If there are too many marks: the last one of the tools and of the system prompt, and the last ones of all. */
function mostUseful({ tools, system }: Marked, marks: readonly JsonObject[]): JsonObject[] {
  const lastOf = (blocks: readonly JsonObject[]) => marks.findLast((mark) => blocks.includes(mark));
  const fixed = [lastOf(tools), lastOf(system)].filter((mark) => mark !== undefined);
  const others = marks.filter((mark) => !fixed.includes(mark)).slice(fixed.length - maxMarks);
  return [...fixed, ...others];
}

/** Marks for an hour must precede marks for five minutes: later ones are shortened. */
function longMarks(marks: readonly JsonObject[]): ReadonlySet<JsonObject> {
  const isLong = (mark: JsonObject) => (mark['cache_control'] as JsonObject)['ttl'] === '1h';
  const firstShort = marks.findIndex((mark) => !isLong(mark));
  return new Set(firstShort === -1 ? marks : marks.slice(0, firstShort));
}

function rewritten(request: Marked, markOf: (block: JsonObject) => 'short' | 'long' | undefined): Marked {
  const rewrite = (block: JsonObject): JsonObject => {
    const { cache_control: _mark, ...rest } = block;
    const { content } = block;
    const inner = Array.isArray(content) && block['type'] === 'tool_result' ? { content: content.map(rewrite) } : {};
    return { ...rest, ...inner, ...marked(markOf(block)) };
  };
  return {
    tools: request.tools.map(rewrite),
    system: request.system.map(rewrite),
    messages: request.messages.map((message) => ({ ...message, content: message.content.map(rewrite) })),
  };
}
