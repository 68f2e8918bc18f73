/** What a request asks of the vendor, in words that all four protocols share. Pure. */
import { type Directives, readDirectives } from './directives.ts';
import { tokensOf, tokensPerMedium } from './tokens.ts';

export type ProtocolName = 'chat' | 'responses' | 'messages' | 'gemini';
export type Medium = 'image' | 'audio' | 'file';
/** How long a marked prefix is kept. */
export type CacheSpan = '5m' | '1h';

/** A stretch of the prompt; prefixes are compared and cached at its ends. */
export interface Segment {
  readonly role: string;
  readonly text: string;
  readonly medium: Medium | undefined;
  readonly tokens: number;
  readonly mark: CacheSpan | undefined;
}

export interface ToolOffer {
  readonly name: string;
  /** `function` takes arguments that fit `schema`; `custom` takes a text. */
  readonly kind: 'function' | 'custom';
  readonly schema: unknown;
  readonly namespace?: string;
}

export interface ToolResult {
  readonly name: string;
  readonly text: string;
}

/** The shape the answer must have. */
export type Form = { readonly kind: 'text' | 'object' } | { readonly kind: 'schema'; readonly schema: unknown };

export interface Ask {
  readonly protocol: ProtocolName;
  readonly model: string;
  stream: boolean;
  readonly prompt: Segment[];
  /** Text of the last user turn, without directives. */
  userText: string;
  /** What came with that text. */
  media: Medium[];
  /** Tool results at the very end of the conversation; empty when somebody spoke after them. */
  results: ToolResult[];
  readonly tools: ToolOffer[];
  /** Names that must be called: empty for any; undefined when calling is free. */
  forced: readonly string[] | undefined;
  parallel: boolean;
  /** Bound on reasoning and answer together, in tokens. */
  maxTokens: number | undefined;
  stops: readonly string[];
  choices: number;
  form: Form;
  /** How much it thinks before it answers: 0 none, 1 little … 4 much. */
  effort: number;
  /** Whether the thoughts are told, as far as the protocol can. */
  thoughtsShown: boolean;
  /** Prefixes of different keys are not shared. */
  cacheKey: string;
  /** true: only marked prefixes are kept. */
  marksOnly: boolean;
  /** Asks for the conversation to be folded into one compaction item. */
  compact: boolean;
  /** The protocol has no words for a refusal. */
  refusesSilently: boolean;
  directives: Directives;
}

export function newAsk(protocol: ProtocolName, model: string): Ask {
  return {
    protocol,
    model,
    stream: false,
    prompt: [],
    userText: '',
    media: [],
    results: [],
    tools: [],
    forced: undefined,
    parallel: true,
    maxTokens: undefined,
    stops: [],
    choices: 1,
    form: { kind: 'text' },
    effort: 0,
    thoughtsShown: false,
    cacheKey: '',
    marksOnly: false,
    compact: false,
    refusesSilently: false,
    directives: {},
  };
}

export function addText(ask: Ask, role: string, text: string, mark?: CacheSpan): void {
  if (text === '' && mark === undefined) return;
  ask.prompt.push({ role, text, medium: undefined, tokens: tokensOf(text.length), mark });
}

/** `data` tells one image from another when prefixes are compared. */
export function addMedium(ask: Ask, role: string, medium: Medium, data: string, mark?: CacheSpan): void {
  ask.prompt.push({ role, text: data, medium, tokens: tokensPerMedium, mark });
}

/** A user has spoken: whatever tools answered before has been heard. */
export function userSpoke(ask: Ask, text: string, media: Medium[]): void {
  ask.userText = text;
  ask.media = media;
  ask.results = [];
}

/** Takes the directives out of the last user text. Throws a 400 fault for one that does not exist. */
export function takeDirectives(ask: Ask): Ask {
  const { text, directives } = readDirectives(ask.userText);
  ask.userText = text;
  ask.directives = directives;
  return ask;
}

const efforts: Record<string, number> = { none: 0, minimal: 1, low: 1, medium: 2, high: 3, xhigh: 4, max: 4 };

/** The amount of thinking that a named effort stands for; medium for a name that is not known. */
export function effortOf(name: unknown): number {
  return typeof name === 'string' ? (efforts[name.toLowerCase()] ?? 2) : 2;
}

export function promptTokens(ask: Ask): number {
  let sum = 0;
  for (const segment of ask.prompt) sum += segment.tokens;
  return Math.max(sum, 1);
}
