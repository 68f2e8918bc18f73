/** Encodes a stream for a client: text at once, calls when they are complete, finish reason and usage in the last chunk. */
import type { GatewayError } from '../../../../../core/contract/errors.ts';
import { isObject, type JsonObject, tryParse } from '../../../../../core/json/json.ts';
import type { ReplyContext, ReplyEncoder } from '../../../../common/canonical/codec.ts';
import type { TokenLogprob } from '../../../../common/canonical/prompt.ts';
import type { Event, StopReason } from '../../../../common/canonical/reply.ts';
import { Grounding } from '../decode/grounding.ts';
import { finishOf } from '../finish.ts';
import { logprobsResult } from '../logprobs.ts';
import { usageMetadata } from '../usage.ts';
import { argsOf, mediaPart, PendingSlot, wantsThoughts } from './answer-parts.ts';
import { ClientFrames, dialectOf } from './client-frames.ts';

/** Marks the position at which a frame is cut in two; it occurs in no upstream id and no model name. */
const hole = '\u0000hole\u0000';
/** Default query: a stream without a query of its own is SSE. */
const officialQuery = new URLSearchParams('alt=sse');

interface OpenCall {
  readonly id: string;
  readonly name: string;
  input: string;
}

/** Encoding state of one candidate. */
class Outgoing {
  readonly slot: PendingSlot;
  /** Constant text around a text part and around a thought. */
  textFrame: readonly [string, string] | undefined;
  thoughtFrame: readonly [string, string] | undefined;
  /** All text so far, and the offset of its last block. */
  text = '';
  blockStart = 0;
  grounding: Grounding | undefined;
  stop: StopReason = 'stop';
  isRefused = false;

  constructor(slot: PendingSlot) {
    this.slot = slot;
  }
}

export class GeminiEncoder implements ReplyEncoder {
  readonly #context: ReplyContext;
  readonly #frames: ClientFrames;
  readonly #showsThoughts: boolean;
  readonly #choices = new Map<number, Outgoing>();
  readonly #calls = new Map<number, OpenCall>();
  #id: string;
  #tier: string | undefined;

  constructor(context: ReplyContext) {
    this.#context = context;
    const dialect = dialectOf(context.request, context.query ?? officialQuery);
    this.#frames = new ClientFrames(dialect, context.call.model, context.createdAt);
    this.#showsThoughts = context.continues === true || wantsThoughts(context.request);
    this.#id = context.exchangeId;
  }

  event(event: Event): string {
    switch (event.type) {
      case 'text-delta':
        return this.#text(event.choice, event.text, event.logprobs);
      case 'reasoning-delta':
        return this.#showsThoughts ? this.#thought(event.choice, event.text) : '';
      case 'tool-delta': {
        const call = this.#calls.get(event.block);
        if (call !== undefined) call.input += event.text;
        return '';
      }
      case 'reply-start':
        this.#id = event.id ?? this.#id;
        this.#tier = event.serviceTier;
        return '';
      case 'tool-start':
        this.#calls.set(event.block, { id: event.id, name: event.name, input: '' });
        return '';
      case 'refusal-delta':
        this.#of(event.choice).isRefused = true;
        return this.#text(event.choice, event.text, undefined);
      default:
        return this.#rare(event);
    }
  }

  finish(): string {
    if (this.#choices.size === 0) this.#of(0);
    const candidates = [...this.#choices]
      .sort(([one], [other]) => one - other)
      .map(([index, choice]) => {
        const grounding = choice.grounding?.metadata;
        return {
          content: { parts: [{ text: '', ...choice.slot.take() }], role: 'model' },
          finishReason: choice.isRefused && choice.stop === 'stop' ? 'SAFETY' : finishOf(choice.stop),
          index,
          ...(grounding === undefined ? {} : { groundingMetadata: grounding }),
        };
      });
    const usage = usageMetadata(this.#context.usage().usage, this.#tier);
    return this.#frames.frame({ candidates, usageMetadata: usage, ...this.#names });
  }

  fail(error: GatewayError): string {
    return this.#frames.error(error, this.#context.shapeOf?.(error));
  }

  #rare(event: Event): string {
    switch (event.type) {
      case 'text-start':
      case 'refusal-start': {
        const choice = this.#of(event.choice);
        choice.blockStart = choice.text.length;
        return '';
      }
      case 'reasoning-end':
        if (event.opaqueState !== undefined)
          this.#of(event.choice).slot.add(event.redacted ? 'redacted' : 'reasoning', event.opaqueState);
        return '';
      case 'text-end': {
        if (event.opaqueState === undefined) return '';
        const { slot } = this.#of(event.choice);
        slot.add('own', event.opaqueState);
        return this.#part(event.choice, { text: '', ...slot.take() });
      }
      case 'tool-end':
        return event.isCut ? '' : this.#call(event.choice, event.block, event.opaqueState);
      case 'media': {
        const part = mediaPart(event.media);
        const { slot } = this.#of(event.choice);
        if (event.media.opaqueState !== undefined) slot.add('own', event.media.opaqueState.value);
        return part === undefined ? '' : this.#part(event.choice, { ...part, ...slot.take() });
      }
      case 'citation':
      case 'search':
        this.#ground(event);
        return '';
      case 'stop':
        this.#of(event.choice).stop = event.reason;
        return '';
      default:
        return '';
    }
  }

  #ground(event: Extract<Event, { type: 'citation' | 'search' }>): void {
    const choice = this.#of(event.choice);
    choice.grounding ??= new Grounding();
    if (event.type === 'search') choice.grounding.search(event.search);
    else choice.grounding.cite(event.citation, choice);
  }

  #text(index: number, text: string, logprobs: readonly TokenLogprob[] | undefined): string {
    const choice = this.#of(index);
    choice.text += text;
    if (!choice.slot.isEmpty || logprobs !== undefined) {
      const extras = logprobs === undefined ? {} : { logprobsResult: logprobsResult(logprobs) };
      return this.#part(index, { text, ...choice.slot.take() }, extras);
    }
    choice.textFrame ??= this.#around(index, { text: hole });
    return choice.textFrame[0] + JSON.stringify(text) + choice.textFrame[1];
  }

  #thought(index: number, text: string): string {
    const choice = this.#of(index);
    choice.thoughtFrame ??= this.#around(index, { text: hole, thought: true });
    return choice.thoughtFrame[0] + JSON.stringify(text) + choice.thoughtFrame[1];
  }

  /** Arguments keep the model's own text, so that large numbers keep their digits. */
  #call(index: number, block: number, opaqueState: string | undefined): string {
    const call = this.#calls.get(block);
    if (call === undefined) return '';
    this.#calls.delete(block);
    const { slot } = this.#of(index);
    if (opaqueState !== undefined) slot.add('own', opaqueState);
    const functionCall = { id: call.id, name: call.name, args: hole };
    const [head, tail] = this.#around(index, { functionCall, ...slot.take() });
    return head + argsText(call.input) + tail;
  }

  #part(index: number, part: JsonObject, extras: JsonObject = {}): string {
    return this.#frames.frame(this.#chunk(index, part, extras));
  }

  #around(index: number, part: JsonObject): readonly [string, string] {
    return this.#frames.around(this.#chunk(index, part), hole);
  }

  #chunk(index: number, part: JsonObject, extras: JsonObject = {}): JsonObject {
    return { candidates: [{ content: { parts: [part], role: 'model' }, index, ...extras }], ...this.#names };
  }

  get #names(): JsonObject {
    return { modelVersion: this.#context.call.model, responseId: this.#id };
  }

  #of(index: number): Outgoing {
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      choice = new Outgoing(new PendingSlot(this.#context.seal));
      this.#choices.set(index, choice);
    }
    return choice;
  }
}

/** JSON text of an object, on one line. */
function argsText(input: string): string {
  return isObject(tryParse(input)) && !/[\r\n]/.test(input) ? input : JSON.stringify(argsOf(input));
}
