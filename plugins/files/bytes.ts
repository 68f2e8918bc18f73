/** The interface of byte stores, and the names of their objects. */

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

interface LinkDetails {
  readonly mediaType: string;
  readonly disposition: string;
  readonly lifetimeMs: number;
}

export interface ByteStore {
  put(id: string, content: StoredContent, details: { mediaType: string; bytes: number }): Promise<void>;
  /** undefined: no such object. */
  open(id: string, span: Span): Promise<OpenFile | undefined>;
  /** Succeeds also if there is no such object. */
  remove(id: string): Promise<void>;
  /** An address from which the store itself serves the bytes; absent: the gateway serves them. */
  link?(id: string, details: LinkDetails): Promise<string>;
  /** Of a store that may be away: for how long it has not answered; 0: it does. */
  awayMs?(): number;
  close(): void;
}

/** Spreads objects over 256 folders. */
export function keyOf(id: string): string {
  return `${id.slice(-2)}/${id}`;
}
