/** Who imports whom: the imports of this repository's TypeScript files, read from their text. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

export interface Import {
  readonly from: string;
  /** Repository path for files, package name for packages. */
  readonly to: string;
  readonly relative: boolean;
  readonly typeOnly: boolean;
}

const statement = /^\s*(?:import|export)\s+(type\s)?(?:[^'"]*?\sfrom\s+)?['"]([^'"]+)['"]/gm;
/** Calls and types: `import('…')`. */
const called = /\bimport\(\s*['"]([^'"]+)['"]\s*\)/g;

/** Files of the work tree below these folders, committed or not. */
export function filesIn(...folders: string[]): string[] {
  const text = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...folders], {
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  return text.split('\n').filter((file) => file !== '');
}

export function importsOf(from: string, text = readFileSync(from, 'utf8')): Import[] {
  const found = Array.from(text.matchAll(statement), ([, type, to]) => ({ to: to!, typeOnly: type !== undefined }));
  for (const [, to] of text.matchAll(called)) found.push({ to: to!, typeOnly: false });
  // The second are imports of the plugin that `plugin new` writes.
  const meant = found.filter(({ to }) => !to.startsWith('node:') && !/^model-gateway(\/|$)/.test(to));
  return meant.map(({ to, typeOnly }) => {
    const relative = to.startsWith('.');
    const name = to.split('/', to.startsWith('@') ? 2 : 1).join('/');
    return { from, to: relative ? normalize(join(dirname(from), to)) : name, relative, typeOnly };
  });
}

/** Groups of files of which each reaches all others by imports (Tarjan's strongly connected components). */
export function circlesIn(imports: readonly Import[]): string[][] {
  const targets = new Map<string, string[]>();
  for (const { from, to, relative } of imports) if (relative) targets.set(from, [...(targets.get(from) ?? []), to]);
  const circles: string[][] = [];
  const order = new Map<string, number>();
  const open: string[] = [];
  for (const file of targets.keys()) visit(file);
  return circles;

  /** The first file in the order that this one reaches and that is still open. */
  function visit(file: string): number {
    const known = order.get(file);
    if (known !== undefined) return open.includes(file) ? known : Number.POSITIVE_INFINITY;
    const own = order.size;
    order.set(file, own);
    const depth = open.push(file) - 1;
    const first = Math.min(own, ...(targets.get(file) ?? []).map(visit));
    if (first < own) return first;
    const circle = open.splice(depth);
    if (circle.length > 1) circles.push(circle.toSorted());
    return own;
  }
}
