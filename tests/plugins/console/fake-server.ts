/** A console over services in memory as browsers see it: the built pages with the gateway's own headers, and the real API. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { createApi } from '../../../plugins/console/api/index.ts';
import { Files } from '../../../plugins/console/files.ts';
import { noFields } from './caller.ts';
import { type FakeConsole, plainBrand } from './fake-console.ts';

const dist = new URL('../../../plugins/console/web/dist/', import.meta.url);

export interface FakeServer {
  readonly origin: string;
  close(): void;
}

/** `?as=client` in any address says who is signed in. `anyOrigin`: for pages of a development server, which has an origin of its own. */
export async function serveFake(testbed: FakeConsole, port = 0, anyOrigin = false): Promise<FakeServer> {
  const api = createApi(testbed);
  const { clock, random } = testbed.host;
  const files = new Files({ folder: dist, mediaOrigins: [], brand: plainBrand, clock, random });
  const server = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url!, origin);
    const as = url.searchParams.get('as');
    if (as !== null) outgoing.setHeader('set-cookie', `fake=${as}; path=/`);
    const answered = url.pathname.startsWith('/console/api/') ? send(incoming, url) : page(incoming, url);
    answered.then(
      (response) => report(outgoing, response),
      (error: unknown) => outgoing.writeHead(500).end(String(error)),
    );
  });
  // Longer than any pause of a test: a request on a connection that is being closed would fail.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve) => server.listen(port, resolve));
  const origin = `http://localhost:${(server.address() as AddressInfo).port}`;

  async function send(incoming: IncomingMessage, url: URL): Promise<Response> {
    const body = incoming.method === 'GET' ? null : (Readable.toWeb(incoming) as ReadableStream);
    const headers = new Headers(incoming.headers as Record<string, string>);
    const address = origin + url.pathname.slice('/console/api'.length) + url.search;
    const request = new Request(address, { method: incoming.method!, headers, body, duplex: 'half' } as RequestInit);
    const pages = anyOrigin ? (headers.get('origin') ?? origin) : origin;
    return api.fetch(request, { origin: pages, address: '127.0.0.1', exchange: { request: noFields } });
  }
  async function page(incoming: IncomingMessage, { pathname }: URL): Promise<Response> {
    const path = pathname.replace(/^\/console\/?/, '');
    const { status, headers, body } = await files.answer(path, incoming.headers['accept-encoding'] as string);
    return new Response(body as ConstructorParameters<typeof Response>[0], { status, headers });
  }
  return {
    origin,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function report(outgoing: ServerResponse, { status, headers, body }: Response): void {
  outgoing.writeHead(status, Object.fromEntries(headers));
  if (body === null) outgoing.end();
  else Readable.fromWeb(body as never).pipe(outgoing);
}
