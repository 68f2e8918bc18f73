/** The browser of the tests. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const executablePath = '/usr/bin/chromium';

/** Why there is none here; false: there is. */
export const noBrowser: string | false = existsSync(executablePath) ? false : 'there is no Chromium';

/** One of its own, without a window, and without the process that would draw in place of a graphics card. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
}
