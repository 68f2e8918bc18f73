/** The common tongue between protocols, the asking: a Prompt of turns, parts and tools. Types alone; answers are in reply.ts. */
import type { Effort } from '../../core/traits.ts';
import type { JsonObject } from './json.ts';

/** A request, whatever protocol it came in. Absent members were not asked for; nothing is filled in. */
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
  /** Texts at which the answer stops, without them; never empty strings. */
  readonly stop?: readonly string[];
  /** Answers asked for; absent: 1. */
  readonly choices?: number;
  readonly seed?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  readonly logitBias?: JsonObject;
  /** How many alternatives of each token are told with their probability; 0: only the token's own. */
  readonly logprobs?: number;
  readonly verbosity?: string;
  readonly reasoning?: ReasoningWish;
  readonly output?: OutputForm;
  /** Opaque name of the end user. */
  readonly user?: string;
  readonly metadata?: JsonObject;
  /** `auto`, `default`, `flex`, `priority`, `fast` …, as chat words them. */
  readonly serviceTier?: string;
  /** Requests with the same key share a prompt cache. */
  readonly cacheKey?: string;
  /** Kinds of answer beside text: `image`, `audio`; with the client's own options. */
  readonly outputKinds?: readonly ('image' | 'audio')[];
  readonly audioOptions?: JsonObject;
  readonly imageOptions?: JsonObject;
}

export interface ReasoningWish {
  /** As asked for: an effort, or a budget in tokens, or neither (the model decides). `none`: off. */
  readonly effort?: Effort;
  readonly budgetTokens?: number;
  /** Whether the client wants to read reasoning, at least a summary. */
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

/** Who speaks. A tool's results stand in a `user` turn. Turns stand as they came: merging and reordering is the encoder's. */
export interface Turn {
  readonly role: 'system' | 'user' | 'assistant';
  readonly parts: readonly Part[];
  /** Of a participant. */
  readonly name?: string;
  /** `commentary`, `final_answer`: some models want it back. */
  readonly phase?: string;
}

/** For how long a mark asks to keep what stands up to here in a prompt cache. */
export type CacheMark = 'short' | 'long';

export type Part = TextPart | RefusalPart | MediaPart | ReasoningPart | ToolCallPart | ToolResultPart | SearchPart;

export interface TextPart {
  readonly kind: 'text';
  readonly text: string;
  readonly cache?: CacheMark;
  readonly citations?: readonly Citation[];
  /** Signed by the vendor. */
  readonly keepsake?: Keepsake;
  readonly logprobs?: readonly TokenLogprob[];
}

export interface RefusalPart {
  readonly kind: 'refusal';
  readonly text: string;
}

/** An image, document, sound or film; in answers images and sounds. */
export interface MediaPart {
  readonly kind: 'image' | 'document' | 'audio' | 'video';
  readonly source: Source;
  /** Of a document: a file's name or a title. */
  readonly name?: string;
  /** Of an image: `low`, `high`, `auto`, `original`. */
  readonly detail?: string;
  /** Of a document: what the client says about it; whether it wants citations. */
  readonly context?: string;
  readonly citations?: boolean;
  readonly cache?: CacheMark;
  /** Of a sound in an answer: what is said. */
  readonly transcript?: string;
  readonly keepsake?: Keepsake;
}

export type Source =
  /** `mediaType` by content where that tells it (`core/sniff.ts`), lower-case, without parameters. */
  | { readonly form: 'bytes'; readonly mediaType: string; readonly base64: string }
  | { readonly form: 'url'; readonly url: string; readonly mediaType?: string }
  /** Kept by a vendor under this id, or behind an address that only it can open: of no use to another. */
  | { readonly form: 'file'; readonly id: string; readonly mediaType?: string }
  /** A document that is plain text. */
  | { readonly form: 'text'; readonly text: string };

/** What the model thought. `text` may be a summary, or empty where only the keepsake is left of it. */
export interface ReasoningPart {
  readonly kind: 'reasoning';
  readonly text: string;
  /** Absent: nobody can be given this back as its own. */
  readonly keepsake?: Keepsake;
  /** The vendor shows nothing of it. */
  readonly redacted?: boolean;
}

/** What a vendor wants back unread: a signature, encrypted reasoning. Only its maker may be given it. */
export interface Keepsake {
  /** `makerOf(target)` of the target that made it. */
  readonly maker: string;
  /** As the vendor worded it; empty: the maker gave none, but wants the text back. */
  readonly value: string;
}

export interface ToolCallPart {
  readonly kind: 'tool-call';
  readonly id: string;
  readonly name: string;
  /** Of a tool that stands in a namespace. */
  readonly namespace?: string;
  /** JSON text of the arguments (never empty: `{}`), exactly as the model wrote it; raw text of a custom tool's input. */
  readonly input: string;
  /** A tool of free text. */
  readonly custom?: boolean;
  readonly keepsake?: Keepsake;
  readonly cache?: CacheMark;
}

export interface ToolResultPart {
  readonly kind: 'tool-result';
  readonly callId: string;
  /** Of the tool, where the client told it. */
  readonly name?: string;
  readonly parts: readonly (TextPart | MediaPart)[];
  readonly isError?: boolean;
  readonly custom?: boolean;
  readonly cache?: CacheMark;
}

/** A web search that the vendor made by itself, and what it found. */
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
  readonly keepsake?: Keepsake;
  readonly age?: string;
}

export interface Citation {
  readonly url?: string;
  readonly title?: string;
  /** What of the source is quoted. */
  readonly quote?: string;
  /** Where in the text of its block it belongs: UTF-16 offsets, `end` exclusive. Absent: the whole block. */
  readonly start?: number;
  readonly end?: number;
  readonly keepsake?: Keepsake;
  /** A place in a document, in the words of the one protocol that has them; only in answers. */
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
  /** JSON Schema as the client wrote it; absent: the tool takes nothing. */
  readonly schema?: JsonObject;
  readonly strict?: boolean;
  readonly cache?: CacheMark;
  /** Not shown to the model until it searches for it. */
  readonly deferred?: boolean;
}
/** A tool that takes free text, perhaps by a grammar. */
export interface CustomTool {
  readonly kind: 'custom';
  readonly name: string;
  readonly namespace?: string;
  readonly description?: string;
  readonly grammar?: { readonly syntax: string; readonly definition: string };
}
/** A tool that the vendor runs. `other`: one that has no counterpart elsewhere. */
export interface HostedTool {
  readonly kind: 'hosted';
  readonly tool: 'web_search' | 'web_fetch' | 'code_execution' | 'image_generation' | 'other';
  /** As the client named its type. */
  readonly name: string;
  /** web_search: domains and place, in the words of `HostedOptions`. */
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
  /** Names as the client's tools have them; hosted tools by `HostedTool.tool`. Absent: all. */
  readonly names?: readonly string[];
}

/** Everything a request may hold that a target may not take: what losses are noted under. */
export type Setting =
  | Exclude<keyof Prompt, 'turns'>
  | 'cacheMarks'
  | 'strictTools'
  | 'names'
  | 'phase'
  | 'detail'
  | 'documentCitations'
  | 'reasoningHistory'
  | 'searchHistory'
  | 'strayResults'
  | 'image'
  | 'document'
  | 'audio'
  | 'video'
  | 'file';
