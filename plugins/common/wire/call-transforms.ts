/** Call transforms: the extension point of plugins that read or change prompts and answers, in whatever protocol the client speaks. */
import { defineExtensionPoint, type Exchange } from '../../../core/contract/contract.ts';
import type { Prompt } from '../canonical/prompt.ts';
import type { Event, Reply } from '../canonical/reply.ts';

/** At least one of `request` and `answer`. */
export interface CallTransform {
  readonly name: string;
  /** Whether `request` reads this call; absent: it does. Where no transform does, the prompt of a relayed call is not decoded. */
  applies?(exchange: Exchange): boolean;
  /**
   * Called for each attempt of a charged call, with texts decoded. Return the same object to change nothing: a relayed
   * request then keeps every byte. Throw a GatewayError to refuse. A changed prompt is encoded again for the upstream.
   */
  request?(prompt: Prompt, exchange: Exchange): Prompt | Promise<Prompt>;
  /** Called before each attempt of a charged call. Returns the transform for its answer; undefined: the answer is not changed. */
  answer?(exchange: Exchange): AnswerTransform | undefined;
}

/**
 * Reads or changes one answer. As long as it returns the events that it was given, the same objects in the same order, at
 * once or later, a relayed answer keeps the vendor's bytes; from the first other event on it is encoded again. What it
 * throws ends the answer by an error in the client's protocol: the text of a GatewayError is shown, any other is an
 * internal error. The call is charged for what the vendor generated until then.
 */
export interface AnswerTransform {
  /**
   * The events that take the place of this one, in an order that `Event` allows; none: it is left out, or held and
   * returned later. Held events must be returned before the end of their block, or the stop of their choice. A block that
   * the transform adds has a number below 0. Tool input is JSON text in pieces. A promise: the next event comes when it is
   * settled, and no more of the answer is read until then.
   */
  event(event: Event): readonly Event[] | Promise<readonly Event[]>;
  /**
   * So many more characters of this block would be held anyway, whatever comes: its deltas may come joined to one, up to there. Asked
   * between events; absent: none.
   */
  room?(block: number): number;
  /** A text of the request that the answer repeats beside its events, as the client is to read it; absent: as it comes. */
  repeats?(text: string): string;
  /** Called after the last event; returns further ones. Not called when the answer breaks off: held events are dropped then. */
  end?(): readonly Event[] | Promise<readonly Event[]>;
  /** Takes a whole answer, which otherwise passes `event` and `end`; the same object where nothing changes. */
  reply?(reply: Reply): Reply | Promise<Reply>;
}

/** Changes of each attempt's prompt, and of its answer. Owned by `protocol-convert`. */
export const callTransforms = defineExtensionPoint<CallTransform>('call transforms');
