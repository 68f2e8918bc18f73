/** PGlite's files with the fsync that PGlite leaves out: what it is told to make safe is safe when it goes on. */
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

/** What of PGlite's WebAssembly module is used here. */
interface Module {
  readonly NODEFS: { readonly stream_ops: StreamOperations };
  readonly FS: { isDir(mode: number): boolean; readonly ErrnoError: new (code: number) => Error };
}

const inputOutputError = 29; // WASI's number of EIO.
const logName = /^[0-9A-F]{24}$/;

/**
 * PGlite's own parameters without `-F`, which turns fsync off. Its fdatasync does nothing, its fsync calls the file system's
 * if there is one, so the log is to be made safe by fsync. Log files are kept for a while beyond a checkpoint: with the last
 * copy of the directory they make its present state.
 */
export function startParameters(): string[] {
  const own = PGlite.defaultStartParams.filter((word) => word !== '-F');
  return [...own, '-c', 'wal_sync_method=fsync', '-c', 'wal_keep_size=96MB'];
}

/** The directory at `path`, to be given to PGlite. */
export class SafeFiles extends NodeFS {
  #onSafe: ((point: LogPoint) => void) | undefined;
  #written: LogPoint = { name: '', bytes: 0 };

  /** `onSafe` is told of each further step of the write-ahead log. Before, whole log files may be put in place at once. */
  follow(onSafe: (point: LogPoint) => void): void {
    this.#written = { name: '', bytes: 0 };
    this.#onSafe = onSafe;
  }

  override async init(pglite: PGlite, options: EmscriptenOptions) {
    const { emscriptenOpts } = await super.init(pglite, options);
    const preRun = [...(emscriptenOpts.preRun as Step[]), (module: unknown) => this.#complete(module as Module)];
    return { emscriptenOpts: { ...emscriptenOpts, preRun: preRun as never } };
  }

  #complete({ NODEFS: { stream_ops: operations }, FS }: Module): void {
    const { write } = operations;
    operations.write = (stream, data, offset, length, position) => {
      const bytes = write(stream, data, offset, length, position);
      if (isLog(stream)) this.#noteWritten(stream.node.name, position + bytes);
      return bytes;
    };
    operations.fsync = (stream) => {
      try {
        if (FS.isDir(stream.node.mode)) fsyncSync(stream.nfd);
        else fdatasyncSync(stream.nfd);
      } catch {
        // Postgres then stops at once rather than believe a second try.
        throw new FS.ErrnoError(inputOutputError);
      }
      if (stream.node.name === this.#written.name) this.#onSafe?.(this.#written);
      return 0;
    };
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
