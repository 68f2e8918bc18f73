/** Directory entries that decide what is read at a path: the file, and each symbolic link on the way to it. */
import { lstatSync, readlinkSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, parse, resolve, sep } from 'node:path';

interface Entry {
  readonly directory: string;
  readonly name: string;
}

/** As the system, which follows 40 links at most. */
const mostLinks = 40;

/** Where something is missing, it is the last entry: it may come to be. */
export function entriesOf(path: string): Entry[] {
  const entries: Entry[] = [];
  let rest = stepsOf(path);
  let at = parse(resolve(path)).root;
  for (let links = 0; rest.length > 0; ) {
    const step = join(at, rest[0]!);
    const kind = lstatSync(step, { throwIfNoEntry: false });
    const isLast = rest.length === 1;
    rest = rest.slice(1);
    if (kind === undefined || kind.isSymbolicLink() || isLast)
      entries.push({ directory: dirname(step), name: basename(step) });
    if (kind === undefined || (kind.isSymbolicLink() && ++links > mostLinks)) break;
    if (!kind.isSymbolicLink()) {
      at = step;
      continue;
    }
    const target = readlinkSync(step);
    rest = [...stepsOf(isAbsolute(target) ? target : join(at, target)), ...rest];
    at = parse(resolve(path)).root;
  }
  return entries;
}

function stepsOf(path: string): string[] {
  const full = resolve(path);
  return full
    .slice(parse(full).root.length)
    .split(sep)
    .filter((step) => step !== '');
}
