/** What a soak measures of the gateway over time, and when its growth is a leak. Pure but for `descriptorsOf`. */
import { readdirSync } from 'node:fs';

export interface Sample {
  /** Delay of the event loop since the last sample, in milliseconds. */
  readonly p99Ms: number;
  readonly longestMs: number;
  /** Bytes. */
  readonly rss: number;
  readonly heapUsed: number;
  readonly external: number;
  readonly descriptors: number;
  readonly cpuMs: number;
}

/** Open file descriptors of a process; 0 where the system does not tell. */
export function descriptorsOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

/** How a value moved: medians of the second and of the last third; the first third is warm-up. */
export interface Trend {
  readonly middle: number;
  readonly end: number;
}

export function trendOf(values: readonly number[]): Trend {
  const third = Math.floor(values.length / 3);
  return { middle: median(values.slice(third, 2 * third)), end: median(values.slice(2 * third)) };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

interface Bounds {
  /** Growth from the middle to the end that is allowed: a share of the middle, and so much on top. */
  readonly share: number;
  readonly more: number;
}

const megabyte = 2 ** 20;
const heapBounds: Bounds = { share: 0.15, more: 24 * megabyte };
const rssBounds: Bounds = { share: 0.2, more: 96 * megabyte };
const descriptorBounds: Bounds = { share: 0.25, more: 64 };

const grew = ({ middle, end }: Trend, { share, more }: Bounds): boolean => end > middle * (1 + share) + more;

/** Sentences about what grew, and about an event loop that stood still. `maxDelayMs` bounds the median of the intervals' p99. */
export function leaks(samples: readonly Sample[], maxDelayMs: number): string[] {
  if (samples.length < 6) return [];
  const found: string[] = [];
  const heap = trendOf(samples.map(({ heapUsed }) => heapUsed));
  const rss = trendOf(samples.map((sample) => sample.rss));
  const descriptors = trendOf(samples.map((sample) => sample.descriptors));
  if (grew(heap, heapBounds)) found.push(`the heap grew from ${inMegabytes(heap.middle)} to ${inMegabytes(heap.end)}`);
  if (grew(rss, rssBounds))
    found.push(`resident memory grew from ${inMegabytes(rss.middle)} to ${inMegabytes(rss.end)}`);
  if (grew(descriptors, descriptorBounds))
    found.push(`descriptors grew from ${descriptors.middle} to ${descriptors.end}`);
  const delay = trendOf(samples.map(({ p99Ms }) => p99Ms));
  if (Math.max(delay.middle, delay.end) > maxDelayMs)
    found.push(
      `the event loop's p99 delay was ${Math.max(delay.middle, delay.end).toFixed(0)} ms, allowed are ${maxDelayMs} ms`,
    );
  return found;
}

export const inMegabytes = (bytes: number): string => `${(bytes / megabyte).toFixed(0)} MB`;
