/** Pieces of uploads: files of the store without a name, until one file is made of them. */

import type { Clock, Random } from '../../core/contract/host-tools.ts';
import {
  type FileCopies,
  pieceUnitBytes,
  type ReceivedFile,
  type UploadPieces,
} from '../common/domain/stored-files.ts';
import { newFileId } from './address.ts';
import type { ByteStore } from './bytes.ts';
import type { FileService } from './file-service.ts';
import type { UploadRows } from './upload-rows.ts';

export interface UploadTools {
  readonly files: FileService;
  readonly rows: UploadRows;
  readonly store: ByteStore;
  readonly clock: Clock;
  readonly random: Random;
  /** Made of files by other plugins. */
  readonly copies: () => FileCopies | undefined;
}

export class Pieces implements UploadPieces {
  readonly #tools: UploadTools;

  constructor(tools: UploadTools) {
    this.#tools = tools;
  }

  async received(accountId: string, uploadId: string): Promise<number> {
    const pieces = await this.#inOrder(accountId, uploadId);
    return pieces.reduce((bytes, piece) => bytes + piece.bytes, 0);
  }

  async add(
    accountId: string,
    uploadId: string,
    firstByte: number,
    { bytes, path, discard }: ReceivedFile,
    lifetimeMs: number,
  ): Promise<void> {
    const { files, random } = this.#tools;
    try {
      await files.store(
        { mediaType: 'application/octet-stream', bytes, content: { path } },
        { accountId, taskId: taskOf(uploadId), number: firstByte / pieceUnitBytes },
        { id: newFileId(random) },
        lifetimeMs,
      );
    } finally {
      await discard();
    }
  }

  async *read(accountId: string, uploadId: string): AsyncGenerator<Uint8Array> {
    const { store } = this.#tools;
    for (const { id, bytes } of await this.#inOrder(accountId, uploadId)) {
      const opened = await store.open(id, { first: 0, last: bytes - 1 });
      if (opened === undefined) throw new Error(`a piece of an upload is missing in the store: ${id}`);
      try {
        yield* opened.body;
      } finally {
        opened.close();
      }
    }
  }

  remove(accountId: string, uploadId: string): Promise<void> {
    return this.#tools.files.removeFilesOfTask(accountId, taskOf(uploadId));
  }

  /** Without those that overlap others: they came at the same time, in requests that cut the file differently. */
  async #inOrder(accountId: string, uploadId: string) {
    const { rows, clock } = this.#tools;
    let end = 0;
    const all = await rows.ofTask(accountId, taskOf(uploadId), clock.now());
    return all.filter(({ number, bytes }) => {
      if (number * pieceUnitBytes !== end) return false;
      end += bytes;
      return true;
    });
  }
}

/** The file itself is kept under the id alone. */
const taskOf = (uploadId: string) => `pieces of ${uploadId}`;
