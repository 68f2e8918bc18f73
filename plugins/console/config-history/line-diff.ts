/** The difference of two texts as lines with `+`, `-` and their context, for terminals. Pure. */

const context = 2;
/** Beyond it, what differs is shown as one block. */
const mostCells = 4_000_000;

type Line = readonly [sign: ' ' | '-' | '+', text: string];

export function lineDiff(before: string, after: string): string[] {
  const [old, next] = [before.split('\n'), after.split('\n')];
  let head = 0;
  while (head < old.length && head < next.length && old[head] === next[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(old.length, next.length) - head && old.at(-1 - tail) === next.at(-1 - tail)) tail += 1;
  const same = (lines: readonly string[]) => lines.map((line): Line => [' ', line]);
  const lines = [
    ...same(old.slice(0, head)),
    ...middle(old.slice(head, old.length - tail), next.slice(head, next.length - tail)),
    ...same(old.slice(old.length - tail)),
  ];
  return shown(lines);
}

/** By the longest common subsequence. */
function middle(old: readonly string[], next: readonly string[]): Line[] {
  const width = next.length + 1;
  if ((old.length + 1) * width > mostCells)
    return [...old.map((line): Line => ['-', line]), ...next.map((line): Line => ['+', line])];
  const longest = lengths(old, next);
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < next.length) {
    const isOldLonger = i < old.length && longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!;
    if (i < old.length && j < next.length && old[i] === next[j]) {
      lines.push([' ', old[i++]!]);
      j += 1;
    } else if (j === next.length || isOldLonger) lines.push(['-', old[i++]!]);
    else lines.push(['+', next[j++]!]);
  }
  return lines;
}

/** How many lines are common to what begins at `i` and `j`, at `i * (next.length + 1) + j`. */
function lengths(old: readonly string[], next: readonly string[]): Uint32Array {
  const width = next.length + 1;
  const longest = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = next.length - 1; j >= 0; j -= 1) {
      const [below, beside] = [longest[(i + 1) * width + j]!, longest[i * width + j + 1]!];
      longest[i * width + j] = old[i] === next[j] ? longest[(i + 1) * width + j + 1]! + 1 : Math.max(below, beside);
    }
  return longest;
}

/** Changed lines with a few around them; what is left out between is `…`. */
function shown(lines: readonly Line[]): string[] {
  const near = (index: number) =>
    lines.slice(Math.max(0, index - context), index + context + 1).some(([sign]) => sign !== ' ');
  return lines.flatMap(([sign, text], index) => {
    if (near(index)) return [`${sign} ${text}`];
    return index > 0 && near(index - 1) && index < lines.length - 1 ? ['  …'] : [];
  });
}
