/** The canonical format of requests: a Prompt of turns, parts and tools. Types; answers are in reply.ts. */

import type { JsonObject } from '../../../core/json/json.ts';
import type { Effort } from '../domain/traits.ts';

/** A request of any protocol. Absent members were not set by the client; no defaults are added. */
export interface Prompt {
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  /** false: at most one tool call in an answer. */
  readonly parallelTools?: boolean;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  /** Texts that end the answer and are not part of it; never empty strings. */
  readonly stop?: readonly string[];
  /** Number of answers; absent: 1. */
  readonly choices?: number;
  readonly seed?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  readonly logitBias?: JsonObject;
  /** How many alternatives of each token are returned with their probability; 0: only the token's own. */
  readonly logprobs?: number;
  readonly verbosity?: string;
  readonly reasoning?: ReasoningSettings;
  readonly output?: OutputForm;
  /** Opaque name of the end user. */
  readonly user?: string;
  readonly metadata?: JsonObject;
  /** `auto`, `default`, `flex`, `priority`, `fast` …, as in chat. */
  readonly serviceTier?: string;
  /** Requests with the same key share a prompt cache. */
  readonly cacheKey?: string;
  /** Output kinds beside text: `image`, `audio`; with the client's own options. */
  readonly outputKinds?: readonly ('image' | 'audio')[];
  readonly audioOptions?: JsonObject;
  readonly imageOptions?: JsonObject;
}

export interface ReasoningSettings {
  /** As requested: an effort, or a budget in tokens, or neither (the model decides). `none`: off. */
  readonly effort?: Effort;
  readonly budgetTokens?: number;
  /** Whether the client wants reasoning, at least a summary. */
  readonly visible?: boolean;
}

export type OutputForm =
  | { readonly form: 'json' }
  | {
      readonly form: 'schema';
      readonly name: string | undefined;
      readonly description?: string;
      /** JSON Schema. */
      readonly schema: JsonObject;
      readonly strict?: boolean;
    };

/** The role of the author. Tool results are in a `user` turn. Turns keep their order: encoders merge and reorder. */
export interface Turn {
  readonly role: 'system' | 'user' | 'assistant';
  readonly parts: readonly Part[];
  /** Name of a participant. */
  readonly name?: string;
  /** `commentary`, `final_answer`: some models expect it back. */
  readonly phase?: string;
}

/** How long the prompt up to this mark should stay in a prompt cache. */
export type CacheMark = 'short' | 'long';

/** A part of a turn; `kind` says which. */
export type Part = TextPart | RefusalPart | MediaPart | ReasoningPart | ToolCallPart | ToolResultPart | SearchPart;

export interface TextPart {
  readonly kind: 'text';
  readonly text: string;
  readonly cache?: CacheMark;
  readonly citations?: readonly Citation[];
  /** Signed by the vendor. */
  readonly opaqueState?: OpaqueState;
  readonly logprobs?: readonly TokenLogprob[];
}

interface RefusalPart {
  readonly kind: 'refusal';
  readonly text: string;
}

/** An image, document, audio or video; in answers images and audio. */
export interface MediaPart {
  readonly kind: 'image' | 'document' | 'audio' | 'video';
  readonly source: Source;
  /** A document's file name or title. */
  readonly name?: string;
  /** An image's detail: `low`, `high`, `auto`, `original`. */
  readonly detail?: string;
  /** The client's description of a document; whether the client wants citations of it. */
  readonly context?: string;
  readonly citations?: boolean;
  readonly cache?: CacheMark;
  /** The transcript of audio in an answer. */
  readonly transcript?: string;
  readonly opaqueState?: OpaqueState;
}

export type Source =
  /**
   * `mediaType` by content where that is recognised (`plugins/common/kit/sniff.ts`), lower-case, without parameters.
   */
  | { readonly form: 'bytes'; readonly mediaType: string; readonly base64: string }
  | { readonly form: 'url'; readonly url: string; readonly mediaType?: string }
  /** Stored by a vendor under this id, or at an address that only this vendor can open: other vendors cannot use it. */
  | { readonly form: 'file'; readonly id: string; readonly mediaType?: string }
  /** A document that is plain text. */
  | { readonly form: 'text'; readonly text: string };

/** The model's reasoning. `text` may be a summary, or empty where only the opaque state is left. */
export interface ReasoningPart {
  readonly kind: 'reasoning';
  readonly text: string;
  /** Absent: no target gets this back as its own. */
  readonly opaqueState?: OpaqueState;
  /** The vendor hides its text. */
  readonly redacted?: boolean;
}

/** Opaque state of a vendor: a signature, encrypted reasoning. Only its maker may get it back. */
export interface OpaqueState {
  /** `makerOf(target)` of the target that made it. */
  readonly maker: string;
  /** As the vendor encoded it; empty: the maker sent none, but expects the text back. */
  readonly value: string;
}

/** A call of a tool by the model; the part with its `id` as `callId` is its result. */
export interface ToolCallPart {
  readonly kind: 'tool-call';
  readonly id: string;
  readonly name: string;
  /** The namespace of the tool, if any. Empty: the client's own search for tools (responses). */
  readonly namespace?: string;
  /**
   * JSON text of the arguments (never empty: `{}`), exactly as the model wrote it; raw text of a custom tool's input.
   */
  readonly input: string;
  /** A free-text tool. */
  readonly custom?: boolean;
  readonly opaqueState?: OpaqueState;
  readonly cache?: CacheMark;
}

/** The result of a tool call. */
export interface ToolResultPart {
  readonly kind: 'tool-result';
  readonly callId: string;
  /** The tool's name, where the client sent it. */
  readonly name?: string;
  readonly parts: readonly (TextPart | MediaPart)[];
  readonly isError?: boolean;
  readonly custom?: boolean;
  readonly cache?: CacheMark;
}

/** A web search by the vendor, and its results. */
export interface SearchPart {
  readonly kind: 'search';
  readonly id: string;
  readonly queries: readonly string[];
  readonly results: readonly SearchResult[];
}
export interface SearchResult {
  readonly url: string;
  readonly title: string;
  /** Opaque content, only for the vendor that made it. */
  readonly opaqueState?: OpaqueState;
  readonly age?: string;
}

export interface Citation {
  /** Absent: a file, by its name in `title`, or by `file` alone. */
  readonly url?: string;
  readonly title?: string;
  /** A cited file: its id at the vendor, and the id of the container that it is in. */
  readonly file?: { readonly id: string; readonly container?: string };
  /** The quoted text of the source. */
  readonly quote?: string;
  /** Its position in the text of its block: UTF-16 offsets, `end` exclusive. Absent: the whole block. */
  readonly start?: number;
  readonly end?: number;
  readonly opaqueState?: OpaqueState;
  /** A position in a document, in the format of the one protocol that has them; only in answers. */
  readonly place?: JsonObject;
}

export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes?: readonly number[] | null;
  readonly top?: readonly Omit<TokenLogprob, 'top'>[];
}

export type Tool = FunctionTool | CustomTool | HostedTool;

export interface FunctionTool {
  readonly kind: 'function';
  readonly name: string;
  readonly namespace?: string;
  readonly description?: string;
  /** JSON Schema as the client wrote it; absent: the tool takes no arguments. */
  readonly schema?: JsonObject;
  readonly strict?: boolean;
  readonly cache?: CacheMark;
  /** Hidden from the model until it searches for the tool. */
  readonly deferred?: boolean;
}
/** A tool with free-text input, possibly with a grammar. */
export interface CustomTool {
  readonly kind: 'custom';
  readonly name: string;
  readonly namespace?: string;
  readonly description?: string;
  readonly grammar?: { readonly syntax: string; readonly definition: string };
}
/** A tool that the vendor runs. `other`: without counterpart in other protocols. */
export interface HostedTool {
  readonly kind: 'hosted';
  readonly tool: 'web_search' | 'web_fetch' | 'code_execution' | 'image_generation' | 'other';
  /** Its type in the client's protocol. */
  readonly name: string;
  /** web_search: domains and location, in the format of `HostedOptions`. */
  readonly options: HostedOptions;
}
export interface HostedOptions {
  readonly allowedDomains?: readonly string[];
  readonly blockedDomains?: readonly string[];
  readonly maxUses?: number;
  readonly contextSize?: string;
  /** `{country, region, city, timezone}`. */
  readonly location?: JsonObject;
}

/** `required` with one name forces that tool; with several it allows these. */
export interface ToolChoice {
  readonly mode: 'auto' | 'none' | 'required';
  /** Names as the client declared them; hosted tools by `HostedTool.tool`. Absent: all. */
  readonly names?: readonly string[];
  /** With `auto`: calls must follow the schemas of their tools. */
  readonly validated?: boolean;
}

/** All settings and features that a target may lack: the keys of dropped parameters. */
export type Setting =
  | Exclude<keyof Prompt, 'turns'>
  | 'cacheMarks'
  | 'strictTools'
  | 'strictOutput'
  | 'names'
  | 'phase'
  | 'detail'
  | 'documentCitations'
  | 'documentNames'
  | 'reasoningHistory'
  | 'searchHistory'
  /** Citations in texts of earlier answers. */
  | 'citedHistory'
  | 'strayResults'
  | 'image'
  | 'document'
  | 'audio'
  | 'video'
  | 'file';
