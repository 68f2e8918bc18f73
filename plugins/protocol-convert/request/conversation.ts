/** Identification of a request's conversation: the client's name for it, and its first user message. Pure. */
import type { Exchange } from '../../../core/contract/contract.ts';
import { isObject, type JsonObject, listOf, objectOf, oneOrMany } from '../../../core/json/json.ts';
import type { Call, Conversation } from '../../common/domain/calls.ts';
import { type Opened, opened } from '../../common/wire/protocols.ts';
import { mediaKindsIn } from './media-kinds.ts';

/** Longer names are cut: no client needs more characters to distinguish its sessions. */
const longestName = 1_000;
/** Of a longer first message, the beginning, the end and the length count. */
const longestOpening = 4_096;

/** Reads the request when it is opened; the first message is looked up only on demand. */
export class RequestConversation implements Conversation {
  readonly name: string | undefined;
  readonly #exchange: Exchange;

  constructor(exchange: Exchange, request: Opened) {
    this.#exchange = exchange;
    this.name = nameOf(request);
  }

  opening(): string | undefined {
    return openingOf(this.#exchange.get(opened).json);
  }

  mediaKinds(): ReadonlySet<string> {
    return mediaKindsIn(this.#exchange.get(opened).json);
  }

  hasSideEffects(): boolean {
    const { json, call } = this.#exchange.get(opened);
    return requestHasSideEffects(json, call);
  }
}

/** Members that refer to objects that a vendor stores, or to servers that it calls. */
const statefulMembers = ['previous_response_id', 'conversation', 'prompt', 'container', 'mcp_servers', 'cachedContent'];

/**
 * Whether the upstream is asked to store the answer (`store`, `background`), uses stored objects, or acts. What a vendor stores by
 * default (responses) is reached by its id alone, which a failed attempt gives to no client.
 */
export function requestHasSideEffects(json: JsonObject, { toolCalls = 0 }: Call): boolean {
  if (json['store'] === true || json['background'] === true || toolCalls > 0) return true;
  if (statefulMembers.some((name) => json[name] !== undefined && json[name] !== null)) return true;
  return listOf(json['tools']).some((tool) => objectOf(tool)?.['type'] === 'image_generation');
}

/**
 * `prompt_cache_key` of chat and responses; `metadata.user_id` of messages, where coding clients put their session. In
 * the other protocols metadata belongs to the client and has no relation to caches.
 */
function nameOf({ json, call }: Opened): string | undefined {
  const name = call.protocol === 'messages' ? objectOf(json['metadata'])?.['user_id'] : json['prompt_cache_key'];
  return typeof name === 'string' && name !== '' ? name.slice(0, longestName) : undefined;
}

/** The first user message: instructions before it are shared by many conversations. */
export function openingOf(json: JsonObject): string | undefined {
  const input = json['messages'] ?? json['input'] ?? json['contents'];
  if (typeof input === 'string') return bounded(input);
  for (const turn of oneOrMany(input)) {
    if (!isObject(turn) || (turn['role'] ?? 'user') !== 'user') continue;
    const text = firstText(turn['content'] ?? turn['parts']);
    if (text !== undefined) return bounded(text);
  }
  return undefined;
}

function firstText(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  for (const part of oneOrMany(content)) {
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
