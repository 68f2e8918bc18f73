/** Identification of a request's conversation: the client's name for it, and its first user message. Pure. */
import type { Exchange } from '../../../core/contract/contract.ts';
import { isObject, type JsonObject, listOf, objectOf, oneOrMany } from '../../../core/json/json.ts';
import type { Call, Conversation } from '../../common/domain/calls.ts';
import { type Opened, opened } from '../../common/wire/protocols.ts';
import type { KeptRequests } from '../metering/kept-requests.ts';
import { mediaKindsIn } from './media-kinds.ts';

/** Longer names are cut: no client needs more characters to distinguish its sessions. */
const longestName = 1_000;
/** A longer first message counts by its beginning, its end and its length. */
const longestOpening = 4_096;

/** Reads the request when it is opened; the first message is looked up only on demand. */
export class RequestConversation implements Conversation {
  readonly name: string | undefined;
  readonly mark: number;
  readonly #exchange: Exchange;
  readonly #kept: KeptRequests;
  #isKept = false;

  constructor(exchange: Exchange, request: Opened, kept: KeptRequests) {
    this.#exchange = exchange;
    this.#kept = kept;
    this.name = nameOf(request);
    this.mark = markOf(request.json, this.name);
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

  keep(): void {
    this.#isKept = true;
    this.#kept.keep(this.#exchange);
  }

  forget(): void {
    if (this.#isKept) this.#kept.forget(this.#exchange);
  }

  countPrompt(): Promise<number | undefined> {
    return this.#kept.count(this.#exchange.id);
  }
}

/** Characters of a text that a mark is made of. */
const sampled = 32;

/**
 * Called for every request: it reads a few characters and makes nothing. One that continues an answer that is kept elsewhere does not show
 * how it began.
 */
function markOf(json: JsonObject, name: string | undefined): number {
  const continues = typeof (json['previous_response_id'] ?? json['conversation']) === 'string';
  const mixed = mix(continues ? 0 : mix(0, firstUserText(json)), name);
  return (mixed & 0x3ffffffe) | (listOf(json['tools']).length > 0 ? 1 : 0);
}

function mix(seed: number, text: string | undefined): number {
  if (text === undefined) return seed;
  const step = Math.max(1, Math.floor(text.length / sampled));
  let mixed = Math.imul(seed ^ text.length, 0x9e3779b1);
  for (let at = 0; at < text.length; at += step) mixed = Math.imul(mixed ^ text.charCodeAt(at), 0x01000193);
  return mixed ^ (mixed >>> 15);
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

export function openingOf(json: JsonObject): string | undefined {
  const text = firstUserText(json);
  return text === undefined ? undefined : bounded(text);
}

/** The first user message: instructions before it are shared by many conversations. */
function firstUserText(json: JsonObject): string | undefined {
  const input = json['messages'] ?? json['input'] ?? json['contents'];
  if (typeof input === 'string') return input;
  const turns = Array.isArray(input) ? input : oneOrMany(input);
  // No iterators: every request comes here.
  for (let index = 0; index < turns.length; index++) {
    const turn = turns[index];
    if (!isObject(turn) || (turn['role'] ?? 'user') !== 'user') continue;
    const text = firstText(turn['content'] ?? turn['parts']);
    if (text !== undefined) return text;
  }
  return undefined;
}

function firstText(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  const parts = oneOrMany(content);
  for (let index = 0; index < parts.length; index++) {
    const text = objectOf(parts[index])?.['text'];
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
