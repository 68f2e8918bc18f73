/** What a place for bytes can do, and how they are named there. */

/** Bytes in memory, or a file under the directory of files, by its path there; storing may take that file away. */
export type StoredContent = Uint8Array | { readonly path: string };

export interface OpenFile {
  readonly body: AsyncIterable<Uint8Array>;
  /** Gives back what reading holds; needed whether or not it was read. */
  close(): void;
}

/** Both ends counted. */
export interface Span {
  readonly first: number;
  readonly last: number;
}

export interface LinkDetails {
  readonly mediaType: string;
  readonly disposition: string;
  readonly lifetimeMs: number;
}

export interface ByteStore {
  put(id: string, content: StoredContent, details: { mediaType: string; bytes: number }): Promise<void>;
  /** undefined: it is not there. */
  open(id: string, span: Span): Promise<OpenFile | undefined>;
  /** Also of what is not there. */
  remove(id: string): Promise<void>;
  /** An address where the store itself gives the bytes; absent: the gateway does. */
  link?(id: string, details: LinkDetails): Promise<string>;
  close(): void;
}

/** Spread over 256 folders. */
export function keyOf(id: string): string {
  return `${id.slice(-2)}/${id}`;
}
