/** The service that stores produced files. Types alone. */

import { defineService, type Exchange } from '../../../core/contract/contract.ts';
import type { Answer } from '../../../core/contract/message.ts';

/** A file that was made for an account and is kept for it. */
export interface KeptFile {
  /** Our own, 128 random bits. */
  readonly id: string;
  /** By content. */
  readonly mediaType: string;
  readonly bytes: number;
  /** Wall-clock milliseconds after which it is gone. */
  readonly expiresAt: number;
}
export interface FileOwner {
  readonly accountId: string;
  readonly taskId: string;
  /** Which of the task's files it is; one that was kept before under this number is given back, not kept twice. */
  readonly number: number;
}
/** What is to be kept: bytes, or what lies at an address that its vendor named; `vendor` is the base URL that it was called at. */
export type FileContent = Uint8Array | { readonly url: string; readonly vendor?: string };

/** Results that outlive the vendor's own copies. Errors are GatewayErrors; `shouldRetry: false`: it would fail again. */
export interface Files {
  /** Throws overloaded or forbidden when this account's next file would find no room; ask before it is made. */
  ensureRoom(accountId: string): Promise<void>;
  /** Keeps a file of this kind. Bounded in size and time, fetched behind the guard, judged by content. */
  keep(content: FileContent, kind: 'image' | 'video', owner: FileOwner, signal: AbortSignal): Promise<KeptFile>;
  /** The account's file; undefined if the account has none of this id. */
  find(accountId: string, fileId: string): Promise<KeptFile | undefined>;
  /** When these files expire, by id, in wall-clock milliseconds; those that have expired are left out. */
  expiries(fileIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** All of it, for answers that carry bytes; undefined as for `find`. */
  read(accountId: string, fileId: string): Promise<Uint8Array | undefined>;
  /** The file as the answer to this request, ranges and all; throws not_found as for `find`. */
  answer(accountId: string, fileId: string, exchange: Exchange): Promise<Answer>;
  /** A new signed address, good for the configured time. `host`: the Host header of the request that it is returned to, if there is one. */
  address(fileId: string, host?: string): string;
  /** From now on they are not found. */
  removeFilesOfTask(accountId: string, taskId: string): Promise<void>;
  removeOfAccount(accountId: string): Promise<void>;
}
export const files = defineService<Files>('files');
