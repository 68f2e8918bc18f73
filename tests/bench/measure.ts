/** Measures subjects in turn and prints what they cost as ratios. */
import type { LoadResult } from './load.ts';
import { load, processorMs, type Started, settled } from './processes.ts';

/** What is asked of whom. */
export interface Subject {
  readonly started: Started;
  readonly path: string;
  readonly body: string;
}

export interface Cost {
  readonly perSecond: number;
  readonly microsecondsEach: number;
}
export type Costs = Readonly<Record<string, Cost>>;

const seconds = Number(process.env['BENCH_SECONDS'] ?? 4);
const rounds = 3;
/**
 * So many requests of each subject come before the rounds, in shorter loads: with fewer, some of the code is not optimized yet, and more of
 * it in the larger subjects. A stream counts as 100: most of its code runs for each chunk.
 */
const warmUpRequests = Number(process.env['BENCH_WARM_UP'] ?? 100_000);
const requestsPerStream = 100;
const warmUpSeconds = 2;
/** What is too slow to reach `warmUpRequests` in them is measured all the same. */
const maxWarmUps = 20;

/** Best of several rounds, subjects in turn, so that a disturbance of the machine hits no single one. */
export async function compare(
  subjects: Readonly<Record<string, Subject>>,
  unitsPerRequest: number,
  connections: number,
): Promise<Costs> {
  const best: Record<string, Cost> = {};
  const entries = Object.entries(subjects);
  const weight = unitsPerRequest > 1 ? requestsPerStream : 1;
  const warmUpUnits = (warmUpRequests / weight) * unitsPerRequest;
  for (const [name, subject] of entries) {
    let units = 0;
    for (let loads = 0; units < warmUpUnits && loads < maxWarmUps; loads++) {
      const { perSecond } = await measure(name, subject, unitsPerRequest, connections, warmUpSeconds);
      units += perSecond * warmUpSeconds;
    }
  }
  for (let round = 0; round < rounds; round++) {
    for (const [name, subject] of entries) {
      const cost = await measure(name, subject, unitsPerRequest, connections, seconds);
      if (best[name] === undefined || cost.microsecondsEach < best[name].microsecondsEach) best[name] = cost;
    }
  }
  return best;
}

async function measure(
  name: string,
  { started, path, body }: Subject,
  unitsPerRequest: number,
  connections: number,
  forSeconds: number,
): Promise<Cost> {
  const { port, key, headers } = started;
  const before = processorMs(started);
  const result = await load<LoadResult>({ port, key, headers, path, body, connections, seconds: forSeconds });
  // Pending rows are part of the cost of a gateway, and writing them later would slow down the next subject.
  await settled({ ...started, isWhole: true });
  if (result.failures > 0) throw new Error(`${name}: ${result.failures} failures`);
  const units = result.requests * unitsPerRequest;
  return {
    perSecond: units / forSeconds,
    microsecondsEach: ((processorMs(started) - before) * 1_000) / units,
  };
}

/** `against` names the references of each subject. */
export function report(title: string, costs: Costs, against: (name: string) => readonly string[]): void {
  console.log(`\n${title}`);
  for (const [name, { perSecond, microsecondsEach }] of Object.entries(costs)) {
    const ratios = against(name).map((reference) => {
      const ratio = costs[reference]!.microsecondsEach / microsecondsEach;
      return `, ${ratio.toFixed(2)} of ${reference}`;
    });
    console.log(
      `  ${name.padEnd(22)} ${Math.round(perSecond).toString().padStart(8)}/s, ${microsecondsEach.toFixed(1).padStart(6)} µs of one core each${ratios.join('')}`,
    );
  }
}

export function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)]!;
}
