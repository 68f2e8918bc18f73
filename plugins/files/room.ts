/** Whether the disk has room for files, and how a full one looks. */
import { statfs } from 'node:fs/promises';
import { storageFull } from './rows.ts';

/** Throws overloaded when `bytes` more would leave less than `reserveBytes` on the disk of `directory`. */
export async function ensureDisk(directory: string, bytes: number, reserveBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize - bytes < reserveBytes) throw storageFull();
}

/** The disk, or the share of it that this user may fill, is full. */
export function isNoSpace(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === 'ENOSPC' || code === 'EDQUOT';
}
