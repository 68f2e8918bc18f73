/** Numbers of a chart: its steps, its parts as shares of the height, and which labels fit below it. Pure. */

/** A highlighted range of points. */
export interface ChartMark {
  /** Its first and its last point. */
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

export interface Scale {
  readonly bottom: number;
  readonly top: number;
  readonly steps: readonly number[];
}

/** The ends of an axis as a person would write them, and the lines between: from 0 or, for amounts below it, from `least`. */
export function stepsTo(most: number, least = 0, wanted = 4): Scale {
  if (!(most > least)) return { bottom: 0, top: 1, steps: [0] };
  const rough = (most - least) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough)!;
  const [above, below] = [most, -least].map((end) => Math.ceil(end / step - 1e-9)) as [number, number];
  const steps = Array.from({ length: above + below + 1 }, (_, index) => (index - below) * step);
  return { bottom: steps[0]!, top: step * above, steps };
}

/** Height of a value in percent. */
export const heightOf = (value: number, { bottom, top }: Pick<Scale, 'bottom' | 'top'>): number =>
  ((value - bottom) / (top - bottom)) * 100;

/** The sums above and below zero, where the bars of a point end. */
export function endsOf(values: readonly number[]): readonly [least: number, most: number] {
  const sum = (sign: 1 | -1) => values.reduce((total, value) => (value * sign > 0 ? total + value : total), 0);
  return [sum(-1), sum(1)];
}

/** Bars on top of one another, amounts below zero downwards from it: between which values each stands. */
export function stackOf(values: readonly (number | null)[]): readonly (readonly [from: number, to: number])[] {
  const ends = { above: 0, below: 0 };
  return values.map((value) => {
    const side = (value ?? 0) < 0 ? 'below' : 'above';
    const from = ends[side];
    ends[side] += value ?? 0;
    return [Math.min(from, ends[side]), Math.max(from, ends[side])];
  });
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
