/** A gateway whose files are copies of the demo's, and an operator's page at the forms over its configuration. */
import { cp, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { configFiles } from '../../core/contract/config-files.ts';
import { operator, operatorOf, startFile, type TestConsole } from '../plugins/console/start-console.ts';
import { shared } from './browser-test.ts';
import { launchBrowser, openPage, signIn } from './chromium.ts';
import { buildPages } from './operator-stage.ts';

interface Forms {
  readonly testbed: TestConsole;
  readonly page: Page;
  stop(): Promise<void>;
}

/** One for all tests of a file. */
export const sharedForms = (): Forms => shared(startForms, (forms) => forms.stop());

async function startForms(): Promise<Forms> {
  buildPages();
  const directory = await mkdtemp(join(tmpdir(), 'console-forms-'));
  await cp('config', join(directory, 'config'), { recursive: true });
  // With the plugins storage, request-log and others of the demo.
  const testbed = await startFile(
    `# plugins: storage, and others\ninclude:\n  - ${directory}/config/demo.yaml\n`,
    directory,
  );
  const browser = await launchBrowser();
  const page = await openPage(browser, [], { baseURL: testbed.origin });
  await operatorOf(testbed);
  await signIn(page, operator);
  await page.getByRole('link', { name: 'Overview', exact: true }).waitFor();
  return {
    ...{ testbed, page },
    async stop() {
      await browser.close();
      await testbed.stop();
    },
  };
}

/** Fills the reason of the dialog in front, presses its button, and waits until it is gone. */
async function confirm(page: Page, button: string, reason: string): Promise<void> {
  const dialog = page.getByRole('dialog').last();
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill(reason);
  await dialog.getByRole('button', { name: button, exact: true }).click();
  await page.getByLabel('Why?').waitFor({ state: 'detached' });
}

/** Opens a form over the configuration. */
export async function openForm({ page }: Forms, form: string, entry?: string): Promise<void> {
  await page.goto(`/console/admin/config?form=${form}${entry === undefined ? '' : `&entry=${entry}`}`);
  await page.getByRole('tab', { name: 'Forms', exact: true }).waitFor();
}

/** Saves the page's only edited file after the gateway has checked it. */
export async function saveForm({ page }: Forms, reason: string, seen: string): Promise<void> {
  await page.getByText('No faults').waitFor();
  await page.getByRole('button', { name: 'Review and save', exact: true }).click();
  await page.getByTestId('config-diff').getByText(seen).first().waitFor();
  await confirm(page, 'Save and apply', reason);
  await page.getByText('No faults').waitFor({ state: 'detached' });
}

/** Lines of all files that are no longer there, and those that have come, in order. */
export async function changedLines(
  { testbed }: Forms,
  run: () => Promise<void>,
): Promise<{ readonly gone: string[]; readonly come: string[] }> {
  const files = testbed.gateway.find(configFiles)!;
  const linesNow = async () =>
    (await files.view()).files.flatMap(({ name, text }) => text.split('\n').map((line) => `${name} ${line}`));
  const before = await linesNow();
  await run();
  const after = await linesNow();
  const rest = [...after];
  const gone = before.filter((line) => {
    const at = rest.indexOf(line);
    if (at >= 0) rest.splice(at, 1);
    return at < 0;
  });
  return { gone, come: rest.map((line) => line.slice(line.indexOf(' ') + 1)) };
}
