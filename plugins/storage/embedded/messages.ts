/** Messages between the gateway and the process of its embedded database. */
import type { Owner } from './lock.ts';

/** Argument of the process: its databases are small, live for seconds, and are many. */
export const cheapStart = 'cheap-start';

export type ToChild = Open | Close | { readonly kind: 'ping' | 'copy' };

interface Close {
  readonly kind: 'close';
  /** The process stays, for another directory. */
  readonly keep: boolean;
}

/** The first message. Until then the process only gets ready. */
export interface Open {
  readonly kind: 'open';
  readonly directory: string;
  /** Where the server is to listen. */
  readonly address: string;
  /** How long the directory's owner is waited for. */
  readonly waitMs: number;
  /** Longest silence of a client inside a transaction. */
  readonly holdTimeoutMs: number;
  /** A new directory may be made with the tables of this schema. */
  readonly schema: string | undefined;
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
