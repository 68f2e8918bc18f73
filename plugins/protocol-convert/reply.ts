/** The common tongue between protocols, the answer: a stream of Events, or the Reply that they amount to. Types alone. */
import type { Usage } from '../../core/usage.ts';
import type { Citation, MediaPart, Part, SearchPart, TokenLogprob } from './canon.ts';

/** Why an answer ended, said once. `refusal`: the model or a filter would not. `pause`: the vendor wants to be asked to go on. */
export type StopReason = 'stop' | 'stop-sequence' | 'tool-calls' | 'length' | 'refusal' | 'pause';

/**
 * An answer as it comes about. Blocks are numbered from 0 as they start, over all choices; several may be open at once
 * (parallel calls), but a text, refusal or reasoning block is the last open one of its choice. Each starts, grows and ends
 * once. `stop` comes once for each choice, when its blocks have ended.
 */
export type Event =
  | {
      readonly type: 'reply-start';
      readonly id: string | undefined;
      /** Unix seconds, where the upstream told. */
      readonly createdAt: number | undefined;
      readonly serviceTier: string | undefined;
    }
  | { readonly type: 'text-start'; readonly block: number; readonly choice: number }
  | {
      readonly type: 'text-delta';
      readonly block: number;
      readonly choice: number;
      readonly text: string;
      readonly logprobs: readonly TokenLogprob[] | undefined;
    }
  | { readonly type: 'citation'; readonly block: number; readonly choice: number; readonly citation: Citation }
  | {
      readonly type: 'text-end';
      readonly block: number;
      readonly choice: number;
      readonly keepsake: string | undefined;
    }
  | { readonly type: 'refusal-start'; readonly block: number; readonly choice: number }
  | { readonly type: 'refusal-delta'; readonly block: number; readonly choice: number; readonly text: string }
  | { readonly type: 'refusal-end'; readonly block: number; readonly choice: number }
  | { readonly type: 'reasoning-start'; readonly block: number; readonly choice: number }
  | { readonly type: 'reasoning-delta'; readonly block: number; readonly choice: number; readonly text: string }
  | {
      readonly type: 'reasoning-end';
      readonly block: number;
      readonly choice: number;
      /** The vendor's own words; the encoder seals them (`ReplyContext.seal`). */
      readonly keepsake: string | undefined;
      readonly redacted: boolean;
    }
  | {
      readonly type: 'tool-start';
      readonly block: number;
      readonly choice: number;
      /** Never empty, unique in the answer. */
      readonly id: string;
      /** As the client declared it. */
      readonly name: string;
      readonly namespace: string | undefined;
      readonly custom: boolean;
    }
  | { readonly type: 'tool-delta'; readonly block: number; readonly choice: number; readonly text: string }
  | {
      readonly type: 'tool-end';
      readonly block: number;
      readonly choice: number;
      readonly keepsake: string | undefined;
      /** The answer ended inside the arguments: the call must not be carried out. */
      readonly isCut: boolean;
    }
  /** A whole image or a piece of a sound, in a block that is only this. */
  | { readonly type: 'media'; readonly block: number; readonly choice: number; readonly media: MediaPart }
  | { readonly type: 'search'; readonly block: number; readonly choice: number; readonly search: SearchPart }
  | {
      readonly type: 'stop';
      readonly choice: number;
      readonly reason: StopReason;
      /** The text that was hit. */
      readonly sequence: string | undefined;
    };

export type Sink = (event: Event) => void;

/** A whole answer: what a stream of events amounts to. */
export interface Reply {
  readonly id: string | undefined;
  readonly createdAt: number | undefined;
  readonly serviceTier: string | undefined;
  /** In the order of their index; never empty. */
  readonly choices: readonly Choice[];
}
/** Parts of an assistant turn, with keepsakes as the vendor worded them in `Keepsake.value`. */
export interface Choice {
  readonly parts: readonly Part[];
  readonly stop: StopReason;
  readonly sequence: string | undefined;
  /** Ids of the calls whose arguments were cut off. */
  readonly cutCalls: ReadonlySet<string>;
}

/** What was consumed, for an encoder; classes as in core/usage.ts. */
export interface UsageSeen {
  readonly usage: Usage;
  readonly estimated: boolean;
}
