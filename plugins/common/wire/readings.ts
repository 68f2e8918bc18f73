/** Sums of a vendor's counters where they contradict one another: by the total, else by the reported cost. Pure. */
import { objectOf } from '../../../core/json/json.ts';
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

/** The operator's cost of this usage in nano-USD; undefined: no price is known. */
export type CostOf = (usage: Usage) => bigint | undefined;

/** Tokens that are not part of the sum of their side, by class. */
type Beside = ReadonlyMap<UsageClass, number>;
const nothing: Beside = new Map();

/**
 * The largest reading that the total supports. Where details contradict it, the reported cost decides, by the ratio of its parts or
 * by its amount; where it fits no reading, the total does. Without a total, reasoning that exceeds the output is added to it.
 * Readings of contradictory counters are marked as uncertain.
 */
export function readCounters(counters: Counters, counts: Counts, costOf: CostOf | undefined): Reading {
  const { input, output } = sides(counters);
  const isWhole = input === counters.input && output === counters.output;
  const known = isWhole ? counters : { ...counters, input, output };
  const { candidates, isUncertain, otherwise = 0 } = candidatesFor(known, counts.get('cost') !== undefined);
  const readings = candidates.length === 1 && candidates[0] === nothing ? overlapsIn(known) : [known];
  const usages = readings.flatMap((one) => candidates.map((beside) => usageOf(one, beside)));
  const usage = usages.length === 1 ? usages[0]! : (fitting(usages, counts, costOf) ?? usages[otherwise]!);
  return { usage, hasInput: input !== undefined, hasOutput: output !== undefined, isUncertain };
}

/**
 * Tokens read from the cache and written to it: some vendors count those of one in the other too, which shows where both exceed the
 * prompt, or in the cost. The likelier reading first.
 */
function overlapsIn(counters: Counters): readonly Counters[] {
  const { input, inputDetails } = counters;
  const read = countOf(inputDetails, 'cache_read');
  const written = countOf(inputDetails, 'cache_write_5m') + countOf(inputDetails, 'cache_write_1h');
  if (input === undefined || read === 0 || written === 0) return [counters];
  const least = Math.min(read, written);
  const withoutOverlap = inputDetails.map((detail) => {
    const isLarger = read >= written ? detail.class === 'cache_read' : detail.class === 'cache_write_5m';
    return isLarger ? { ...detail, count: Math.max(0, (detail.count ?? 0) - least) } : detail;
  });
  const once = { ...counters, inputDetails: withoutOverlap };
  return read + written > input ? [once, counters] : [counters, once];
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
  /** The one that holds where no cost decides; absent: the first. */
  readonly otherwise?: number;
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
  return { candidates: [...besides, nothing], isUncertain: true, otherwise: total === undefined ? 0 : besides.length };
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

/** The first usage with the cost that the vendor reports; undefined: none has it, or nothing is reported. */
function fitting(usages: readonly Usage[], counts: Counts, costOf: CostOf | undefined): Usage | undefined {
  const [costIn, costOut] = [BigInt(counts.get('costIn') ?? 0), BigInt(counts.get('costOut') ?? 0)];
  const amounts = [counts.get('cost') ?? 0, counts.get('costBehind') ?? 0].filter((amount) => amount > 0).map(BigInt);
  if (costOf === undefined || (amounts.length === 0 && costIn * costOut === 0n)) return undefined;
  const isNear = (one: bigint, other: bigint) => (one > other ? one - other : other - one) <= tolerance(other);
  const hasRatio = (usage: Usage) => {
    const ofInput = costOf(withoutOutput(usage));
    const all = costOf(usage);
    // The vendor's prices need not be these: what one side costs for each part of the other is the same.
    return ofInput !== undefined && all !== undefined && isNear((all - ofInput) * costIn, ofInput * costOut);
  };
  const byRatio = costIn * costOut === 0n ? undefined : usages.find(hasRatio);
  return byRatio ?? usages.find((usage) => amounts.some((amount) => isNear(costOf(usage) ?? -amount, amount)));
}

const outputClasses = new Set<string>(['output', 'reasoning', 'output_audio', 'output_image']);

function withoutOutput(usage: Usage): Usage {
  return Object.fromEntries(Object.entries(usage).filter(([name]) => !outputClasses.has(name)));
}

/** Reported costs are rounded: the tolerance is one percent, and at least a tenth of a millionth of a dollar. */
function tolerance(cost: bigint): bigint {
  const hundredth = cost / 100n;
  return hundredth > 100n ? hundredth : 100n;
}

/** A vendor's own cost of an answer and of its sides as nano-USD, from the names that vendors use. */
export function takeCosts(counts: Counts, usage: { readonly [name: string]: unknown }): void {
  const { cost, cost_in_usd_ticks: ticks } = usage;
  const split = objectOf(cost) ?? {};
  const details = objectOf(usage['cost_details']) ?? {};
  const isTicks = typeof ticks === 'number' && ticks > 0 && ticks < 1e16;
  counts.take('cost', nanoUsd(split['total_cost'] ?? cost) ?? (isTicks ? Math.round(ticks / 10) : undefined));
  counts.take('costBehind', nanoUsd(details['upstream_inference_cost']));
  const { upstream_inference_prompt_cost: prompt, upstream_inference_input_cost: input } = details;
  const { upstream_inference_completions_cost: completion, upstream_inference_output_cost: output } = details;
  counts.take('costIn', nanoUsd(prompt ?? input ?? split['input_tokens_cost']));
  counts.take('costOut', nanoUsd(completion ?? output ?? split['output_tokens_cost']));
}

function nanoUsd(value: unknown): number | undefined {
  const dollars = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof dollars === 'number' && dollars > 0 && dollars < 1e6 ? Math.round(dollars * 1e9) : undefined;
}
