/** What happened to a request, told in order for people by the plugins that decided it. */
import { defineFact, type Exchange } from './contract.ts';

/** One decision. Its text is made when the exchange has ended, and only if somebody keeps stories. */
export interface StoryNote {
  /** Wall-clock milliseconds. */
  readonly at: number;
  /** Name of the plugin that tells it. */
  readonly by: string;
  readonly text: string | (() => string | undefined);
  /** It names a provider, a key or what one said: operators alone are told. */
  readonly operator: boolean;
}

/** Whoever keeps stories states an empty list before all others; without one nothing is told. */
export const story = defineFact<StoryNote[]>('story');

/** A story has no more lines than this. */
export const maxStoryLines = 40;

/**
 * Adds a line for everybody who may see the request, its client too: no secret, no provider's name. A function is called at
 * the end, with what is true then; undefined: there is nothing to tell.
 */
export function tell(exchange: Exchange, at: number, by: string, text: StoryNote['text'], operator = false): void {
  const notes = exchange.find(story);
  if (notes !== undefined && notes.length < maxStoryLines) notes.push({ at, by, text, operator });
}

/** Adds a line that only operators are told. */
export function tellOperator(exchange: Exchange, at: number, by: string, text: StoryNote['text']): void {
  tell(exchange, at, by, text, true);
}
