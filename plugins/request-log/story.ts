/** The lines of a story as they are kept: worded at the end, bounded, masked. Pure. */
import { maskSecrets } from '../../core/secret.ts';
import { maxStoryLines, type StoryNote } from '../../core/vocabulary.ts';

/** A line as its row has it. */
export interface KeptLine {
  /** Milliseconds from arrival. */
  readonly at: number;
  readonly by: string;
  readonly text: string;
  readonly operator?: true;
}

const longestLine = 300;

/** `receivedAt` in wall-clock milliseconds; undefined: nothing was told. */
export function keptStory(notes: readonly StoryNote[] | undefined, receivedAt: number): KeptLine[] | undefined {
  const lines: KeptLine[] = [];
  for (const { at, by, text, operator } of notes ?? []) {
    const worded = typeof text === 'string' ? text : wordedBy(text);
    if (worded === undefined || lines.length >= maxStoryLines) continue;
    // The wall clock may step.
    const since = Math.max(0, at - receivedAt);
    lines.push({ at: since, by, text: storable(worded, longestLine), ...(operator ? { operator: true } : {}) });
  }
  return lines.length === 0 ? undefined : lines;
}

/** Whatever a plugin's words throw, the request's row is kept. */
function wordedBy(text: () => string | undefined): string | undefined {
  try {
    return text();
  } catch (error) {
    return `could not be told: ${String(error)}`;
  }
}

/**
 * A text from outside, bounded, masked (a client may have put its key where the model belongs), and without what a JSON
 * string may hold and a database's text may not: one such row would keep all others out.
 */
export function storable(text: string, longest: number): string {
  return maskSecrets(text.slice(0, longest)).toWellFormed().replaceAll('\0', '\ufffd');
}
