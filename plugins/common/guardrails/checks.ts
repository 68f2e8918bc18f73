/** Guardrail checks: the extension point of plugins that judge texts for the plugin `guardrails`. */
import {
  type ConfigSchema,
  defineContextKey,
  defineExtensionPoint,
  defineService,
  type Host,
} from '../../../core/contract/contract.ts';
import type { Extension } from '../../../core/contract/extensions.ts';
import type { JsonObject } from '../../../core/json/json.ts';

/** A text as a model reads it, or has written it. */
export interface JudgedText {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly text: string;
}

/** Who bears the cost of a request that a check makes. */
export type Payer = 'account' | 'operator';

export interface TextsToJudge {
  /** `prompt`: of a request. `answer`: of a model; of a streamed one a piece of it. */
  readonly stage: 'prompt' | 'answer';
  /** `chat`, `embeddings`, `images` …, as in settings. */
  readonly operation: string;
  readonly texts: readonly JudgedText[];
  /** How many contents of the request are no texts: media, files, token ids. */
  readonly unread: number;
  /** The JSON Schema that the request asks its answer to follow; undefined: none. */
  readonly schema: JsonObject | undefined;
  /** Aborts when the verdict is not waited for any more. */
  readonly signal: AbortSignal;
  /**
   * Posts to an endpoint of this gateway, for the account of the call; undefined: there is none. Resolves with the answer's JSON; rejects
   * for any error. `payer`: of the request, usually the account.
   */
  readonly ask: ((path: string, body: JsonObject, payer?: Payer) => Promise<JsonObject>) | undefined;
}

/** A place in a text, by UTF-16 offsets, `end` exclusive. */
export interface FoundPlace {
  /** Index of the text. */
  readonly text: number;
  readonly start: number;
  readonly end: number;
  /** What it is, for placeholders: `EMAIL`. Capital letters and `_`. */
  readonly kind: string;
}

export interface Judgement {
  readonly isHit: boolean;
  /** Where; absent for a hit: all of the texts. */
  readonly found?: readonly FoundPlace[];
}

/** A check as one gateway uses it. */
export interface GuardrailCheck {
  /** Rejects, throws or answers late: the check is broken, and the setting `broken` decides. */
  judge(given: TextsToJudge): Judgement | Promise<Judgement>;
  /** It needs each text of an answer whole. */
  readonly wantsWhole?: true;
  /** It waits for nothing but turns of the event loop, so its time has no limit. */
  readonly waitsForTurns?: true;
  /** It reads no thinking and no arguments of tools. */
  readonly textOnly?: true;
}

interface OutsideRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What a check may use. */
export interface CheckTools {
  readonly clock: Host['clock'];
  readonly fetch: Host['fetch'];
  /** Address and headers of a request, with the credential of this provider of the gateway file. */
  authorize(provider: string, request: OutsideRequest): Promise<Pick<OutsideRequest, 'url' | 'headers'>>;
  /** A file beside the gateway's own files. */
  read(path: string): Promise<string>;
}

/** A type of check; its name is what operators write as `type`. */
export interface GuardrailCheckType<Config = unknown> extends Extension {
  /** Schema of its own members of the check's section. */
  readonly config: ConfigSchema<Config>;
  /** It asks a service. */
  readonly isOutside?: true;
  /** Throws or rejects with a sentence for settings that cannot work. */
  open(config: Config, tools: CheckTools): GuardrailCheck | Promise<GuardrailCheck>;
}

/** Types of checks. Owned by `guardrails`. */
export const guardrailChecks = defineExtensionPoint<GuardrailCheckType>('guardrail checks');

/** What a check has said, once. */
export interface CheckVerdict {
  readonly check: string;
  readonly stage: 'prompt' | 'answer';
  readonly verdict: 'passed' | 'broken' | 'logged' | 'masked' | 'refused';
  readonly ms: number;
}

/** Hears of every verdict. Provided by `guardrails`. */
export const checkVerdicts = defineService<{ watch(listener: (verdict: CheckVerdict) => void): void }>(
  'check verdicts',
);

/** Set by `guardrails` above the rules for prompts, for a request that has policies. */
export const guarded = defineContextKey<true>('guarded');
