/**
 * Where the browser's tests play: the built pages over the stand-in API, or, with `CONSOLE_URL=http://…` (and an operator's
 * bearer token in `CONSOLE_OPERATOR_TOKEN`), a gateway as it runs. Each page belongs to a client who is signed in.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { type Browser, type BrowserContextOptions, chromium, type Page, type Route } from 'playwright-core';

const executablePath = '/usr/bin/chromium';
const dist = new URL('../../plugins/console/web/dist/index.html', import.meta.url);
const real = process.env['CONSOLE_URL'];

/** Of every client that is made here. */
export const password = 'a password of a test';

/** Why these tests cannot run here; false: they can. */
export const cannotRun: string | false = !existsSync(executablePath)
  ? 'there is no Chromium'
  : !existsSync(dist) && real === undefined
    ? 'the pages are not built'
    : false;

export interface Stage {
  readonly isReal: boolean;
  /** Scheme and host. */
  readonly origin: string;
  /** A page of a client who is signed in. What the browser complains of is gathered in `complaints`. */
  page(options?: BrowserContextOptions): Promise<Page>;
  /** A page of nobody. */
  stranger(options?: BrowserContextOptions): Promise<Page>;
  readonly complaints: string[];
  /** A code that brings so many dollars. */
  makeCode(usd: string): Promise<string>;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const standIn = real === undefined ? await startStandIn() : undefined;
  const origin = real ?? standIn!.origin;
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  const complaints: string[] = [];
  return {
    isReal: real !== undefined,
    origin,
    complaints,
    page: async (options) => {
      const page = await open(browser, origin, options, complaints);
      if (real === undefined) await page.context().addCookies([{ name: 'fake', value: 'client', url: origin }]);
      else await signUp(page, origin);
      return page;
    },
    stranger: async (options) => {
      const page = await open(browser, origin, options, complaints);
      if (real === undefined) await page.context().addCookies([{ name: 'fake', value: 'nobody', url: origin }]);
      return page;
    },
    makeCode: (usd) => makeCode(origin, usd),
    close: async () => {
      await browser.close();
      standIn?.child.kill('SIGINT');
    },
  };
}

async function startStandIn(): Promise<{ origin: string; child: ChildProcess }> {
  const port = await freePort();
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', 'tests/plugins/console/serve-fake.ts', '--role', 'nobody'],
    {
      env: { ...process.env, PORT: String(port) },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  await new Promise<void>((resolve, reject) => {
    child.stdout!.once('data', () => resolve());
    child.once('exit', (code) => reject(new Error(`the stand-in ended with ${code}`)));
  });
  return { origin: `http://localhost:${port}`, child };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

async function open(
  browser: Browser,
  origin: string,
  options: BrowserContextOptions | undefined,
  complaints: string[],
): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en', ...options });
  if (real === undefined) {
    await context.route(`${origin}/console/**`, withPolicy);
    await context.route(`${origin}/console/api/auth/**`, answerAuth);
    await context.route(`${origin}/v1/chat/completions`, answerChat);
  }
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // What does not load is told as an error as well; that is for each test to judge.
    const matters = /Content.Security.Policy|^\w*Error\b/i.test(message.text());
    if (message.type() === 'error' && matters) complaints.push(message.text().slice(0, 500));
  });
  return page;
}

/** The stand-in serves the pages bare; the gateway's policy is put on them here. */
async function withPolicy(route: Route): Promise<void> {
  if (route.request().resourceType() !== 'document') return route.fallback();
  const answer = await route.fetch();
  const body = (await answer.text()).replaceAll('__CSP_NONCE__', 'abc123');
  const policy =
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-abc123'; img-src 'self' data: blob:; " +
    "media-src 'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'";
  return route.fulfill({ response: answer, body, headers: { ...answer.headers(), 'content-security-policy': policy } });
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

async function makeCode(origin: string, usd: string): Promise<string> {
  const token = process.env['CONSOLE_OPERATOR_TOKEN'];
  const answer = await fetch(`${origin}/console/api/admin/codes`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-console': '1',
      'idempotency-key': randomUUID(),
      ...(token === undefined ? { cookie: 'fake=operator' } : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ gift: { kind: 'balance', amount: usd }, count: 1, maxUses: 1, reason: 'a test' }),
  });
  if (!answer.ok) throw new Error(`making a code: ${answer.status} ${await answer.text()}`);
  return ((await answer.json()) as { codes: string[] }).codes[0]!;
}
