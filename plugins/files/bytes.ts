/** The interface of byte stores, the names of their objects, and files that the gateway itself keeps in them. */
import { bytesOf, type SealedFiles } from '../common/domain/stored-files.ts';
import type { FilesConfig } from './config.ts';
import { ensureDisk } from './disk-space.ts';

/** Images that may hold scripts. */
export const svgType = 'image/svg+xml';

/** Bytes in memory, or a file by its path under the directory of files; the store may move that file. */
export type StoredContent = Uint8Array | { readonly path: string };

export interface OpenFile {
  readonly body: AsyncIterable<Uint8Array>;
  /** Releases the file or connection; required whether or not the body was read. */
  close(): void;
}

/** Both ends inclusive. */
export interface Span {
  readonly first: number;
  readonly last: number;
}

export interface ByteStore {
  put(id: string, content: StoredContent, details: { mediaType: string; bytes: number }): Promise<void>;
  /** undefined: no such object. */
  open(id: string, span: Span): Promise<OpenFile | undefined>;
  /** Succeeds also if there is no such object. */
  remove(id: string): Promise<void>;
  /** An address from which the store itself serves the bytes; absent: the gateway serves them. */
  link?(
    id: string,
    details: { readonly mediaType: string; readonly disposition: string; readonly lifetimeMs: number },
  ): Promise<string>;
  /** For how long a store that may be away has not answered; 0: it answers. */
  awayMs?(): number;
  close(): void;
}

/** Spreads objects over 256 folders; sealed files have a path of their own. */
export function keyOf(id: string): string {
  return id.includes('/') ? id : `${id.slice(-2)}/${id}`;
}

const sealedType = 'application/gzip';

/** Every process would find its own files alone. */
export const isAlone = ({ s3, disk }: Pick<FilesConfig, 's3' | 'disk'>) => s3.bucket === '' && disk === 'own';

export function openSealedFiles(directory: string, config: FilesConfig, store: ByteStore): SealedFiles {
  return {
    unfit: (processes) =>
      processes > 1 && isAlone(config)
        ? `files.s3.bucket names no bucket, and up to ${processes} processes serve from this PostgreSQL: each would find only the files in its own data directory. Name a bucket, or set files.disk to shared where all of them use one directory, or billing.nodes to 1.`
        : undefined,
    put: async (name, bytes) => {
      if (config.s3.bucket === '') await ensureDisk(directory, bytes.length, config.disk_reserve);
      await store.put(name, bytes, { mediaType: sealedType, bytes: bytes.length });
    },
    read: async (name, mostBytes) => {
      const opened = await store.open(name, { first: 0, last: mostBytes - 1 });
      return opened && bytesOf(opened);
    },
  };
}
