/** The sign-in of a company in a browser: a domain, a provider that speaks SAML, sign-in by it alone; in each language, narrow, for assistive technology. */
import assert from 'node:assert/strict';
import { test } from './browser-test.ts';
import { findingsOf, firstLook, looksOfLanguage } from './looks.ts';
import { sharedStage } from './stage.ts';

const stage = sharedStage();
const path = '/console/members?show=sign-in';

test('an owner names a domain, checks it, sets a provider by its metadata, requires it and lets other ways in again', async () => {
  const page = await stage.page(firstLook);
  await page.goto(stage.origin + path);
  await page.getByRole('textbox', { name: 'Domain', exact: true }).fill('acme.example');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  const check = page.getByRole('button', { name: 'Check acme.example', exact: true });
  await check.click();
  await page.getByText('The record is not there.').waitFor();
  await check.click();
  await page.getByRole('cell', { name: 'Verified', exact: true }).waitFor();

  await page.getByRole('combobox', { name: 'Protocol of the provider', exact: true }).click();
  await page.getByRole('option', { name: 'SAML 2.0', exact: true }).click();
  await page.getByText(/\/console\/saml\/company-[0-9a-f]{16}\/metadata$/).waitFor();
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Acme');
  await page.getByRole('textbox', { name: 'Metadata of the provider' }).fill('https://login.acme.example/metadata');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('https://login.acme.example/saml', { exact: true }).waitFor();

  await page.getByRole('button', { name: 'Require it', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Require the sign-in of your company?', exact: true });
  await dialog.getByRole('button', { name: 'Require it', exact: true }).click();
  await page.getByText('Required: people of your domains sign in by your provider alone.', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Let other ways in again', exact: true }).click();
  await page.getByRole('button', { name: 'Require it', exact: true }).waitFor();
  assert.deepEqual(await findingsOf(page, stage.origin + path), []);
  await page.context().close();
});

for (const locale of ['de', 'ja', 'zh'])
  test(`the page of a company's sign-in in ${locale} is accessible and no wider than the window`, async () => {
    const page = await stage.page({ ...firstLook, locale });
    assert.deepEqual(await findingsOf(page, stage.origin + path, looksOfLanguage), []);
    await page.context().close();
  });
