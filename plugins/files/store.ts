/** Which place for bytes a configuration names. */
import type { ByteStore } from './bytes.ts';
import type { FilesConfig } from './config.ts';
import { openDisk } from './disk.ts';

/** The S3 client is loaded only where a bucket is named. */
export async function openStore(directory: string, config: FilesConfig): Promise<ByteStore> {
  if (config.s3.bucket === '') return openDisk(directory);
  const { openBucket } = await import('./s3.ts');
  return openBucket(directory, config.s3);
}
