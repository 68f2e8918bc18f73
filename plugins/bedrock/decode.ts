/** Decodes answers of Converse, streamed and whole. */
import { type JsonObject, listOf, objectOf, textOf } from '../../core/json/json.ts';
import type { ReplyDecoder } from '../common/canonical/codec.ts';
import type { ReplyEvents } from '../common/canonical/events.ts';
import type { StopReason } from '../common/canonical/reply.ts';

const reasons: ReadonlyMap<unknown, StopReason> = new Map([
  ['end_turn', 'stop'],
  ['tool_use', 'tool-calls'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['stop_sequence', 'stop-sequence'],
  ['guardrail_intervened', 'refusal'],
  ['content_filtered', 'refusal'],
]);

function reasonOf(word: unknown): StopReason {
  return reasons.get(word) ?? 'stop';
}

export class ConverseDecoder implements ReplyDecoder {
  readonly #events: ReplyEvents;
  /** Index of the open call. */
  #call: number | undefined;
  #signature: string | undefined;

  constructor(events: ReplyEvents) {
    this.#events = events;
  }

  payload(json: JsonObject, event: string | undefined): void {
    const index = Number(json['contentBlockIndex'] ?? 0);
    if (event === 'messageStart') this.#events.start();
    else if (event === 'contentBlockStart') this.#begin(index, objectOf(objectOf(json['start'])?.['toolUse']));
    else if (event === 'contentBlockDelta') this.#grow(index, objectOf(json['delta']) ?? {});
    else if (event === 'contentBlockStop') this.#finish(index);
    else if (event === 'messageStop') this.#events.stop(0, reasonOf(json['stopReason']));
  }

  end(): void {
    this.#events.stop(0, 'stop');
  }

  #begin(index: number, call: JsonObject | undefined): void {
    if (call === undefined) return;
    this.#call = index;
    this.#events.call(0, index, { id: textOf(call['toolUseId']), name: textOf(call['name']) });
  }

  #grow(index: number, delta: JsonObject): void {
    this.#events.text(0, textOf(delta['text']) ?? '');
    const input = textOf(objectOf(delta['toolUse'])?.['input']);
    if (input !== undefined) this.#events.call(0, index, { input });
    const { text, signature, redactedContent: redacted } = objectOf(delta['reasoningContent']) ?? {};
    if (textOf(redacted) !== undefined) this.#events.redacted(0, textOf(redacted)!);
    if (textOf(text) !== undefined || textOf(signature) !== undefined) this.#events.reasoning(0, textOf(text) ?? '');
    if (textOf(signature) !== undefined) this.#signature = (this.#signature ?? '') + textOf(signature);
  }

  #finish(index: number): void {
    if (this.#call === index) this.#events.endCall(0, index);
    else this.#events.close(0, this.#signature);
    this.#call = undefined;
    this.#signature = undefined;
  }
}

export function decodeReply(json: JsonObject, events: ReplyEvents): void {
  events.start();
  const content = listOf(objectOf(objectOf(json['output'])?.['message'])?.['content']);
  for (const [index, given] of content.entries()) decodeBlock(index, objectOf(given) ?? {}, events);
  events.stop(0, reasonOf(json['stopReason']));
}

function decodeBlock(index: number, block: JsonObject, events: ReplyEvents): void {
  events.text(0, textOf(block['text']) ?? '');
  const call = objectOf(block['toolUse']);
  if (call !== undefined) {
    const input = JSON.stringify(call['input'] ?? {});
    events.call(0, index, { id: textOf(call['toolUseId']), name: textOf(call['name']), input });
    events.endCall(0, index);
  }
  const { reasoningText, redactedContent: redacted } = objectOf(block['reasoningContent']) ?? {};
  if (textOf(redacted) !== undefined) events.redacted(0, textOf(redacted)!);
  const thought = objectOf(reasoningText);
  if (thought === undefined) return;
  events.reasoning(0, textOf(thought['text']) ?? '');
  events.close(0, textOf(thought['signature']));
}
