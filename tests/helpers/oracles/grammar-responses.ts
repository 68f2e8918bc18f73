/** The rules of a responses stream that applications rely on when they read its events by themselves. */
import type OpenAI from 'openai';
import { type Answered, rawFrames, rule } from './understood.ts';

type Event = OpenAI.Responses.ResponseStreamEvent;
type Item = OpenAI.Responses.ResponseOutputItem;
/** The members that events about an item have between them. */
interface ItemEvent {
  readonly type: string;
  readonly output_index: number;
  readonly item_id?: string;
  readonly content_index?: number;
  readonly summary_index?: number;
  readonly delta?: string;
  readonly text?: string;
  readonly arguments?: string;
  readonly input?: string;
  readonly refusal?: string;
}
interface OpenItem {
  readonly id: string | undefined;
  done: boolean;
  /** What grew, by the place where it grew. */
  readonly grown: Map<string, string>;
  readonly parts: Set<string>;
}

const terminals = new Set(['response.completed', 'response.incomplete', 'response.failed']);
/** `….delta` events to the name of their part, and the member of the `….done` event that repeats it. */
const growing: Readonly<
  Record<string, { readonly part: 'content' | 'summary' | 'item'; readonly repeats: keyof ItemEvent }>
> = {
  'response.output_text': { part: 'content', repeats: 'text' },
  'response.refusal': { part: 'content', repeats: 'refusal' },
  'response.reasoning_text': { part: 'content', repeats: 'text' },
  'response.reasoning_summary_text': { part: 'summary', repeats: 'text' },
  'response.function_call_arguments': { part: 'item', repeats: 'arguments' },
  'response.custom_tool_call_input': { part: 'item', repeats: 'input' },
};

export class ResponsesGrammar {
  readonly #items: OpenItem[] = [];
  #count = 0;
  #id: string | undefined;
  #last: OpenAI.Responses.Response | undefined;

  constructor(answer: Answered) {
    for (const { event, data } of rawFrames(answer)) {
      if (data === '[DONE]') continue;
      const { type } = JSON.parse(data) as { type: string };
      rule(event === type, `the frame of ${type} is named ${event}`);
    }
  }

  event(event: Event): void {
    rule(this.#last === undefined, `${event.type} comes after the end`);
    if (this.#count === 0) rule(event.type === 'response.created', `the stream begins with ${event.type}`);
    rule(event.sequence_number === this.#count, `event ${this.#count} is numbered ${event.sequence_number}`);
    this.#count++;
    if ('response' in event) this.#lifecycle(event.type, event.response);
    else if (event.type === 'response.output_item.added') this.#added(event.output_index, event.item);
    else if (event.type === 'response.output_item.done') this.#done(event.output_index, event.item);
    else if ('output_index' in event) this.#inside(event as ItemEvent);
  }

  finish(): OpenAI.Responses.Response {
    rule(this.#last !== undefined, 'the stream has no terminal event');
    return this.#last;
  }

  #lifecycle(type: string, response: OpenAI.Responses.Response): void {
    this.#id ??= response.id;
    rule(response.id === this.#id, `the id changes from ${this.#id} to ${response.id}`);
    rule(response.object === 'response', `the response calls itself ${response.object}`);
    if (!terminals.has(type)) return;
    this.#last = response;
    rule(type === `response.${response.status}`, `${type} tells the status ${response.status}`);
    for (const [index, { done, id }] of this.#items.entries()) {
      rule(done, `item ${index} is not done at the end`);
      rule(response.output[index]?.id === id, `item ${index} is another one in the terminal event`);
    }
    rule(response.output.length === this.#items.length, 'the terminal event holds other items than the stream');
    if (response.usage == null) return;
    const { input_tokens_details: read, output_tokens_details: written } = response.usage;
    rule(
      Number.isInteger(read?.cached_tokens) && Number.isInteger(written?.reasoning_tokens),
      'usage lacks its details',
    );
  }

  #added(index: number, item: Item): void {
    rule(index === this.#items.length, `item ${index} is added after ${this.#items.length} items`);
    this.#items.push({ id: item.id, done: false, grown: new Map(), parts: new Set() });
  }

  #done(index: number, item: Item): void {
    const open = this.#open(index, 'response.output_item.done');
    rule(item.id === open.id, `the id of item ${index} changes`);
    open.done = true;
    const reported = 'arguments' in item ? item.arguments : 'input' in item ? item.input : undefined;
    const grown = open.grown.get('item 0');
    if (grown !== undefined) rule(reported === grown, `item ${index} ends with other arguments than were streamed`);
  }

  #open(index: number, type: string): OpenItem {
    const open = this.#items[index];
    rule(open !== undefined && !open.done, `${type} is about item ${index}, which is not open`);
    return open;
  }

  #inside(event: ItemEvent): void {
    const open = this.#open(event.output_index, event.type);
    if (event.item_id !== undefined) rule(event.item_id === open.id, `${event.type} names another item`);
    const part = event.summary_index !== undefined ? 'summary' : event.content_index !== undefined ? 'content' : 'item';
    const place = `${part} ${event.summary_index ?? event.content_index ?? 0}`;
    if (event.type.endsWith('_part.added')) {
      rule(!open.parts.has(place), `${place} of item ${event.output_index} is added twice`);
      open.parts.add(place);
      return;
    }
    const growth = growing[event.type.replace(/\.(delta|done)$/, '')];
    if (growth === undefined) return;
    if (growth.part !== 'item') rule(open.parts.has(place), `${event.type} is about a part that was not added`);
    const grown = open.grown.get(place) ?? '';
    if (event.type.endsWith('.delta')) open.grown.set(place, grown + event.delta);
    else rule(event[growth.repeats] === grown, `${event.type} repeats something else than was streamed`);
  }
}
