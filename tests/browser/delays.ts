/** `BROWSER_DELAY=SEED`: what pages load comes late and in another order, the same for the same seed, as on a slow network or a busy machine. */
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Browser, BrowserContext } from 'playwright-core';

const mostMs = 400;
const { BROWSER_DELAY: seed } = process.env;

/** Every second answer comes at once. */
function delayOf(path: string, time: number): number {
  const [isLate = 0, part = 0] = createHash('sha256').update(`${seed} ${path} ${time}`).digest();
  return isLate % 2 === 0 ? 0 : 50 + (part / 255) * (mostMs - 50);
}

/** For all contexts that are opened from now on; what a test itself answers is as quick as it is. */
export function delayAnswers(browser: Browser): Browser {
  if (seed === undefined) return browser;
  const open = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await open(options);
    await slowDown(context);
    return context;
  };
  return browser;
}

async function slowDown(context: BrowserContext): Promise<void> {
  const times = new Map<string, number>();
  await context.route('**/*', async (route) => {
    const { pathname } = new URL(route.request().url());
    const time = times.get(pathname) ?? 0;
    times.set(pathname, time + 1);
    await pause(delayOf(pathname, time));
    // The page may be closed by now.
    await route.fallback().catch(() => undefined);
  });
}
