/**
 * Where the browser's tests play: the built pages over the stand-in API, or, with `CONSOLE_URL=http://…` (and an operator's
 * bearer token in `CONSOLE_OPERATOR_TOKEN`), a gateway as it runs. Each page belongs to a client who is signed in.
 */
import { randomUUID } from 'node:crypto';
import type { Browser, BrowserContextOptions, Page, Route } from 'playwright-core';
import { shared } from './browser-test.ts';
import { launchBrowser } from './chromium.ts';
import { buildPages } from './operator-stage.ts';
import { openDemo, openStandIn, password, post, type Testbed } from './testbeds.ts';

const given = process.env['CONSOLE_URL'];

export { password } from './testbeds.ts';

export interface Stage {
  readonly isReal: boolean;
  /** Scheme and host. */
  readonly origin: string;
  /** A page of a client who is signed in. What the browser complains of is gathered in `complaints`. */
  page(options?: BrowserContextOptions): Promise<Page>;
  /** A page without a sign-in. */
  stranger(options?: BrowserContextOptions): Promise<Page>;
  readonly complaints: string[];
  /** A code that brings so many dollars. */
  makeCode(usd: string): Promise<string>;
  close(): Promise<void>;
}

/** One for all tests of a file. */
export const sharedStage = (): Stage => shared(openStage, (stage) => stage.close());

/** `demo`: on the demo gateway itself, unless another one is given. */
export async function openStage(wanted: 'stand-in' | 'demo' = 'stand-in'): Promise<Stage> {
  if (given === undefined) buildPages();
  const testbed = given === undefined ? await (wanted === 'demo' ? openDemo() : openStandIn()) : testbedAt(given);
  const isReal = given !== undefined || wanted === 'demo';
  const { origin } = testbed;
  const browser = await launchBrowser();
  const complaints: string[] = [];
  const enter = async (role: 'client' | 'anonymous', options?: BrowserContextOptions) => {
    const page = await open(browser, options, complaints);
    if (!isReal) await stageScenery(page, origin, role);
    else if (role === 'client') await signUp(page, origin);
    return page;
  };
  return {
    isReal,
    origin,
    complaints,
    page: (options) => enter('client', options),
    stranger: (options) => enter('anonymous', options),
    makeCode: async (usd) => {
      const wish = { gift: { kind: 'balance', amount: usd }, count: 1, maxUses: 1, reason: 'a test' };
      const answer = await post(origin, '/admin/codes', wish, testbed.operatorHeaders);
      return ((await answer.json()) as { codes: string[] }).codes[0]!;
    },
    close: async () => {
      await browser.close();
      await testbed.close();
    },
  };
}

const testbedAt = (origin: string): Testbed => ({
  origin,
  operatorHeaders: { authorization: `Bearer ${process.env['CONSOLE_OPERATOR_TOKEN'] ?? ''}` },
  close: async () => undefined,
});

/** What the stand-in lacks: the sign-in library, a model that answers. */
async function stageScenery(page: Page, origin: string, role: string): Promise<void> {
  const context = page.context();
  await context.route(`${origin}/console/api/auth/**`, answerAuth);
  await context.route(`${origin}/v1/chat/completions`, answerChat);
  await context.addCookies([{ name: 'fake', value: role, url: origin }]);
}

async function open(browser: Browser, options: BrowserContextOptions | undefined, complaints: string[]): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    locale: 'en',
    reducedMotion: 'reduce',
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(40_000);
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // A failed load is reported as an error as well; each test judges that itself.
    const matters = /Content.Security.Policy|^\w*Error\b/i.test(message.text());
    if (message.type() === 'error' && matters) complaints.push(message.text().slice(0, 500));
  });
  return page;
}

/** The sign-in library's answers, of which the stand-in has none. */
async function answerAuth(route: Route): Promise<void> {
  const url = new URL(route.request().url());
  const path = url.pathname.split('/auth')[1]!;
  const session = {
    id: 's1',
    token: 't1',
    createdAt: '2026-11-20T10:00:00.000Z',
    updatedAt: '2026-11-20T10:00:00.000Z',
    expiresAt: '2026-12-20T10:00:00.000Z',
    ipAddress: '192.0.2.7',
    userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0 Safari/537.36',
  };
  const answers: Record<string, unknown> = {
    '/list-sessions': [session, { ...session, id: 's2', token: 't2', ipAddress: '198.51.100.9' }],
    '/get-session': { session },
    '/passkey/list-user-passkeys': [{ id: 'p1', name: 'Laptop', createdAt: '2026-11-02T10:00:00.000Z' }],
    '/sign-up/email': { token: 't1' },
    '/two-factor/enable': {
      totpURI: 'otpauth://totp/Gateway:ada?secret=ABCDEFGHIJKLMNOP&issuer=Gateway',
      backupCodes: ['aaaaa-11111', 'bbbbb-22222'],
    },
  };
  if (path === '/sign-up/email' || path === '/sign-in/email') {
    const { password } = route.request().postDataJSON() as { password: string };
    if (password.startsWith('wrong')) return route.fulfill({ status: 401, json: { error: { code: 'wrong' } } });
    await route
      .request()
      .frame()
      .page()
      .context()
      .addCookies([{ name: 'fake', value: 'client', url: url.origin }]);
  }
  return route.fulfill({ json: answers[path] ?? { status: true } });
}

/** A streamed answer, as the gateway's own chat endpoint gives it. */
function answerChat(route: Route): Promise<void> {
  if (route.request().headers()['authorization'] !== 'Bearer sk-browser')
    return route.fulfill({ status: 401, json: { error: { message: 'This key is not known.' } } });
  const chunks = ['Hello', ' from', ' the', ' model.'].map((content) => ({ choices: [{ delta: { content } }] }));
  const events = [...chunks, { choices: [], usage: { prompt_tokens: 7, completion_tokens: 4 } }];
  const body = `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`;
  return route.fulfill({ contentType: 'text/event-stream', body });
}

async function signUp(page: Page, origin: string): Promise<void> {
  const answer = await page.request.post(`${origin}/console/api/auth/sign-up/email`, {
    headers: { origin, 'x-console': '1' },
    data: { name: 'Ada', email: `ada-${randomUUID()}@example.test`, password },
  });
  if (!answer.ok()) throw new Error(`signing up: ${answer.status()} ${await answer.text()}`);
}
