/** Encodes a stream of events for a responses client: the whole lifecycle that official accumulators require. Pure. */
import type { GatewayError } from '../../../../../core/contract/errors.ts';
import type { ReplyContext, ReplyEncoder } from '../../../../common/canonical/codec.ts';
import type { MediaPart, SearchPart } from '../../../../common/canonical/prompt.ts';
import type { Event, StopReason } from '../../../../common/canonical/reply.ts';
import { failureFrames } from '../errors.ts';
import { opaqueStateOfCall, opaqueStateOfRedacted, opaqueStateOfText } from '../opaque-state.ts';
import { Frames, Output } from './frames.ts';
import { CallWriter, encodeImage, encodeSearch, type Place, ReasoningWriter } from './items.ts';
import { MessageWriter } from './message.ts';
import { callPrefix, mediaText } from './output-items.ts';
import {
  type Ending,
  endingMembers,
  endingOf,
  failedMembers,
  itemId,
  responseBase,
  unfinishedMembers,
} from './response-object.ts';

type EventOf<Type extends Event['type']> = Extract<Event, { readonly type: Type }>;

export class ResponsesEncoder implements ReplyEncoder {
  readonly #context: ReplyContext;
  readonly #frames = new Frames();
  readonly #output = new Output();
  /** The response object's unchanging members, as JSON without the closing brace. */
  #base = '';
  /** All texts of the answer. */
  #text = '';
  #message: MessageWriter | undefined;
  #reasoning: ReasoningWriter | undefined;
  readonly #calls = new Map<number, CallWriter>();
  #stop: StopReason | undefined;
  #hasRefusal = false;

  constructor(context: ReplyContext) {
    this.#context = context;
  }

  event(event: Event): string {
    // The protocol has one answer.
    if (event.type !== 'reply-start' && event.choice !== 0) return '';
    switch (event.type) {
      case 'text-delta':
        this.#text += event.text;
        return this.#message?.text(event.text, event.logprobs) ?? '';
      case 'reasoning-delta':
        return this.#reasoning?.delta(event.text) ?? '';
      case 'tool-delta':
        return this.#calls.get(event.block)?.delta(event.text) ?? '';
      case 'refusal-delta':
        return this.#message?.refusal(event.text) ?? '';
      case 'reply-start':
        return this.#start(event.createdAt, event.serviceTier);
      case 'text-start':
        return this.#enterMessage('text');
      case 'refusal-start':
        this.#hasRefusal = true;
        return this.#enterMessage('refusal');
      case 'citation':
        return this.#message?.citation(event.citation) ?? '';
      case 'text-end':
        return this.#endText(event.opaqueState);
      case 'refusal-end':
        return this.#message?.endBlock() ?? '';
      case 'reasoning-start':
        return this.#startReasoning();
      case 'reasoning-end':
        return this.#endReasoning(opaqueStateOfReasoning(event));
      case 'tool-start':
        return this.#startCall(event);
      case 'tool-end':
        return this.#endCall(event);
      case 'media':
        return this.#media(event.media);
      case 'search':
        return this.#search(event.search);
      case 'stop':
        this.#stop = event.reason;
        return '';
    }
  }

  finish(): string {
    const ending = endingOf(this.#stop, this.#hasRefusal);
    const begun = this.#start();
    let open = this.#endOpen(ending);
    for (const call of this.#calls.values()) open += call.end('incomplete');
    const members = this.#endingJson(ending);
    this.#context.onResponse?.(`${this.#base},${members}}`);
    return begun + open + this.#lifecycle(`response.${ending.status}`, members);
  }

  fail(error: GatewayError): string {
    const begun = this.#start();
    const failed = (members: object) =>
      `${this.#base},${inner({ ...members, ...failedMembers })},"output":${this.#output.json}}`;
    return begun + failureFrames(error, this.#frames.next, failed, this.#context.shapeOf?.(error));
  }

  #start(createdAt?: number, serviceTier?: string): string {
    if (this.#base !== '') return '';
    this.#base = JSON.stringify(responseBase(this.#context, { createdAt, serviceTier })).slice(0, -1);
    const members = inner(unfinishedMembers);
    return this.#lifecycle('response.created', members) + this.#lifecycle('response.in_progress', members);
  }

  #lifecycle(type: string, members: string): string {
    return this.#frames.frame(type, `"response":${this.#base},${members}}`);
  }

  #endingJson(ending: Ending): string {
    return `${inner(endingMembers(ending, this.#context.usage(), this.#context.now()))},"output":${this.#output.json},"output_text":${JSON.stringify(this.#text)}`;
  }

  #place(prefix: string): Place {
    const index = this.#output.take();
    return { index, id: itemId(prefix, this.#context.exchangeId, index) };
  }

  #enterMessage(kind: 'text' | 'refusal'): string {
    if (this.#message !== undefined) return this.#message.startPart(kind);
    this.#message = new MessageWriter(this.#frames, this.#output, this.#place('msg'));
    return this.#message.start() + this.#message.startPart(kind);
  }

  #endText(opaqueState: string | undefined): string {
    const ended = this.#message?.endBlock() ?? '';
    if (opaqueState === undefined) return ended;
    return ended + this.#endOpen() + this.#bare(opaqueStateOfText(opaqueState));
  }

  #startReasoning(): string {
    const ended = this.#endOpen();
    this.#reasoning = new ReasoningWriter(this.#frames, this.#output, this.#place('rs'));
    return ended + this.#reasoning.start();
  }

  #endReasoning(opaqueState: string | undefined): string {
    const writer = this.#reasoning;
    this.#reasoning = undefined;
    return writer?.end(opaqueState === undefined ? undefined : this.#context.seal(opaqueState)) ?? '';
  }

  /** A reasoning item that only carries opaque state. */
  #bare(opaqueState: string): string {
    const writer = new ReasoningWriter(this.#frames, this.#output, this.#place('rs'));
    return writer.start() + writer.end(this.#context.seal(opaqueState));
  }

  #startCall({ block, id: callId, name, namespace, custom }: EventOf<'tool-start'>): string {
    const ended = this.#endOpen();
    const { index, id } = this.#place(callPrefix({ namespace, custom }));
    const call = new CallWriter(this.#frames, this.#output, index, { id, callId, name, namespace, custom });
    this.#calls.set(block, call);
    return ended + call.start();
  }

  #endCall({ block, opaqueState, isCut }: EventOf<'tool-end'>): string {
    const call = this.#calls.get(block);
    // `finish` ends a call that was cut off, as incomplete.
    if (call === undefined || isCut) return '';
    this.#calls.delete(block);
    return call.end() + (opaqueState === undefined ? '' : this.#bare(opaqueStateOfCall(call.callId, opaqueState)));
  }

  #media(media: MediaPart): string {
    const text = mediaText(media);
    if (text !== undefined) {
      return this.#enterMessage('text') + (this.#message?.text(text, undefined) ?? '') + this.#endText(undefined);
    }
    if (media.kind !== 'image') return '';
    return this.#endOpen() + encodeImage(this.#frames, this.#output, this.#place('ig'), media);
  }

  #search(search: SearchPart): string {
    return this.#endOpen() + encodeSearch(this.#frames, this.#output, this.#place('ws'), search);
  }

  /** Ends the open message, and reasoning that its upstream did not end. */
  #endOpen(ending?: Ending): string {
    const message = this.#message;
    this.#message = undefined;
    const ended = message?.end(ending?.status === 'incomplete' ? 'incomplete' : 'completed') ?? '';
    return ended + this.#endReasoning(undefined);
  }
}

function opaqueStateOfReasoning({ opaqueState, redacted }: EventOf<'reasoning-end'>): string | undefined {
  return opaqueState !== undefined && redacted ? opaqueStateOfRedacted(opaqueState) : opaqueState;
}

/** An object's members as JSON, without its braces. */
function inner(members: object): string {
  return JSON.stringify(members).slice(1, -1);
}
