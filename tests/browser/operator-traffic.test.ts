/** What an operator sees of traffic and does about upstreams and tasks, in a real browser. */
import assert from 'node:assert/strict';
import { upstreamAdmin } from '../../plugins/common/domain/admin/upstreams.ts';
import { test } from './browser-test.ts';
import { shows } from './chromium.ts';
import { sharedStage } from './operator-stage.ts';

const stage = sharedStage();

const upstream = (name: string) =>
  stage.testbed
    .find(upstreamAdmin)!
    .list()
    .find(({ provider }) => provider === name)!;

test('the monitor’s figures are compared with the time before, and link to their requests', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/monitor?span=24h');
  // Success, errors of clients, whole answers and margin, against the day before.
  await page.locator('.stats-slim .change').nth(2).waitFor();
  await page.goto('/console/admin/monitor?span=30d');
  await page.getByRole('button', { name: /^Upstream errors \d/ }).click();
  await page.waitForURL(/metric=errors/);
  await page.getByRole('img', { name: 'Upstream errors', exact: true }).waitFor();
  await page.getByRole('link', { name: /^Upstream errors/ }).click();
  await page.getByRole('heading', { level: 1, name: 'Requests', exact: true }).waitFor();
  assert.match(page.url(), /result=upstream_error/);
  await page
    .getByRole('row', { name: /Upstream error/ })
    .first()
    .waitFor();
  await page.getByRole('cell', { name: '200', exact: true }).first().waitFor({ state: 'detached' });
});

test('the monitor shows how long requests took, and errors by cause, each with its requests', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/monitor?span=30d');
  await page.getByRole('tab', { name: 'Response times', exact: true }).click();
  for (const name of ['First byte: how many took how long', 'Whole answer: how many took how long'])
    await page.getByRole('img', { name, exact: true }).waitFor();
  await page.getByRole('tab', { name: 'Errors by cause', exact: true }).click();
  const causes = page.getByRole('region', { name: 'Errors by cause', exact: true });
  const link = causes.getByRole('link').first();
  const count = Number((await link.textContent())!.replaceAll(',', ''));
  await link.click();
  await page.getByRole('heading', { level: 1, name: 'Requests', exact: true }).waitFor();
  const { searchParams } = new URL(page.url());
  const cause = searchParams.get('cause')!;
  await shows(page.getByLabel('Cause', { exact: true }), cause);
  const from = new Date(Date.now() - 30 * 86_400_000).toISOString();
  const query = new URLSearchParams({ from, cause, result: searchParams.get('result')!, limit: '500' });
  const answer = await page.request.get(`/console/api/admin/requests?${query}`);
  assert.equal(((await answer.json()) as { rows: unknown[] }).rows.length, count);
});

test('the monitor groups by upstream, and exports a file', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/monitor?span=30d');
  await page.getByRole('tab', { name: 'By upstream', exact: true }).press('Enter');
  await page.getByRole('row', { name: /^openai/ }).waitFor();
  const saved = page.waitForEvent('download');
  await page
    .getByRole('tabpanel', { name: 'By upstream', exact: true })
    .getByRole('button', { name: 'CSV', exact: true })
    .click();
  assert.equal((await saved).suggestedFilename(), 'by-provider.csv');
});

test('filters of requests are kept in the address, and a row opens its page by keyboard', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/requests?span=30d');
  // A part of the name is enough.
  await page.getByRole('combobox', { name: 'Model', exact: true }).fill('sonnet-5');
  await page.getByRole('option', { name: 'claude-sonnet-5', exact: true }).click();
  await page.waitForURL(/model=claude-sonnet-5/);
  await page.reload();
  await shows(page.getByRole('combobox', { name: 'Model', exact: true }), 'claude-sonnet-5');
  await page
    .getByRole('row', { name: /claude-sonnet-5/ })
    .first()
    .waitFor();
  for (const key of ['j', 'j', 'k', 'Enter']) await page.keyboard.press(key);
  const drawer = page.getByRole('dialog', { name: 'Request', exact: true });
  await drawer.getByText('What happened').waitFor();
  await drawer.getByText('Received').waitFor();
  assert.match(page.url(), /open=/);
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
  assert.doesNotMatch(page.url(), /open=/);
  await page.getByRole('combobox', { name: 'Model', exact: true }).fill('jj');
  assert.equal(await page.getByRole('combobox', { name: 'Model', exact: true }).inputValue(), 'jj');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search', exact: true }).fill('credit client@exa');
  await page.getByRole('option', { name: /^Credit: Ada Client/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: /^Credit/ }).waitFor();
});

test('a page of requests shows its row numbers and the number of all', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/requests?span=30d');
  const range = page.getByRole('navigation', { name: 'Rows', exact: true }).getByText(/ of /);
  const first = /^1–25 of ([\d,]+)$/.exec((await range.textContent())!)!;
  await page.getByRole('button', { name: 'Next', exact: true }).click();
  await page.getByText(/^26–50 of /).waitFor();
  const from = new Date(Date.now() - 30 * 86_400_000).toISOString();
  const answer = await page.request.get(`/console/api/admin/monitor?from=${encodeURIComponent(from)}`);
  const { requests } = (await answer.json()) as { requests: number };
  const total = Number(first[1]!.replaceAll(',', ''));
  assert.ok(total > 25 && Math.abs(total - requests) <= requests / 10, `${total} of ${requests}`);
});

test('requests are filtered by the account of a person, found by a part of the mail address', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/requests?span=30d');
  await page.getByRole('combobox', { name: 'Account', exact: true }).fill('client@exa');
  await page.getByRole('option', { name: /^Ada Client · / }).click();
  const accountId = stage.testbed.people.rows.find(({ email }) => email === 'client@example.test')!.accountId!;
  await page.waitForURL((url) => url.searchParams.get('accountId')?.includes(accountId) === true);
  await page.reload();
  const named = page.locator('input[value^="Ada Client · "]');
  await page.getByRole('combobox', { name: 'Account', exact: true }).and(named).waitFor();
});

test('a request opens by its id, and an unknown id is reported', async () => {
  const { id } = stage.testbed.world.requests.at(-1)!;
  const page = await stage.page();
  await page.goto('/console/admin/requests');
  await page.getByRole('textbox', { name: 'Request id', exact: true }).fill(id);
  await page.keyboard.press('Enter');
  await page.getByText('What happened').waitFor();
  await page.goto('/console/admin/requests/nothing-like-it');
  await page.getByText('There is no such request').waitFor();
});

test('an upstream is disabled and enabled, and its cooldowns are cleared, each with a reason', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/upstreams');
  await page.getByRole('button', { name: 'openai', exact: true }).click();
  const card = page.getByTestId('upstream-openai');
  const act = async (button: string, title: string) => {
    await card.getByRole('button', { name: button, exact: true }).click();
    const dialog = page.getByRole('dialog', { name: title, exact: true });
    await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('the vendor has an outage');
    await dialog.getByRole('button', { name: button, exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
  };
  await card.getByText(/wakes in 0:\d\d/).waitFor();
  await act('Wake', 'Wake openai?');
  assert.deepEqual(
    upstream('openai').keys.map(({ restsMs }) => restsMs),
    [0, 0],
  );
  await act('Disable', 'Take openai out of use?');
  await card.getByText('Disabled', { exact: true }).waitFor();
  assert.equal(upstream('openai').disabled, true);
  await act('Enable', 'Put openai to use again?');
  await card.getByText('Healthy').waitFor();
  assert.equal(upstream('openai').disabled, false);
});

test('models of an upstream show circuits, failures and times, and clearing closes the circuits', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/upstreams?state=failing');
  await page.getByRole('button', { name: 'google', exact: true }).click();
  const card = page.getByTestId('upstream-google');
  await card.getByText('Models fail').waitFor();
  await card.getByText('12 of 40 · none waiting').waitFor();
  await card.getByText('Passed over', { exact: true }).waitFor();
  await card.getByText(/tried again in 0:0\d/).waitFor();
  await card.getByText('it failed too often and is passed over', { exact: false }).waitFor();
  await card.getByText('53.1% of 32').waitFor();
  await card.getByText('google#1: 40% answered · First byte (streams) 420 ms').waitFor();
  await card.getByRole('button', { name: 'Wake', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Wake google?', exact: true });
  await dialog.getByText('the circuits of its models close', { exact: false }).waitFor();
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('the vendor says it is over');
  await dialog.getByRole('button', { name: 'Wake', exact: true }).click();
  await page.goto('/console/admin/upstreams?provider=google');
  await card.getByText('Healthy').waitFor();
  assert.deepEqual(
    upstream('google').targets!.map(({ circuit }) => circuit),
    ['closed', 'closed'],
  );
  await page.goto('/console/admin/upstreams?provider=openai');
  await page.getByText('has had no request for its models yet', { exact: false }).waitFor();
});

test('one key of an upstream is disabled', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/upstreams?provider=google');
  await page.getByRole('button', { name: 'Disable: google#1', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Take google#1 out of use?', exact: true });
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('it leaked');
  await dialog.getByRole('button', { name: 'Disable', exact: true }).click();
  await page.getByRole('button', { name: 'Enable: google#1', exact: true }).waitFor();
  assert.equal(upstream('google').keys[0]!.disabled, true);
});

test('a task that has not begun is cancelled', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/tasks?state=queued');
  await page.getByRole('row').nth(1).getByRole('button').click();
  await page.getByRole('button', { name: 'Cancel task', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: /^Cancel task/ });
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('the client asked for it');
  await dialog.getByRole('button', { name: 'Cancel task', exact: true }).click();
  await page.getByText('The task is cancelled.').waitFor();
  await page.getByText('No task fits these filters').waitFor();
});

test('the sidebar links every page of the operator', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/monitor');
  const links = page.getByRole('navigation').getByRole('link');
  await page.locator('nav a[href="/console/admin/tokens"]').waitFor();
  const paths = await links.evaluateAll((all) =>
    all.map((link) => (link as unknown as { getAttribute(name: string): string }).getAttribute('href')),
  );
  const names = ['monitor', 'requests', 'upstreams', 'accounts', 'people', 'plans', 'codes', 'prices', 'tasks'];
  for (const name of [...names, 'files', 'batches', 'money', 'nodes', 'config', 'audit', 'tokens'])
    assert.ok(paths.includes(`/console/admin/${name}`), name);
});
