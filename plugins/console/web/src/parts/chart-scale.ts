/** Numbers of a chart: its steps, its parts as shares of the height, and which labels fit below it. Pure. */

/** A highlighted range of points. */
export interface ChartMark {
  /** Its first and its last point. */
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

/** A maximum that a person would write on an axis, and the lines up to it. */
export function stepsTo(most: number, wanted = 4): { readonly top: number; readonly steps: readonly number[] } {
  if (!(most > 0)) return { top: 1, steps: [0] };
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough)!;
  const count = Math.ceil(most / step - 1e-9);
  return { top: step * count, steps: Array.from({ length: count + 1 }, (_, index) => index * step) };
}

/** Indexes of the points that are named below the chart: at most so many, evenly. */
export function labelled(points: number, most: number): readonly number[] {
  if (points === 0) return [];
  const step = Math.max(1, Math.ceil(points / most));
  return Array.from({ length: Math.ceil(points / step) }, (_, index) => index * step);
}

/** Parts of a line without the points that have no value: nothing is drawn through times without one. */
export function runsOf(values: readonly (number | null)[]): readonly (readonly (readonly [number, number])[])[] {
  const runs: [number, number][][] = [];
  let current: [number, number][] | undefined;
  for (const [index, value] of values.entries()) {
    if (value === null) current = undefined;
    else if (current === undefined) {
      current = [[index, value]];
      runs.push(current);
    } else current.push([index, value]);
  }
  return runs;
}
