/** The browser of the tests. */
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core';
import { until } from '../helpers/until.ts';
import { atEnd } from '../runner/end.ts';
import { delayAnswers } from './delays.ts';

/** The headless shell is preferred: it takes two thirds of the processor time. */
const executablePath = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find((path) => existsSync(path)) ?? '';

/** Why there is none here; false: there is. */
export const noBrowser: string | false = executablePath === '' ? 'there is no Chromium' : false;

const isTest = process.env['NODE_TEST_CONTEXT'] !== undefined;
let shared: Promise<Browser> | undefined;

/**
 * Without a window, and without the process that would draw instead of a graphics card. The test files of a process share one, in which
 * each has pages of its own: closing it closes those.
 */
export async function launchBrowser(): Promise<Browser> {
  if (!isTest) return launch();
  if ((await shared)?.isConnected() !== true) shared = launchShared();
  return shared!;
}

const launch = async () =>
  delayAnswers(await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] }));

async function launchShared(): Promise<Browser> {
  const browser = await launch();
  atEnd(browser.close.bind(browser));
  browser.close = async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
  };
  return browser;
}

/**
 * A page in a context of its own that adds errors of its code to `complaints`; answers with 4xx are not errors. Nothing moves: a click on
 * what does may miss it while the machine is busy.
 */
export async function openPage(browser: Browser, complaints: string[], options: BrowserContextOptions): Promise<Page> {
  const page = await browser.newPage({ locale: 'en-US', reducedMotion: 'reduce', ...options });
  page.setDefaultTimeout(40_000);
  page.on('pageerror', ({ message }) => complaints.push(message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of 4\d\d/.test(message.text())) complaints.push(message.text());
  });
  return page;
}

/** Waits for what a field shows: it may come later than the field. */
export const shows = (field: Locator, text: string): Promise<unknown> =>
  until(`the field shows ${text}`, async () => (await field.inputValue()) === text);

/** Signs in by the console's form; resolves when the form is gone. */
export async function signIn(page: Page, { email, password }: { email: string; password: string }): Promise<void> {
  await page.goto('/console/sign-in');
  await page.getByLabel(/mail/i).fill(email);
  await page.getByRole('textbox', { name: 'Password', exact: true }).fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.waitForURL((url) => !url.pathname.endsWith('/sign-in'));
}
