/**
 * Draws mutants of each area by the digest of the seed and the mutant's own name: a change of some files changes the few mutants that are in them.
 * Only what TypeScript accepts is drawn: other mistakes never reach a test.
 */
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Area, areaOf, areas } from './areas.ts';
import { type Mutant, mutantsOf } from './candidates.ts';
import { Syntax } from './syntax.ts';

export interface Drawn extends Mutant {
  readonly area: string;
}

export interface DrawOptions {
  readonly root: string;
  readonly seed: string;
  readonly count: number;
  /** Drawn first, wherever they are now. */
  readonly earlier?: readonly Pick<Drawn, 'id' | 'looseId' | 'area'>[];
}

/** Share of an area's mutants that one operator may have. */
const largestShare = 0.2;

export function draw({ root, seed, count, earlier = [] }: DrawOptions): Drawn[] {
  const syntax = new Syntax(root);
  try {
    const all = globSync(['core/**/*.ts', 'plugins/**/*.ts'], { cwd: root }).toSorted();
    // The console's pages are a program of their own.
    const files = all.filter((file) => !file.startsWith('plugins/console/web/'));
    const candidates = files.flatMap((file) => {
      const area = areaOf(file)?.name;
      // Earlier ones may have moved out of all areas.
      if (area === undefined && earlier.length === 0) return [];
      return mutantsOf(file, syntax.tree(file)).map((mutant) => ({ ...mutant, area: area ?? '' }));
    });
    const found = areas.flatMap(({ name: area }) => {
      const own = earlier.filter((one) => one.area === area);
      return refound(candidates, own).map((mutant) => ({ ...mutant, area }));
    });
    const isAccepted = (mutant: Mutant) => syntax.accepts(mutant.file, textOf(root, mutant));
    const total = areas.reduce((sum, { share }) => sum + share, 0);
    return areas.flatMap((area) => {
      const before = found.filter((mutant) => mutant.area === area.name);
      const size = Math.round((count * area.share) / total);
      return [...before, ...drawnOf(area, candidates, { seed, size, before, isAccepted })];
    });
  } finally {
    syntax.close();
  }
}

/** The file with the mutant in it. */
export function textOf(root: string, { file, start, end, to }: Mutant): string {
  const text = readFileSync(join(root, file), 'utf8');
  return text.slice(0, start) + to + text.slice(end);
}

/** Those of an earlier run that are still there, in a function of another name too where there is no second one like it. */
export function refound<One extends Mutant>(
  candidates: readonly One[],
  earlier: readonly Pick<Mutant, 'id' | 'looseId'>[],
): One[] {
  const byId = new Map(candidates.map((one) => [one.id, one]));
  const byLooseId = Map.groupBy(candidates, ({ looseId }) => looseId);
  const found = earlier.map(({ id, looseId }) => {
    const like = byLooseId.get(looseId) ?? [];
    return byId.get(id) ?? (like.length === 1 ? like[0] : undefined);
  });
  return [...new Set(found.filter((one) => one !== undefined))];
}

interface Choice {
  readonly seed: string;
  readonly size: number;
  readonly before: readonly Drawn[];
  readonly isAccepted: (mutant: Mutant) => boolean;
}

function drawnOf(area: Area, all: readonly Drawn[], { seed, size, before, isAccepted }: Choice): Drawn[] {
  const rank = ({ id }: Mutant) => createHash('sha256').update(`${seed} ${id}`).digest('hex');
  const ranked = all
    .filter((mutant) => mutant.area === area.name)
    .map((mutant) => ({ mutant, rank: rank(mutant) }))
    .toSorted((left, right) => (left.rank < right.rank ? -1 : 1));
  const owners = new Set(before.map(ownerOf));
  const operators = new Map<string, number>();
  const drawn: Drawn[] = [];
  for (const { mutant } of ranked) {
    if (before.length + drawn.length >= size) break;
    const same = operators.get(mutant.operator) ?? 0;
    if (owners.has(ownerOf(mutant)) || same >= Math.ceil(size * largestShare) || !isAccepted(mutant)) continue;
    owners.add(ownerOf(mutant));
    operators.set(mutant.operator, same + 1);
    drawn.push(mutant);
  }
  return drawn;
}

/** One mutant of a function, and of what a file holds outside of functions. */
function ownerOf({ file, owner }: Mutant): string {
  return `${file} ${owner}`;
}
