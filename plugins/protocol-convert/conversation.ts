/** Which conversation a request belongs to, as far as its body tells: a name the client gave it, and how it began. Pure. */
import type { Exchange } from '../../core/contract.ts';
import type { Call, Conversation } from '../../core/vocabulary.ts';
import { isObject, type JsonObject, listOf, objectOf } from './json.ts';
import { type Opened, opened } from './protocol.ts';

/** Longer names are cut: nobody tells sessions apart behind so many characters. */
const longestName = 1_000;
/** Of a longer opening, its beginning and its end count, and its length. */
const longestOpening = 4_096;

/** Reads the request as it is opened; how it began is looked up only when somebody asks. */
export class ToldConversation implements Conversation {
  readonly name: string | undefined;
  readonly #exchange: Exchange;

  constructor(exchange: Exchange, request: Opened) {
    this.#exchange = exchange;
    this.name = nameOf(request);
  }

  opening(): string | undefined {
    return openingOf(this.#exchange.get(opened).json);
  }

  leavesTraces(): boolean {
    const { json, call } = this.#exchange.get(opened);
    return leavesTraces(json, call);
  }
}

/** Members that name what a vendor keeps, or servers that it calls. */
const reachingOut = ['previous_response_id', 'conversation', 'prompt', 'container', 'mcp_servers', 'cachedContent'];

/** Whether an upstream keeps the answer (`store`, which is the default of responses), goes on with what it keeps, or acts. */
export function leavesTraces(json: JsonObject, { protocol, toolCalls = 0 }: Call): boolean {
  const isKept = protocol === 'responses' ? json['store'] !== false : json['store'] === true;
  if (isKept || toolCalls > 0) return true;
  if (reachingOut.some((name) => json[name] !== undefined && json[name] !== null)) return true;
  return listOf(json['tools']).some((tool) => objectOf(tool)?.['type'] === 'image_generation');
}

/**
 * `prompt_cache_key` of chat and responses; `metadata.user_id` of messages, in which coding clients put their session.
 * Elsewhere metadata is the client's own and says nothing of caches.
 */
function nameOf({ json, call }: Opened): string | undefined {
  const name = call.protocol === 'messages' ? objectOf(json['metadata'])?.['user_id'] : json['prompt_cache_key'];
  return typeof name === 'string' && name !== '' ? name.slice(0, longestName) : undefined;
}

/** What the user said first: after the instructions, which many conversations share, and before all that changes. */
export function openingOf(json: JsonObject): string | undefined {
  const input = json['messages'] ?? json['input'] ?? json['contents'];
  if (typeof input === 'string') return bounded(input);
  for (const turn of listOf(input)) {
    if (!isObject(turn) || (turn['role'] ?? 'user') !== 'user') continue;
    const text = firstText(turn['content'] ?? turn['parts']);
    if (text !== undefined) return bounded(text);
  }
  return undefined;
}

function firstText(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  for (const part of listOf(content)) {
    const text = objectOf(part)?.['text'];
    if (typeof text === 'string' && text !== '') return text;
  }
  return undefined;
}

function bounded(text: string): string | undefined {
  if (text === '') return undefined;
  if (text.length <= longestOpening) return text;
  const half = longestOpening / 2;
  return `${text.length} ${text.slice(0, half)} ${text.slice(-half)}`;
}
