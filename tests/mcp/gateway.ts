/** A gateway with servers of tools, and a person with a key who connects them in a browser. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startGateway } from '../helpers/gateway.ts';
import { Browser } from '../plugins/console/browser.ts';

export interface Opened {
  readonly origin: string;
  readonly key: string;
  /** One more server. */
  add(name: string, settings: object): Promise<void>;
  /** The way through the browser, from the page of tools and back to it. */
  connect(server: string): Promise<void>;
  stop(): Promise<void>;
}

export async function openGateway(): Promise<Opened> {
  const servers: Record<string, object> = {};
  // Each section on a line of its own.
  const yaml = () =>
    Object.entries({
      gateway: 'suite',
      listen: '127.0.0.1:0',
      plugins: ['storage', 'auth', 'plans', 'rate-limit', 'billing', 'mcp', 'console'],
      plans: { default: 'free', offers: { free: { price: 0 } } },
      mcp: { servers },
      console: { sign_up: 'open' },
    })
      .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
      .join('');
  const gateway = await startGateway(yaml());
  const file = join(gateway.directory, 'gateway.yaml');
  let changes: Promise<unknown> = Promise.resolve();
  const change = async () => {
    const kept = (await readFile(file, 'utf8')).split('\n');
    const mcp = yaml()
      .split('\n')
      .find((line) => line.startsWith('mcp:'))!;
    await writeFile(file, kept.map((line) => (line.startsWith('mcp:') ? mcp : line)).join('\n'));
    const { problems } = await gateway.gateway.reload();
    if (problems.length > 0) throw new Error(JSON.stringify(problems));
  };
  const { origin } = gateway;
  const browser = new Browser(origin);
  const person = { email: 'ada@example.test', password: 'a long enough password', name: 'Ada' };
  await browser.send('/auth/sign-up/email', { body: person });
  const { key } = (await browser.send('/keys', { body: { name: 'suite' } })).json;
  return {
    origin,
    key,
    add(name, settings) {
      const changed = changes.then(() => {
        servers[name] = settings;
        return change();
      });
      changes = changed.catch(() => {});
      return changed;
    },
    async connect(server) {
      const begun = await browser.send(`/pages/tools/connections/${server}`, { body: { origin } });
      if (begun.status !== 200) throw new Error(begun.text);
      const led = await fetch(begun.json.location, { redirect: 'manual' });
      const back = new URL(led.headers.get('location') ?? '', begun.json.location);
      const finished = await browser.send('/pages/tools/answers', { body: Object.fromEntries(back.searchParams) });
      if (finished.status !== 200) throw new Error(finished.text);
    },
    stop: () => gateway.stop(),
  };
}
