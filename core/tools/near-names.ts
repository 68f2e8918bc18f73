/** "Did you mean": the known name that a misspelt one resembles. Pure. */

/** The known name that differs least from `name`, by few letters or by case alone; undefined: none is near. */
export function nearName(name: string, known: Iterable<string>): string | undefined {
  let near: string | undefined;
  let least = mostEdits(name.length) + 1;
  for (const one of known) {
    const edits = differenceOf(comparable(name), comparable(one));
    if (one === name || edits >= least) continue;
    near = one;
    least = edits;
  }
  return near;
}

/** `; did you mean "chat"?`, or nothing. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const near = nearName(name, known);
  return near === undefined ? '' : `; did you mean "${near}"?`;
}

const longestName = 64;

function mostEdits(length: number): number {
  if (length > longestName) return 0;
  return length <= 3 ? 1 : length <= 8 ? 2 : 3;
}

/** Up to three letters that are missing at one's end count as two edits: `warning` means `warn`. */
function differenceOf(left: string, right: string): number {
  const [short, long] = left.length < right.length ? [left, right] : [right, left];
  const isAbbreviated = short.length >= 3 && long.length - short.length <= 3 && long.startsWith(short);
  return isAbbreviated ? Math.min(2, long.length - short.length) : editsBetween(left, right);
}

function comparable(name: string): string {
  return name.toLowerCase().replaceAll(/[-_. ]/g, '');
}

/** Inserted, missing, wrong and swapped letters. */
function editsBetween(left: string, right: string): number {
  if (Math.abs(left.length - right.length) > 3) return Number.POSITIVE_INFINITY;
  let beforeLast: number[] = [];
  let last = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const isSame = left[row - 1] === right[column - 1];
      let edits = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + (isSame ? 0 : 1));
      if (row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1])
        edits = Math.min(edits, beforeLast[column - 2]! + 1);
      current.push(edits);
    }
    beforeLast = last;
    last = current;
  }
  return last[right.length]!;
}
