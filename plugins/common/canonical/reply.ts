/** The canonical format of answers: a stream of Events, or the Reply that they form. Types. */
import type { Usage } from '../domain/usage.ts';
import type { Citation, MediaPart, Part, SearchPart, TokenLogprob } from './prompt.ts';

/** Why an answer ended. `refusal`: the model or a filter refused. `pause`: the vendor expects a request to continue. */
export type StopReason = 'stop' | 'stop-sequence' | 'tool-calls' | 'length' | 'refusal' | 'pause';

/**
 * An answer in progress. Blocks are numbered from 0 as they start, over all choices; several may be open at once
 * (parallel calls), but a text, refusal or reasoning block is the last open one of its choice. Each starts, grows and
 * ends once. `stop` comes once for each choice, when its blocks have ended.
 */
export type Event =
  | {
      readonly type: 'reply-start';
      readonly id: string | undefined;
      /** Unix seconds, where the upstream sent them. */
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
      readonly opaqueState: string | undefined;
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
      /** As the vendor encoded it; the encoder seals it (`ReplyContext.seal`). */
      readonly opaqueState: string | undefined;
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
      readonly opaqueState: string | undefined;
      /** The answer ended inside the arguments: the call must not be executed. */
      readonly isCut: boolean;
    }
  /** A whole image or a piece of audio, in a block of its own. */
  | { readonly type: 'media'; readonly block: number; readonly choice: number; readonly media: MediaPart }
  | { readonly type: 'search'; readonly block: number; readonly choice: number; readonly search: SearchPart }
  | {
      readonly type: 'stop';
      readonly choice: number;
      readonly reason: StopReason;
      /** The stop text that was found. */
      readonly sequence: string | undefined;
    };

export type Sink = (event: Event) => void;

/** A whole answer: the result of a stream of events. */
export interface Reply {
  readonly id: string | undefined;
  readonly createdAt: number | undefined;
  readonly serviceTier: string | undefined;
  /** In the order of their index; never empty. */
  readonly choices: readonly Choice[];
}
/** Parts of an assistant turn, with opaque state as the vendor encoded it in `OpaqueState.value`. */
export interface Choice {
  readonly parts: readonly Part[];
  readonly stop: StopReason;
  readonly sequence: string | undefined;
  /** Ids of the calls with arguments that were cut off. */
  readonly cutCalls: ReadonlySet<string>;
}

/** The usage, for an encoder; classes as in plugins/common/domain/usage.ts. */
export interface UsageSeen {
  readonly usage: Usage;
  readonly estimated: boolean;
}
