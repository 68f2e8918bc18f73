/** Why a path cannot be written, as a sentence for the operator. Pure. */

const reasons = new Map([
  ['EROFS', 'its file system is read-only'],
  ['EACCES', 'permission is denied'],
  ['EPERM', 'the operation is not permitted'],
  ['ENOSPC', 'the disk is full'],
  ['EDQUOT', 'the disk quota is used up'],
]);

/** undefined: the error has another cause. */
export function unwritableSentence(error: unknown, path = (error as { path?: unknown })?.path): string | undefined {
  const reason = reasons.get((error as { code?: string })?.code ?? '');
  if (reason === undefined || typeof path !== 'string') return undefined;
  return `${path} cannot be written: ${reason}. Make it writable, or set "data" in the file (DATA_DIR) to another directory.`;
}
