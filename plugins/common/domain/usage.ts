/** What a call consumes and what that costs per unit: one list of classes, shared by taps, prices and ledger rows. Pure. */

/** Counted in tokens; priced per million. Disjoint: a token is counted in exactly one class. */
export const tokenClasses = [
  'input',
  'cache_read',
  'cache_write_5m',
  'cache_write_1h',
  'input_audio',
  'input_image',
  'cache_read_audio',
  'cache_read_image',
  'output',
  'reasoning',
  'output_audio',
  'output_image',
] as const;

/** Counted in units of their own: characters of text, priced per million; seconds of audio, priced per hour. */
const measureClasses = ['character', 'audio'] as const;

/** Calls of tools that the vendor runs itself: `call` is any of them, the others are known by name. */
export const toolClasses = ['call', 'web_search', 'web_fetch', 'code_execution', 'file_search'] as const;

/** Counted and priced per piece; `request` is the call itself, `search` the unit of a reranker. */
export const pieceClasses = ['image', 'second', 'request', ...toolClasses, 'search'] as const;

type TokenClass = (typeof tokenClasses)[number];
type PieceClass = (typeof pieceClasses)[number];
type MeasureClass = (typeof measureClasses)[number];
export type UsageClass = TokenClass | PieceClass | MeasureClass;
/** Sums of calls are kept by class: a new one needs a column of `call_sums` (billing's migrations). */
export const usageClasses: readonly UsageClass[] = [...tokenClasses, ...pieceClasses, ...measureClasses];

/** Counts by class, whole numbers. An absent class was not reported; 0 was reported as none. */
export type Usage = { readonly [K in UsageClass]?: number };

/** nano-USD by class: per million for tokens and characters, per hour for audio, per piece for the others. */
export type Price = { readonly [K in UsageClass]?: bigint };

/** Counts above this are not believed: no vendor's window is near it, and sums of it stay exact. */
export const maxCount = 1_000_000_000_000;

/**
 * The class that stands in when a price has none for a class. Tokens end at `input` or `output`, named tools at `call`;
 * other pieces have no stand-in.
 */
export const priceStandIn: { readonly [K in UsageClass]?: UsageClass } = {
  cache_read: 'input',
  cache_write_5m: 'input',
  cache_write_1h: 'cache_write_5m',
  input_audio: 'input',
  input_image: 'input',
  cache_read_audio: 'input_audio',
  cache_read_image: 'input_image',
  reasoning: 'output',
  output_audio: 'output',
  output_image: 'output',
  web_search: 'call',
  web_fetch: 'call',
  code_execution: 'call',
  file_search: 'call',
};

/** The class that a token of a prompt cache would be in without the cache. */
export const uncachedClass = {
  cache_read: 'input',
  cache_write_5m: 'input',
  cache_write_1h: 'input',
  cache_read_audio: 'input_audio',
  cache_read_image: 'input_image',
} as const satisfies { readonly [K in UsageClass]?: UsageClass };

/** Tokens of a large picture that a vendor's own tool draws: for holds, and for answers without a count. */
export const pictureTokens = 4_160;

/** A count as vendors send it (number or digits) if it is a believable whole number, else undefined. */
export function readCount(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^\d{1,13}$/.test(value) ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 && count <= maxCount
    ? count
    : undefined;
}

const tokens: ReadonlySet<string> = new Set(tokenClasses);

/** All of a report's tokens, whatever their class. */
export function totalTokens(usage: Usage): number {
  let sum = 0;
  // A report has few of all classes.
  for (const name in usage) if (tokens.has(name)) sum += usage[name as UsageClass] ?? 0;
  return sum;
}

/** Tokens of the prompt, cached or not: what decides on the tier by length. */
export function promptTokens(usage: Usage): number {
  return (
    (usage.input ?? 0) +
    (usage.cache_read ?? 0) +
    (usage.cache_write_5m ?? 0) +
    (usage.cache_write_1h ?? 0) +
    (usage.input_audio ?? 0) +
    (usage.input_image ?? 0) +
    (usage.cache_read_audio ?? 0) +
    (usage.cache_read_image ?? 0)
  );
}
