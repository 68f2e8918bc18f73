/** A small gateway with a console, its first operator made by the printed link. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { Browser } from './browser.ts';

export const operator = { email: 'oscar@example.test', password: 'a long enough password', name: 'Oscar' };

export interface TestConsole extends TestGateway {
  /** What the gateway printed and logged at its start. */
  readonly printed: string;
  browser(): Browser;
  stop(): Promise<void>;
}

/** `section`: lines of the console's section. `plugins`: further ones of the list. */
export async function startConsole(
  section = 'sign_up: open',
  more = '',
  plugins: readonly string[] = [],
): Promise<TestConsole> {
  const directory = await mkdtemp(join(tmpdir(), 'console-'));
  const yaml = `
gateway: test
listen: \${PORT}
plugins: ${JSON.stringify(['storage', 'request-log', 'auth', 'plans', 'console', ...plugins])}
${/^plans:/m.test(more) ? '' : 'plans: { default: free, offers: { free: { price: 0 } } }'}
console:
${section.replace(/^/gm, '  ')}
${more}`;
  return startOn(yaml, directory, { page: originIn(section), isFresh: true });
}

/** The whole demo gateway, with the sandbox instead of every vendor. `more`: further lines of its file. */
export async function startDemo(file = 'demo', more = '', port = 0): Promise<TestConsole> {
  const directory = await mkdtemp(join(tmpdir(), 'console-'));
  return startOn(`include: config/${file}.yaml\n${more}`, directory, { page: originIn(more), isFresh: true, port });
}

/** A gateway of a whole file; a list of `include`s is taken as it is, so that files may be copies that are written to. */
export async function startFile(yaml: string, directory: string): Promise<TestConsole> {
  return startOn(yaml, directory, {});
}

const originIn = (lines: string) => /^ *origin: (\S+)$/m.exec(lines)?.[1];

interface Place {
  /** Where browsers take their pages to come from; by default where the gateway listens. */
  readonly page?: string | undefined;
  readonly port?: number;
  readonly isFresh?: boolean;
}

async function startOn(
  yaml: string,
  directory: string,
  { page, port = 0, isFresh = false }: Place,
): Promise<TestConsole> {
  const printed: string[] = [];
  const write = process.stdout.write;
  // The greeting of the plugin `welcome` is for people.
  process.stdout.write = ((text: string) => {
    printed.push(String(text));
    return true;
  }) as typeof process.stdout.write;
  const gateway = await startGateway(yaml, { directory, isFresh, environment: { PORT: String(port) } }).finally(() => {
    process.stdout.write = write;
  });
  return {
    ...gateway,
    printed: [...printed, ...gateway.lines].join(''),
    browser: () => new Browser(gateway.origin, page),
    async stop() {
      await gateway.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export function firstToken({ printed }: TestConsole): string {
  return decodeURIComponent(/\/console\/first\?token=([\w%-]+)/.exec(printed)![1]!);
}

export async function signIn(browser: Browser, who: { email: string; password: string }) {
  return browser.send('/auth/sign-in/email', { body: { email: who.email, password: who.password } });
}

/** A signed-in operator, who becomes the first one where there is none. */
export async function operatorOf(testbed: TestConsole): Promise<Browser> {
  const browser = testbed.browser();
  await browser.send('/first-operator', { body: { token: firstToken(testbed), ...operator } });
  const reply = await signIn(browser, operator);
  if (reply.status !== 200) throw new Error(`the operator could not sign in: ${reply.text}`);
  return browser;
}

/** Somebody who signs up by themselves. */
export async function clientOf(testbed: TestConsole, email = 'ada@example.test'): Promise<Browser> {
  const browser = testbed.browser();
  const body = { email, password: 'another long password', name: 'Ada' };
  const reply = await browser.send('/auth/sign-up/email', { body });
  if (reply.status !== 200) throw new Error(`the sign-up failed: ${reply.text}`);
  return browser;
}
