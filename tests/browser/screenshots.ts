/**
 * Pictures of pages for people to look at: `node --import tsx tests/browser/screenshots.ts --out DIR [--pages /,/keys]`.
 * Light, dark and a screen of 380 pixels; `CONSOLE_URL` names the console (http://localhost:8099/console), `--as` the role
 * of the stand-in, `--language` that of the browser. Says which pages are wider than the screen, and what the browser complained about.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { BrowserContextOptions } from 'playwright-core';
import { launchBrowser } from './chromium.ts';

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    pages: { type: 'string', default: '/' },
    as: { type: 'string', default: 'client' },
    only: { type: 'string' },
    language: { type: 'string', default: 'en' },
  },
});
const base = process.env['CONSOLE_URL'] ?? 'http://localhost:8099/console';
const out = values.out ?? 'screenshots';
mkdirSync(out, { recursive: true });

const looks: Record<string, BrowserContextOptions> = {
  light: { viewport: { width: 1280, height: 860 }, colorScheme: 'light' },
  dark: { viewport: { width: 1280, height: 860 }, colorScheme: 'dark' },
  narrow: { viewport: { width: 380, height: 780 }, colorScheme: 'light' },
};

const browser = await launchBrowser();
try {
  for (const [look, options] of Object.entries(looks)) {
    if (values.only !== undefined && values.only !== look) continue;
    const context = await browser.newContext({ ...options, locale: values.language });
    const page = await context.newPage();
    page.on('console', (message) => {
      if (message.type() === 'error') console.log(`${look}: ${message.text()}`);
    });
    page.on('pageerror', (error) => console.log(`${look}: ${error.message}`));
    for (const path of values.pages.split(',')) {
      const address = `${base}${path}${path.includes('?') ? '&' : '?'}as=${values.as}`;
      await page.goto(address, { waitUntil: 'load' });
      await page.waitForTimeout(1500);
      const over = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
      if (Number(over) > 0) console.log(`${look} ${path}: ${over} pixels too wide`);
      const name = path.replace(/[^a-z0-9]+/gi, '-').replace(/^-|-$/g, '') || 'home';
      await page.screenshot({ path: join(out, `${name}-${look}.png`), fullPage: true });
    }
    await context.close();
  }
} finally {
  await browser.close();
}
