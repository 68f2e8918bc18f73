/** What happened to a request, told in order by the plugins that decided it: kept as figures, worded when somebody reads it. */
import { defineFact, type Exchange } from './contract.ts';

/** What JSON keeps as it is; amounts of money are whole nano-USD in decimal. */
export type StoryValue = string | number | boolean | null;

/** A kind of line. Rows keep its id and values for as long as they live: both are as lasting as a column. */
export interface LineKind<Values extends readonly StoryValue[] = readonly StoryValue[]> {
  /** `plugin.what`: the part before the dot is who tells it. */
  readonly id: string;
  readonly words: (...values: Values) => string;
  /** It names a provider, a key or what one said: operators alone are told. */
  readonly operator: boolean;
}

/** One decision. Values that come of a function are asked for when the exchange has ended, and only if somebody keeps stories. */
export interface StoryNote {
  /** Wall-clock milliseconds. */
  readonly at: number;
  readonly kind: LineKind;
  readonly values: readonly StoryValue[] | (() => readonly StoryValue[] | undefined);
}

/** Whoever keeps stories states an empty list before all others; without one nothing is told. */
export const story = defineFact<StoryNote[]>('story');

/** A story has no more lines than this. */
export const maxStoryLines = 40;

const kinds = new Map<string, LineKind>();

/** A line for everybody who may see the request, its client too: its words hold no secret and no provider's name. Throws for an id that is taken. */
export function defineLine<Values extends readonly StoryValue[]>(
  id: `${string}.${string}`,
  words: (...values: Values) => string,
): LineKind<Values> {
  return define({ id, words, operator: false });
}

/** A line that only operators are told. */
export function defineOperatorLine<Values extends readonly StoryValue[]>(
  id: `${string}.${string}`,
  words: (...values: Values) => string,
): LineKind<Values> {
  return define({ id, words, operator: true });
}

function define<Values extends readonly StoryValue[]>(kind: LineKind<Values>): LineKind<Values> {
  if (kinds.has(kind.id)) throw new Error(`the line "${kind.id}" is defined twice`);
  kinds.set(kind.id, kind as unknown as LineKind);
  return kind;
}

/** The kind of a kept line; undefined when its plugin is not there any more. */
export function lineKind(id: string): LineKind | undefined {
  return kinds.get(id);
}

/** Adds a line. A function is called at the end, with what is true then; undefined: there is nothing to tell. */
export function tell<Values extends readonly StoryValue[]>(
  exchange: Exchange,
  at: number,
  kind: LineKind<Values>,
  values: readonly [...Values] | (() => readonly [...Values] | undefined),
): void {
  const notes = exchange.find(story);
  if (notes !== undefined && notes.length < maxStoryLines)
    notes.push({ at, kind: kind as unknown as LineKind, values });
}
