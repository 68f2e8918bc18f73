/** Encodes events as chat chunks: a role first, then deltas, a finish reason for each choice, usage if requested, `[DONE]`. */
import type { GatewayError } from '../../../../../core/contract/errors.ts';
import { type JsonObject, listOf, objectOf } from '../../../../../core/json/json.ts';
import type { ReplyContext, ReplyEncoder } from '../../../../common/canonical/codec.ts';
import type { Citation } from '../../../../common/canonical/prompt.ts';
import type { Event } from '../../../../common/canonical/reply.ts';
import { dataUrl } from '../../../../common/encoding/media.ts';
import { streamError } from '../errors.ts';
import { finishReasonOf } from '../finish.ts';
import { encodeLogprobs } from '../logprobs.ts';
import { extraContent } from '../opaque-state.ts';
import { annotationOf, audioId, type Position, replyId, sealedDetail } from '../reply-members.ts';
import { encodeUsage } from '../usage.ts';

/** Constant prefixes of a choice's chunks, and the choice's progress. */
interface ChoiceState {
  /** Up to and including `"delta":{`. */
  readonly head: string;
  readonly position: Position;
  /** Reasoning text of the open block: the block's signature covers exactly this text. */
  reasoning: string;
  /** Offset of the open block in the text. */
  blockStart: number;
  readonly annotations: JsonObject[];
}

export class ChatEncoder implements ReplyEncoder {
  readonly #context: ReplyContext;
  readonly #asksUsage: boolean;
  /** The client declared `functions`: it does not know `tool_calls`. */
  readonly #isLegacy: boolean;
  /** Suffix of a delta when the choice continues. */
  readonly #tail: string;
  /** Suffix after the choices. */
  readonly #close: string;
  /** Prefix up to the choices; undefined until the answer starts. */
  #frame: string | undefined;
  readonly #choices: ChoiceState[] = [];
  /** Prefix of the deltas of each open call, by block. */
  #calls: Map<number, { readonly head: string; readonly tail: string }> | undefined;

  constructor(context: ReplyContext) {
    const { request } = context;
    this.#context = context;
    this.#asksUsage = objectOf(request['stream_options'])?.['include_usage'] === true;
    this.#isLegacy = listOf(request['functions']).length > 0 && listOf(request['tools']).length === 0;
    this.#close = this.#asksUsage ? '],"usage":null}\n\n' : ']}\n\n';
    this.#tail = `},"logprobs":null,"finish_reason":null}${this.#close}`;
  }

  event(event: Event): string {
    switch (event.type) {
      case 'text-delta':
        return this.#textDelta(event);
      case 'tool-delta': {
        const call = this.#calls?.get(event.block);
        return call === undefined ? '' : call.head + JSON.stringify(event.text) + call.tail;
      }
      case 'reasoning-delta':
        return this.#reasoningDelta(event.choice, event.text);
      case 'refusal-delta':
        return this.#delta(event.choice, `"refusal":${JSON.stringify(event.text)}`);
      case 'reply-start':
        return this.#start(event);
      case 'stop':
        return this.#stop(event);
      default:
        return this.#rareEvent(event);
    }
  }

  finish(): string {
    const head = this.#frame === undefined ? this.#start({ id: undefined, createdAt: undefined }) : '';
    if (!this.#asksUsage) return `${head}data: [DONE]\n\n`;
    const usage = JSON.stringify(encodeUsage(this.#context.usage().usage));
    return `${head}${this.#frame}],"usage":${usage}}\n\ndata: [DONE]\n\n`;
  }

  fail(error: GatewayError): string {
    return streamError(error, { shape: this.#context.shapeOf?.(error) });
  }

  #rareEvent(event: Event): string {
    switch (event.type) {
      case 'text-start':
        return this.#textStart(event.choice);
      case 'citation':
        return this.#citation(event.choice, event.citation);
      case 'text-end':
        return event.opaqueState === undefined ? '' : this.#delta(event.choice, this.#extra(event.opaqueState));
      case 'reasoning-end':
        return this.#reasoningEnd(event);
      case 'tool-start':
        return this.#toolStart(event);
      case 'tool-end':
        return this.#toolEnd(event);
      case 'media':
        return this.#media(event);
      default:
        // The protocol has no member for a vendor's own searches; the citations carry their sources.
        return '';
    }
  }

  #start({
    id,
    createdAt,
    serviceTier,
  }: {
    id?: string | undefined;
    createdAt: number | undefined;
    serviceTier?: string | undefined;
  }): string {
    const { call, createdAt: receivedAt } = this.#context;
    const members: JsonObject = {
      id: replyId(id, this.#context),
      object: 'chat.completion.chunk',
      created: createdAt ?? receivedAt,
      model: call.model,
      ...(serviceTier === undefined ? {} : { service_tier: serviceTier }),
    };
    this.#frame = `data: ${JSON.stringify(members).slice(0, -1)},"choices":[`;
    return this.#open(0);
  }

  /** The first chunk of a choice. */
  #open(choice: number): string {
    const head = `${this.#frame}{"index":${choice},"delta":{`;
    this.#choices[choice] = {
      head,
      position: { blocks: 0, text: 0, images: 0, calls: 0 },
      reasoning: '',
      blockStart: 0,
      annotations: [],
    };
    return `${head}"role":"assistant","content":""${this.#tail}`;
  }

  #delta(choice: number, members: string): string {
    const state = this.#choices[choice];
    if (state !== undefined) return state.head + members + this.#tail;
    const opening = this.#open(choice);
    return opening + this.#choices[choice]!.head + members + this.#tail;
  }

  #textDelta({ choice, text, logprobs }: Event & { type: 'text-delta' }): string {
    const state = this.#choices[choice];
    if (state !== undefined) state.position.text += text.length;
    if (logprobs === undefined) return this.#delta(choice, `"content":${JSON.stringify(text)}`);
    const encodedLogprobs = JSON.stringify(encodeLogprobs(logprobs));
    const { head } = this.#choices[choice]!;
    return `${head}"content":${JSON.stringify(text)}},"logprobs":${encodedLogprobs},"finish_reason":null}${this.#close}`;
  }

  #textStart(choice: number): string {
    const opening = this.#choices[choice] === undefined ? this.#open(choice) : '';
    const state = this.#choices[choice]!;
    state.blockStart = state.position.text;
    state.position.blocks++;
    return opening;
  }

  #citation(choice: number, citation: Citation): string {
    const { blockStart, position } = this.#choices[choice]!;
    const annotation = annotationOf(citation, blockStart, position.text);
    if (annotation !== undefined) this.#choices[choice]!.annotations.push(annotation);
    return '';
  }

  #reasoningDelta(choice: number, text: string): string {
    const chunk = this.#delta(choice, `"reasoning_content":${JSON.stringify(text)}`);
    this.#choices[choice]!.reasoning += text;
    return chunk;
  }

  #reasoningEnd({ choice, opaqueState, redacted }: Event & { type: 'reasoning-end' }): string {
    const opening = this.#choices[choice] === undefined ? this.#open(choice) : '';
    const state = this.#choices[choice]!;
    const text = state.reasoning;
    state.reasoning = '';
    if (opaqueState === undefined) return opening;
    const detail = sealedDetail({ text, redacted }, this.#context.seal(opaqueState), state.position);
    state.position.blocks++;
    return opening + this.#delta(choice, `"reasoning_details":[${JSON.stringify(detail)}]`);
  }

  #toolStart({ block, choice, id, name, custom }: Event & { type: 'tool-start' }): string {
    const opening = this.#choices[choice] === undefined ? this.#open(choice) : '';
    const state = this.#choices[choice]!;
    const index = state.position.calls++;
    state.position.blocks++;
    if (this.#isLegacy) return opening + this.#functionStart(state, block, index, name);
    const [kind, input] = custom ? ['custom', 'input'] : ['function', 'arguments'];
    this.#calls ??= new Map();
    this.#calls.set(block, {
      head: `${state.head}"tool_calls":[{"index":${index},"${kind}":{"${input}":`,
      tail: `}}]${this.#tail}`,
    });
    const call = `{"index":${index},"id":${JSON.stringify(id)},"type":"${kind}","${kind}":{"name":${JSON.stringify(name)},"${input}":""}}`;
    return opening + this.#delta(choice, `"tool_calls":[${call}]`);
  }

  /** The legacy form holds one call. */
  #functionStart(state: ChoiceState, block: number, index: number, name: string): string {
    if (index > 0) return '';
    this.#calls ??= new Map();
    this.#calls.set(block, {
      head: `${state.head}"function_call":{"arguments":`,
      tail: `}${this.#tail}`,
    });
    return `${state.head}"function_call":{"name":${JSON.stringify(name)},"arguments":""}${this.#tail}`;
  }

  #toolEnd({ block, opaqueState }: Event & { type: 'tool-end' }): string {
    const call = this.#calls?.get(block);
    this.#calls?.delete(block);
    if (call === undefined || opaqueState === undefined || this.#isLegacy) return '';
    // Adds one empty piece of the arguments: some clients refuse a call's delta without arguments.
    return `${call.head}""},${this.#extra(opaqueState)}${call.tail.slice(1)}`;
  }

  #extra(opaqueState: string): string {
    return `"extra_content":${JSON.stringify(extraContent(this.#context.seal(opaqueState)))}`;
  }

  #media({ choice, media }: Event & { type: 'media' }): string {
    const { source } = media;
    if (source.form === 'file') return '';
    const opening = this.#choices[choice] === undefined ? this.#open(choice) : '';
    const state = this.#choices[choice]!;
    if (media.kind === 'audio') {
      const audio = {
        id: audioId(this.#context),
        ...(source.form === 'bytes' && source.base64 !== '' ? { data: source.base64 } : {}),
        ...(media.transcript === undefined ? {} : { transcript: media.transcript }),
      };
      return opening + this.#delta(choice, `"audio":${JSON.stringify(audio)}`);
    }
    if (media.kind !== 'image') return opening;
    state.position.blocks++;
    const image = { index: state.position.images++, type: 'image_url', image_url: { url: dataUrl(source) } };
    const extra =
      media.opaqueState === undefined
        ? {}
        : { extra_content: extraContent(this.#context.seal(media.opaqueState.value)) };
    return opening + this.#delta(choice, `"images":[${JSON.stringify({ ...image, ...extra })}]`);
  }

  #stop({ choice, reason }: Event & { type: 'stop' }): string {
    const opening = this.#choices[choice] === undefined ? this.#open(choice) : '';
    const { head, annotations } = this.#choices[choice]!;
    const word = finishReasonOf(reason, this.#isLegacy);
    // Sent at once: clients keep only the last list of a repeated member.
    const cited = annotations.length === 0 ? '' : this.#delta(choice, `"annotations":${JSON.stringify(annotations)}`);
    return `${opening}${cited}${head}},"logprobs":null,"finish_reason":"${word}"}${this.#close}`;
  }
}
