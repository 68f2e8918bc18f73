/** Checks free space on the disk, and recognises errors of a full disk. */
import { statfs } from 'node:fs/promises';
import { storageFull } from './sql.ts';

/** Throws overloaded if `bytes` more would leave less than `reserveBytes` on the disk of `directory`. */
export async function ensureDisk(directory: string, bytes: number, reserveBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize - bytes < reserveBytes) throw storageFull();
}

/** Whether the disk, or this user's quota, is full. */
export function isNoSpace(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === 'ENOSPC' || code === 'EDQUOT';
}
