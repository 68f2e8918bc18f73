/** A strict stand-in of vendors' batch APIs: three dialects over the same batches, and a bill. It forgives no wrong request. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

export interface Line {
  readonly id: string;
  readonly body: Record<string, unknown>;
  /** `made` is billed. */
  outcome: 'open' | 'made' | 'refused' | 'cancelled' | 'expired' | 'left_out';
}

export interface VendorBatch {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  readonly lines: readonly Line[];
  readonly file: string | undefined;
  state: 'running' | 'completed' | 'cancelled' | 'expired' | 'failed';
  polls: number;
}

/** What goes wrong with a request: an error instead of an answer, or a connection that breaks before or after the work. */
export type Trouble = { readonly status: number; readonly headers?: Record<string, string> } | 'before' | 'after';

export interface Reply {
  readonly status?: number;
  readonly json?: object;
  /** Lines. */
  readonly text?: string;
  readonly headers?: Record<string, string>;
}

interface Call {
  readonly step: string;
  readonly params: readonly string[];
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly body: Buffer;
}

export interface Route {
  readonly step: string;
  readonly method: string;
  readonly path: RegExp;
  handle(call: Call): Reply;
}

/** What each line consumes. */
export const used = { input: 10, output: 5 };

/** What a line is answered with: what it asks to be said, or a text of its own. */
export const saidBy = ({ id, body }: Pick<Line, 'id' | 'body'>): string =>
  /say: ([^"\\]*)/.exec(JSON.stringify(body))?.[1] ?? `answer ${id}`;

/** Reported usage of a line; a marked line reports more than a call can have consumed. */
export const usedBy = ({ body }: Pick<Line, 'body'>): typeof used =>
  JSON.stringify(body).includes('[lies]') ? { input: 4_000_000_000, output: 4_000_000_000 } : used;

export class BatchVendor {
  readonly batches = new Map<string, VendorBatch>();
  readonly files = new Map<string, { readonly name: string; readonly text: string }>();
  /** What a strict vendor would not forgive. */
  readonly faults: string[] = [];
  readonly steps: string[] = [];
  /** How many looks at a batch find it running. */
  pollsUntilEnd = 1;
  /** How a batch ends by itself. */
  endsAs: VendorBatch['state'] = 'completed';
  trouble: (step: string) => Trouble | undefined | Promise<Trouble | undefined> = () => undefined;
  origin = '';
  readonly #routes: Route[] = [];
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  #ids = 0;

  add(routes: readonly Route[]): void {
    this.#routes.push(...routes);
  }

  /** As new. */
  reset(): void {
    for (const kept of [this.batches, this.files]) kept.clear();
    for (const list of [this.faults, this.steps]) list.length = 0;
    this.pollsUntilEnd = 1;
    this.endsAs = 'completed';
    this.trouble = () => undefined;
  }

  async start(port = 0): Promise<string> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.origin = `http://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
    return this.origin;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  newId(prefix: string): string {
    this.#ids += 1;
    return `${prefix}${this.#ids}`;
  }

  get made(): number {
    return [...this.batches.values()].flatMap(({ lines }) => lines).filter(({ outcome }) => outcome === 'made').length;
  }

  create(prefix: string, name: string, lines: readonly Omit<Line, 'outcome'>[], file?: string): VendorBatch {
    const id = this.newId(prefix);
    const ids = new Set([...this.batches.values()].flatMap((batch) => batch.lines.map((line) => line.id)));
    for (const line of lines) if (ids.has(line.id)) this.faults.push(`the line ${line.id} is ordered twice`);
    const batch: VendorBatch = {
      ...{ id, name, file, createdAt: Date.now(), state: 'running', polls: 0 },
      lines: lines.map((line) => ({ ...line, outcome: 'open' as const })),
    };
    this.batches.set(id, batch);
    return batch;
  }

  /** A look at a batch, which may end by it. */
  look(batch: VendorBatch): VendorBatch {
    batch.polls += 1;
    if (batch.state === 'running' && batch.polls > this.pollsUntilEnd) this.end(batch, this.endsAs);
    return batch;
  }

  end(batch: VendorBatch, state: VendorBatch['state']): void {
    batch.state = state;
    if (state === 'failed') return;
    for (const line of batch.lines) {
      const text = JSON.stringify(line.body);
      const missed = state === 'completed' ? undefined : state;
      if (text.includes('[late]') && missed === 'cancelled') line.outcome = 'cancelled';
      else if (text.includes('[late]') && missed === 'expired') line.outcome = 'expired';
      else if (text.includes('[left out]')) line.outcome = 'left_out';
      else line.outcome = text.includes('[refused]') ? 'refused' : 'made';
    }
  }

  require(holds: boolean, fault: string): void {
    if (!holds) this.faults.push(fault);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {});
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      // The client was killed while it sent.
      return;
    }
    const url = new URL(request.url!, this.origin);
    const route = this.#routes.find(({ method, path }) => method === request.method && path.test(url.pathname));
    if (route === undefined) {
      this.faults.push(`unknown address: ${request.method} ${url.pathname}`);
      response.writeHead(404).end('{}');
      return;
    }
    this.steps.push(route.step);
    const trouble = await this.trouble(route.step);
    if (trouble === 'before') return void request.socket.destroy();
    if (typeof trouble === 'object') {
      response.writeHead(trouble.status, { 'content-type': 'application/json', ...trouble.headers });
      response.end('{"error":{"message":"trouble","type":"api_error"}}');
      return;
    }
    const params = route.path.exec(url.pathname)!.slice(1);
    const call = { step: route.step, params, query: url.searchParams, request, body: Buffer.concat(chunks) };
    const { status = 200, json = {}, text, headers = {} } = route.handle(call);
    if (trouble === 'after') return void request.socket.destroy();
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(text ?? JSON.stringify(json));
  }
}

export const notFound: Reply = { status: 404, json: { error: { message: 'not found', type: 'not_found_error' } } };
