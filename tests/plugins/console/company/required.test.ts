/** Companies that ask for their own sign-in alone, and domains that DNS says no more are theirs. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { Clock, Log } from '../../../../core/contract/host-tools.ts';
import { noticeSender } from '../../../../plugins/common/domain/admin/notices.ts';
import { database } from '../../../../plugins/common/domain/database.ts';
import { openCompanyStore } from '../../../../plugins/console/company/store.ts';
import { companyTables } from '../../../../plugins/console/company/tables.ts';
import { checkDomains } from '../../../../plugins/console/company/watch.ts';
import { peopleTables } from '../../../../plugins/console/people/tables.ts';
import { type FakeDns, startDns } from '../../../helpers/fake-dns.ts';
import { type RealProvider, startRealProvider } from '../../../helpers/real-oidc.ts';
import type { Browser } from '../browser.ts';
import { clientOf, operatorOf, signIn, startConsole, type TestConsole } from '../start-console.ts';

const origin = 'http://gateway.test';
const password = 'another long password';
let testbed: TestConsole;
let dns: FakeDns;
let acme: RealProvider;
let owner: Browser;
let id: string;
let record: { name: string; value: string };

before(async () => {
  dns = await startDns();
  testbed = await startConsole(
    `origin: ${origin}
sign_up: open
throttle: { per_address: 1000 }
companies: { private_providers: true, dns: ["${dns.address}"] }`,
    '',
    ['notices'],
  );
  owner = await clientOf(testbed, 'olga@example.test');
  const { redirectUri } = (await owner.send('/members/sign-in')).json;
  acme = await startRealProvider(redirectUri, `${origin}/console/sign-in`);
  id = redirectUri.split('/').at(-1);
  await owner.send('/members/sign-in/domains', { body: { domain: 'acme.test' } });
  record = (await owner.send('/members/sign-in')).json.domains[0].record;
  dns.texts.set(record.name, [record.value]);
  await owner.send('/members/sign-in/domains/acme.test/verify', { method: 'POST' });
  const provider = { name: 'Acme', issuer: acme.issuer, clientId: 'gateway', clientSecret: 'shared' };
  assert.equal((await owner.send('/members/sign-in/provider', { body: provider })).status, 200);
});
after(async () => {
  await testbed.stop();
  acme.close();
  dns.close();
});

const rows = async (text: string) => {
  const { orm, schema } = testbed.gateway.find(database)!;
  const found = await orm.execute(sql.raw(text.replaceAll('{schema}', schema)));
  return ((found as { rows?: unknown[] }).rows ?? found) as Record<string, unknown>[];
};
const require = (required: boolean) => owner.send('/members/sign-in/required', { body: { required } });

async function byAcme(email: string) {
  const browser = testbed.browser();
  acme.person = { sub: email, email, email_verified: true, name: 'Somebody' };
  const begun = await browser.send('/auth/sign-in/social', { body: { provider: id, callbackURL: '/console/' } });
  const back = await acme.walk(begun.json.url);
  const landed = await browser.send(back.pathname + back.search, { headers: { 'sec-fetch-site': 'cross-site' } });
  return { browser, error: new URL(landed.headers.get('location')!, origin).searchParams.get('error') };
}
const isOfCompany = (error: { body: { code: string } }) => error.body.code === 'use_company';

const refusalOf = ({ status, json }: { status: number; json?: { error: { code: string; message: string } } }) => [
  status,
  json?.error.code,
];

test('an owner cannot require a provider by which no one has signed in yet, and the audit log says that it was tried', async () => {
  assert.deepEqual(refusalOf(await require(true)), [409, 'provider_not_tried']);
  const [last] = (await owner.send('/members/audit')).json.rows;
  assert.deepEqual([last.action, last.result], ['sign-in.required', 'provider_not_tried']);
});

test('once it is required, passwords, sign-ups, links and other sessions of its domains end, and those of others and of operators stay', async () => {
  const boss = await operatorOf(testbed);
  const [other, root] = [await clientOf(testbed, 'other@acme.test'), await clientOf(testbed, 'Root@acme.test')];
  await rows(`update {schema}.console_people set role = 'auditor' where email = 'root@acme.test'`);
  await rows(`update {schema}.console_people set email_verified = true where email = 'other@acme.test'`);
  const people = (await boss.send('/admin/people')).json.rows as { id: string; email: string }[];
  const { link } = (
    await boss.send(`/admin/people/${people.find((one) => one.email === 'other@acme.test')!.id}/reset`, {
      method: 'POST',
      body: { reason: 'a test' },
    })
  ).json;
  const eve = await byAcme('eve@acme.test');
  assert.equal(eve.error, null);
  assert.equal((await require(true)).json.required, true);

  assert.equal((await other.send('/me')).status, 401);
  for (const [who, name] of [
    [owner, 'the owner elsewhere'],
    [root, 'an auditor'],
    [boss, 'the operator'],
    [eve.browser, 'who came by the company'],
  ] as const)
    assert.equal((await who.send('/me')).status, 200, name);

  const browser = testbed.browser();
  const tried = await signIn(browser, { email: 'Other@acme.test', password });
  assert.deepEqual(refusalOf(tried), [403, 'use_company']);
  assert.match(tried.json.error.message, /acme\.test sign in by their company \(Acme\)/);
  const wrong = await signIn(browser, { email: 'other@acme.test', password: 'not the password' });
  assert.deepEqual(refusalOf(wrong), [403, 'use_company'], 'it says nothing of the password');
  const body = { email: 'new@acme.test', password, name: 'New' };
  assert.deepEqual(refusalOf(await browser.send('/auth/sign-up/email', { body })), [403, 'use_company']);
  const token = new URL(link, origin).searchParams.get('token');
  const reset = await browser.send('/auth/reset-password', { body: { token, newPassword: password } });
  assert.deepEqual(refusalOf(reset), [403, 'use_company']);
  assert.equal((await signIn(browser, { email: 'root@acme.test', password })).status, 200);

  assert.equal((await byAcme('other@acme.test')).error, null);
  const [change] = (await owner.send('/members/audit')).json.rows.filter(
    ({ action }: { action: string }) => action === 'sign-in.required',
  );
  assert.deepEqual(change.changes, [{ field: 'required', before: 'false', after: 'true' }]);
});

test('a person of a required company who comes by another provider is refused, and a new one is not made', async () => {
  const { orm, schema } = testbed.gateway.find(database)!;
  const { admitSession, admit } = await import('../../../../plugins/console/people/admission.ts');
  const { arrival } = await import('../../../../plugins/console/people/providers/arrival.ts');
  const { mailDomains } = await import('../../../../plugins/console/people/providers/mail-domains.ts');
  const parts = {
    ...{ orm, tables: peopleTables(schema), domains: mailDomains({ sign_up: 'open', domains: [], oidc: [] }) },
    requiredFor: async () => ({ id, name: 'Acme' }),
  } as never;
  const [{ id: personId }] = (await rows(`select id from {schema}.console_people where email = 'other@acme.test'`)) as [
    { id: string },
  ];
  const vouched = { provider: { id: 'google', roles: [], plans: [] }, claims: {} } as never;
  await arrival.run({ fetch: fetch as never, vouched }, async () => {
    await assert.rejects(admitSession(parts, personId, null), isOfCompany);
    await assert.rejects(admit(parts, { name: 'New', email: 'new@acme.test' }, null), isOfCompany);
  });
});

test('an operator lets people in another way again by a command, which the account sees', async () => {
  const command = testbed.gateway.commands.find(({ name }) => name === 'console company')!;
  const { account } = (await owner.send('/me')).json;
  await assert.rejects(async () => command.run({ account: account.name, anyWay: true }), /--reason/);
  await assert.rejects(async () => command.run({ account: 'unknown' }), /no account/);
  const shown = await command.run({ account: account.id });
  assert.match(shown.text!, /sign in by it alone \(Acme\)\.\n {2}acme\.test: verified/);
  const opened = await command.run({ account: account.name, anyWay: true, reason: 'their provider is down' });
  assert.equal((opened.json as { required: boolean }).required, false);
  assert.equal((await signIn(testbed.browser(), { email: 'other@acme.test', password })).status, 200);
  const [last] = (await owner.send('/members/audit')).json.rows;
  assert.deepEqual([last.action, last.actor, last.result], ['sign-in.required', 'test', 'done']);
  const [row] = await rows(`select reason from {schema}.console_audit where actor = 'operator'`);
  assert.match(String(row!['reason']), /^their provider is down \(command line, .+@.+\)$/);
});

test('a domain that has lost its record is shown, its owner is written to once, after a week it brings in no one new, and with the record all is well again', async () => {
  const domain = async () => (await owner.send('/members/sign-in')).json.domains[0];
  const later = async (days: number) => {
    await rows(
      `update {schema}.console_company_domains set checked_at = checked_at - interval '${days} days', missing_since = missing_since - interval '${days} days'`,
    );
    const { orm, schema } = testbed.gateway.find(database)!;
    const store = openCompanyStore(orm, companyTables(schema), peopleTables(schema));
    const log = { warn: (...said: unknown[]) => assert.fail(JSON.stringify(said)) } as unknown as Log;
    const notices = () => testbed.gateway.find(noticeSender);
    await checkDomains({ store, clock: { now: Date.now } as Clock, log, servers: [dns.address], notices });
  };
  await later(2);
  assert.equal((await domain()).lapsesAt, null);
  dns.texts.delete(record.name);
  await later(2);
  assert.ok((await domain()).lapsesAt > new Date().toISOString());
  assert.equal((await byAcme('first@acme.test')).error, null, 'within the week');
  await later(8);
  assert.ok((await domain()).lapsesAt < new Date().toISOString());
  const notices = await rows(`select kind from {schema}.notice_states where kind = 'domain_record'`);
  assert.equal(notices.length, 1);
  assert.equal((await byAcme('second@acme.test')).error, 'domain_lapsed');
  assert.equal((await byAcme('eve@acme.test')).error, null, 'who is a member stays one');
  dns.texts.set(record.name, [record.value]);
  assert.equal((await owner.send('/members/sign-in/domains/acme.test/verify', { method: 'POST' })).status, 200);
  assert.equal((await domain()).lapsesAt, null);
  assert.equal((await byAcme('second@acme.test')).error, null);
});
