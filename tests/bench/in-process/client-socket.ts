/** A client's connection without a kernel behind it: gives a server the bytes of requests and takes those of the answers. */
import type { Server } from 'node:http';
import { Duplex } from 'node:stream';

type Part = Uint8Array | string;

export class ClientSocket extends Duplex {
  readonly remoteAddress = '127.0.0.1';
  readonly #end: Buffer;
  readonly #answered: () => void;
  #isHead = true;

  /** `end`: the last bytes of each answer. `answered` is called when they have been written. */
  constructor(server: Server, end: Buffer, answered: () => void) {
    super({ decodeStrings: false });
    this.#end = end;
    this.#answered = answered;
    server.emit('connection', this);
  }

  send(request: Buffer): void {
    this.push(request);
  }

  setTimeout(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  override _read(): void {}

  override _write(part: Part, _encoding: BufferEncoding, done: () => void): void {
    this.#take(part);
    done();
  }

  override _writev(parts: readonly { chunk: Part }[], done: () => void): void {
    for (const { chunk } of parts) this.#take(chunk);
    done();
  }

  #take(part: Part): void {
    if (this.#isHead && !startsWell(part)) fail(part);
    this.#isHead = this.#isEnd(part);
    if (this.#isHead) this.#answered();
  }

  #isEnd(part: Part): boolean {
    if (typeof part === 'string') return part.endsWith(this.#end.toString('latin1'));
    const from = part.length - this.#end.length;
    return from >= 0 && this.#end.compare(part, from) === 0;
  }
}

function startsWell(part: Part): boolean {
  return (typeof part === 'string' ? part : Buffer.from(part).toString('latin1', 0, 12)).startsWith('HTTP/1.1 200');
}

/** A wrong answer ends the process: what waits for the right one would wait for ever. */
function fail(part: Part): never {
  console.error('a client in process got no 200:', String(part).slice(0, 1_000));
  process.exit(1);
}
