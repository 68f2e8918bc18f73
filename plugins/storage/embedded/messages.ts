/** What the gateway and the process of its embedded database tell one another. */
import type { Owner } from './lock.ts';

export type ToChild = { readonly kind: 'close' | 'ping' | 'copy' };

export type FromChild =
  | { readonly kind: 'ready' | 'pong' }
  /** A new copy of the directory is due: it is made when the gateway says so. */
  | { readonly kind: 'copy-due' }
  /** The copy that was asked for is safe, or failed. */
  | { readonly kind: 'copied'; readonly failure: string | undefined }
  /** Another process owns the directory. */
  | { readonly kind: 'held'; readonly owner: Owner | undefined }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'notice'; readonly text: string };
