/** The operator's pages in a real browser, over services in memory: the built files, the real API, the real headers. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { configFiles } from '../../core/contract/config-files.ts';
import type { Role } from '../../plugins/console/actor.ts';
import { createApi } from '../../plugins/console/api/index.ts';
import { Files } from '../../plugins/console/files.ts';
import { noFields } from '../plugins/console/caller.ts';
import { type FakeConsole, fakeConsole } from '../plugins/console/fake-console.ts';
import { launchBrowser, noBrowser } from './chromium.ts';

const web = new URL('../../plugins/console/web/', import.meta.url);

/** Why these tests cannot run here; false: they can. */
export const cannotRun: string | false = noBrowser;

export interface Stage {
  readonly testbed: FakeConsole;
  readonly origin: string;
  /** A page of its own, signed in with this role; what the browser complains about ends up in `complaints`. */
  page(role?: Role, options?: BrowserContextOptions): Promise<Page>;
  readonly complaints: string[];
  stop(): Promise<void>;
}

export async function startStage(): Promise<Stage> {
  buildPages();
  const testbed = fakeConsole({ now: Date.now, role: undefined });
  giveSchema(testbed);
  const { server, origin } = await serve(testbed);
  const complaints: string[] = [];
  let browser: Browser;
  try {
    browser = await launchBrowser();
  } catch (error) {
    server.close();
    throw error;
  }
  return {
    testbed,
    origin,
    complaints,
    async page(role = 'operator', options = {}) {
      const context = await browser.newContext({ locale: 'en-US', baseURL: origin, ...options });
      await context.addCookies([{ name: 'fake', value: role, url: origin }]);
      const page = await context.newPage();
      page.setDefaultTimeout(40_000);
      page.on('pageerror', ({ message }) => complaints.push(message));
      page.on('console', (message) => {
        // Without a socket the pages poll; only the browser's own log reports that.
        if (message.type() === 'error' && !/WebSocket/.test(message.text())) complaints.push(message.text());
      });
      return page;
    },
    async stop() {
      await browser.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

/** The stand-in's file is small, but what may stand in it is what may stand in a real one. */
function giveSchema({ host }: FakeConsole): void {
  const configFilesService = host.get(configFiles);
  const schema = JSON.parse(readFileSync(new URL('../../config/schema.json', import.meta.url), 'utf8')) as object;
  host.provide(configFiles, {
    ...configFilesService,
    view: async () => ({ ...(await configFilesService.view()), schema }),
  });
}

/** Builds the pages where a source is newer than what was built. */
export function buildPages(): void {
  const built = new URL('dist/index.html', web);
  const names = readdirSync(new URL('src/', web), { recursive: true, encoding: 'utf8' });
  const newest = Math.max(...names.map((name) => statSync(new URL(`src/${name}`, web)).mtimeMs));
  if (existsSync(built) && statSync(built).mtimeMs >= newest) return;
  const { status, stderr } = spawnSync(process.execPath, [fileURLToPath(new URL('build.ts', web))]);
  if (status !== 0) throw new Error(`the pages could not be built: ${stderr}`);
}

async function serve(testbed: FakeConsole) {
  const api = createApi(testbed);
  const { clock, random } = testbed.host;
  const files = new Files({ folder: new URL('dist/', web), mediaOrigins: [], clock, random });
  const server = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url!, origin);
    const answered = url.pathname.startsWith('/console/api/') ? send(incoming, url) : page(url, incoming);
    answered.then(
      (response) => report(outgoing, response),
      (error: unknown) => outgoing.writeHead(500).end(String(error)),
    );
  });
  // Longer than any pause in a test: a request on a connection that is being closed would fail.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function send(incoming: IncomingMessage, url: URL): Promise<Response> {
    const body = incoming.method === 'GET' ? null : (Readable.toWeb(incoming) as ReadableStream);
    const headers = new Headers(incoming.headers as Record<string, string>);
    const address = origin + url.pathname.slice('/console/api'.length) + url.search;
    const request = new Request(address, { method: incoming.method!, headers, body, duplex: 'half' } as RequestInit);
    return api.fetch(request, { origin, address: '127.0.0.1', exchange: { request: noFields } });
  }
  async function page({ pathname }: URL, incoming: IncomingMessage): Promise<Response> {
    const path = pathname.replace(/^\/console\/?/, '');
    const { status, headers, body } = await files.answer(path, incoming.headers['accept-encoding'] as string);
    return new Response(body as ConstructorParameters<typeof Response>[0], { status, headers });
  }
  return { server, origin };
}

async function report(outgoing: ServerResponse, response: Response): Promise<void> {
  const headers = Object.fromEntries(response.headers);
  outgoing.writeHead(response.status, headers);
  outgoing.end(Buffer.from(await response.arrayBuffer()));
}
