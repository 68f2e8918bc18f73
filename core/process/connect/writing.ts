/** Writes a program's settings files, all or none, and puts them back as they were. */
import {
  accessSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import {
  type ClientProgram,
  type Filling,
  formatOf,
  membersOf,
  type SettingsFile,
} from '../../tools/client-programs.ts';
import { invalid } from './gateway.ts';
import { withMembers } from './settings-files.ts';

/** Where files are. */
export interface Place {
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform?: string;
}

export interface Change {
  readonly path: string;
  /** undefined: there is no file yet. */
  readonly before: string | undefined;
  readonly after: string;
}

/** Throws a sentence where a file cannot be read or its folder not be written to. */
export function planOf(program: ClientProgram, values: Filling, place: Place): Change[] {
  return (program.files ?? []).map((file) => {
    let { path } = file;
    try {
      path = pathOf(file, place);
      const before = existsSync(path) ? textOf(path) : undefined;
      refuseUnlessWritable(path);
      return { path, before, after: withMembers(before ?? '', formatOf(path), membersOf(program, file, values)) };
    } catch (error) {
      throw invalid(`${path} cannot be changed: ${reasonOf(error)}. Nothing is written.`);
    }
  });
}

const reasons: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  EACCES: 'there is no permission',
  EPERM: 'there is no permission',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is no folder',
  EEXIST: 'a part of its path is no folder',
  ELOOP: 'its link leads to itself',
});

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return (code === undefined ? undefined : reasons[code]) ?? message;
}

function refuseUnlessWritable(path: string): void {
  let folder = dirname(path);
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  accessSync(folder, constants.W_OK);
  if (!lstatSync(realpathSync(folder)).isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' });
}

/** The file that the program reads here: where a variable puts its folder, as `.jsonc` if that is there, behind links, which stay. */
function pathOf({ path, folder }: SettingsFile, { home, environment, platform = process.platform }: Place): string {
  const moved = folder?.find(({ variable, only }) => environment[variable] && (only ?? platform) === platform);
  const inHome = (text: string) => join(home, text.replace(/^~[/\\]?/, ''));
  const plain =
    moved === undefined ? inHome(path) : join(environment[moved.variable]!, path.slice(moved.replaces.length));
  const file = !existsSync(plain) && existsSync(`${plain}c`) && plain.endsWith('.json') ? `${plain}c` : plain;
  return behindLinks(file);
}

/** A link may lead to a file that is still to come. */
function behindLinks(path: string, most = 20): string {
  if (existsSync(path)) return realpathSync(path);
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return path;
  if (most === 0) throw new Error(reasons['ELOOP']);
  return behindLinks(resolve(dirname(path), readlinkSync(path)), most - 1);
}

/** Written back, it has the same bytes. */
function textOf(path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(path));
  } catch (error) {
    if (error instanceof TypeError) throw new Error('it is no text in UTF-8');
    throw error;
  }
}

/** Beside the file: what it was, or that there was none. The first one stays, however often a program is connected. */
const backupOf = (path: string) => ({ file: `${path}.before-gateway`, none: `${path}.was-absent-before-gateway` });

/** All of them, or none: what was written before a failure is put back. */
export function writeAll(changes: readonly Change[]): void {
  const undone: (() => void)[] = [];
  for (const change of changes)
    try {
      write(change, undone);
    } catch (error) {
      for (const step of undone.toReversed()) attempt(step);
      throw invalid(`${change.path} cannot be written: ${reasonOf(error)}. Nothing is changed.`);
    }
}

/** The other steps are taken all the same. */
function attempt(step: () => void): void {
  try {
    step();
  } catch {
    // It was not there, or is no file of ours.
  }
}

function write({ path, before, after }: Change, undone: (() => void)[]): void {
  const { file, none } = backupOf(path);
  const made = mkdirSync(dirname(path), { recursive: true });
  if (made !== undefined) undone.push(() => rmSync(made, { recursive: true, force: true }));
  if (!existsSync(file) && !existsSync(none)) {
    undone.push(() => rmSync(before === undefined ? none : file, { force: true }));
    if (before === undefined) writeFileSync(none, '');
    else copyFileSync(path, file);
  }
  // It has a key now: for its owner alone. Written beside and renamed, so that no half of it is ever read.
  const beside = `${path}.gateway-new`;
  undone.push(() => rmSync(beside, { force: true }));
  writeFileSync(beside, after, { mode: 0o600 });
  const mode = before === undefined ? undefined : statSync(path).mode;
  renameSync(beside, path);
  undone.push(() => {
    rmSync(path, { force: true });
    if (before !== undefined) writeFileSync(path, before, { mode: mode! });
  });
}

/** The files that were put back. */
export function restore({ files = [] }: ClientProgram, place: Place): string[] {
  const restored: string[] = [];
  for (const one of files) {
    const path = pathOf(one, place);
    const { file, none } = backupOf(path);
    if (existsSync(file)) renameSync(file, path);
    else if (existsSync(none)) for (const gone of [path, none]) rmSync(gone, { force: true });
    else continue;
    restored.push(path);
  }
  return restored;
}
