/** Firefox for the tests: Debian's, by WebDriver BiDi. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { delimiter, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, firefox, type Page } from 'playwright-core';
import { openPage } from '../chromium.ts';

const executablePath = '/usr/bin/firefox-esr';

/** Why there is none here; false: there is. */
export const noFirefox: string | false = existsSync(executablePath) ? false : 'there is no firefox-esr';

export type Scheme = 'light' | 'dark';
/** Values of the preference for what pages see. */
const contentSchemes: Readonly<Record<Scheme, number>> = { dark: 0, light: 1 };

/** One of its own, without a window; its pages see one scheme, and do not animate. */
export function launchFirefox(scheme: Scheme): Promise<Browser> {
  const path = `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`;
  return firefox.launch({
    channel: 'moz-firefox',
    executablePath: fileURLToPath(new URL('relay.ts', import.meta.url)),
    // The relay runs on the Node of the tests.
    env: { ...process.env, PATH: path, FIREFOX: executablePath },
    firefoxUserPrefs: {
      'layout.css.prefers-color-scheme.content-override': contentSchemes[scheme],
      'ui.prefersReducedMotion': 1,
    },
  });
}

/** The digest of an empty style that Playwright adds for each screenshot, to bring animations in step; our policy blocks it. */
const ownStyle = createHash('sha256').update('body {}').digest('base64');
export const isOfPages = (complaint: string): boolean => !complaint.includes(`'sha256-${ownStyle}'`);

/**
 * A page in a context of its own. Playwright writes into a field by setting its value, which React takes for its own change over
 * this protocol; here the text is inserted as by a person.
 */
export async function openFirefoxPage(browser: Browser, complaints: string[], baseURL: string): Promise<Page> {
  const page = await openPage(browser, complaints, { baseURL });
  await page.addInitScript(`Object.defineProperty(window, '__pw_bidiInsertText', {
    get: () => (text) => { document.execCommand('insertText', false, text); },
    set: () => undefined,
  })`);
  return page;
}
