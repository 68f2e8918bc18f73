/** The call of one exchange: the client's request, the attempts at vendors, and the answer's usage. */

import { defineContextKey, defineService } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Model } from './models.ts';
import type { Money, Ratio } from './money.ts';
import type { Services } from './prices.ts';
import type { Usage } from './usage.ts';

/** The client's request as far as the gateway must know it. Set by the endpoint's `open`. */
export interface Call {
  /** `chat`, `responses`, `messages`, `gemini`. */
  readonly protocol: string;
  /** The model as the client named it. */
  readonly model: string;
  readonly stream: boolean;
  /** false for calls that run no inference (counting tokens): they are limited but neither held nor charged. */
  readonly billable: boolean;
  /** Upper-biased estimate of the prompt, in tokens, made from its size. */
  readonly inputTokens: number;
  /** The client's own bound on the answer, in tokens, if it set one. */
  readonly maxOutputTokens: number | undefined;
  /** How many answers are asked for (`n`, `candidateCount`); at least 1. */
  readonly choices: number;
  /** Kind of models that the endpoint accepts; absent: chat. */
  readonly kind?: Model['kind'];
  /** What it asks for beyond the vendor's standard service, by kind: `{ tier: 'priority' }`; absent: nothing. */
  readonly services?: Services;
  /** The request's members that ask for these, by kind: `{ tier: 'service_tier' }`. */
  readonly serviceFields?: Readonly<Record<string, string>>;
  /** Calls of the vendor's own tools that it allows, or that are usual where it sets no bound; absent: it offers no tool. */
  readonly toolCalls?: number;
  /** Images that are made at most; absent: none. */
  readonly images?: number;
  /** Seconds of video that are made at most; absent: none. */
  readonly seconds?: number;
  /**
   * What it consumes beside tokens, as far as the request shows it: characters, seconds of audio, searches. Held, and charged
   * where nothing better is known. Absent: nothing.
   */
  readonly counted?: Usage;
  /** Other protocols in which the endpoint's plugin can make the call; absent: those that `translations` names. */
  readonly convertsTo?: readonly string[] | undefined;
  /** Size, quality and resolution of the generated media, in lower case; absent: the vendor chooses. */
  readonly media?: readonly string[];
  /** The only provider that can make it, where the work is sent after the answer; absent: attempts name theirs. */
  readonly provider?: string;
}

/** The requested call. Set by its endpoint's `open`, from its head and body. */
export const call = defineContextKey<Call>('call');

/** Set for a line of a batch, which is charged by the model's ratio for batches. */
export const batchLine = defineContextKey<true>('batch line');

/**
 * Set for a line that a vendor's own batch API makes, in its two exchanges. `order`: the vendor's request is made and not sent,
 * and money is set aside for it. `answer`: the vendor's answer has come and is read; neither limits nor a hold apply.
 * `estimate`: the exchange ends with what the line would hold, made by a vendor's batch or not.
 */
export const vendorBatch = defineContextKey<'order' | 'answer' | 'estimate'>('vendor batch');

/**
 * What a plugin needs again for the answer of a line that a vendor's batch makes, sealed by it. Set for the exchange of the line's order,
 * where it is read once the request is made, and kept with the line; set again for the exchange of its answer.
 */
export const keptForAnswer = defineContextKey<{ sealed(): string | undefined }>('kept for the answer of a line');

/** The service, in prices, of lines that a vendor's own batch API makes. No request can ask for it. */
export const vendorBatchService = 'batch';

/** Set for an exchange of which no row and no metric is to remain, as another one stands for the same call. */
export const unrecorded = defineContextKey<true>('unrecorded');

/** Set once the rules for prompts have passed the request. What costs something stands below the plugin that sets it. */
export const ruled = defineContextKey<true>('passed rules for prompts');

/** What else decides on an answer, beside request and model. */
export interface AnswerPolicies {
  /**
   * A digest of the policies that judge or change the answer, and of values that they put back into it. Asked before the call is made and when its
   * answer has ended: an answer is given again only under the same one. undefined: to no other request, as it was refused, or is for this one alone.
   */
  digest(): string | undefined;
}

/** Set above what answers from earlier calls, by the plugin that has such policies. */
export const answerPolicies = defineContextKey<AnswerPolicies>('answer policies');

/** Provided where a call with an Idempotency-Key runs once, however often it is made within this time. */
export const keyedCalls = defineService<{ readonly keepMs: number }>('keyed calls');

/**
 * Restricts the request to the upstream that stores what it continues or uses: this provider, key and protocol. Set by the
 * endpoint's `open`; `route` obeys it.
 */
export interface Pinned {
  readonly provider: string;
  readonly credential: string;
  /** undefined: any protocol in which the request can be made there. */
  readonly protocol: string | undefined;
  /** Member of the request that refers to the kept answer; absent: `previous_response_id`. */
  readonly field?: string;
  /** The request can be served elsewhere without it: earlier turns alone refer to it. */
  readonly isPreferred?: true;
}

export const pinned = defineContextKey<Pinned>('pinned');

/** One upstream attempt, as it is stored. `route` sets the list before its first attempt. */
export interface Attempt {
  readonly number: number;
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
  readonly protocol: string;
  readonly startedAt: number;
  /** `running` until known. `not_sent`: nothing left. `refused`: an error status without usage. `unknown`: may have run. `answered`: a 2xx head came. */
  result: 'running' | 'not_sent' | 'refused' | 'unknown' | 'answered';
  status: number | undefined;
  durationMs: number | undefined;
  error: string | undefined;
  /** Usage that a failed attempt was seen to consume; absent: none was reported or seen. */
  consumed?: { readonly usage: Usage; readonly estimated: boolean; readonly refusedHere?: boolean };
  /** It was started while another attempt was silent. */
  readonly hedge?: true;
  /** A concurrent attempt answered first; this one was aborted. */
  lost?: true;
  /** Its vendor failed while the client waited, who owes nothing for it by leaving later. */
  failedFirst?: true;
}

/** The exchange's attempts in the order in which they ended; the last one is the client's, who may pay for it. */
export const attempts = defineContextKey<Attempt[]>('attempts');

/** An answer's text that has passed: its size, and what it is estimated at. */
export interface SeenAnswer {
  readonly bytes: number;
  readonly tokens: number;
}

/** The usage of an answer, complete or not. Set by the protocol's usage meter. */
export interface UsageReport {
  readonly usage: Usage;
  /** true: the vendor reported nothing (or not all), so sizes were used, or its counters contradict one another; upper-biased. */
  readonly estimated: boolean;
  /** The protocol's own terminal event (or a whole body) was seen. */
  readonly terminal: boolean;
  /** A transform has refused the answer of a vendor that did nothing wrong: the client pays for what came of it. */
  readonly refusedHere?: boolean;
  /** The vendor has named an error beside its answer, which is for this client alone. Looked for where the answer is made into another form. */
  readonly hasError?: boolean;
  /** The upstream's id of the answer, if it gave one. */
  readonly upstreamId: string | undefined;
  /** `stop`, `length`, `tool_calls` …, as the upstream sent it. */
  readonly finish: string | undefined;
  /** Services that the vendor reports as granted, by kind as in `Call`; absent kinds were not reported. */
  readonly services?: Services;
  /** The vendor's description of the produced media; overrides `Call.media`. */
  readonly media?: readonly string[];
  /** The answer's text as it passed; absent: it has none. */
  readonly seen?: SeenAnswer;
  /** What of the usage stands for counts that the vendor has not reported; absent: nothing. */
  readonly unreported?: Unreported | undefined;
}

/** Counts that were made from sizes. */
export interface Unreported {
  /** `Call.inputTokens` is part of the usage. */
  readonly prompt: boolean;
  /** Text of the answer that no report covers, and the output tokens that stand for it. */
  readonly bytes: number;
  readonly tokens: number;
}

/** The answer's usage, as its meter reads it; whole when the answer has ended. Set by the plugin that relays or translates it. */
export const usageReport = defineContextKey<UsageReport>('usage');

/** Parameters that the last attempt's translation dropped, by the client's names. Absent or empty: none. */
export const dropped = defineContextKey<readonly string[]>('dropped');

/** Compares a running answer with the money held for it. Set by billing, called by the usage meter. */
export interface SpendGuard {
  /** `outputTokens` seen so far, estimated. false: the hold is used up and the pool is empty; end the stream with an error. */
  observe(outputTokens: number): boolean;
  /** Why it was false where a budget is used up; undefined: the balance is. */
  usedUp?(): GatewayError | undefined;
  /**
   * Whether another attempt may follow this one, which may have run, so that its possible cost is written off: within this share
   * of what the calls of the last hour have cost, and counted.
   */
  writeOff?(attempt: Attempt, share: number): boolean;
  /**
   * The call goes on with this model, by the price of which it is held and charged; the attempts so far keep theirs. false: not
   * enough is held for it.
   */
  serve?(entry: Model, attempts: number): boolean;
  /** The charge, its usage, and the operator's cost as far as it is known; undefined: nothing, or it runs still. */
  charged?(): { readonly cost: Money; readonly usage: Usage; readonly own: Money | undefined } | undefined;
  /** What this usage would cost the call, less what it costs at this share of it. */
  saving?(usage: Usage, share: Ratio): Money;
  /** Holds what this usage costs at this share of its price, if that is more than is held. 402 where the client cannot pay it. */
  cover?(usage: Usage, share: Ratio): undefined | Promise<void>;
}

/** Why an answer ends that its hold does not cover. A running stream must not be retried automatically. */
export const usedUp = (guard: SpendGuard | undefined): GatewayError =>
  guard?.usedUp?.() ??
  new GatewayError('insufficient_balance', 'The balance is used up; the answer stops here.', { shouldRetry: false });

/** The hold of the request, and what it comes to. Set by `billing`. */
export const spendGuard = defineContextKey<SpendGuard>('meter');

/** The conversation of a request, as far as the request shows it; used to reach the upstream that has cached its prompt. */
export interface Conversation {
  /** The client's own name of it: a cache key, a session; undefined: none. */
  readonly name: string | undefined;
  /** How it began, bounded: the same in all of its requests. undefined: not known, or the answer has begun. */
  opening(): string | undefined;
  /**
   * Whether more than an answer comes of it: something is kept at the upstream, or tools run there. Asking twice would leave
   * two of it. Absent: not known.
   */
  hasSideEffects?(): boolean;
  /** Kinds of media that it shows, earlier turns included. Reads the whole request. Absent: not known. */
  mediaKinds?(): ReadonlySet<string>;
  /** A number that the requests of one conversation share with few others; odd: they declare tools. */
  readonly mark?: number;
  /** Keeps the request for `countPrompt` until it is to be forgotten. Not a large one, nor where many are kept. */
  keep?(): void;
  forget?(): void;
  /** Tokens of the prompt by a public vocabulary; undefined: the request was not kept, or cannot be read. */
  countPrompt?(): Promise<number | undefined>;
}

export const conversation = defineContextKey<Conversation>('conversation');
