/** Reads an upstream's responses stream, event by event; whole answers are read as a stream that is only its last event. Pure. */
import type { ReplyDecoder } from '../../codec.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../json.ts';
import type { StopReason } from '../../reply.ts';
import type { ReplyEvents } from '../../reply-events.ts';
import { logprobsOf } from './read-details.ts';
import { createReader, type Ear, type ItemReader } from './read-items.ts';

/** Keeps items apart by `output_index`: some upstreams change an item's id between its events. */
export class ResponsesDecoder implements ReplyDecoder {
  readonly #events: ReplyEvents;
  readonly #ear: Ear;
  /** By `output_index`, with the item's type. */
  readonly #items = new Map<number, { readonly type: string; readonly reader: ItemReader }>();
  #ended = false;

  constructor(events: ReplyEvents) {
    this.#events = events;
    this.#ear = { events, speaker: undefined };
  }

  payload(json: JsonObject, event: string | undefined): void {
    if (this.#ended) return;
    const type = textOf(json['type']) ?? event;
    switch (type) {
      case 'response.output_text.delta':
      case 'response.refusal.delta':
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        this.#delta(type, json);
        break;
      case 'response.output_item.added':
      case 'response.output_item.done':
        this.#item(indexOf(json), objectOf(json['item']), type.endsWith('done'));
        break;
      case 'response.output_text.done':
      case 'response.refusal.done':
      case 'response.reasoning_summary_text.done':
      case 'response.reasoning_text.done':
      case 'response.function_call_arguments.done':
      case 'response.custom_tool_call_input.done':
        this.#whole(type, json);
        break;
      case 'response.output_text.annotation.added':
        this.#reader(json, 'message')?.annotation(json['annotation'], partOf(json));
        break;
      case 'response.created':
        this.#begin(objectOf(json['response']));
        break;
      case 'response.completed':
      case 'response.incomplete':
        this.response(objectOf(json['response']) ?? {}, type === 'response.incomplete');
        break;
    }
  }

  /** A whole response object: tells what has not been told yet, and the end. */
  response(response: JsonObject, isIncomplete = response['status'] === 'incomplete'): void {
    this.#begin(response);
    const output = listOf(response['output']);
    // Where all of it has been told, the list may be in another order.
    const isTold = this.#items.size >= output.length && [...this.#items.values()].every(({ reader }) => reader.isDone);
    if (!isTold) for (const [index, item] of output.entries()) this.#item(index, objectOf(item), true);
    this.#flush();
    const reason = textOf(objectOf(response['incomplete_details'])?.['reason']);
    this.#stop(stopOf(reason, isIncomplete));
  }

  end(): void {
    if (this.#ended) return;
    this.#flush();
    this.#stop('stop');
  }

  #begin(response: JsonObject | undefined): void {
    const { id, created_at: createdAt, service_tier: serviceTier } = response ?? {};
    this.#events.start(textOf(id), typeof createdAt === 'number' ? createdAt : undefined, textOf(serviceTier));
  }

  #delta(type: string, json: JsonObject): void {
    const text = json['delta'];
    if (typeof text !== 'string') return;
    const reader = this.#reader(json, itemTypes[type]!);
    if (reader === undefined) return;
    const logprobs = json['logprobs'];
    reader.delta(type, text, partOf(json), isEmpty(logprobs) ? undefined : logprobsOf(logprobs));
  }

  #whole(type: string, json: JsonObject): void {
    const text = json['text'] ?? json['refusal'] ?? json['arguments'] ?? json['input'];
    if (typeof text === 'string') this.#reader(json, itemTypes[type]!)?.whole(type, text, partOf(json));
  }

  /** The reader of the event's item; one is made where `output_item.added` was left out. */
  #reader(json: JsonObject, itemType: string): ItemReader | undefined {
    const index = indexOf(json);
    const known = this.#items.get(index);
    return known === undefined ? this.#open(index, itemType) : known.reader;
  }

  #open(index: number, type: string): ItemReader | undefined {
    const reader = createReader(type, this.#ear, index);
    if (reader !== undefined) this.#items.set(index, { type, reader });
    return reader;
  }

  #item(index: number, item: JsonObject | undefined, isDone: boolean): void {
    if (item === undefined) return;
    const type = textOf(item['type']) ?? '';
    const known = this.#items.get(index);
    // Another item in the same place: its number is not to be trusted.
    if (known !== undefined && known.type !== type) return;
    const reader = known?.reader ?? this.#open(index, type);
    if (isDone) reader?.done(item);
    else reader?.added(item);
  }

  /** Ends what never got its done event, with what came of it. */
  #flush(): void {
    for (const { reader } of this.#items.values()) reader.flush();
  }

  #stop(reason: StopReason): void {
    this.#ended = true;
    const refused = [...this.#items.values()].some(({ reader }) => reader.hasRefused);
    this.#events.stop(0, refused && reason === 'stop' && !this.#events.hasCalls(0) ? 'refusal' : reason);
  }
}

/** Reads a whole answer. */
export function decodeReply(json: JsonObject, events: ReplyEvents): void {
  new ResponsesDecoder(events).response(json);
}

/** What kind of item an event can only belong to. */
const itemTypes: Readonly<Record<string, string>> = {
  'response.output_text.delta': 'message',
  'response.output_text.done': 'message',
  'response.refusal.delta': 'message',
  'response.refusal.done': 'message',
  'response.reasoning_summary_text.delta': 'reasoning',
  'response.reasoning_summary_text.done': 'reasoning',
  'response.reasoning_text.delta': 'reasoning',
  'response.reasoning_text.done': 'reasoning',
  'response.function_call_arguments.delta': 'function_call',
  'response.function_call_arguments.done': 'function_call',
  'response.custom_tool_call_input.delta': 'custom_tool_call',
  'response.custom_tool_call_input.done': 'custom_tool_call',
};

function stopOf(reason: string | undefined, isIncomplete: boolean): StopReason {
  if (reason === 'content_filter') return 'refusal';
  if (reason === 'max_output_tokens' || reason === 'max_messages') return 'length';
  return isIncomplete ? 'length' : 'stop';
}

function indexOf(json: JsonObject): number {
  const index = json['output_index'];
  return typeof index === 'number' ? index : 0;
}

/** Which of an item's parts is meant. */
function partOf(json: JsonObject): number {
  const index = json['content_index'] ?? json['summary_index'];
  return typeof index === 'number' ? index : 0;
}

function isEmpty(logprobs: unknown): boolean {
  return !Array.isArray(logprobs) || logprobs.length === 0 || !logprobs.some(isObject);
}
