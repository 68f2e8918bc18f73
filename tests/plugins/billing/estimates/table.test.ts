/** What interrupted calls are charged for, beside what their vendors counted: over all recordings. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { families, recordings } from '../../../helpers/recordings.ts';
import { type Counted, countedCalls, estimateAfter, likelyOf, readBy } from './recordings.ts';

/** An estimate and what the vendor counted. */
type Pair = readonly [estimate: number, truth: number];

const calls = countedCalls();
const readme = readFileSync(new URL('../../../../plugins/billing/README.md', import.meta.url), 'utf8');

const at = (numbers: number[], share: number) =>
  numbers.sort((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(share * numbers.length))]!;

/** A line of the table, and the median of the error. */
function lineOf(what: string, pairs: readonly Pair[]): { line: string; error: number } {
  const ratios = pairs.map(([estimate, truth]) => estimate / truth);
  const error = at(
    ratios.map((ratio) => Math.abs(ratio - 1)),
    0.5,
  );
  const [middle, high] = [at([...ratios], 0.5).toFixed(2), at([...ratios], 0.95).toFixed(2)];
  return { line: `| ${what} | ${pairs.length} | ${middle} | ${high} | ${(error * 100).toFixed(1)} % |`, error };
}

const isSame = (one: Counted, other: Counted) =>
  one !== other && one.to.provider === other.to.provider && one.to.model === other.to.model;
const distance = (one: Counted, other: Counted) => Math.abs(one.call.inputTokens - other.call.inputTokens);

/** The recorded call that came before in the same conversation. */
function earlierOf(one: Counted): Counted | undefined {
  const others = calls.filter((other) => isSame(one, other) && other.mark === one.mark);
  const shorter = others.filter(({ call }) => call.inputTokens <= one.call.inputTokens);
  return (shorter.length > 0 ? shorter : others).sort((a, b) => distance(one, a) - distance(one, b))[0];
}

/** JSON around a turn, and the tokens that vendors count for it. */
const [turnBytes, turnTokens] = [60, 4];

/** The call that sends a recorded answer back: its prompt is what the vendor counted for both. */
function next(one: Counted): { inputTokens: number; truth: number } {
  const grown = Math.ceil((one.bytes + turnBytes) / 2);
  return { inputTokens: one.call.inputTokens + grown, truth: one.prompt + (one.usage.output ?? 0) + turnTokens };
}

test('prompts of interrupted calls are estimated by their conversation, 10 % off at the median, never above the hold', async () => {
  const continued = calls.map((one): Pair => {
    const { inputTokens, truth } = next(one);
    return [estimateAfter([one], one, { ...one.call, inputTokens })!, truth];
  });
  const siblings = calls.flatMap((one) => {
    const earlier = earlierOf(one);
    return earlier === undefined ? [] : [[estimateAfter([earlier], one)!, one.prompt] as const];
  });
  const plain: Pair[] = [];
  for (const one of calls.filter(({ hosted }) => !hosted))
    plain.push([Math.min((await one.tokens()) ?? one.call.inputTokens, one.call.inputTokens), one.prompt]);
  const bySize = calls.map((one): Pair => [one.call.inputTokens, one.prompt]);
  const bySizeContinued = calls.map((one): Pair => [next(one).inputTokens, next(one).truth]);
  const lines = [
    lineOf('before: two bytes a token', bySize),
    lineOf('before: the next call of each conversation', bySizeContinued),
    lineOf('the next call of each conversation', continued),
    lineOf('another recorded call of the same conversation', siblings),
    lineOf("nothing known, by the tokenizer, without vendors' own tools", plain),
  ];
  for (const { line } of lines) assert.ok(readme.includes(line), line);
  assert.ok(lines[2]!.error <= 0.1 && lines[3]!.error <= 0.1);
});

test("answers cut in the middle are estimated by the target's tokens for a byte", () => {
  const cut = families.flatMap((family) =>
    recordings(family).flatMap((recording) => {
      const one = calls.find(({ name }) => name === recording.name);
      if (one === undefined || !recording.isStream || one.bytes === 0) return [];
      const { output = 0, reasoning = 0 } = one.usage;
      const tokens = 2 * (output + reasoning) <= one.bytes ? output + reasoning : output;
      const half = readBy(recording, one.call, 0.5);
      if (tokens === 0 || half.bytes === 0) return [];
      return [{ one, half, truth: (tokens * half.bytes) / one.bytes }];
    }),
  );
  const before = cut.map(({ half, truth }): Pair => [half.report.seen.tokens, truth]);
  const after = cut.flatMap(({ one, half, truth }) => {
    const { tokensPerByte } = likelyOf(
      calls.filter((other) => isSame(one, other)),
      one,
    );
    if (tokensPerByte === undefined) return [];
    return [[Math.min(half.report.seen.tokens, Math.ceil(half.bytes * tokensPerByte)), truth] as const];
  });
  const lines = [
    lineOf('before: three bytes a token, or a token a frame', before),
    lineOf('by other calls of the target', after),
  ];
  for (const { line } of lines) assert.ok(readme.includes(line), line);
});
