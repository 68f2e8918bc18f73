/** The lines of a story as they are kept, bounded and masked, and their words again when somebody reads them. Pure. */
import type { StoryLine } from '../../core/desk.ts';
import { maskSecrets } from '../../core/secret.ts';
import { type LineKind, lineKind, maxStoryLines, type StoryNote, type StoryValue } from '../../core/vocabulary.ts';

/** A line as its row has it: milliseconds from arrival, the kind's id, its values. */
export type KeptLine = readonly [at: number, id: string, ...values: StoryValue[]];

const longestText = 300;
const mostValues = 40;
/** Kept for a line whose values could not be had. */
const broken = 'could not be told';

/** Lines as JSON; `receivedAt` in wall-clock milliseconds; undefined: nothing was told. */
export function keptStory(notes: readonly StoryNote[] | undefined, receivedAt: number): string | undefined {
  const lines: KeptLine[] = [];
  for (const { at, kind, values } of notes ?? []) {
    const told = typeof values === 'function' ? valuesOf(values) : values;
    if (told === undefined || lines.length >= maxStoryLines) continue;
    // The wall clock may step.
    lines.push([Math.max(0, at - receivedAt), kind.id, ...told.slice(0, mostValues).map(kept)]);
  }
  return lines.length === 0 ? undefined : JSON.stringify(lines);
}

/** Whatever a plugin's values throw, the request's row is kept. */
function valuesOf(values: () => readonly StoryValue[] | undefined): readonly StoryValue[] | undefined {
  try {
    return values();
  } catch (error) {
    return [`${broken}: ${String(error)}`];
  }
}

function kept(value: StoryValue): StoryValue {
  return typeof value === 'string' ? storable(value, longestText) : value;
}

/** In words; a line of a plugin that is not there any more shows what was kept. */
export function worded([atMs, id, ...values]: KeptLine): StoryLine {
  const kind = lineKind(id);
  return {
    atMs,
    by: id.slice(0, id.indexOf('.')),
    text: (kind !== undefined && !isBroken(values) && wordsBy(kind, values)) || [id, ...values].join(' '),
    // What nobody can word may name a provider.
    ...(kind?.operator === false ? {} : { operator: true }),
  };
}

/** Values that another version kept may not fit these words. */
function wordsBy(kind: LineKind, values: readonly StoryValue[]): string | undefined {
  try {
    return kind.words(...values);
  } catch {
    return undefined;
  }
}

function isBroken([first]: readonly StoryValue[]): boolean {
  return typeof first === 'string' && first.startsWith(broken);
}

/**
 * A text from outside, bounded, masked (a client may have put its key where the model belongs), and without what a JSON
 * string may hold and a database's text may not: one such row would keep all others out.
 */
export function storable(text: string, longest: number): string {
  return maskSecrets(text.slice(0, longest)).toWellFormed().replaceAll('\0', '\ufffd');
}
