/** A small gateway with a console, its first operator made by the printed link. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { databaseUrl, fillDirectory } from '../../helpers/database.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { Browser } from './browser.ts';

export const operator = { email: 'oscar@example.test', password: 'a long enough password', name: 'Oscar' };

export interface TestConsole extends TestGateway {
  /** What the gateway printed for whoever stands at the terminal. */
  readonly printed: string;
  browser(): Browser;
  stop(): Promise<void>;
}

/** `section`: lines of the console's section. */
export async function startConsole(section = 'sign_up: open', more = ''): Promise<TestConsole> {
  const directory = await mkdtemp(join(tmpdir(), 'console-'));
  if (databaseUrl === undefined) await fillDirectory(directory);
  const yaml = `
gateway: house
listen: \${PORT}
plugins: [storage, request-log, auth, plans, console]
plans: { default: free, offers: { free: { price: 0 } } }
console:
${section.replace(/^/gm, '  ')}
${more}`;
  const page = /^origin: (\S+)$/m.exec(section)?.[1];
  const printed: string[] = [];
  const write = process.stdout.write;
  // The greeting goes to whoever stands at the terminal, not into the log.
  process.stdout.write = ((text: string) => {
    printed.push(String(text));
    return true;
  }) as typeof process.stdout.write;
  const gateway = await startGateway(yaml, { directory }).finally(() => {
    process.stdout.write = write;
  });
  return { ...gateway, printed: printed.join(''), browser: () => new Browser(gateway.origin, page) };
}

export function firstToken({ printed }: TestConsole): string {
  return decodeURIComponent(/\/console\/first\?token=([\w%-]+)/.exec(printed)![1]!);
}

export async function signIn(browser: Browser, who: { email: string; password: string }) {
  return browser.ask('/auth/sign-in/email', { body: { email: who.email, password: who.password } });
}

/** A signed-in operator, who becomes the first one where there is none. */
export async function operatorOf(house: TestConsole): Promise<Browser> {
  const browser = house.browser();
  await browser.ask('/first-operator', { body: { token: firstToken(house), ...operator } });
  const told = await signIn(browser, operator);
  if (told.status !== 200) throw new Error(`the operator could not sign in: ${told.text}`);
  return browser;
}

/** Somebody who signs up by themselves. */
export async function clientOf(house: TestConsole, email = 'ada@example.test'): Promise<Browser> {
  const browser = house.browser();
  const body = { email, password: 'another long password', name: 'Ada' };
  const told = await browser.ask('/auth/sign-up/email', { body });
  if (told.status !== 200) throw new Error(`nobody could sign up: ${told.text}`);
  return browser;
}
