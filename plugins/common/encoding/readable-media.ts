/** Media that a model cannot read: refused in the user's last turn, replaced by a text in earlier turns and tool results. Pure. */

import type { DroppedParameters } from '../canonical/dropped-parameters.ts';
import type { MediaPart, Part, TextPart, Turn } from '../canonical/prompt.ts';
import { fieldOf, isMedia } from './media.ts';

/** Why a model cannot read a medium; completes "This model …". undefined: it can. */
export type MediaProblem = (part: MediaPart, isInResult: boolean) => string | undefined;

/** Replaces media that the model cannot read where a refusal would end the conversation for good. */
export function unshownText(kind: MediaPart['kind']): string {
  return `(${kind} that cannot be shown)`;
}

/**
 * The turns with media alone that the model can read. Others become a text, and are recorded as dropped; in the last turn in
 * which the user says something, and behind it, they are refused: that throws what `DroppedParameters.refuse` throws.
 */
export function readableTurns(
  turns: readonly Turn[],
  problemOf: MediaProblem,
  dropped: DroppedParameters,
): readonly Turn[] {
  if (!turns.some(({ parts }) => parts.some(holdsMedia))) return turns;
  const last = lastSaid(turns);
  const readable = <P extends Part>(part: P | MediaPart, mayRefuse: boolean, isInResult: boolean): P | Readable => {
    if (!isMedia(part)) return part;
    const problem = problemOf(part, isInResult);
    if (problem === undefined) return part;
    const setting = part.source.form === 'file' ? 'file' : part.kind;
    if (mayRefuse) return dropped.refuse(setting, problem, fieldOf(part.source));
    dropped.drop(setting);
    return unshown(part);
  };
  return turns.map((turn, index): Turn => {
    if (!turn.parts.some(holdsMedia)) return turn;
    const mayRefuse = turn.role !== 'assistant' && index >= last;
    const parts = turn.parts.map((part): Part => {
      if (part.kind !== 'tool-result') return readable(part, mayRefuse, false);
      return { ...part, parts: part.parts.map((inner) => readable(inner, false, true)) };
    });
    return { ...turn, parts };
  });
}

/** The last turn in which the user says something: media in it, and behind it, are what the request is about. */
export function lastSaid(turns: readonly Turn[]): number {
  return turns.findLastIndex(({ role, parts }) => role === 'user' && parts.some(isSaid));
}

type Readable = TextPart | MediaPart;

function holdsMedia(part: Part): boolean {
  return part.kind === 'tool-result' ? part.parts.some(isMedia) : isMedia(part);
}

function isSaid({ kind }: Part): boolean {
  return kind !== 'tool-result';
}

/** The text in the place of a medium. */
export function unshown({ kind, transcript, cache }: MediaPart): TextPart {
  return { kind: 'text', text: transcript ?? unshownText(kind), ...(cache === undefined ? {} : { cache }) };
}
