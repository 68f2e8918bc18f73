/** Sealed statements in a browser: a client opens one with what is to be paid, loads its files and prints it; an operator reads it on the account. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { clientAccount } from '../plugins/console/fakes/world.ts';
import { test } from './browser-test.ts';
import { sharedStage } from './operator-stage.ts';

const stage = sharedStage();

async function readOne(page: Page): Promise<void> {
  await page.getByRole('row').filter({ hasText: '2026-10' }).click();
  const table = page.getByRole('table', { name: 'What moved', exact: true });
  await table
    .getByRole('row', { name: /^Call charged · gpt-5\.4 search Ben Admin 2 −\$0\.01 −\$0\.006239567$/ })
    .waitFor();
  await table.getByRole('row', { name: /^Closing balance \$24\.99 \$24\.994995$/ }).waitFor();
  const due = page.getByRole('table', { name: 'Credit line', exact: true }).getByRole('row', { name: /^2026-10 / });
  await due.filter({ hasText: /\$5\.000000001\$2\.00\$3\.000000001.*due$/i }).waitFor();
}

test('a client opens a statement from the wallet, its files load, and on paper it stands alone', async () => {
  const page = await stage.page('client');
  await page.goto('/console/wallet');
  await readOne(page);
  for (const [name, first] of [
    ['JSON lines', '{"format":"model-gateway statement 1"'],
    ['CSV', 'account,statement,month'],
    ['FOCUS', 'AvailabilityZone,BilledCost'],
  ] as const) {
    const href = await page.getByRole('link', { name, exact: true }).getAttribute('href');
    const text = await page.evaluate(async (address) => (await fetch(address)).text(), href!);
    assert.ok(text.startsWith(first), `${name}: ${text.slice(0, 80)}`);
  }
  await page.emulateMedia({ media: 'print' });
  const print = page.getByRole('button', { name: 'Print or save as PDF', exact: true });
  for (const hidden of [page.getByRole('banner'), page.getByRole('navigation').first(), print])
    await hidden.waitFor({ state: 'hidden' });
  await page.getByText('Demo Ltd · Months of Europe/Berlin').waitFor();
  await page.emulateMedia({ media: 'screen' });
  await page.getByRole('button', { name: 'All statements', exact: true }).click();
  await page.getByRole('row').filter({ hasText: '2026-09' }).waitFor();
});

test('an operator reads the statements of an account on its page', async () => {
  const page = await stage.page('operator');
  await page.goto(`/console/admin/accounts/${clientAccount}?tab=statements`);
  await readOne(page);
});
