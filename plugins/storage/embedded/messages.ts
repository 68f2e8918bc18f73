/** Messages between the gateway and the process of its embedded database. */
import type { Owner } from './lock.ts';

/** Argument of the process: its databases are small, live for seconds, and are many. */
export const cheapStart = 'cheap-start';

export type ToChild = Prepare | Open | Close | { readonly kind: 'ping' | 'copy' };

/** What is said of a directory, before or when it is opened. */
export interface Place {
  readonly directory: string;
  /** How long the directory's owner is waited for. */
  readonly waitMs: number;
  /** A new directory may be made with the tables of this schema. */
  readonly schema: string | undefined;
}

/** A directory that is likely to be opened: if it has no database, one is made, and taken away if none is opened in the end. */
interface Prepare extends Place {
  readonly kind: 'prepare';
}

interface Close {
  readonly kind: 'close';
  /** The process stays, for another directory. */
  readonly keep: boolean;
}

/** Until then the process only gets ready. */
export interface Open extends Place {
  readonly kind: 'open';
  /** Where the server is to listen. */
  readonly address: string;
  /** Longest silence of a client inside a transaction. */
  readonly holdTimeoutMs: number;
}

export type FromChild =
  | { readonly kind: 'ready' | 'pong' | 'closed' }
  /** A new copy of the directory is due: it is made when the gateway says so. */
  | { readonly kind: 'copy-due' }
  /** The copy that was asked for is safe, or failed. */
  | { readonly kind: 'copied'; readonly failure: string | undefined }
  /** Another process owns the directory. */
  | { readonly kind: 'held'; readonly owner: Owner | undefined }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'notice'; readonly text: string };
