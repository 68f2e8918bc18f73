/** Encodes a stream for clients of the messages protocol: one open block at a time, even if the upstream interleaves blocks. */
import type { GatewayError } from '../../../../../core/contract/errors.ts';
import { isObject, listOf, textOf } from '../../../../../core/json/json.ts';
import type { ReplyContext, ReplyEncoder } from '../../../../common/canonical/codec.ts';
import type { Event, StopReason } from '../../../../common/canonical/reply.ts';
import { mediaLink } from '../../../../common/encoding/media.ts';
import { citationJson } from '../citations.ts';
import { streamError } from '../errors.ts';
import { usageAtStart, usageJson } from '../usage.ts';
import { endingOf, messageHead, type Seal } from './answer-blocks.ts';
import { messageDeltaFrame, messageStartFrame, messageStopFrame, pingFrame } from './frames.ts';
import { SearchBlock, type StreamBlock, TextBlock, ThinkingBlock, ToolBlock } from './stream-blocks.ts';

/** Sends a ping each time this many characters of a buffered call have arrived. */
const heldCharactersPerPing = 2_048;

export class MessagesEncoder implements ReplyEncoder {
  readonly #context: ReplyContext;
  readonly #seal: Seal = (value) => this.#context.seal(value);
  /** Tools with streamed arguments, which may turn out not to be JSON. */
  readonly #eagerTools: ReadonlySet<string>;
  /** Blocks that have not ended on the wire, in order; only the first of them may be open there. */
  readonly #waiting: StreamBlock[] = [];
  readonly #indexes = { next: 0 };
  #started = false;
  #serviceTier: string | undefined;
  #refusal = '';
  #reason: StopReason = 'stop';
  #sequence: string | undefined;

  constructor(context: ReplyContext) {
    this.#context = context;
    this.#eagerTools = eagerToolsOf(context.request['tools']);
  }

  event(event: Event): string {
    switch (event.type) {
      case 'text-delta':
      case 'reasoning-delta': {
        const front = this.#waiting[0];
        const frame = front?.number === event.block ? front.delta?.(event.text) : undefined;
        return frame ?? this.#grow(event.block, event.text);
      }
      case 'reply-start':
        this.#serviceTier = event.serviceTier;
        return this.#start();
      default:
        // The protocol has one answer: other choices are ignored.
        return event.choice === 0 ? this.#start() + this.#take(event) : this.#start();
    }
  }

  finish(): string {
    let frames = this.#start();
    for (const block of this.#waiting) block.ended = true;
    frames += this.#flow();
    const ending = { ...endingOf(this.#reason, this.#sequence, this.#refusal), container: null };
    const usage = usageJson(this.#context.usage().usage, this.#serviceTier);
    return frames + messageDeltaFrame(ending, usage) + messageStopFrame;
  }

  /** Buffered calls are not sent: the client must not run an incomplete call. */
  fail(error: GatewayError): string {
    const { exchangeId, shapeOf } = this.#context;
    return streamError(error, { exchangeId, shape: shapeOf?.(error) });
  }

  #take(event: Exclude<Event, { type: 'reply-start' | 'text-delta' | 'reasoning-delta' }>): string {
    switch (event.type) {
      case 'text-start':
      case 'refusal-start':
        return this.#add(new TextBlock(event.block));
      case 'reasoning-start':
        return this.#add(new ThinkingBlock(event.block, this.#seal));
      case 'tool-start':
        return this.#add(new ToolBlock(event, this.#isEager(event.name), this.#seal));
      case 'search':
        // Pages that were opened without a search have no block.
        return event.search.queries.length === 0
          ? ''
          : this.#add(new SearchBlock(event.block, event.search, this.#seal));
      case 'media':
        return this.#addText(event.block, mediaLink(event.media));
      case 'refusal-delta':
        this.#refusal += event.text;
        return this.#grow(event.block, event.text);
      case 'tool-delta':
        return this.#growCall(event.block, event.text);
      case 'citation': {
        const json = citationJson(event.citation, this.#seal);
        const block = this.#find(event.block);
        if (json !== undefined && block instanceof TextBlock) block.cite(json);
        return this.#flow();
      }
      case 'stop':
        this.#reason = event.reason;
        this.#sequence = event.sequence;
        return '';
      default:
        return this.#end(event);
    }
  }

  #isEager(tool: string): boolean {
    return this.#context.continues === true || this.#eagerTools.has(tool);
  }

  #start(): string {
    if (this.#started) return '';
    this.#started = true;
    const { exchangeId, call } = this.#context;
    const usage = usageAtStart(this.#context.usage().usage, call.inputTokens);
    return messageStartFrame({
      ...messageHead(exchangeId, call.model),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      container: null,
      usage: usageJson(usage, this.#serviceTier),
    });
  }

  #find(number: number): StreamBlock | undefined {
    for (const block of this.#waiting) if (block.number === number) return block;
    return undefined;
  }

  #add(block: StreamBlock): string {
    this.#waiting.push(block);
    return this.#flow();
  }

  #addText(number: number, text: string): string {
    const block = new TextBlock(number);
    block.hold(text);
    block.ended = true;
    return this.#add(block);
  }

  #grow(number: number, text: string): string {
    this.#find(number)?.hold(text);
    return this.#flow();
  }

  #growCall(number: number, text: string): string {
    const call = this.#find(number);
    if (!(call instanceof ToolBlock)) return '';
    const pings = Math.floor(call.length / heldCharactersPerPing);
    call.hold(text);
    const frames = this.#flow();
    return frames === '' && Math.floor(call.length / heldCharactersPerPing) > pings ? pingFrame : frames;
  }

  #end(event: Extract<Event, { type: `${string}-end` }>): string {
    const block = this.#find(event.block);
    if (block === undefined) return '';
    block.ended = true;
    if (event.type === 'reasoning-end' && block instanceof ThinkingBlock) block.end(event.opaqueState, event.redacted);
    else if (event.type === 'tool-end' && block instanceof ToolBlock) block.end(event.opaqueState, event.isCut);
    return this.#flow();
  }

  /** Writes what the first block can send, and after its end what the next one can. */
  #flow(): string {
    let frames = '';
    for (let front = this.#waiting[0]; front !== undefined; front = this.#waiting[0]) {
      frames += front.write(this.#indexes);
      if (!front.ended) break;
      this.#waiting.shift();
    }
    return frames;
  }
}

function eagerToolsOf(tools: unknown): ReadonlySet<string> {
  const eager = listOf(tools).filter((tool) => isObject(tool) && tool['eager_input_streaming'] === true);
  return new Set(eager.map((tool) => textOf((tool as { name?: unknown }).name) ?? ''));
}
