/** A search engine on loopback that answers what a test has set, and keeps what it was asked. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

interface SeenSearch {
  readonly method: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

export interface StandInEngine {
  readonly origin: string;
  readonly seen: SeenSearch[];
  /** `hang`: no answer at all. `after`: once this is resolved. */
  answer: { readonly status: number; readonly body: string; readonly after?: Promise<void> } | 'hang';
  stop(): Promise<void>;
}

export async function startEngine(): Promise<StandInEngine> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    engine.seen.push({
      ...{ method: request.method!, query: new URL(request.url!, 'http://engine').searchParams },
      ...{ headers: request.headers, body: text === '' ? undefined : JSON.parse(text) },
    });
    const { answer } = engine;
    if (answer === 'hang') return;
    await answer.after;
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const engine: StandInEngine = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen: [],
    answer: { status: 200, body: '{"results":[]}' },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return engine;
}
