/** The words of the service that keeps files; part of the vocabulary. Types alone. */
import { type Answer, defineService, type Exchange } from './contract.ts';

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
  /** The account's file; undefined when it has none of this id, whoever else has. */
  find(accountId: string, fileId: string): Promise<KeptFile | undefined>;
  /** All of it, for answers that carry bytes; undefined as for `find`. */
  read(accountId: string, fileId: string): Promise<Uint8Array | undefined>;
  /** The file as the answer to this request, ranges and all; throws not_found as for `find`. */
  answer(accountId: string, fileId: string, exchange: Exchange): Promise<Answer>;
  /** A new signed address, good for the configured time. `host`: the Host header of whoever is told it, if anybody asked. */
  address(fileId: string, host?: string): string;
  /** From now on they are not found. */
  removeOfTask(accountId: string, taskId: string): Promise<void>;
  removeOfAccount(accountId: string): Promise<void>;
}
export const files = defineService<Files>('files');
