/** The services that store files: produced ones, and those that clients upload; and the one that finds texts of them. */

import { defineService, type Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { UpstreamNetwork } from '../../../core/contract/exchange.ts';
import type { Answer } from '../../../core/contract/message.ts';
import type { JsonObject } from '../../../core/json/json.ts';

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
/** The content to keep: bytes, or a vendor's address to download it from. */
export type FileContent = Uint8Array | { readonly url: string; readonly vendor?: FileVendor };

/** The way to the vendor of a result. */
export interface FileVendor {
  readonly baseUrl: string;
  /** Headers for addresses at the vendor's own origin. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Network for results at any address. Absent: directly. */
  readonly network?: UpstreamNetwork | undefined;
}

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
  /** Removes a task's files, which are not found from now on. */
  removeFilesOfTask(accountId: string, taskId: string): Promise<void>;
  removeOfAccount(accountId: string): Promise<void>;
}
export const files = defineService<Files>('files');

/** A name that a client may choose for a file: Google's rule for the part of `File.name` behind `files/`. */
const chosenNameFormat = /^(?!-)[a-z0-9-]{1,40}(?<!-)$/;
/** As the gateway names files. */
const ownNameFormat = /^(?:file-)?([0-9a-f]{32})$/;

export function mayBeChosen(name: string): boolean {
  return chosenNameFormat.test(name) && !ownNameFormat.test(name);
}

/** What `UploadedFiles` finds a file by, from its name behind `files/`: its id, or the name that its client has chosen. */
export function fileIdOf(name: string): string {
  const own = ownNameFormat.exec(name)?.[1];
  return own === undefined ? `files/${name}` : `file-${own}`;
}

export function nameTaken(chosenName: string): GatewayError {
  return new GatewayError('conflict', `This account has a file "files/${chosenName}" already.`, {
    field: 'file.name',
    code: 'file_exists',
    shouldRetry: false,
  });
}

export interface UploadedFile extends KeptFile {
  readonly name: string;
  /** By which its client finds it, beside the id. */
  readonly chosenName?: string | undefined;
  /** `batch`, `batch_output`, `user_data` and others. */
  readonly purpose: string;
  /** Digest of its bytes, in hexadecimal digits; absent: the file was kept before digests were. */
  readonly sha256?: string | undefined;
  readonly createdAt: number;
}

/** Bytes that have come, on the disk; not a file yet. */
export interface ReceivedFile {
  readonly bytes: number;
  /** In hexadecimal digits. */
  readonly sha256?: string;
  /** Its path on this machine's disk. */
  readonly path: string;
  /** Removes the bytes, if they are still there. */
  discard(): Promise<void>;
}

export interface UploadDetails {
  readonly name: string;
  /** Taken by another file of the account: it is refused as a conflict. */
  readonly chosenName?: string | undefined;
  readonly purpose: string;
  readonly mediaType: string;
  /** How long it is kept at most; absent: as long as files may be. */
  readonly lifetimeMs?: number | undefined;
  /** Reserved space that it takes over, by its name. */
  readonly space?: string | undefined;
}

export interface UploadQuery {
  readonly purpose?: string | undefined;
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  /** Id of the file behind which the page begins; of one that the account does not have, the page is refused. */
  readonly after?: string | undefined;
}

/** A piece begins at a multiple of this. */
export const pieceUnitBytes = 262_144;

/** Pieces of an upload, in the store until a file is made of them. They count as bytes of the account. */
export interface UploadPieces {
  /** How many bytes have come, from the beginning and without a gap. */
  received(accountId: string, uploadId: string): Promise<number>;
  /** Keeps a piece that begins at this byte; the received bytes are used up. One that is there already stays. */
  add(accountId: string, uploadId: string, firstByte: number, piece: ReceivedFile, lifetimeMs: number): Promise<void>;
  /** All that has come, in order. */
  read(accountId: string, uploadId: string): AsyncIterable<Uint8Array>;
  remove(accountId: string, uploadId: string): Promise<void>;
}

/** Errors are GatewayErrors. A file is found by its id, or by `files/` and the name that its client has chosen. */
export interface UploadedFiles {
  /** Largest file that is taken. */
  readonly mostBytes: number;
  /** Writes bytes to the disk as they come, within `mostBytes`; bounded in number for each account. */
  receive(accountId: string, body: AsyncIterable<Uint8Array>): Promise<ReceivedFile>;
  /** Makes a file of them, if there is room; the received bytes are used up. `id`: kept once, of work that may be repeated. */
  keep(accountId: string, received: ReceivedFile, details: UploadDetails, id?: string): Promise<UploadedFile>;
  newId(): string;
  /**
   * Sets how many bytes of the account's space are taken under this name, by rows that belong to its orders. `fits`: throws as
   * for a file where what it grows by finds no room; else it is counted all the same. Resolves with whether there is room for more.
   */
  reserve(
    accountId: string,
    name: string,
    bytes: number,
    terms: { readonly lifetimeMs: number; readonly fits: boolean },
  ): Promise<boolean>;
  release(accountId: string, name: string): Promise<void>;
  readonly pieces: UploadPieces;
  /** Where clients reach the gateway. `host`: the Host header of the request, if there is one. */
  origin(host?: string): string;
  find(accountId: string, fileId: string): Promise<UploadedFile | undefined>;
  list(
    accountId: string,
    query: UploadQuery,
  ): Promise<{ readonly files: readonly UploadedFile[]; readonly more: boolean }>;
  /** false: the account has no such file. */
  remove(accountId: string, fileId: string): Promise<boolean>;
  /** Its bytes, or those of a span with both ends, to be read and closed; undefined: the account has no such file. */
  open(
    accountId: string,
    fileId: string,
    span?: { readonly first: number; readonly last: number },
  ): Promise<{ readonly body: AsyncIterable<Uint8Array>; close(): void } | undefined>;
  /** The file as the answer to this request; throws not_found. */
  answer(accountId: string, fileId: string, exchange: Exchange): Promise<Answer>;
}

/** Files that the gateway itself keeps for good, in the store of files, by names such as `archive/main/…`. */
export interface SealedFiles {
  /** Why files here would not be kept for every process; undefined: they are. `processes`: how many may serve from the database. */
  unfit(processes: number): string | undefined;
  /** Written again under one name it is replaced; once this resolves it outlives a power cut. */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /** Its bytes, or the first so many of them; undefined: there is no such file. */
  read(name: string, mostBytes: number): Promise<Uint8Array | undefined>;
}
export const sealedFiles = defineService<SealedFiles>('sealed files');

/** Whether bytes were refused because of the space that they need. */
export function isNoRoom(error: unknown): error is GatewayError {
  return error instanceof GatewayError && (error.code === 'file_space_used_up' || error.code === 'storage_full');
}

/** An opened file's bytes, all of them in memory; closes it. */
export async function bytesOf(opened: { readonly body: AsyncIterable<Uint8Array>; close(): void }): Promise<Buffer> {
  try {
    const chunks: Uint8Array[] = [];
    for await (const chunk of opened.body) chunks.push(chunk);
    return Buffer.concat(chunks);
  } finally {
    opened.close();
  }
}

export const uploadedFiles = defineService<UploadedFiles>('uploaded files');

/** What a plugin has made of uploaded files, which goes when their client deletes them. */
export interface FileCopies {
  removed(accountId: string, fileId: string): Promise<void>;
}
export const fileCopies = defineService<FileCopies>('file copies');

/** A piece of text of a file. */
export interface StoreHit {
  readonly fileId: string;
  readonly name: string;
  /** From 0 to 1. */
  readonly score: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly text: string;
}

/** Which stores are searched, and how: members of the official API's tool. */
export interface AskedStores {
  readonly ids: readonly string[];
  readonly filters: unknown;
  readonly max_num_results: unknown;
  readonly ranking_options: unknown;
  /** Where these members stand in the request. */
  readonly field: string;
}

export interface StoreSearch {
  /** Requests of the gateway that make the vectors of a query, one for each model of the stores: they are what a search costs. */
  requests(query: string): readonly { readonly path: string; readonly body: string }[];
  /** `answers`: those of the requests, whole and in their order. The best first; undefined: an answer has no vector. */
  find(answers: readonly JsonObject[]): Promise<readonly StoreHit[] | undefined>;
}

export interface OwnStores {
  /** Whether a store of this id would be the gateway's. */
  isOwn(id: string): boolean;
  /** Throws for stores that the account does not have, by their field. */
  open(accountId: string, asked: AskedStores): Promise<StoreSearch>;
}

export const ownStores = defineService<OwnStores>('own vector stores');
