/**
 * The most that a call can have consumed: by its request, its model and the bytes of its answer. Vendors' counts beyond it are not
 * charged. Pure.
 */
import type { Call, SeenAnswer } from '../domain/calls.ts';
import type { Model } from '../domain/models.ts';
import { promptTokens, tokenClasses, type Usage, type UsageClass, usageClasses } from '../domain/usage.ts';

/** The members of a call that bound its usage. */
export type RequestedUsage = Pick<
  Call,
  'inputTokens' | 'maxOutputTokens' | 'choices' | 'toolCalls' | 'images' | 'seconds' | 'counted' | 'kind'
>;
export type ModelSize = Pick<Model, 'contextTokens' | 'maxOutputTokens'>;

/** A model that the catalogue does not have any more. */
export const unknownSize: ModelSize = { contextTokens: undefined, maxOutputTokens: undefined };

/** The longest context on the market, for a model that the catalogue gives no size of. */
const unknownContext = 2_000_000;
/** An estimate below this includes no document, no kept conversation and no picture, so the prompt's size is known. */
const smallPrompt = 5_000;
/** Tokens that vendors add to a prompt: instructions of their own, templates. */
const addedTokens = 8_192;
/** A larger prompt may refer to content that the vendor knows: the estimate of a page or a document is at most so many times too low. */
const unknownContent = 64;
/** Calls of the vendor's own tools without a request for them: some models always search. */
const usualCalls = 256;
const usualPieces = 16;

const promptClasses: readonly UsageClass[] = [
  ...(['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'input_audio', 'input_image'] as const),
  ...(['cache_read_audio', 'cache_read_image'] as const),
];
const answerClasses: readonly UsageClass[] = ['output', 'output_audio', 'output_image', 'reasoning'];

/** Vendors stop a few tokens late, and count their own. */
const slack = (tokens: number): number => tokens + Math.ceil(tokens / 4) + 256;

const contextOf = ({ contextTokens }: ModelSize): number => contextTokens ?? unknownContext;
const longestAnswer = (size: ModelSize): number => size.maxOutputTokens ?? contextOf(size);
/** The model runs again after each call of a tool that the vendor runs. */
const runsOf = ({ toolCalls = 0 }: RequestedUsage): number => 1 + toolCalls;

/** Output tokens without reasoning, which some vendors do not count within the request's own bound. */
function mostAnswer(requested: RequestedUsage, size: ModelSize): number {
  const longest = longestAnswer(size);
  const bound = Math.min(requested.maxOutputTokens ?? longest, longest);
  return slack(requested.choices * runsOf(requested) * bound);
}

/** All output tokens. */
function mostOutput(requested: RequestedUsage, size: ModelSize): number {
  return mostAnswer(requested, size) + slack(requested.choices * runsOf(requested) * longestAnswer(size));
}

function mostPrompt(requested: RequestedUsage, size: ModelSize): number {
  const estimate = requested.inputTokens + (requested.counted === undefined ? 0 : promptTokens(requested.counted));
  // A reranker reads the query with each document.
  if (requested.kind === 'rerank') return estimate * estimate + addedTokens;
  // A vendor may read the input with each question.
  if (requested.kind === 'decision') return estimate * (requested.choices + 1) + addedTokens;
  const added = estimate < smallPrompt ? 2 * estimate + addedTokens : unknownContent * estimate;
  // What the vendor's own tools find becomes part of the prompt.
  const bySize = (requested.toolCalls ?? 0) > 0 ? Number.POSITIVE_INFINITY : added;
  return Math.min(bySize, slack(runsOf(requested) * contextOf(size)) + 2 * estimate);
}

function mostPieces(name: UsageClass, { toolCalls = 0, images, seconds, counted }: RequestedUsage): number {
  if (name === 'request') return 1;
  if (name === 'image') return usualPieces + 2 * (images ?? 0);
  if (name === 'second') return 60 * usualPieces + 2 * (seconds ?? 0);
  return usualCalls + 4 * (toolCalls + (counted?.[name] ?? 0));
}

/** Characters and seconds of audio: the request shows them. */
const mostMeasured = (counted: number | undefined): number => 64 * ((counted ?? 0) + addedTokens);

/**
 * The usage itself where all of it is possible. Else with estimates for the impossible counts: of the prompt by the request, of
 * the answer by `seen`, of pieces by what was asked for.
 */
export function possibleUsage(usage: Usage, requested: RequestedUsage, size: ModelSize, seen: SeenAnswer): Usage {
  const prompt = promptTokens(usage);
  // The estimate is nearly always higher, and the bound never lower.
  const isPrompt = prompt <= requested.inputTokens || prompt <= mostPrompt(requested, size);
  const isAnswer = isPossibleAnswer(usage, requested, size, seen);
  let arePieces = true;
  for (const name in usage)
    if (!tokens.has(name as UsageClass) && !isPossibleCount(name as UsageClass, usage, requested)) arePieces = false;
  if (isPrompt && isAnswer && arePieces) return usage;
  const { counted = {} } = requested;
  const possible: { [K in UsageClass]?: number } = { ...usage };
  if (!isPrompt) replace(possible, promptClasses, { ...counted, input: requested.inputTokens + (counted.input ?? 0) });
  if (!isAnswer) replace(possible, answerClasses, { output: seen.tokens + (counted.output ?? 0) });
  for (const name of usageClasses)
    if (!isPossibleCount(name, usage, requested))
      replace(possible, [name], { [name]: requestedCount(name, requested) });
  return possible;
}

function replace(usage: { [K in UsageClass]?: number }, names: readonly UsageClass[], estimates: Usage): void {
  for (const name of names) {
    delete usage[name];
    if (estimates[name] !== undefined) usage[name] = estimates[name];
  }
}

/** Tokens are bounded as sums of their classes. */
function isPossibleCount(name: UsageClass, usage: Usage, requested: RequestedUsage): boolean {
  const count = usage[name];
  if (count === undefined || tokens.has(name)) return true;
  if (name === 'character' || name === 'audio') return count <= mostMeasured(requested.counted?.[name]);
  return count <= mostPieces(name, requested);
}

const tokens: ReadonlySet<UsageClass> = new Set(tokenClasses);

/** A token has at least one byte, so the passed bytes are a bound; reasoning may be hidden. */
export function isPossibleAnswer(
  usage: Usage,
  requested: RequestedUsage,
  size: ModelSize,
  { bytes }: SeenAnswer,
): boolean {
  const answer = (usage.output ?? 0) + (usage.output_audio ?? 0) + (usage.output_image ?? 0);
  const reasoning = usage.reasoning ?? 0;
  if (answer + reasoning <= bytes) return true;
  return answer <= Math.max(bytes, mostAnswer(requested, size)) && answer + reasoning <= mostOutput(requested, size);
}

function requestedCount(name: UsageClass, { images, seconds, toolCalls, counted }: RequestedUsage): number {
  if (name === 'request') return 1;
  if (name === 'image') return images ?? 1;
  if (name === 'second') return seconds ?? 0;
  if (name === 'character' || name === 'audio') return counted?.[name] ?? 0;
  return counted?.[name] ?? toolCalls ?? 1;
}
