/** Decodes answers of `/v2/chat`, streamed and whole. */
import { type JsonObject, listOf, objectOf, textOf } from '../../core/json/json.ts';
import type { ReplyDecoder } from '../common/canonical/codec.ts';
import type { ReplyEvents } from '../common/canonical/events.ts';
import type { StopReason } from '../common/canonical/reply.ts';

const reasons: ReadonlyMap<unknown, StopReason> = new Map([
  ['COMPLETE', 'stop'],
  ['STOP_SEQUENCE', 'stop-sequence'],
  ['TOOL_CALL', 'tool-calls'],
  ['MAX_TOKENS', 'length'],
  ['ERROR_LIMIT', 'length'],
  ['ERROR_TOXIC', 'refusal'],
]);

function reasonOf(word: unknown): StopReason {
  return reasons.get(word) ?? 'stop';
}

export class CohereDecoder implements ReplyDecoder {
  readonly #events: ReplyEvents;
  /** Calls that have begun; the index of a call counts among all blocks of the answer. */
  #calls = 0;

  constructor(events: ReplyEvents) {
    this.#events = events;
  }

  payload(json: JsonObject): void {
    const { type, index } = json;
    const delta = objectOf(json['delta']) ?? {};
    const message = objectOf(delta['message']) ?? {};
    if (type === 'message-start') this.#events.start(textOf(json['id']));
    else if (type === 'content-start' || type === 'content-delta') this.#content(objectOf(message['content']));
    else if (type === 'tool-plan-delta') this.#events.text(0, textOf(message['tool_plan']) ?? '');
    else if (type === 'tool-call-start' || type === 'tool-call-delta') this.#call(type, index, message['tool_calls']);
    else if (type === 'tool-call-end') this.#events.endCall(0, this.#keyOf(index));
    else if (type === 'citation-start') cite(this.#events, objectOf(message['citations']));
    else if (type === 'message-end') this.#events.stop(0, reasonOf(delta['finish_reason']));
  }

  end(): void {
    this.#events.stop(0, 'stop');
  }

  #content(content: JsonObject | undefined): void {
    const thinking = textOf(content?.['thinking']) ?? '';
    if (thinking !== '') this.#events.reasoning(0, thinking);
    this.#events.text(0, textOf(content?.['text']) ?? '');
  }

  #call(type: 'tool-call-start' | 'tool-call-delta', index: unknown, given: unknown): void {
    const call = objectOf(given) ?? objectOf(listOf(given)[0]) ?? {};
    const { name, arguments: input } = objectOf(call['function']) ?? {};
    if (type === 'tool-call-start') this.#calls += 1;
    this.#events.call(0, this.#keyOf(index), { id: textOf(call['id']), name: textOf(name), input: textOf(input) });
  }

  #keyOf(index: unknown): string | number {
    return typeof index === 'number' ? index : `call ${this.#calls}`;
  }
}

export function decodeReply(json: JsonObject, events: ReplyEvents): void {
  events.start(textOf(json['id']));
  const message = objectOf(json['message']) ?? {};
  const content = listOf(message['content']).map((part) => objectOf(part) ?? {});
  for (const { thinking } of content) if (textOf(thinking) !== undefined) events.reasoning(0, textOf(thinking)!);
  events.text(0, textOf(message['tool_plan']) ?? '');
  for (const { text } of content) events.text(0, textOf(text) ?? '');
  for (const citation of listOf(message['citations'])) cite(events, objectOf(citation));
  for (const [index, given] of listOf(message['tool_calls']).entries()) {
    const call = objectOf(given) ?? {};
    const { name, arguments: input } = objectOf(call['function']) ?? {};
    events.call(0, index, { id: textOf(call['id']), name: textOf(name), input: textOf(input) });
    events.endCall(0, index);
  }
  events.stop(0, reasonOf(json['finish_reason']));
}

/** Sources with an address or a title; others are the client's own documents. */
function cite(events: ReplyEvents, citation: JsonObject | undefined): void {
  for (const source of listOf(citation?.['sources'])) {
    const document = objectOf(objectOf(source)?.['document']);
    const [url, title] = [textOf(document?.['url']), textOf(document?.['title'])];
    if (url === undefined && title === undefined) continue;
    events.citation(0, { ...(url === undefined ? {} : { url }), ...(title === undefined ? {} : { title }) });
  }
}
