/** Whole directories: made safe on disk, and copied. */
import { closeSync, constants, copyFileSync, fsyncSync, mkdirSync, openSync, readdirSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';

/** Makes a file's content, or a directory's names, safe on disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Files synced at a time: the disk writes them together. */
const syncsAtOnce = 16;

/** Makes many files safe on disk, several at a time. */
export async function syncFiles(paths: readonly string[]): Promise<void> {
  const waiting = paths.values();
  const work = async () => {
    for (const path of waiting) await syncFile(path);
  };
  await Promise.all(Array.from({ length: syncsAtOnce }, work));
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes a directory and all in it safe on disk. */
export async function syncTree(path: string): Promise<void> {
  const [files, folders]: [string[], string[]] = [[], [path]];
  for (const folder of folders) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      (entry.isDirectory() ? folders : files).push(join(folder, entry.name));
    }
  }
  await syncFiles(files);
  await syncFiles(folders);
}

/** Copies a directory and all in it, each file as one of its own. */
export function copyTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) copyTree(source, target);
    else copyFileSync(source, target, constants.COPYFILE_FICLONE);
  }
}
