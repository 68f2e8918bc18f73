/** Checks free space on the disk, recognises errors of a disk that is full or cannot be written, and says so to clients. */
import { statfs } from 'node:fs/promises';
import { GatewayError } from '../../core/contract/errors.ts';
import { isUnwritable } from '../../core/tools/unwritable.ts';

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

/** The client's error when the disk refused bytes; other errors are unchanged. */
export function refusedByDisk(error: unknown): unknown {
  if (isNoSpace(error)) return storageFull(error);
  return isUnwritable(error) ? storageFailed(error) : error;
}

export function storageFailed(cause: unknown): GatewayError {
  return new GatewayError('overloaded', 'The file cannot be stored at the moment; try again later.', {
    code: 'storage_failed',
    retryAfterMs: 30_000,
    cause,
  });
}

const noRoom = 'The gateway has no room for files at the moment; try again later.';

export function storageFull(cause?: unknown, message = noRoom): GatewayError {
  return new GatewayError('overloaded', message, { code: 'storage_full', retryAfterMs: 60_000, cause });
}
