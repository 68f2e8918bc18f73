/** Projects in a browser: a client puts keys into one and filters by it; an operator sees traffic by project. */
import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import { clientAccount } from '../plugins/console/fakes/world.ts';
import { test } from './browser-test.ts';
import { shows } from './chromium.ts';
import { sharedStage } from './operator-stage.ts';

const stage = sharedStage();

/** What a cache of answers would tell of this span. */
const playCache = (page: Page) =>
  page.route(/\/console\/api\/(usage|admin\/monitor)\/answer-cache/, (route) => {
    const counts = { calls: 1_200, hits: 450, similar: 12, saved: '3.204' };
    return route.fulfill({ json: { ...counts, rows: [{ model: 'gpt-5.4-mini', operation: 'chat', ...counts }] } });
  });
/** The share of hits and what they saved, in words and in the table. */
async function cacheIsShown(page: Page): Promise<void> {
  const words = await page.getByTestId('answer-cache').textContent();
  assert.equal(words, '37.5% of the calls that it is for were answered from the cache. That saved $3.20.');
  for (const text of ['37.5%', '$3.20']) await page.getByText(text, { exact: true }).first().waitFor();
}

async function pickRegion(form: Locator, region: string): Promise<void> {
  const field = form.getByRole('combobox', { name: 'Regions', exact: true });
  await field.fill(region);
  await field.press('Enter');
  await form.getByText(region.toLowerCase(), { exact: true }).waitFor();
}

const day = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();

test('a client makes a project of a region from the page of keys, calls it otherwise, archives and restores it', async () => {
  const page = await stage.page('client');
  await page.goto('/console/keys');
  await page.getByRole('link', { name: 'Projects', exact: true }).click();
  await page.getByRole('button', { name: 'New project', exact: true }).click();
  const form = page.getByRole('dialog').first();
  await form.getByLabel('Name', { exact: true }).fill('evals');
  await pickRegion(form, 'EU');
  await form.getByRole('button', { name: 'New project', exact: true }).click();
  const row = page.getByRole('row').filter({ hasText: 'evals' });
  await row.getByRole('button', { name: 'Edit evals', exact: true }).click();
  await form.getByLabel('Name', { exact: true }).fill('evals of spring');
  await form.getByRole('button', { name: 'Save', exact: true }).click();
  const renamed = row.filter({ hasText: 'evals of spring' });
  await renamed.getByText('eu', { exact: true }).waitFor();
  await renamed.getByRole('button', { name: 'Archive', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Archive', exact: true }).click();
  await row.getByText('Archived', { exact: true }).waitFor();
  await row.getByRole('button', { name: 'Restore', exact: true }).click();
  await row.getByText('In use', { exact: true }).waitFor();
});

test('a new key is put into a project and bound to a region, and usage is filtered by its project', async () => {
  const page = await stage.page('client');
  const { keys } = stage.testbed.world;
  await page.goto('/console/keys?new=1');
  const form = page.getByRole('dialog').first();
  await form.getByLabel('Name', { exact: true }).fill('ci');
  const field = form.getByRole('combobox', { name: 'Project', exact: true });
  // Projects of other keys are offered, and a new name is taken as it is.
  await field.click();
  await page.getByRole('option', { name: 'web shop', exact: true }).waitFor();
  await field.fill('night shift');
  await pickRegion(form, 'eu');
  await form.getByRole('button', { name: 'Create key', exact: true }).click();
  await page.getByRole('button', { name: 'I have saved it', exact: true }).click();
  const { project, regions } = keys.find(({ name }) => name === 'ci')!;
  assert.deepEqual([project, regions], ['night shift', ['eu']]);
  // The dialog of set-ups lies over the list.
  await page.locator('tr').filter({ hasText: 'night shift' }).getByText('eu', { exact: true }).waitFor();

  await playCache(page);
  await page.goto('/console/usage?span=30d');
  await cacheIsShown(page);
  await page.getByRole('combobox', { name: 'Project', exact: true }).click();
  await page.getByRole('option', { name: 'web shop', exact: true }).click();
  await page.waitForURL(/project=web(\+|%20)shop/);
  await page.reload();
  await shows(page.getByRole('combobox', { name: 'Project', exact: true }), 'web shop');
  assert.equal(await page.getByTestId('answer-cache').count(), 0, 'it counts all projects');
  const query = new URLSearchParams({ from: day(30), project: 'web shop' });
  const answer = await page.request.get(`/console/api/usage/sums?${query}`);
  const { requests } = (await answer.json()) as { requests: number };
  assert.ok(requests > 0);
  const total = page.getByRole('navigation', { name: 'Rows', exact: true }).getByText(/ of /);
  const shown = Number(/ of ([\d,]+)$/.exec((await total.textContent())!)![1]!.replaceAll(',', ''));
  assert.ok(Math.abs(shown - requests) <= 1, `${shown} of ${requests}`);
});

test('a refusal by regions is explained to its client and to operators', async () => {
  const { requests } = stage.testbed.world;
  const at = requests.findIndex(({ accountId, status }) => accountId === clientAccount && status !== 200);
  const refused = { ...requests[at]!, status: 403, errorKind: 'forbidden', errorCode: 'region_unavailable' };
  requests[at] = refused;
  const [client, operator] = [await stage.page('client'), await stage.page()];
  await client.goto(`/console/usage?span=30d&open=${refused.id}`);
  const drawer = client.getByRole('dialog', { name: 'Request', exact: true });
  await drawer.getByText('not served in the regions that the key, its project and the plan all allow').waitFor();
  await operator.goto(`/console/admin/requests/${refused.id}`);
  await operator.getByText('forbidden · region_unavailable: No upstream of the model is labelled').waitFor();
});

test('an operator sees traffic by project, and opens the requests of a project and those without one', async () => {
  const page = await stage.page();
  await playCache(page);
  await page.goto('/console/admin/monitor?span=30d');
  await page.getByRole('tab', { name: 'Prompt cache', exact: true }).press('Enter');
  await cacheIsShown(page);
  await page.getByRole('tab', { name: 'By project', exact: true }).press('Enter');
  const panel = page.getByRole('tabpanel', { name: 'By project', exact: true });
  await panel.getByRole('row', { name: /^No known project/ }).waitFor();
  const row = panel.getByRole('row', { name: /^web shop/ });
  const count = Number((await row.getByRole('link').first().textContent())!.replaceAll(',', ''));
  const query = new URLSearchParams({ from: day(30), project: 'web shop' });
  const answer = await page.request.get(`/console/api/admin/monitor?${query}`);
  const { requests } = (await answer.json()) as { requests: number };
  assert.ok(count > 0 && Math.abs(count - requests) <= 1, `${count} of ${requests}`);
  await row.getByRole('link').first().click();
  await page.getByRole('heading', { level: 1, name: 'Requests', exact: true }).waitFor();
  assert.equal(new URL(page.url()).searchParams.get('project'), 'web shop');
  await shows(page.getByRole('combobox', { name: 'Project', exact: true }), 'web shop');
});

test('the browser reports no error', () => {
  assert.deepEqual(stage.complaints, []);
});
