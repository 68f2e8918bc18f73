/** The vendor's view of a request, common to all four protocols. Pure. */
import { table } from '../../../core/contract/table.ts';
import { type Directives, parseDirectives } from './directives.ts';
import { tokensOf, tokensPerMedium } from './tokens.ts';

export type ProtocolName = 'chat' | 'responses' | 'messages' | 'gemini';
export type Medium = 'image' | 'audio' | 'file';
/** Lifetime of a marked prefix. */
export type CacheSpan = '5m' | '1h';

/** A segment of the prompt; prefixes are compared and cached at segment ends. */
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

interface ToolResult {
  readonly name: string;
  readonly text: string;
}

/** The required form of the answer. */
type Form = { readonly kind: 'text' | 'object' } | { readonly kind: 'schema'; readonly schema: unknown };

export interface ModelRequest {
  readonly protocol: ProtocolName;
  readonly model: string;
  stream: boolean;
  readonly prompt: Segment[];
  /** Text of the last user turn, without directives. */
  userText: string;
  /** Kinds of media in that turn. */
  media: Medium[];
  /** Tool results at the very end of the conversation; empty if a user message follows them. */
  results: ToolResult[];
  readonly tools: ToolOffer[];
  /** Names that must be called: empty for any; undefined if calls are optional. */
  forced: readonly string[] | undefined;
  parallel: boolean;
  /** Limit of reasoning and answer together, in tokens. */
  maxTokens: number | undefined;
  stops: readonly string[];
  choices: number;
  form: Form;
  /** Amount of reasoning before the answer: 0 none, 1 little … 4 much. */
  effort: number;
  /** Whether the answer shows the thoughts, as far as the protocol can. */
  thoughtsShown: boolean;
  /** Different keys do not share prefixes. */
  cacheKey: string;
  /** true: only marked prefixes are cached. */
  marksOnly: boolean;
  /** Requests a compaction of the conversation into one item. */
  compact: boolean;
  /** The protocol has no member for a refusal. */
  refusesSilently: boolean;
  directives: Directives;
}

export function newModelRequest(protocol: ProtocolName, model: string): ModelRequest {
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

export function addText(modelRequest: ModelRequest, role: string, text: string, mark?: CacheSpan): void {
  if (text === '' && mark === undefined) return;
  modelRequest.prompt.push({ role, text, medium: undefined, tokens: tokensOf(text.length), mark });
}

/** `data` distinguishes images when prefixes are compared. */
export function addMedium(
  modelRequest: ModelRequest,
  role: string,
  medium: Medium,
  data: string,
  mark?: CacheSpan,
): void {
  modelRequest.prompt.push({ role, text: data, medium, tokens: tokensPerMedium, mark });
}

/** A user message: tool results before it are no longer pending. */
export function userSpoke(modelRequest: ModelRequest, text: string, media: Medium[]): void {
  modelRequest.userText = text;
  modelRequest.media = media;
  modelRequest.results = [];
}

/** Takes the directives out of the last user text. Throws a 400 fault for an unknown one. */
export function takeDirectives(modelRequest: ModelRequest): ModelRequest {
  const { text, directives } = parseDirectives(modelRequest.userText);
  modelRequest.userText = text;
  modelRequest.directives = directives;
  return modelRequest;
}

const efforts: Record<string, number> = table({ none: 0, minimal: 1, low: 1, medium: 2, high: 3, xhigh: 4, max: 4 });

/** The amount of reasoning for a named effort; medium for an unknown name. */
export function effortOf(name: unknown): number {
  return typeof name === 'string' ? (efforts[name.toLowerCase()] ?? 2) : 2;
}

export function promptTokens(modelRequest: ModelRequest): number {
  let sum = 0;
  for (const segment of modelRequest.prompt) sum += segment.tokens;
  return Math.max(sum, 1);
}
