/** Vector stores, their files and batches as the official API shows them. Pure. */
import type { Attributes } from './filters.ts';
import type { Chunking } from './text/chunks.ts';

export type FileState = 'in_progress' | 'completed' | 'failed' | 'cancelled';
export type FileCounts = Readonly<Record<FileState, number>>;

export interface Store {
  readonly id: string;
  readonly name: string | null;
  readonly description: string | null;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly model: string;
  readonly dimensions: number | undefined;
  readonly expiresDays: number | undefined;
  readonly createdAt: number;
  readonly lastActiveAt: number;
  readonly isExpired: boolean;
  readonly counts: FileCounts & { readonly bytes: number };
}

export interface StoreFile {
  readonly id: string;
  readonly storeId: string;
  readonly fileId: string;
  readonly name: string;
  readonly attributes: Attributes;
  readonly chunkTokens: number;
  readonly overlapTokens: number;
  readonly state: FileState;
  readonly errorCode: string | undefined;
  readonly errorMessage: string | undefined;
  readonly bytes: number;
  readonly createdAt: number;
}

export interface FileBatch {
  readonly id: string;
  readonly storeId: string;
  readonly cancelled: boolean;
  readonly createdAt: number;
  readonly counts: FileCounts;
}

const seconds = (milliseconds: number) => Math.floor(milliseconds / 1000);
const dayMs = 86_400_000;

function countsOf({ in_progress, completed, failed, cancelled }: FileCounts) {
  return { in_progress, completed, failed, cancelled, total: in_progress + completed + failed + cancelled };
}

export function storeShape(store: Store): object {
  const { expiresDays: days, counts, isExpired } = store;
  const status = isExpired ? 'expired' : counts.in_progress > 0 ? 'in_progress' : 'completed';
  return {
    ...{ id: store.id, object: 'vector_store', created_at: seconds(store.createdAt), name: store.name },
    ...(store.description === null ? {} : { description: store.description }),
    ...{ usage_bytes: counts.bytes, file_counts: countsOf(counts), status },
    expires_after: days === undefined ? null : { anchor: 'last_active_at', days },
    expires_at: days === undefined ? null : seconds(store.lastActiveAt + days * dayMs),
    ...{ last_active_at: seconds(store.lastActiveAt), metadata: store.metadata ?? {} },
  };
}

export function fileShape(file: StoreFile) {
  const { errorCode: code, errorMessage: message } = file;
  const size = { max_chunk_size_tokens: file.chunkTokens, chunk_overlap_tokens: file.overlapTokens };
  return {
    ...{ id: file.fileId, object: 'vector_store.file', usage_bytes: file.bytes, created_at: seconds(file.createdAt) },
    ...{ vector_store_id: file.storeId, status: file.state, last_error: code === undefined ? null : { code, message } },
    ...{ chunking_strategy: { type: 'static', static: size }, attributes: file.attributes },
  };
}

export function batchShape(batch: FileBatch) {
  const { counts, cancelled } = batch;
  const status = cancelled ? 'cancelled' : counts.in_progress > 0 ? 'in_progress' : 'completed';
  return {
    ...{ id: batch.id, object: 'vector_store.files_batch', created_at: seconds(batch.createdAt) },
    ...{ vector_store_id: batch.storeId, status, file_counts: countsOf(counts) },
  };
}

export function chunkingOf({ chunkTokens, overlapTokens }: StoreFile): Chunking {
  return { maxTokens: chunkTokens, overlapTokens };
}
