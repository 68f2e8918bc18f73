/** Contents of archived files, as they are packed in the store of files. */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { SealedFiles } from '../../common/domain/stored-files.ts';
import { digestOf, type SealedCalls } from './format.ts';

const [pack, unpack] = [promisify(gzip), promisify(gunzip)];

/** Beyond what any file can have, with the longest line behind the bound. */
const mostContentBytes = 256_000_000;

/** A file as the database names it. */
export interface StoredFile extends Pick<SealedCalls, 'object' | 'digest'> {
  readonly bytes: number;
}

export type ReadFile = { readonly content: string } | { readonly fault: string };

export interface Contents {
  /** Resolves with how many bytes it takes, once it outlives a power cut. */
  put(object: string, content: string): Promise<number>;
  /** A file's content, if it is the sealed one. Rejects while the store does not answer. */
  read(file: StoredFile): Promise<ReadFile>;
}

export function contentsIn(files: () => Pick<SealedFiles, 'put' | 'read'> | undefined): Contents {
  return {
    put: async (object, content) => {
      const bytes = await pack(content, { level: 9 });
      await files()!.put(object, bytes);
      return bytes.length;
    },
    read: async ({ object, digest, bytes }) => {
      const objects = files();
      if (objects === undefined) return { fault: 'cannot be read: there is no store of files' };
      const stored = await objects.read(object, bytes + 1);
      if (stored === undefined) return { fault: 'is missing' };
      const content = stored.length === bytes ? await unpacked(stored) : undefined;
      return content === undefined ? { fault: 'was altered' } : checked(content, digest);
    },
  };
}

export const checked = (content: string, digest: string): ReadFile =>
  digestOf(content) === digest ? { content } : { fault: 'was altered' };

async function unpacked(bytes: Uint8Array): Promise<string | undefined> {
  try {
    return (await unpack(bytes, { maxOutputLength: mostContentBytes })).toString('utf8');
  } catch {
    return undefined;
  }
}
