/** Accounts and their members in a browser: another name, by an owner and by an operator; what each role is shown. */
import assert from 'node:assert/strict';
import { includes, type MemberRole, memberRoles } from '../../plugins/common/domain/organizations/rights.ts';
import { access, rightOf } from '../../plugins/console/api/routing/access.ts';
import { test } from './browser-test.ts';
import { sharedStage } from './operator-stage.ts';

const stage = sharedStage();

test('an owner renames the account on the page of members, and an operator calls it by its new name and gives it another', async () => {
  const page = await stage.page('client');
  await page.goto('/console/members');
  await page.getByRole('button', { name: 'Rename', exact: true }).click();
  const form = page.getByRole('dialog').first();
  await form.getByRole('textbox', { name: 'Name' }).fill('Acme');
  await form.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Acme · Owner', { exact: true }).waitFor();
  const operators = await stage.page('operator');
  await operators.goto(`/console/admin/accounts/${stage.testbed.world.accounts[0]!.id}`);
  await operators.getByRole('heading', { name: 'Acme', level: 1 }).waitFor();
  await operators.getByRole('button', { name: 'More', exact: true }).click();
  await operators.getByRole('menuitem', { name: 'Rename', exact: true }).click();
  const dialog = operators.getByRole('dialog', { name: 'Rename Acme' });
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Acme Ltd');
  await dialog.getByLabel('Why?').fill('a new register');
  await dialog.getByRole('button', { name: 'Rename', exact: true }).click();
  await operators.getByRole('heading', { name: 'Acme Ltd', level: 1 }).waitFor();
});

test('an operator gives a member another role, removes one and hands on the keys, and invites; an auditor only reads', async () => {
  const path = `/console/admin/accounts/${stage.testbed.world.accounts[0]!.id}?tab=members`;
  const page = await stage.page('operator');
  await page.goto(path);
  const dan = page.getByRole('row').filter({ hasText: 'dan@example.test' });
  await dan.getByRole('button', { name: 'Change role of Dan Developer', exact: true }).click();
  const change = page.getByRole('dialog', { name: 'Change role of Dan Developer' });
  await change.getByRole('radio', { name: 'Admin', exact: true }).check();
  await change.getByLabel('Why?').fill('asked for by phone');
  await change.getByRole('button', { name: 'Change role', exact: true }).click();
  await dan.getByText('Admin', { exact: true }).waitFor();
  await dan.getByRole('button', { name: 'Remove', exact: true }).click();
  const removal = page.getByRole('dialog', { name: 'Remove Dan Developer?' });
  await removal.getByRole('combobox', { name: 'Keys', exact: true }).click();
  await page.getByRole('option', { name: 'Hand their keys to Ben Admin', exact: true }).click();
  await removal.getByLabel('Why?').fill('has left the company');
  const sent = page.waitForRequest((request) => request.method() === 'DELETE');
  await removal.getByRole('button', { name: 'Remove', exact: true }).click();
  assert.deepEqual((await sent).postDataJSON(), { keys: { handTo: 'person-admin' }, reason: 'has left the company' });
  await dan.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  const invitation = page.getByRole('dialog', { name: 'Invite a member' });
  await invitation.getByRole('textbox', { name: 'Address', exact: true }).fill('fay@example.test');
  await invitation.getByRole('radio', { name: 'Owner', exact: true }).check();
  await invitation.getByLabel('Why?').fill('a new owner');
  await invitation.getByRole('button', { name: 'Invite', exact: true }).click();
  await page.getByText('/console/sign-up?join=fake').waitFor();
  await page.getByRole('button', { name: 'Done', exact: true }).click();
  await page.getByRole('row').filter({ hasText: 'fay@example.test' }).getByText('Owner', { exact: true }).waitFor();
  const auditors = await stage.page('auditor');
  await auditors.goto(path);
  for (const email of ['ben@example.test', 'fay@example.test'])
    await auditors.getByRole('row').filter({ hasText: email }).waitFor();
  const names = await auditors.locator('main').getByRole('button').allInnerTexts();
  for (const name of ['Invite', 'Change role', 'Remove', 'Take back', 'Send again'])
    assert.equal(names.includes(name), false, name);
});

/** Buttons of clients' pages, each with the route that it leads to. */
const buttons: readonly (readonly [page: string, button: string, route: string])[] = [
  ['/members', 'Invite', 'POST /members/invitations'],
  ['/members', 'Rename', 'PATCH /account'],
  ['/members', 'Remove', 'POST /members/:id/remove'],
  ['/projects', 'New project', 'POST /projects'],
  ['/projects', 'Archive', 'POST /projects/:id/archive'],
  ['/projects', 'New budget', 'POST /budgets'],
  ['/keys', 'Create key', 'POST /keys'],
  ['/wallet', 'Redeem', 'POST /wallet/redeem'],
  ['/playground', 'Make a key for this session', 'POST /keys'],
];
/** Pages that the sidebar does not have for a role are not opened by it. */
const inSidebar: readonly string[] = ['/keys', '/wallet'];
const pages = [...new Set([...buttons.map(([page]) => page), '/', '/usage', '/models', '/profile'])];

const mayUse = (role: MemberRole, route: string) => includes(role, rightOf(access[route]!)!);

for (const role of memberRoles)
  test(`pages as ${role} have the buttons that the table of rights admits, and request nothing that it refuses`, async () => {
    stage.testbed.world.memberRole = role;
    const page = await stage.page('client');
    const refused: string[] = [];
    page.on('response', (response) => {
      if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`);
    });
    const linked = async (path: string) =>
      !inSidebar.includes(path) || (await page.locator(`nav a[href="/console${path}"]`).count()) > 0;
    await page.goto('/console/');
    for (const path of pages) {
      await page.getByRole('heading', { level: 1 }).waitFor();
      const isThere = await linked(path);
      if (isThere) {
        await page.goto(`/console${path}`);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.waitForLoadState('networkidle');
      }
      for (const [, name, route] of buttons.filter(([where]) => where === path)) {
        const button = page.getByRole('button', { name, exact: true });
        if (isThere && mayUse(role, route)) await button.first().waitFor();
        const shown = isThere && (await button.count()) > 0;
        assert.equal(shown, mayUse(role, route), `${name} on ${path} as ${role}`);
      }
    }
    assert.deepEqual(refused, []);
    await page.context().close();
    stage.testbed.world.memberRole = 'owner';
  });
