/** A turn's consumption in disjoint counts: the one source of every protocol's usage and of the bill. Pure. */
import type { Usage } from '../common/domain/usage.ts';
import { tokensOf } from './script/tokens.ts';

/** The prompt's tokens, each counted once. */
export interface PromptCounts {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite5m: number;
  readonly cacheWrite1h: number;
  readonly image: number;
  readonly audio: number;
}

export interface Counts extends PromptCounts {
  readonly output: number;
  readonly reasoning: number;
}

/** Characters that the vendor has produced. */
export interface Produced {
  readonly text: number;
  readonly reasoning: number;
}

export function countsOf(prompt: PromptCounts, produced: Produced): Counts {
  return { ...prompt, output: tokensOf(produced.text), reasoning: tokensOf(produced.reasoning) };
}

/** All input, cached or not. */
export function inputTokens(counts: PromptCounts): number {
  return cacheWrites(counts) + counts.cacheRead + counts.input + counts.image + counts.audio;
}

export function cacheWrites(counts: PromptCounts): number {
  return counts.cacheWrite5m + counts.cacheWrite1h;
}

/** All output, including reasoning. */
export function outputTokens(counts: Counts): number {
  return counts.output + counts.reasoning;
}

/** Usage in the classes that the bill and the ledger share; classes without tokens are omitted. */
export function usageOf(counts: Counts): Usage {
  const classes = {
    input: counts.input,
    cache_read: counts.cacheRead,
    cache_write_5m: counts.cacheWrite5m,
    cache_write_1h: counts.cacheWrite1h,
    input_image: counts.image,
    input_audio: counts.audio,
    output: counts.output,
    reasoning: counts.reasoning,
  };
  return Object.fromEntries(Object.entries(classes).filter(([, count]) => count > 0));
}
