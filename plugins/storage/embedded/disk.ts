/** PGlite's files with the fsync that PGlite omits: a sync returns when the bytes are on the disk. */
import { fdatasyncSync, fsyncSync } from 'node:fs';
import { PGlite } from '@electric-sql/pglite';
import { NodeFS } from '@electric-sql/pglite/nodefs';

/** How far the write-ahead log is safe: the name of its file, and bytes from that file's beginning. */
export interface LogPoint {
  readonly name: string;
  readonly bytes: number;
}

interface Stream {
  readonly nfd: number;
  readonly node: { readonly name: string; readonly mode: number; readonly parent: { readonly name: string } };
}

interface StreamOperations {
  write(stream: Stream, data: Uint8Array, offset: number, length: number, position: number): number;
  fsync(stream: Stream): number;
}

/** The used parts of PGlite's WebAssembly module. */
interface Module {
  readonly NODEFS: { readonly stream_ops: StreamOperations };
  readonly FS: { isDir(mode: number): boolean; readonly ErrnoError: new (code: number) => Error };
}

const inputOutputError = 29; // WASI's number of EIO.
const logName = /^[0-9A-F]{24}$/;

/**
 * PGlite's own parameters without `-F`, which turns fsync off. Its fdatasync does nothing, its fsync calls the file system's
 * if there is one, so the log is to be made safe by fsync. Log files are kept for a while beyond a checkpoint: with the last
 * copy of the directory they make its present state. Memory for pages is touched when the database starts: 128 MB of it
 * take a fifth of the start, and a small database needs little.
 */
export function startParameters(isSmall = false): string[] {
  const own = PGlite.defaultStartParams.filter((word) => word !== '-F');
  return [
    ...own,
    '-c',
    'wal_sync_method=fsync',
    '-c',
    'wal_keep_size=96MB',
    ...(isSmall ? ['-c', 'shared_buffers=8MB'] : []),
  ];
}

/** The directory at `path`, to be given to PGlite. */
export class SafeFiles extends NodeFS {
  #onSafe: ((point: LogPoint) => void) | undefined;
  #onWriteFailure: () => void = () => undefined;
  #written: LogPoint = { name: '', bytes: 0 };

  /** Calls `onSafe` after each further sync of the write-ahead log. Before this call, whole log files may be put in place at once. */
  follow(onSafe: (point: LogPoint) => void): void {
    this.#written = { name: '', bytes: 0 };
    this.#onSafe = onSafe;
  }

  /**
   * Called when a file could not be written or made safe; temporary ones do not count. A whole Postgres then ends, or at least the
   * process that wrote: here that would be part of this process, and the rest never gives a right answer again.
   */
  onWriteFailure(listener: () => void): void {
    this.#onWriteFailure = listener;
  }

  override async init(pglite: PGlite, options: EmscriptenOptions) {
    const { emscriptenOpts } = await super.init(pglite, options);
    const preRun = [...(emscriptenOpts.preRun as Step[]), (module: unknown) => this.#complete(module as Module)];
    return { emscriptenOpts: { ...emscriptenOpts, preRun: preRun as never } };
  }

  #complete({ NODEFS: { stream_ops: operations }, FS }: Module): void {
    const { write } = operations;
    operations.write = (stream, data, offset, length, position) => {
      const bytes = this.#orFail(stream, () => write(stream, data, offset, length, position));
      if (isLog(stream)) this.#noteWritten(stream.node.name, position + bytes);
      return bytes;
    };
    operations.fsync = (stream) => {
      try {
        this.#orFail(stream, () => (FS.isDir(stream.node.mode) ? fsyncSync : fdatasyncSync)(stream.nfd));
      } catch {
        throw new FS.ErrnoError(inputOutputError);
      }
      if (stream.node.name === this.#written.name) this.#onSafe?.(this.#written);
      return 0;
    };
  }

  #orFail<T>(stream: Stream, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (stream.node.parent.name !== 'pgsql_tmp') this.#onWriteFailure();
      throw error;
    }
  }

  #noteWritten(name: string, bytes: number): void {
    const furthest = name === this.#written.name ? Math.max(bytes, this.#written.bytes) : bytes;
    this.#written = { name, bytes: furthest };
  }
}

type EmscriptenOptions = Parameters<NodeFS['init']>[1];
type Step = (module: unknown) => void;

function isLog({ node: { name, parent } }: Stream): boolean {
  return name.length === 24 && parent.name === 'pg_wal' && logName.test(name);
}
