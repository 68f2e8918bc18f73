/** The bare forwarder that the gateway is measured against: Node's server, undici's dispatch, nothing in between. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type Dispatcher, Pool } from 'undici';

class Relay implements Dispatcher.DispatchHandler {
  readonly #outgoing: ServerResponse;
  readonly #streamed: boolean;
  readonly #chunks: Buffer[] = [];
  #status = 0;
  #type = '';

  constructor(outgoing: ServerResponse, streamed: boolean) {
    this.#outgoing = outgoing;
    this.#streamed = streamed;
  }

  onRequestStart(): void {}

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status;
    this.#type = String(headers['content-type']);
    if (this.#streamed) this.#outgoing.writeHead(status, { 'content-type': this.#type });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#streamed) this.#outgoing.write(chunk);
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (this.#streamed) return void this.#outgoing.end();
    const body = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.#outgoing.writeHead(this.#status, { 'content-type': this.#type, 'content-length': body.length });
    this.#outgoing.end(body);
  }

  onResponseError(): void {
    this.#outgoing.destroy();
  }
}

export function createForwarder(upstreamPort: number): Server {
  const pool = new Pool(`http://127.0.0.1:${upstreamPort}`, { connections: 16_384, pipelining: 1, allowH2: false });
  return createServer((incoming, outgoing) => {
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => void parts.push(part));
    incoming.on('end', () => {
      const body = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
      const headers = { 'content-type': 'application/json', authorization: incoming.headers.authorization ?? '' };
      pool.dispatch(
        { path: incoming.url!, method: incoming.method as 'POST', headers, body },
        new Relay(outgoing, body.includes('"stream":true') || incoming.url!.includes(':stream')),
      );
    });
  });
}
