/** Decodes an upstream's responses stream event by event; a whole answer is a stream of its last event. Pure. */
import { table } from '../../../../../core/contract/table.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { ReplyDecoder } from '../../../../common/canonical/codec.ts';
import type { ReplyEvents } from '../../../../common/canonical/events.ts';
import type { StopReason } from '../../../../common/canonical/reply.ts';
import { logprobsOf } from './details.ts';
import { createItemDecoder, type DecodeTarget, type ItemDecoder } from './items.ts';

/** Items are identified by `output_index`: some upstreams change an item's id between its events. */
export class ResponsesDecoder implements ReplyDecoder {
  readonly #events: ReplyEvents;
  readonly #target: DecodeTarget;
  /** By `output_index`, with the item's type. */
  readonly #items = new Map<number, { readonly type: string; readonly decoder: ItemDecoder }>();
  #ended = false;

  constructor(events: ReplyEvents) {
    this.#events = events;
    this.#target = { events, lastEmitter: undefined };
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
        this.#decoder(json, 'message')?.annotation(json['annotation'], partOf(json));
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

  /** A whole response object: emits the remaining content, and the end. */
  response(response: JsonObject, isIncomplete = response['status'] === 'incomplete'): void {
    this.#begin(response);
    const output = listOf(response['output']);
    // If everything was emitted already, the list may be in another order.
    const isSeen =
      this.#items.size >= output.length && [...this.#items.values()].every(({ decoder }) => decoder.isDone);
    if (!isSeen) for (const [index, item] of output.entries()) this.#item(index, objectOf(item), true);
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
    const decoder = this.#decoder(json, itemTypes[type]!);
    if (decoder === undefined) return;
    const logprobs = json['logprobs'];
    decoder.delta(type, text, partOf(json), isEmpty(logprobs) ? undefined : logprobsOf(logprobs));
  }

  #whole(type: string, json: JsonObject): void {
    const text = json['text'] ?? json['refusal'] ?? json['arguments'] ?? json['input'];
    if (typeof text === 'string') this.#decoder(json, itemTypes[type]!)?.whole(type, text, partOf(json));
  }

  /** The decoder of the event's item; created here if `output_item.added` was omitted. */
  #decoder(json: JsonObject, itemType: string): ItemDecoder | undefined {
    const index = indexOf(json);
    const known = this.#items.get(index);
    return known === undefined ? this.#open(index, itemType) : known.decoder;
  }

  #open(index: number, type: string): ItemDecoder | undefined {
    const decoder = createItemDecoder(type, this.#target, index);
    if (decoder !== undefined) this.#items.set(index, { type, decoder });
    return decoder;
  }

  #item(index: number, item: JsonObject | undefined, isDone: boolean): void {
    if (item === undefined) return;
    const type = textOf(item['type']) ?? '';
    const known = this.#items.get(index);
    // A different item with the same index: its number is unreliable.
    if (known !== undefined && known.type !== type) return;
    const decoder = known?.decoder ?? this.#open(index, type);
    if (isDone) decoder?.done(item);
    else decoder?.added(item);
  }

  /** Ends items without a done event, with the content so far. */
  #flush(): void {
    for (const { decoder } of this.#items.values()) decoder.flush();
  }

  #stop(reason: StopReason): void {
    this.#ended = true;
    const refused = [...this.#items.values()].some(({ decoder }) => decoder.hasRefused);
    this.#events.stop(0, refused && reason === 'stop' && !this.#events.hasCalls(0) ? 'refusal' : reason);
  }
}

/** Decodes a whole answer. */
export function decodeReply(json: JsonObject, events: ReplyEvents): void {
  new ResponsesDecoder(events).response(json);
}

/** The only kind of item that an event can belong to. */
const itemTypes: Readonly<Record<string, string>> = table({
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
});

function stopOf(reason: string | undefined, isIncomplete: boolean): StopReason {
  if (reason === 'content_filter') return 'refusal';
  if (reason === 'max_output_tokens' || reason === 'max_messages') return 'length';
  return isIncomplete ? 'length' : 'stop';
}

function indexOf(json: JsonObject): number {
  const index = json['output_index'];
  return typeof index === 'number' ? index : 0;
}

/** The index of the item's part. */
function partOf(json: JsonObject): number {
  const index = json['content_index'] ?? json['summary_index'];
  return typeof index === 'number' ? index : 0;
}

function isEmpty(logprobs: unknown): boolean {
  return !Array.isArray(logprobs) || logprobs.length === 0 || !logprobs.some(isObject);
}
