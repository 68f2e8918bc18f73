/** Conversion between reasoning efforts and budgets in tokens. Pure. */

import type { ReasoningSettings } from '../canonical/prompt.ts';
import { type Effort, efforts } from '../domain/traits.ts';

/** The largest budget in tokens that still maps to this effort. */
const steps: readonly (readonly [number, Effort])[] = [
  [0, 'none'],
  [512, 'minimal'],
  [1024, 'low'],
  [8192, 'medium'],
  [24_576, 'high'],
];

/** An effort's budget in tokens, and its maximum share of the answer's bound, in percent. */
const budgets: Record<Exclude<Effort, 'none'>, { readonly tokens: number; readonly percent: number }> = {
  minimal: { tokens: 512, percent: 2 },
  low: { tokens: 1024, percent: 10 },
  medium: { tokens: 8192, percent: 30 },
  high: { tokens: 24_576, percent: 60 },
  xhigh: { tokens: 32_768, percent: 90 },
  max: { tokens: 128_000, percent: 95 },
};

/** The requested effort, possibly derived from a budget; undefined where the model may decide. */
export function effortOf(wish: ReasoningSettings): Effort | undefined {
  const { effort, budgetTokens } = wish;
  if (effort !== undefined) return effort;
  if (budgetTokens === undefined || budgetTokens < 0) return undefined;
  for (const [bound, name] of steps) if (budgetTokens <= bound) return name;
  return 'xhigh';
}

export interface BudgetLimits {
  /** The requested bound on the answer: the budget is part of it and must leave room for text. */
  readonly maxOutputTokens?: number;
  readonly maxBudget?: number;
  /** Default: 1024. */
  readonly minBudget?: number;
}

/**
 * The requested budget in tokens, possibly derived from an effort. 0: off. undefined: the model may decide, or the
 * answer's bound leaves no room for the smallest budget.
 */
export function budgetOf(wish: ReasoningSettings, limits: BudgetLimits): number | undefined {
  const { maxOutputTokens = Infinity, maxBudget = Infinity, minBudget = 1024 } = limits;
  const wanted = wantedBudget(wish, maxOutputTokens);
  if (wanted === undefined || wanted === 0) return wanted;
  const most = Math.min(maxBudget, maxOutputTokens - 1);
  return most < minBudget ? undefined : Math.min(Math.max(wanted, minBudget), most);
}

function wantedBudget({ effort, budgetTokens }: ReasoningSettings, maxOutputTokens: number): number | undefined {
  if (budgetTokens !== undefined) return budgetTokens < 0 ? undefined : budgetTokens;
  if (effort === undefined) return undefined;
  if (effort === 'none') return 0;
  const { tokens, percent } = budgets[effort];
  return Math.min(tokens, Math.floor((maxOutputTokens * percent) / 100));
}

/**
 * The nearest known effort, the higher of two; `none` only for `none`, where another effort is known. Without known
 * efforts: as requested.
 */
export function nearestEffort(effort: Effort, known: readonly Effort[]): Effort {
  if (known.length === 0 || known.includes(effort)) return effort;
  const wanted = efforts.indexOf(effort);
  let nearest: Effort | undefined;
  for (const candidate of efforts) {
    if (!known.includes(candidate) || candidate === 'none') continue;
    if (nearest === undefined || distance(candidate) <= distance(nearest)) nearest = candidate;
  }
  return nearest ?? known[0]!;

  function distance(other: Effort): number {
    return Math.abs(efforts.indexOf(other) - wanted);
  }
}
