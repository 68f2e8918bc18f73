/** Why a path cannot be written, as a sentence for the operator, and whether that is what failed. Makes directories. */
import { mkdirSync, statfsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const reasons = new Map([
  ['EROFS', 'its file system is read-only'],
  ['EACCES', 'permission is denied'],
  ['EPERM', 'the operation is not permitted'],
  ['ENOSPC', 'the disk is full'],
  ['EDQUOT', 'the disk quota is used up'],
]);

/** Further errors of a disk that takes no bytes, for which an operator has no one remedy. */
const faults = new Set(['EFBIG', 'EIO']);

/** Whether a disk refused to take bytes. */
export function isUnwritable(error: unknown): boolean {
  const code = (error as { code?: string } | undefined)?.code ?? '';
  return reasons.has(code) || faults.has(code);
}

/** Stands where Node names no file: a full disk while a file is open. */
const unnamed = 'A file in the data directory';

/** undefined: the error and its causes have another reason. `path`: the written file, where it is known. */
export function unwritableSentence(error: unknown, path?: string): string | undefined {
  for (let at = error; at !== undefined && at !== null; at = (at as { cause?: unknown }).cause) {
    const { code = '', path: named } = at as { code?: string; path?: unknown };
    const reason = reasons.get(code);
    const what = path ?? (typeof named === 'string' ? named : isFull(code) ? unnamed : undefined);
    if (reason === undefined || what === undefined) continue;
    return `${what} cannot be written: ${reason}. ${isFull(code) ? 'Make room' : 'Make it writable'}, or set "data" in the file (DATA_DIR) to another directory.`;
  }
  return undefined;
}

function isFull(code: string): boolean {
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** The free share of the file system; undefined: unknown. */
export function freeShareOf(directory: string): number | undefined {
  try {
    const { bavail, blocks } = statfsSync(directory);
    return blocks === 0 ? undefined : bavail / blocks;
  } catch {
    return undefined;
  }
}

const unmakeable = new Map([
  ['ENOENT', 'its file system takes no directories'],
  ['ENOTDIR', 'a part of its path is a file'],
  ['EEXIST', 'a file has this name'],
  ['ELOOP', 'its links lead back to themselves'],
  ['ENAMETOOLONG', 'its name is too long'],
]);

/**
 * Makes a directory and those above it. Node's own recursion never ends below /proc, where no directory can be made, and
 * nothing says so but that the one above is missing.
 */
export function makeDirectory(path: string, mode = 0o777): void {
  try {
    makeBelow(resolve(path), mode);
  } catch (error) {
    const reason = unmakeable.get((error as { code?: string }).code ?? '');
    if (reason === undefined) throw error;
    throw new Error(`${path} cannot be made: ${reason}. Set "data" in the file (DATA_DIR) to another directory.`);
  }
}

function makeBelow(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === 'ENOENT' && !isDirectory(dirname(path))) {
      makeBelow(dirname(path), mode);
      mkdirSync(path, { mode });
    } else if (!isDirectory(path)) throw error;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
