/** Clients that call a tool through crashes, the server of that tool, and what must hold between what it ran and what was charged. */
import { randomInt, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import type { Findings } from './batches.ts';

/** Has one tool, which takes a while and remembers the marks that it was called with. */
export class ToolServer {
  readonly ran: string[] = [];
  readonly #handler = createMcpHandler(() => this.#made());
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  async start(): Promise<string> {
    await new Promise<void>((resolve) => void this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #made(): Server {
    const server = new Server({ name: 'marks', version: '1' }, { capabilities: { tools: {} } });
    const inputSchema = { type: 'object' as const, properties: { mark: { type: 'string' } } };
    server.setRequestHandler('tools/list', async () => ({ tools: [{ name: 'mark', inputSchema }] }));
    server.setRequestHandler('tools/call', async ({ params }) => {
      const mark = String(params.arguments?.['mark']);
      this.ran.push(mark);
      await pause(randomInt(0, 60));
      return { content: [{ type: 'text', text: `marked ${mark}` }] };
    });
    return server;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const headers = Object.entries(request.headers).filter(([name]) => /^(?:accept|content-type|mcp-.+)$/.test(name));
      const asked = new Request('http://marks/mcp', { method: 'POST', headers: headers as [string, string][] });
      const given = await this.#handler.fetch(asked, { parsedBody: JSON.parse(Buffer.concat(chunks).toString()) });
      response.writeHead(given.status, Object.fromEntries(given.headers));
      response.end(Buffer.from(await given.arrayBuffer()));
    } catch {
      // The gateway has died.
      response.destroy();
    }
  }
}

export class ToolClients {
  /** Requests with their whole result. */
  readonly acknowledged: string[] = [];
  cancelled = 0;
  readonly #origin: string;
  #running = true;
  readonly #workers: Promise<void>[];

  /** Clients with the first key stay for each answer, those with the second one leave some calls. */
  constructor(origin: string, keys: readonly string[], workers: number) {
    this.#origin = origin;
    this.#workers = Array.from({ length: workers }, (_, index) => this.#work(keys[index % 2]!, index % 2 === 1));
  }

  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#workers);
  }

  async #work(key: string, mayLeave: boolean): Promise<void> {
    while (this.#running) await this.#call(key, mayLeave).catch(() => pause(20));
  }

  async #call(key: string, mayLeave: boolean): Promise<void> {
    const mark = `${mayLeave ? 'left' : 'awaited'} ${randomUUID()}`;
    const gone = new AbortController();
    if (mayLeave && randomInt(5) === 0) {
      this.cancelled++;
      setTimeout(() => gone.abort(), randomInt(0, 60)).unref();
    }
    const answer = await fetch(`${this.#origin}/mcp`, {
      method: 'POST',
      signal: gone.signal,
      headers: {
        ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' },
      },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name: 'marks__mark', arguments: { mark } },
      }),
    });
    const text = await answer.text();
    if (text.includes(`marked ${mark}`)) this.acknowledged.push(answer.headers.get('x-request-id')!);
    else throw new Error(`status ${answer.status}`);
  }
}

/** A call of the tool as the ledger has it. */
export interface ToolCharge {
  readonly requestId: string;
  readonly accountId: string;
  /** false: its attempt was made, and how it ended is unknown. */
  readonly isCharged: boolean;
  /** A kill broke it off behind its SENT record: it is charged by estimate and may never have reached the server. */
  readonly isEstimated: boolean;
}

/**
 * Each result that a client holds was charged once, nothing was charged that did not run, and what ran is in the ledger. A client that leaves
 * pays for what was sent, which may never have arrived, and so does a client whose call a kill breaks off: at most those that run then.
 */
export function compareTools(
  { acknowledged, cancelled }: Pick<ToolClients, 'acknowledged' | 'cancelled'>,
  rows: readonly ToolCharge[],
  { ran }: Pick<ToolServer, 'ran'>,
  /** The account with clients that stay, and how many calls the kills can have broken off. */
  { staying, brokenOff }: { readonly staying: string; readonly brokenOff: number },
): Findings {
  const violations: string[] = [];
  const charged = new Set<string>();
  let [awaited, estimated] = [0, 0];
  for (const { requestId, accountId, isCharged, isEstimated } of rows) {
    if (!isCharged) continue;
    if (isEstimated) estimated++;
    else if (accountId === staying) awaited++;
    if (charged.has(requestId)) violations.push(`the tool call ${requestId} was charged twice`);
    charged.add(requestId);
  }
  for (const id of acknowledged)
    if (!charged.has(id)) violations.push(`the tool call ${id} was answered and never charged`);
  if (new Set(ran).size < ran.length) violations.push('a tool call ran twice');
  const ranAwaited = ran.filter((mark) => mark.startsWith('awaited')).length;
  if (awaited > ranAwaited)
    violations.push(`${awaited} tool calls of clients that stay were charged, ${ranAwaited} ran`);
  if (estimated > brokenOff)
    violations.push(`${estimated} tool calls were charged by estimate, kills broke off ${brokenOff} at most`);
  if (charged.size - estimated > ran.length + cancelled)
    violations.push(`${charged.size} tool calls were charged, ${ran.length} ran and ${cancelled} were left`);
  if (ran.length > rows.length) violations.push(`${ran.length} tool calls ran, the ledger has ${rows.length}`);
  const account = [
    `${acknowledged.length} tool calls were answered whole, ${cancelled} were left; ${ran.length} ran, ${charged.size} were charged, ${estimated} of them by estimate, of ${rows.length - charged.size} the end is unknown`,
  ];
  return { account, violations };
}
