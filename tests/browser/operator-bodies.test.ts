/** Kept bodies and recordings in a real browser: shown by a click, as text, to operators alone; begun and ended with a reason. */
import assert from 'node:assert/strict';
import { recordedBodies } from '../../plugins/common/domain/admin/recorded-bodies.ts';
import { until } from '../helpers/until.ts';
import { test } from './browser-test.ts';
import { findingsOf } from './looks.ts';
import { sharedStage } from './operator-stage.ts';

const stage = sharedStage();

test('recorded bodies are shown on a click, as text and not as a page, and can be deleted', async () => {
  const { id } = stage.testbed.world.requests.at(-1)!;
  const page = await stage.page();
  await page.goto(`/console/admin/requests/${id}`);
  await page.getByRole('button', { name: 'Show bodies', exact: true }).waitFor();
  assert.equal(await page.getByText('A fox in a library').count(), 0);
  await page.getByRole('button', { name: 'Show bodies', exact: true }).click();
  await page.getByText('A fox in a library').waitFor();
  await page.getByText('<b>What</b> is in this picture?').waitFor();
  await page.getByText(/4\.4 .*B were left out|left out/).waitFor();
  if (process.env['SHOTS']) await page.screenshot({ path: `${process.env['SHOTS']}/bodies.png`, fullPage: true });
  await page.getByRole('link', { name: 'Replay in playground', exact: true }).click();
  const replayed = page.getByRole('textbox', { name: 'Body of the request', exact: true });
  const body = await until('a body', async () => (await replayed.inputValue()) || undefined);
  assert.equal(JSON.parse(body).model, 'gpt-5.4-mini');
  assert.deepEqual(await findingsOf(page, `/console/playground?replay=${id}`), []);
  await replayed.fill('{');
  await page.getByText('This is no JSON object.').waitFor();
  await page.goto(`/console/admin/requests/${id}`);
  await page.getByRole('button', { name: 'Show bodies', exact: true }).click();
  await page.getByRole('button', { name: 'Delete bodies', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('the client asked');
  await dialog.getByRole('button', { name: 'Delete bodies', exact: true }).click();
  await page.getByText('No bodies are kept of this request.').waitFor();
  assert.deepEqual(stage.complaints, []);
});

test('an auditor sees the timeline, and no link to its recorded bodies', async () => {
  const { id } = stage.testbed.world.requests.at(-2)!;
  const page = await stage.page('auditor');
  await page.goto(`/console/admin/requests/${id}`);
  await page.getByText('What happened').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Show bodies', exact: true }).count(), 0);
  await page.goto('/console/admin/requests');
  await page.getByRole('heading', { level: 1, name: 'Requests', exact: true }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Record bodies', exact: true }).count(), 0);
});

test('a recording that matches the filters is begun, seen by all operators, and stopped', async () => {
  const recordedBodiesService = stage.testbed.find(recordedBodies)!;
  const page = await stage.page();
  await page.goto('/console/admin/requests?model=claude-sonnet-5');
  await page.getByRole('button', { name: 'Saved views', exact: true }).click();
  await page.getByRole('textbox', { name: 'Name of this view', exact: true }).fill('Sonnet');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Forget Sonnet', exact: true }).waitFor();
  assert.deepEqual(await findingsOf(page, '/console/admin/requests'), []);
  await page.goto('/console/admin/requests');
  await page.getByRole('button', { name: 'Saved views', exact: true }).click();
  await page.getByRole('button', { name: 'Sonnet', exact: true }).click();
  await page.waitForURL(/model=claude-sonnet-5/);
  await page.getByRole('button', { name: 'Record bodies', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('claude-sonnet-5').waitFor();
  await dialog.getByText('8 h', { exact: true }).click();
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('a complaint');
  await dialog.getByRole('button', { name: 'Record bodies', exact: true }).click();
  await page.getByText('Bodies are recorded:').waitFor();
  const [recording] = await recordedBodiesService.recordings();
  assert.deepEqual([recording!.model, recording!.until - recording!.startedAt > 28_000_000], ['claude-sonnet-5', true]);
  if (process.env['SHOTS']) await page.screenshot({ path: `${process.env['SHOTS']}/recording.png` });
  assert.deepEqual(await findingsOf(page, '/console/admin/requests'), []);
  await page.getByRole('button', { name: 'Stop recording', exact: true }).click();
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('done');
  await dialog.getByRole('button', { name: 'Stop recording', exact: true }).click();
  await page.getByText('Bodies are recorded:').waitFor({ state: 'detached' });
  assert.deepEqual(await recordedBodiesService.recordings(), []);
  assert.deepEqual(stage.complaints, []);
});
