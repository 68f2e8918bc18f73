/** An answer transform that replaces matches of a pattern, also those that span several events. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { isObject, tryParse } from '../../../core/json/json.ts';
import type { Event } from '../canonical/reply.ts';
import type { AnswerTransform } from './call-transforms.ts';

export interface Replacement {
  /** With the flag `g`. Applied to the text after the last match, or after the last text that was sent. */
  readonly pattern: RegExp;
  /** The longest match in characters. As many are held back until more text or the block's end follows. */
  readonly longest: number;
  by(match: string): string;
}

/** Tool input is held until its end; longer input ends the answer by an error. */
const maxInputLength = 2 ** 20;

/** The input so far of a tool call that has not ended. */
interface Input {
  readonly deltas: Delta[];
  length: number;
}

type Delta = Extract<Event, { type: `${'text' | 'refusal' | 'reasoning' | 'tool'}-delta` }>;

/**
 * Replaces in texts, refusals, reasoning and the strings of tool inputs (member names stay); not in citations and search results.
 * For one answer. Where nothing is found, every event is returned as it came: a relayed answer keeps the vendor's bytes.
 */
export function replaceTexts(replacement: Replacement): AnswerTransform {
  const held = new Map<number, readonly Delta[]>();
  const inputs = new Map<number, Input>();
  return {
    event(event) {
      switch (event.type) {
        case 'text-delta':
        case 'refusal-delta':
        case 'reasoning-delta': {
          const { out, rest } = replaced([...(held.get(event.block) ?? []), event], replacement, false);
          held.set(event.block, rest);
          return out;
        }
        case 'text-end':
        case 'refusal-end':
        case 'reasoning-end': {
          const { out } = replaced(held.get(event.block) ?? [], replacement, true);
          held.delete(event.block);
          return [...out, event];
        }
        case 'tool-start':
          inputs.set(event.block, { deltas: [], length: 0 });
          return [event];
        case 'tool-delta':
          hold(inputs.get(event.block)!, event);
          return [];
        case 'tool-end': {
          const { deltas } = inputs.get(event.block)!;
          inputs.delete(event.block);
          return [...replacedInput(deltas, replacement), event];
        }
        default:
          return [event];
      }
    },
  };
}

/** Splits events into those that no later text can change and the rest. */
function replaced(deltas: readonly Delta[], { pattern, longest, by }: Replacement, isEnd: boolean) {
  const text = deltas.map((delta) => delta.text).join('');
  let decided = isEnd ? text.length : Math.max(0, text.length - longest + 1);
  let out = '';
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index >= decided) break;
    out += text.slice(at, match.index) + by(match[0]);
    at = match.index + match[0].length;
  }
  if (at === 0 && out === '') return untouched(deltas, decided);
  decided = Math.max(decided, at);
  out += text.slice(at, decided);
  const rest = text.slice(decided);
  const last = deltas.at(-1)!;
  return { out: out === '' ? [] : [withText(last, out)], rest: rest === '' ? [] : [withText(last, rest)] };
}

/** Takes whole events only, since a part of one would count as a change. */
function untouched(deltas: readonly Delta[], decided: number): { out: Delta[]; rest: Delta[] } {
  let length = 0;
  const count = deltas.findIndex((delta) => {
    length += delta.text.length;
    return length > decided;
  });
  return count === -1 ? { out: [...deltas], rest: [] } : { out: deltas.slice(0, count), rest: deltas.slice(count) };
}

function hold(input: Input, event: Delta): void {
  input.deltas.push(event);
  input.length += event.text.length;
  if (input.length <= maxInputLength) return;
  throw new GatewayError('upstream_failed', 'The input of a tool call is too large to be checked.', {
    code: 'tool_input_too_large',
    shouldRetry: false,
  });
}

function replacedInput(deltas: readonly Delta[], replacement: Replacement): readonly Delta[] {
  const last = deltas.at(-1);
  if (last === undefined) return deltas;
  const text = deltas.map((delta) => delta.text).join('');
  const json = tryParse(text);
  let isChanged = false;
  const change = (value: string) => {
    const changed = value.replace(replacement.pattern, (match) => replacement.by(match));
    isChanged ||= changed !== value;
    return changed;
  };
  const changed = isObject(json) ? JSON.stringify(mapTexts(json, change)) : change(text);
  return isChanged ? [withText(last, changed)] : deltas;
}

function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((one) => mapTexts(one, change));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, mapTexts(one, change)]));
}

/** Log probabilities name the tokens of the text: they are left out. */
function withText(delta: Delta, text: string): Delta {
  return delta.type === 'text-delta' ? { ...delta, text, logprobs: undefined } : { ...delta, text };
}
