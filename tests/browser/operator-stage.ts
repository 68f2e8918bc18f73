/** The operator's pages in a real browser, over services in memory: the built files, the real API, the real headers. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { configFiles } from '../../core/contract/config-files.ts';
import type { Role } from '../../plugins/console/actor.ts';
import { type FakeConsole, fakeConsole } from '../plugins/console/fake-console.ts';
import { serveFake } from '../plugins/console/fake-server.ts';
import { shared } from './browser-test.ts';
import { launchBrowser } from './chromium.ts';

const web = new URL('../../plugins/console/web/', import.meta.url);

export interface Stage {
  readonly testbed: FakeConsole;
  readonly origin: string;
  /** A page of its own, signed in with this role; what the browser complains about ends up in `complaints`. */
  page(role?: Role, options?: BrowserContextOptions): Promise<Page>;
  readonly complaints: string[];
  stop(): Promise<void>;
}

/** One for all tests of a file. */
export const sharedStage = (): Stage => shared(startStage, (stage) => stage.stop());

export async function startStage(): Promise<Stage> {
  buildPages();
  const testbed = fakeConsole({ now: Date.now, role: undefined });
  giveSchema(testbed);
  const { origin, close } = await serveFake(testbed);
  const complaints: string[] = [];
  let browser: Browser;
  try {
    browser = await launchBrowser();
  } catch (error) {
    close();
    throw error;
  }
  return {
    testbed,
    origin,
    complaints,
    async page(role = 'operator', options = {}) {
      const context = await browser.newContext({
        locale: 'en-US',
        baseURL: origin,
        reducedMotion: 'reduce',
        ...options,
      });
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
      close();
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

/** Builds the pages where a source is newer than what was built. Of the processes of a run one does so, and the others wait for it. */
export function buildPages(): void {
  const building = join(process.env['TEST_QUEUE'] ?? tmpdir(), 'building-pages');
  const patience = Date.now() + 60_000;
  for (;;) {
    while (existsSync(building) && Date.now() < patience)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    if (areBuilt()) return;
    try {
      mkdirSync(building);
      break;
    } catch (error) {
      // Another process was quicker.
      if (Date.now() > patience) throw error;
    }
  }
  const { status, stderr } = spawnSync(process.execPath, [fileURLToPath(new URL('build.ts', web))]);
  rmdirSync(building);
  if (status !== 0) throw new Error(`the pages could not be built: ${stderr}`);
}

function areBuilt(): boolean {
  const built = new URL('dist/index.html', web);
  const names = readdirSync(new URL('src/', web), { recursive: true, encoding: 'utf8' });
  const newest = Math.max(...names.map((name) => statSync(new URL(`src/${name}`, web)).mtimeMs));
  return existsSync(built) && statSync(built).mtimeMs >= newest;
}
