/**
 * Normalisation of a conversation's turns for strict upstreams: results after their calls, alternating roles, no empty
 * turns. Pure.
 */

import type { JsonObject } from '../../../core/json/json.ts';
import { invalid } from '../../../core/json/request-body.ts';
import type { CacheMark, MediaPart, Part, TextPart, ToolCallPart, ToolResultPart, Turn } from '../canonical/prompt.ts';
import { madeCallId } from './tool-ids.ts';

/** The result of a call that has none. */
export const noResultText = '(no result)';
/** The text of an empty result: many upstreams refuse empty ones. */
export const noOutputText = '(no output)';

/** The calls of a conversation by their id; of several with one id, the last. */
export function callsById(turns: readonly Turn[]): ReadonlyMap<string, ToolCallPart> {
  const calls = new Map<string, ToolCallPart>();
  for (const turn of turns) for (const part of turn.parts) if (part.kind === 'tool-call') calls.set(part.id, part);
  return calls;
}

/** Whether a tool result has no earlier call: `pairedTurns` drops it. */
export function hasStrayResult(turns: readonly Turn[]): boolean {
  const called = new Set<string>();
  for (const { parts } of turns) {
    for (const part of parts) if (part.kind === 'tool-call') called.add(part.id);
    if (parts.some((part) => part.kind === 'tool-result' && !called.has(part.callId))) return true;
  }
  return false;
}

/** Parts that no model can answer on their own. */
const unanswerable: ReadonlySet<Part['kind']> = new Set(['reasoning', 'search']);

/**
 * Throws invalid_request for a conversation, in the client's member `field`, that no model could answer: it is empty,
 * or has nothing but results without calls.
 */
export function requireAnswerable(turns: readonly Turn[], field: string): void {
  // The usual case: pairing and the removal of empty parts keep such a part.
  if (turns.some(({ parts }) => parts.some((part) => part.kind !== 'tool-result' && isAnswerable(part)))) return;
  const paired = withoutEmpty(pairedTurns(turns));
  if (paired.some(({ parts }) => parts.some(({ kind }) => !unanswerable.has(kind)))) return;
  throw hasStrayResult(turns)
    ? invalid(
        `The field "${field}" has results of tools without the calls that asked for them, and nothing else.`,
        field,
      )
    : invalid(`The field "${field}" must not be empty.`, field);
}

function isAnswerable(part: Part): boolean {
  return !unanswerable.has(part.kind) && !isEmpty(part, false);
}

/** A turn's calls, and their results. */
interface Step {
  readonly calls: ToolCallPart[];
  /** By the id that the client used, in order of arrival. */
  readonly results: Map<string, ToolResultPart[]>;
}

/**
 * Each assistant turn with calls is followed by one user turn that begins with one result for each call, in call
 * order, and continues with the user's next parts. Of several results for a call the last counts, missing ones are
 * generated, results without an earlier call are dropped. Ids become unique: empty and repeated ones are regenerated
 * on both sides.
 */
export function pairedTurns(turns: readonly Turn[]): Turn[] {
  const steps = stepsOf(turns);
  const taken = new Set<string>();
  const paired: Turn[] = [];
  /** The turn of results that takes in the user's next parts. */
  let open: Draft | undefined;
  for (const [index, turn] of turns.entries()) {
    const step = steps.get(index);
    const parts = turn.parts.filter((part) => part.kind !== 'tool-result');
    if (step !== undefined) {
      const [calls, results] = answeredCalls(step, index, taken);
      let next = 0;
      paired.push({ ...turn, parts: parts.map((part) => (part.kind === 'tool-call' ? calls[next++]! : part)) });
      open = { role: 'user', parts: results };
      paired.push(open);
      continue;
    }
    if (parts.length === 0 && turn.parts.length > 0) continue;
    if (open !== undefined && turn.role === 'user' && takesIn(open, turn)) {
      for (const part of parts) open.parts.push(part);
      continue;
    }
    open = undefined;
    paired.push(parts.length === turn.parts.length ? turn : { ...turn, parts });
  }
  return paired;
}

/** A turn under construction. */
type Draft = Omit<Turn, 'parts' | 'name' | 'phase'> & { parts: Part[]; name?: string; phase?: string };

/** Whether this user's parts may follow the results; a participant's name applies to the whole turn. */
function takesIn(open: Draft, turn: Turn): boolean {
  if (open.parts.at(-1)?.kind !== 'tool-result') return open.name === turn.name;
  if (turn.name !== undefined) open.name = turn.name;
  return true;
}

/** The assistant turns with calls, by index, each with its later results. */
function stepsOf(turns: readonly Turn[]): Map<number, Step> {
  const steps = new Map<number, Step>();
  const latest = new Map<string, Step>();
  for (const [index, turn] of turns.entries()) {
    const calls = turn.parts.filter((part) => part.kind === 'tool-call');
    if (calls.length > 0) {
      const step: Step = { calls, results: new Map() };
      steps.set(index, step);
      for (const call of calls) latest.set(call.id, step);
    }
    for (const part of turn.parts) if (part.kind === 'tool-result') addResult(latest.get(part.callId), part);
  }
  return steps;
}

function addResult(step: Step | undefined, result: ToolResultPart): void {
  const same = step?.results.get(result.callId);
  if (same === undefined) step?.results.set(result.callId, [result]);
  else same.push(result);
}

function answeredCalls(step: Step, turn: number, taken: Set<string>): [ToolCallPart[], ToolResultPart[]] {
  const calls: ToolCallPart[] = [];
  const results: ToolResultPart[] = [];
  const seen = new Map<string, number>();
  const twins = new Map<string, number>();
  for (const { id } of step.calls) twins.set(id, (twins.get(id) ?? 0) + 1);
  for (const [ordinal, call] of step.calls.entries()) {
    const nth = seen.get(call.id) ?? 0;
    seen.set(call.id, nth + 1);
    const found = step.results.get(call.id) ?? [];
    // Calls that share an id share its results in order; surplus results correct the last call.
    const isLast = nth + 1 === twins.get(call.id);
    const result = isLast && found.length > nth ? found.at(-1) : found[nth];
    const id = uniqueId(call, turn, ordinal, taken);
    calls.push(id === call.id ? call : { ...call, id });
    results.push(resultFor({ ...call, id }, result));
  }
  return [calls, results];
}

function uniqueId(call: ToolCallPart, turn: number, ordinal: number, taken: Set<string>): string {
  let id = call.id;
  for (let round = 0; id === '' || taken.has(id); round++) id = madeCallId(turn, ordinal + round * 1000, call.name);
  taken.add(id);
  return id;
}

function resultFor(call: ToolCallPart, result: ToolResultPart | undefined): ToolResultPart {
  if (result === undefined) {
    const custom = call.custom === true ? { custom: true } : {};
    return { kind: 'tool-result', callId: call.id, name: call.name, parts: [text(noResultText)], ...custom };
  }
  const isEmpty = result.parts.every((part) => part.kind === 'text' && part.text === '');
  const parts = isEmpty ? [text(noOutputText)] : result.parts;
  return { ...result, callId: call.id, name: result.name ?? call.name, parts };
}

function text(content: string): TextPart {
  return { kind: 'text', text: content };
}

/** Merges adjacent turns of one role; system turns stay separate. A name or phase stays if all of them have it. */
export function mergedTurns(turns: readonly Turn[]): Turn[] {
  const merged: Draft[] = [];
  for (const turn of turns) {
    const before = merged.at(-1);
    if (before === undefined || before.role !== turn.role || turn.role === 'system') {
      merged.push({ ...turn, parts: [...turn.parts] });
      continue;
    }
    for (const part of turn.parts) before.parts.push(part);
    if (before.name !== turn.name) delete before.name;
    if (before.phase !== turn.phase) delete before.phase;
  }
  return merged;
}

/** Without empty texts and the turns that they leave empty; a cache mark on such a text moves to the part before. */
export function withoutEmpty(turns: readonly Turn[], options: { readonly blanks?: boolean } = {}): Turn[] {
  const kept: Draft[] = [];
  for (const turn of turns) {
    const parts = filledParts(turn.parts, kept.at(-1)?.parts, options.blanks === true);
    if (parts.length > 0) kept.push({ ...turn, parts });
  }
  return kept;
}

/** `before`: the kept parts of the turn before. */
function filledParts(parts: readonly Part[], before: Part[] | undefined, blanks: boolean): Part[] {
  const kept: Part[] = [];
  for (const part of parts) {
    if (!isEmpty(part, blanks)) kept.push(part.kind === 'tool-result' ? withoutEmptyIn(part, blanks) : part);
    else if (part.kind === 'text' && part.cache !== undefined) mark(kept.length > 0 ? kept : before, part.cache);
  }
  return kept;
}

function isEmpty(part: Part, blanks: boolean): boolean {
  switch (part.kind) {
    case 'text':
      // An empty text may carry a signature, which must go back with it.
      return part.opaqueState === undefined && (blanks ? part.text.trim() : part.text) === '';
    case 'refusal':
      return part.text === '';
    case 'reasoning':
      return part.text === '' && part.opaqueState === undefined;
    default:
      return false;
  }
}

function withoutEmptyIn(result: ToolResultPart, blanks: boolean): ToolResultPart {
  if (!result.parts.some((part) => isEmpty(part, blanks))) return result;
  const parts: (TextPart | MediaPart)[] = [];
  let { cache } = result;
  for (const part of result.parts) {
    if (!isEmpty(part, blanks)) parts.push(part);
    else if (part.cache !== undefined) cache = longer(cache, part.cache);
  }
  return { ...result, parts, ...(cache === undefined ? {} : { cache }) };
}

function mark(parts: Part[] | undefined, cache: CacheMark): void {
  const last = parts?.at(-1);
  if (parts === undefined || last === undefined) return;
  if (last.kind === 'refusal' || last.kind === 'reasoning' || last.kind === 'search') return;
  parts[parts.length - 1] = { ...last, cache: longer(last.cache, cache) };
}

function longer(one: CacheMark | undefined, other: CacheMark): CacheMark {
  return one === 'long' ? one : other;
}

/** The messages of all turns; `instructions` become system messages behind those that begin the conversation. */
export function messagesWith(
  turns: readonly Turn[],
  instructions: readonly string[],
  encode: (turn: Turn) => readonly JsonObject[],
): JsonObject[] {
  const first = turns.findIndex(({ role }) => role !== 'system');
  const leading = first === -1 ? turns.length : first;
  const added = instructions.map((content) => ({ role: 'system', content }));
  return [...turns.slice(0, leading).flatMap(encode), ...added, ...turns.slice(leading).flatMap(encode)];
}
