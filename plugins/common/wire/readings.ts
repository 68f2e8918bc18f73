/** Sums of a vendor's counters where they contradict one another: by the total, else by the reported cost. Pure. */
import type { Usage, UsageClass } from '../domain/usage.ts';
import type { Counts, Reading } from './counts.ts';

/** A counter that belongs to one side and is normally part of that side's sum. */
interface Detail {
  readonly class: UsageClass;
  readonly count: number | undefined;
}

export interface Counters {
  readonly input: number | undefined;
  readonly output: number | undefined;
  readonly total: number | undefined;
  /** In the order in which they take their share of the sum. */
  readonly inputDetails: readonly Detail[];
  readonly outputDetails: readonly Detail[];
  /** The class of tokens that only the total includes. */
  readonly unnamed: 'reasoning' | 'input_audio';
}

/** What this usage costs the operator in nano-USD; undefined: no price is known. */
export type CostOf = (usage: Usage) => bigint | undefined;

/** Tokens that are not part of the sum of their side, by class. */
type Beside = ReadonlyMap<UsageClass, number>;
const nothing: Beside = new Map();

/**
 * The largest reading that the total supports. Where details contradict it, the reported cost decides; without a total
 * and a cost, reasoning that exceeds the output is added to it. Readings of contradictory counters are marked as
 * uncertain.
 */
export function readCounters(counters: Counters, counts: Counts, costOf: CostOf | undefined): Reading {
  const { input, output } = sides(counters);
  const isWhole = input === counters.input && output === counters.output;
  const known = isWhole ? counters : { ...counters, input, output };
  const { candidates, isUncertain } = candidatesFor(known, counts.get('cost') !== undefined);
  const usage = isUncertain
    ? fitting(
        candidates.map((beside) => usageOf(known, beside)),
        counts.get('cost'),
        costOf,
      )
    : usageOf(known, candidates[0]!);
  return { usage, hasInput: input !== undefined, hasOutput: output !== undefined, isUncertain };
}

/** The total replaces a side that is not reported. */
function sides(counters: Counters): Pick<Counters, 'input' | 'output'> {
  const { input, output, total } = counters;
  if (total === undefined) return counters;
  if (output === undefined && input !== undefined && total >= input) return { input, output: total - input };
  if (input === undefined && output !== undefined && total > output) return { input: total - output, output };
  return counters;
}

interface Candidates {
  readonly candidates: readonly Beside[];
  readonly isUncertain: boolean;
}

const inAgreement: Candidates = { candidates: [nothing], isUncertain: false };

function candidatesFor(counters: Counters, hasCost: boolean): Candidates {
  const { input, output, total } = counters;
  if (input !== undefined && output !== undefined && total !== undefined && total > input + output)
    return supportedBy(counters, total - input - output);
  const reasoning = countOf(counters.outputDetails, 'reasoning');
  if (output === undefined || reasoning <= output) return inAgreement;
  // Reasoning cannot be part of a smaller output, but the total may leave it out as the output does.
  if (!hasCost && total !== undefined && total === (input ?? 0) + output)
    return { candidates: [nothing], isUncertain: true };
  const besides = [reasoning, reasoning - output].map((count): Beside => new Map([['reasoning', count]]));
  return { candidates: [...besides, nothing], isUncertain: true };
}

/** The details to add to the sums, so that everything adds up to the total. */
function supportedBy(counters: Counters, gap: number): Candidates {
  const named = [...counters.outputDetails, ...counters.inputDetails].filter(({ count = 0 }) => count > 0);
  const matches = subsets(named).filter((subset) => sumOf(subset) === gap);
  if (matches.length > 0) {
    const ranked = matches.sort((one, two) => impossible(two, counters) - impossible(one, counters));
    const candidates = ranked.map((subset) => new Map(subset.map((detail) => [detail.class, detail.count!])));
    return { candidates, isUncertain: matches.length > 1 };
  }
  return { candidates: [new Map([[counters.unnamed, gap]])], isUncertain: named.length > 0 };
}

/** How many of these details cannot be part of the sum of their side. */
function impossible(subset: readonly Detail[], { input = 0, output = 0, inputDetails }: Counters): number {
  return subset.filter((detail) => detail.count! > (inputDetails.includes(detail) ? input : output)).length;
}

/** All but the empty subset; subsets with fewer details first. There are at most seven details. */
function subsets(details: readonly Detail[]): Detail[][] {
  let all: Detail[][] = [[]];
  for (const detail of details) all = [...all, ...all.map((subset) => [...subset, detail])];
  return all.slice(1).sort((one, two) => one.length - two.length);
}

function sumOf(details: readonly Detail[]): number {
  return details.reduce((sum, { count = 0 }) => sum + count, 0);
}

function countOf(details: readonly Detail[], name: UsageClass): number {
  return details.find((detail) => detail.class === name)?.count ?? 0;
}

type OpenUsage = { [K in UsageClass]?: number };

function usageOf(counters: Counters, beside: Beside): Usage {
  const usage: OpenUsage = {};
  addSide(usage, 'input', counters.input, counters.inputDetails, beside);
  addSide(usage, 'output', counters.output, counters.outputDetails, beside);
  return usage;
}

/**
 * Adds the sum of one side, split into its details: each takes its count while something of the sum is left, in their order, and
 * `rest` gets the remainder, so that the classes add up to the sum even where a vendor's details overlap or exceed it. What is
 * beside the sum is added to its class.
 */
function addSide(
  usage: OpenUsage,
  rest: 'input' | 'output',
  sum: number | undefined,
  details: readonly Detail[],
  beside: Beside,
): void {
  if (sum === undefined) return;
  let left = sum;
  for (let index = 0; index < details.length; index++) {
    const { class: name, count } = details[index]!;
    const added = beside.get(name);
    if (count !== undefined && (added === undefined || count > added)) {
      const taken = Math.min(count, left);
      usage[name] = (usage[name] ?? 0) + taken;
      left -= taken;
    }
    if (added !== undefined) usage[name] = (usage[name] ?? 0) + added;
  }
  usage[rest] = (usage[rest] ?? 0) + left;
}

/** The first usage with the cost that the vendor reports; the first of all if none matches or no price is known. */
function fitting(usages: readonly Usage[], reported: number | undefined, costOf: CostOf | undefined): Usage {
  const [largest] = usages;
  if (reported === undefined || reported === 0 || costOf === undefined) return largest!;
  const target = BigInt(reported);
  const fits = (usage: Usage) => {
    const cost = costOf(usage);
    if (cost === undefined) return false;
    const difference = cost > target ? cost - target : target - cost;
    return difference <= tolerance(target);
  };
  return usages.find(fits) ?? largest!;
}

/** Reported costs are rounded: the tolerance is one percent, and at least a tenth of a millionth of a dollar. */
function tolerance(cost: bigint): bigint {
  const hundredth = cost / 100n;
  return hundredth > 100n ? hundredth : 100n;
}

/** A vendor's own cost of an answer as nano-USD, from the names that vendors use. */
export function reportedCost(usage: { readonly [name: string]: unknown }): number | undefined {
  const { cost, cost_in_usd_ticks: ticks } = usage;
  const inner = typeof cost === 'object' && cost !== null ? (cost as { total_cost?: unknown }).total_cost : cost;
  const dollars = typeof inner === 'string' && inner.trim() !== '' ? Number(inner) : inner;
  if (typeof dollars === 'number' && dollars > 0 && dollars < 1e6) return Math.round(dollars * 1e9);
  return typeof ticks === 'number' && ticks > 0 && ticks < 1e16 ? Math.round(ticks / 10) : undefined;
}
