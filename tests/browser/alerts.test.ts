/** Alerts in a real browser: the banner, the page, acknowledging, and marks on the monitor's charts. */
import assert from 'node:assert/strict';
import { test } from './browser-test.ts';
import { sharedStage } from './operator-stage.ts';

const stage = sharedStage();

test("the monitor's charts mark alerts at the time when they ran", async () => {
  const page = await stage.page();
  await page.goto('/console/admin/monitor?span=1h');
  const marks = page.getByRole('img', { name: 'Requests', exact: true }).locator('.chart-mark');
  await marks.getByText(/: gpt-5\.5$/).waitFor();
  assert.ok((await page.locator('.chart-mark').count()) >= 2);
});

test('the banner is part of the first page and does not move it', async () => {
  const page = await stage.page();
  await page.addInitScript(`
    window.tops = [];
    (function look() {
      const title = document.querySelector('main h1');
      if (title !== null) tops.push(title.getBoundingClientRect().top);
      requestAnimationFrame(look);
    })();`);
  for (const path of ['people', 'accounts']) {
    await page.goto(`/console/admin/${path}`);
    await page.getByRole('status').filter({ hasText: '1 alert runs' }).waitFor();
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.waitForTimeout(300);
    assert.equal(await page.evaluate('new Set(tops).size'), 1, path);
  }
});

test('the banner names running alerts until someone acknowledges them', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/people');
  const banner = page.getByRole('status').filter({ hasText: '1 alert runs' });
  await banner.getByText(/gpt-5\.5/).waitFor();
  assert.equal(await banner.getByText('shelf').count(), 0);
  await banner.getByRole('link').click();
  await page.getByRole('cell', { name: '<b>shelf</b>', exact: true }).waitFor();
  await page.getByRole('cell', { name: '−$0.000000001', exact: true }).waitFor();
  assert.equal(
    await page.getByRole('cell', { name: '41.2 s', exact: true }).count(),
    0,
    'the one that ended is left out',
  );
  await page.getByText('The last message was not taken: it answered 404').waitFor();
  await page.getByRole('button', { name: 'Acknowledge', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('the vendor knows');
  await dialog.getByRole('button', { name: 'Acknowledge', exact: true }).click();
  await banner.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Acknowledge', exact: true }).waitFor({ state: 'detached' });
  await page.getByRole('row', { name: /^mail mail not tried yet/ }).waitFor();
  const ops = page.getByRole('row', { name: /^ops webhook/ });
  await ops.getByText('taken').waitFor();
  const away = { status: 503, json: { error: { code: 'overloaded', message: 'The database is away.' } } };
  await page.route('**/alerts/sinks/ops/test', (route) => route.fulfill(away), { times: 1 });
  await ops.getByRole('button', { name: 'Send a test', exact: true }).click();
  await page.getByText('The database is away.').waitFor();
  await ops.getByRole('button', { name: 'Send a test', exact: true }).click();
  await page.getByText('ops did not take the test message: it did not answer in time').waitFor();
  await ops.getByText('The last message was not taken: it did not answer in time').waitFor();
  await page.getByRole('button', { name: 'Rules and sinks', exact: true }).click();
  const rule = page.getByRole('row', { name: /^model_success/ });
  await rule.getByText('below 90%, for 1 min').waitFor();
  await page.getByRole('row', { name: /^key_resting .* off/ }).waitFor();
  await rule.getByRole('button', { name: 'Try', exact: true }).click();
  await page
    .getByRole('dialog')
    .getByText(/gpt-5\.5: 62% bad/)
    .waitFor();
  await page.keyboard.press('Escape');
  await rule.getByRole('button', { name: 'Mute', exact: true }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Why?', exact: true }).fill('a planned outage');
  await page.getByRole('dialog').getByRole('button', { name: 'Mute', exact: true }).click();
  await rule.getByText('muted until').waitFor();
  await rule.getByRole('button', { name: 'Unmute', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Unmute', exact: true }).click();
  await rule.getByText('muted until').waitFor({ state: 'detached' });
  await rule.getByRole('link', { name: 'Edit', exact: true }).click();
  await page.waitForURL(/form=alerts&entry=model_success/);
  await page.goto('/console/admin/audit');
  await page.getByRole('cell', { name: 'alert.acknowledge', exact: true }).waitFor();
});
