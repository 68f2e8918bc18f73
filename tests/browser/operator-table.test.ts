/** Tables of the console in a real browser: sorting, the choice of columns, and long lists of which the visible rows are in the page. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { until } from '../helpers/until.ts';
import { test } from './browser-test.ts';
import { sharedStage } from './operator-stage.ts';

const stage = sharedStage();

const firstCells = (page: Page) => page.locator('.data-table tbody td:first-child').allInnerTexts();

test('a column sorts the rows up and down, by name and by amount, and shows the order', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/accounts');
  await page.getByRole('row', { name: /ada-labs/ }).waitFor();
  const given = await firstCells(page);
  const name = page.getByRole('columnheader', { name: 'Name', exact: true });
  const orders: (string | null)[] = [];
  for (let presses = 0; presses < 2; presses += 1) {
    await name.getByRole('button').click();
    orders.push(await name.getAttribute('aria-sort'));
    const sorted = [...given].sort((left, right) => left.localeCompare(right));
    assert.deepEqual(await firstCells(page), orders.at(-1) === 'ascending' ? sorted : sorted.reverse());
  }
  assert.deepEqual(orders.sort(), ['ascending', 'descending']);
  const balance = page.getByRole('columnheader', { name: 'Balance', exact: true });
  await balance.getByRole('button').click();
  const texts = await page.locator('.data-table td[data-label="Balance"]').allInnerTexts();
  const amounts = texts.map((text) => Number(text.replace(/[$,+]/g, '').replace('−', '-')));
  const isUp = (await balance.getAttribute('aria-sort')) === 'ascending';
  assert.ok(amounts.length > 3);
  assert.deepEqual(
    amounts,
    [...amounts].sort((left, right) => (isUp ? left - right : right - left)),
  );
});

test('a list of several pages is sorted by the server over all pages, with the order in the address', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/requests?span=30d');
  await page.getByRole('navigation', { name: 'Rows', exact: true }).waitFor();
  const headings = await page.locator('.data-table thead button').allInnerTexts();
  assert.deepEqual(headings, ['Time', 'Tokens', 'First byte', 'Total', 'Charged']);
  const charged = page.getByRole('columnheader', { name: 'Charged', exact: true });
  const costs = async () => {
    const texts = await page.locator('.data-table td[data-label="Charged"]').allInnerTexts();
    return texts.filter((text) => text !== '–').map((text) => Number(text.replace('$', '')));
  };
  await charged.getByRole('button').focus();
  await page.keyboard.press('Enter');
  await page.waitForURL(/sort=cost/);
  // The page shows the previous rows until the answer arrives.
  const first = await until('the dearest requests first', async () => {
    const shown = await costs();
    return shown.every((cost, index) => index === 0 || cost <= shown[index - 1]!) && shown;
  });
  assert.ok(first[0]! > first.at(-1)!);
  assert.equal(await charged.getAttribute('aria-sort'), 'descending');
  await page.getByRole('button', { name: 'Next', exact: true }).click();
  await page.waitForURL(/after=/);
  await page.getByText(/^26–50 of/).waitFor();
  await until('the cheaper ones on the next page', async () => (await costs())[0]! <= first.at(-1)!);
  await charged.getByRole('button').click();
  await page.waitForURL(/order=asc/);
  assert.doesNotMatch(page.url(), /after=/);
  await page.reload();
  await charged.waitFor();
  assert.equal(await charged.getAttribute('aria-sort'), 'ascending');
  await charged.getByRole('button').click();
  await page.waitForURL((url) => !/sort=|order=/.test(url.search));
  const newestFirst = page.locator('[aria-sort=descending]');
  await page.getByRole('columnheader', { name: 'Time', exact: true }).and(newestFirst).waitFor();
});

test('a hidden column stays hidden in this browser', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/accounts');
  const multiplier = page.getByRole('columnheader', { name: 'Multiplier', exact: true });
  await multiplier.waitFor();
  await page.getByRole('button', { name: 'Columns', exact: true }).click();
  await page.getByRole('menuitemcheckbox', { name: 'Multiplier', checked: true, exact: true }).click();
  await multiplier.waitFor({ state: 'detached' });
  await page.reload();
  await page.getByRole('columnheader', { name: 'Balance', exact: true }).waitFor();
  assert.equal(await multiplier.count(), 0);
  await page.getByRole('button', { name: 'Columns', exact: true }).click();
  await page.getByRole('menuitemcheckbox', { name: 'Multiplier', checked: false, exact: true }).click();
  await multiplier.waitFor();
});

test('only the visible rows of a thousand are in the page', async () => {
  const page = await stage.page();
  const row = (index: number) => ({
    id: `model-${String(index).padStart(4, '0')}`,
    ownedBy: 'a vendor',
    displayName: `Model ${index}`,
    kind: 'chat',
    contextTokens: null,
    maxOutputTokens: null,
    modalities: [],
    limits: {},
    prices: null,
    cost: null,
    changesAt: null,
    multiplier: null,
    source: null,
    providers: [],
  });
  const rows = Array.from({ length: 1_000 }, (_, index) => row(index));
  await page.route('**/console/api/admin/prices', (route) => route.fulfill({ json: { rows } }));
  await page.goto('/console/admin/prices');
  await page.getByText('model-0000', { exact: true }).waitFor();
  const count = () => page.locator('.data-table tbody tr:not(.table-gap)').count();
  await page.locator('.table-gap').nth(1).waitFor({ state: 'attached' });
  assert.ok((await count()) < 150, `${await count()} rows`);
  assert.equal(await page.getByText('model-0999', { exact: true }).count(), 0);
  await page.mouse.move(640, 500);
  await page.mouse.wheel(0, 200_000);
  await page.getByText('model-0999', { exact: true }).waitFor();
  assert.ok((await count()) < 150, `${await count()} rows`);
});
