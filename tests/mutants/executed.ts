/** Which characters of a file a test file has executed, from V8's counts of blocks. */
import type { Profiler } from 'node:inspector';

/** Starts and ends in turns: [start, end, start, end, …], executed in between. */
export type Executed = readonly number[];

/** V8 names functions and blocks within them, outer ones first: the innermost one that holds a character counts it. */
export function flattened(functions: readonly Pick<Profiler.FunctionCoverage, 'functionName' | 'ranges'>[]): Executed {
  const edges: number[] = [];
  const ranges = functions.flatMap((one) => one.ranges).toSorted(outerFirst);
  const open: Profiler.CoverageRange[] = [];
  let from = 0;
  const cover = (until: number) => {
    const count = open.at(-1)?.count ?? 0;
    if (count > 0 && until > from) {
      if (edges.at(-1) === from) edges[edges.length - 1] = until;
      else edges.push(from, until);
    }
    from = until;
  };
  for (const range of ranges) {
    while (open.length > 0 && open.at(-1)!.endOffset <= range.startOffset) {
      cover(open.at(-1)!.endOffset);
      open.pop();
    }
    cover(range.startOffset);
    open.push(range);
  }
  while (open.length > 0) {
    cover(open.at(-1)!.endOffset);
    open.pop();
  }
  return edges;
}

function outerFirst(left: Profiler.CoverageRange, right: Profiler.CoverageRange): number {
  return left.startOffset - right.startOffset || right.endOffset - left.endOffset;
}

export function isExecuted(executed: Executed | undefined, at: number): boolean {
  if (executed === undefined) return false;
  for (let index = 0; index < executed.length; index += 2) {
    if (executed[index]! <= at && at < executed[index + 1]!) return true;
  }
  return false;
}
