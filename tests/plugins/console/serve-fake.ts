/**
 * The console for work on its pages: API and built files over the fakes, at `PORT` (8099).
 * `--role client|auditor|operator` (operator) says who is signed in; `?as=client` in any address changes it for a browser.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { Readable } from 'node:stream';
import { parseArgs } from 'node:util';
import type { Role } from '../../../plugins/console/actor.ts';
import { createApi } from '../../../plugins/console/api/index.ts';
import { noFields } from './caller.ts';
import { fakeConsole } from './fake-console.ts';
import { addRequest, chance } from './fakes/world.ts';

const { values } = parseArgs({ options: { role: { type: 'string', default: 'operator' }, live: { type: 'boolean' } } });
const port = Number(process.env['PORT'] || 8099);
const origin = `http://localhost:${port}`;
const console_ = fakeConsole({ now: Date.now, role: values.role === 'nobody' ? undefined : (values.role as Role) });
const api = createApi(console_);
const dist = new URL('../../../plugins/console/web/dist/', import.meta.url).pathname;
const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

// One more request every two seconds, so that live numbers move.
const next = chance(99);
const traffic = setInterval(() => addRequest(console_.world, Date.now() - 2_000, next), 2_000);

const server = createServer(async (incoming, outgoing) => {
  const url = new URL(incoming.url!, origin);
  const as = url.searchParams.get('as');
  if (as !== null) outgoing.setHeader('set-cookie', `fake=${as}; path=/`);
  if (!url.pathname.startsWith('/console/api/')) return file(url.pathname);
  const headers = new Headers(incoming.headers as Record<string, string>);
  const body = incoming.method === 'GET' ? null : (Readable.toWeb(incoming) as ReadableStream);
  const path = url.pathname.slice('/console/api'.length) + url.search;
  // The page may come from a development server with an origin of its own.
  const request = new Request(`${origin}${path}`, {
    method: incoming.method!,
    headers,
    body,
    duplex: 'half',
  } as RequestInit);
  const answer = await api.fetch(request, {
    origin: headers.get('origin') ?? origin,
    address: '127.0.0.1',
    exchange: { request: noFields },
  });
  outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) outgoing.end();
  else Readable.fromWeb(answer.body as never).pipe(outgoing);

  function file(path: string): void {
    const wanted = normalize(join(dist, path.replace(/^\/console\/?/, '')));
    const found =
      wanted.startsWith(dist) && existsSync(wanted) && statSync(wanted).isFile() ? wanted : join(dist, 'index.html');
    if (!existsSync(found)) return void outgoing.writeHead(404).end('The console is not built: vite build.');
    outgoing.writeHead(200, { 'content-type': types[extname(found)] ?? 'application/octet-stream' });
    outgoing.end(readFileSync(found));
  }
});
// Longer than any pause of a test, which would ask anew on a connection that is just being closed.
server.keepAliveTimeout = 600_000;
server.listen(port, () => console.log(`The console stands at ${origin}/console/ (API at ${origin}/console/api/me)`));
process.on('SIGINT', () => {
  clearInterval(traffic);
  server.close();
  server.closeAllConnections();
});
