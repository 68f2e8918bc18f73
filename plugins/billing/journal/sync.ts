/** Syncs written segments, and rewrites unconfirmed bytes after a failed sync. */
import type { Files, Segment } from './segments.ts';

interface OpenFile {
  readonly segment: Segment;
  readonly descriptor: number;
  /** Durable bytes of the segment. */
  syncedBytes: number;
  /** A sync failed or is under way. */
  suspect: boolean;
  /** Nothing more is written to it. */
  retired: boolean;
}

/**
 * A kernel that failed to write pages back marks them clean: the next fdatasync succeeds although nothing was
 * written. So after a failure the unconfirmed bytes are written again before the next try.
 */
export class Syncer {
  readonly #files: Files;
  #open: OpenFile[] = [];

  constructor(files: Files) {
    this.#files = files;
  }

  /** Begins a new segment; earlier ones get no more bytes. */
  begin(segment: Segment, descriptor: number): void {
    for (const file of this.#open) file.retired = true;
    this.#open.push({ segment, descriptor, syncedBytes: 0, suspect: false, retired: false });
  }

  /** Resolves when all bytes written before the call are durable. Rejects with the disk's error. One at a time. */
  async sync(): Promise<void> {
    for (const file of [...this.#open]) {
      if (file.syncedBytes < file.segment.bytes) await this.#syncFile(file);
      if (file.retired && file.syncedBytes === file.segment.bytes) this.#close(file);
    }
  }

  async #syncFile(file: OpenFile): Promise<void> {
    const { bytes } = file.segment;
    if (file.suspect) this.#putAgain(file, bytes);
    file.suspect = true;
    await this.#files.sync(file.descriptor);
    file.suspect = false;
    file.syncedBytes = bytes;
  }

  #putAgain({ segment: { path }, syncedBytes }: OpenFile, bytes: number): void {
    const data = this.#files.read(path).subarray(syncedBytes, bytes);
    const descriptor = this.#files.open(path);
    try {
      this.#files.rewrite(descriptor, data, syncedBytes);
    } finally {
      this.#files.close(descriptor);
    }
  }

  #close(file: OpenFile): void {
    this.#open = this.#open.filter((other) => other !== file);
    this.#files.close(file.descriptor);
  }

  /** Closes every file, durable or not. */
  close(): void {
    for (const file of this.#open) this.#close(file);
  }
}
