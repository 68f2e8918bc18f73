/** Words events as chat chunks: a role first, deltas, a reason for each choice, usage where asked for, `[DONE]`. */
import type { GatewayError } from '../../../../core/errors.ts';
import type { Citation } from '../../canon.ts';
import type { ReplyContext, ReplyEncoder } from '../../codec.ts';
import { type JsonObject, listOf, objectOf } from '../../json.ts';
import type { Event } from '../../reply.ts';
import { dataUrl } from '../../wording/media.ts';
import { streamError } from './errors.ts';
import { finishReasonOf } from './finish.ts';
import { extraContent } from './keepsakes.ts';
import { wordLogprobs } from './logprobs.ts';
import { annotationOf, audioId, replyId, sealedDetail } from './reply-words.ts';
import { wordUsage } from './usage.ts';

/** The parts of a choice's chunks that do not change, and how far it has come. */
interface ChoiceState {
  /** Up to and with `"delta":{`. */
  readonly head: string;
  calls: number;
  images: number;
  /** Reasoning that came in the open block: its signature is good for exactly these words. */
  reasoning: string;
  details: number;
  /** UTF-16 length of all text, and where the open block begins in it. */
  textLength: number;
  blockStart: number;
  readonly annotations: JsonObject[];
}

export class ChatEncoder implements ReplyEncoder {
  readonly #context: ReplyContext;
  readonly #asksUsage: boolean;
  /** The client declared `functions`: it knows no `tool_calls`. */
  readonly #isLegacy: boolean;
  /** Behind a delta of a choice that goes on. */
  readonly #tail: string;
  /** Behind the choices. */
  readonly #close: string;
  /** Up to the choices; undefined until the answer has begun. */
  #frame: string | undefined;
  readonly #choices: ChoiceState[] = [];
  /** Head of the deltas of each open call, by block. */
  readonly #calls = new Map<number, { readonly head: string; readonly tail: string }>();

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
        const call = this.#calls.get(event.block);
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
    const usage = JSON.stringify(wordUsage(this.#context.usage().usage));
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
        return event.keepsake === undefined ? '' : this.#delta(event.choice, this.#extra(event.keepsake));
      case 'reasoning-end':
        return this.#reasoningEnd(event);
      case 'tool-start':
        return this.#toolStart(event);
      case 'tool-end':
        return this.#toolEnd(event);
      case 'media':
        return this.#media(event);
      default:
        // What a vendor searched by itself has no place here; the citations tell of it.
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
      calls: 0,
      images: 0,
      reasoning: '',
      details: 0,
      textLength: 0,
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
    if (state !== undefined) state.textLength += text.length;
    if (logprobs === undefined) return this.#delta(choice, `"content":${JSON.stringify(text)}`);
    const words = JSON.stringify(wordLogprobs(logprobs));
    const { head } = this.#choices[choice]!;
    return `${head}"content":${JSON.stringify(text)}},"logprobs":${words},"finish_reason":null}${this.#close}`;
  }

  #textStart(choice: number): string {
    const opening = this.#choices[choice] === undefined ? this.#open(choice) : '';
    const state = this.#choices[choice]!;
    state.blockStart = state.textLength;
    return opening;
  }

  #citation(choice: number, citation: Citation): string {
    const { blockStart, textLength } = this.#choices[choice]!;
    const annotation = annotationOf(citation, blockStart, textLength);
    if (annotation !== undefined) this.#choices[choice]!.annotations.push(annotation);
    return '';
  }

  #reasoningDelta(choice: number, text: string): string {
    const chunk = this.#delta(choice, `"reasoning_content":${JSON.stringify(text)}`);
    this.#choices[choice]!.reasoning += text;
    return chunk;
  }

  #reasoningEnd({ choice, keepsake, redacted }: Event & { type: 'reasoning-end' }): string {
    const opening = this.#choices[choice] === undefined ? this.#open(choice) : '';
    const state = this.#choices[choice]!;
    const text = state.reasoning;
    state.reasoning = '';
    if (keepsake === undefined) return opening;
    const detail = sealedDetail({ text, redacted }, this.#context.seal(keepsake), state.details++);
    return opening + this.#delta(choice, `"reasoning_details":[${JSON.stringify(detail)}]`);
  }

  #toolStart({ block, choice, id, name, custom }: Event & { type: 'tool-start' }): string {
    const opening = this.#choices[choice] === undefined ? this.#open(choice) : '';
    const state = this.#choices[choice]!;
    const index = state.calls++;
    if (this.#isLegacy) return opening + this.#functionStart(state, block, index, name);
    const [kind, input] = custom ? ['custom', 'input'] : ['function', 'arguments'];
    this.#calls.set(block, {
      head: `${state.head}"tool_calls":[{"index":${index},"${kind}":{"${input}":`,
      tail: `}}]${this.#tail}`,
    });
    const call = `{"index":${index},"id":${JSON.stringify(id)},"type":"${kind}","${kind}":{"name":${JSON.stringify(name)},"${input}":""}}`;
    return opening + this.#delta(choice, `"tool_calls":[${call}]`);
  }

  /** The old form has room for one call. */
  #functionStart(state: ChoiceState, block: number, index: number, name: string): string {
    if (index > 0) return '';
    this.#calls.set(block, { head: `${state.head}"function_call":{"arguments":`, tail: `}${this.#tail}` });
    return `${state.head}"function_call":{"name":${JSON.stringify(name)},"arguments":""}${this.#tail}`;
  }

  #toolEnd({ block, keepsake }: Event & { type: 'tool-end' }): string {
    const call = this.#calls.get(block);
    this.#calls.delete(block);
    if (call === undefined || keepsake === undefined || this.#isLegacy) return '';
    // With one more, empty piece of the arguments: some clients refuse a delta of a call that has none.
    return `${call.head}""},${this.#extra(keepsake)}${call.tail.slice(1)}`;
  }

  #extra(keepsake: string): string {
    return `"extra_content":${JSON.stringify(extraContent(this.#context.seal(keepsake)))}`;
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
    const image = { index: state.images++, type: 'image_url', image_url: { url: dataUrl(source) } };
    const extra =
      media.keepsake === undefined ? {} : { extra_content: extraContent(this.#context.seal(media.keepsake.value)) };
    return opening + this.#delta(choice, `"images":[${JSON.stringify({ ...image, ...extra })}]`);
  }

  #stop({ choice, reason }: Event & { type: 'stop' }): string {
    const opening = this.#choices[choice] === undefined ? this.#open(choice) : '';
    const { head, annotations } = this.#choices[choice]!;
    const word = finishReasonOf(reason, this.#isLegacy);
    // All at once: clients keep the last list of a member that they are told twice.
    const cited = annotations.length === 0 ? '' : this.#delta(choice, `"annotations":${JSON.stringify(annotations)}`);
    return `${opening}${cited}${head}},"logprobs":null,"finish_reason":"${word}"}${this.#close}`;
  }
}
