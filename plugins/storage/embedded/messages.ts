/** What the gateway and the process of its embedded database tell one another. */
import type { Owner } from './lock.ts';

export type ToChild = { readonly kind: 'close' | 'ping' };

export type FromChild =
  | { readonly kind: 'ready' | 'pong' }
  /** Another process owns the directory. */
  | { readonly kind: 'held'; readonly owner: Owner | undefined }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'notice'; readonly text: string };
