/** A vendor's key by the console's API on a whole gateway: tried, stored, used at once, replaced, and never given back. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type StrictVendor, startStrictVendor } from '../../helpers/strict-vendor.ts';
import { until } from '../../helpers/until.ts';
import type { Browser } from './browser.ts';
import { clientOf, operatorOf, startDemo, type TestConsole } from './start-console.ts';

const vendorKey = 'sk-strict-0123456789abcdefXYZ1';
const newKey = 'sk-strict-9876543210fedcbaXYZ2';

let testbed: TestConsole;
let vendor: StrictVendor;
let boss: Browser;
let ada: Browser;
let clientKey: string;

before(async () => {
  vendor = await startStrictVendor(vendorKey, ['tiny-1', 'gpt-5.4-mini', 'text-embedding-tiny']);
  testbed = await startDemo();
  boss = await operatorOf(testbed);
  ada = await clientOf(testbed);
  const { account } = (await ada.send('/me')).json;
  const headers = { 'idempotency-key': crypto.randomUUID() };
  await boss.send(`/admin/accounts/${account.id}/credit`, { body: { amount: '5', reason: 'a test' }, headers });
  clientKey = (await ada.send('/keys', { body: { name: 'laptop' } })).json.key;
});
after(async () => {
  await testbed.stop();
  await vendor.close();
});

const look = (body: object, who = boss) => who.send('/admin/vendors/test', { body });

async function addToTopFile(lines: string) {
  const { files } = (await boss.send('/admin/config')).json;
  const [{ name, text }] = files;
  const saved = await boss.send('/admin/config/save', {
    body: { file: name, text: `${text}\n${lines}`, previous: text, reason: 'a vendor' },
  });
  assert.equal(saved.status, 200, saved.text);
  return saved.json;
}

const call = () =>
  fetch(`${testbed.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${clientKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny-1', messages: [{ role: 'user', content: 'Hello' }] }),
  });

test('a private address that is not in the configuration is not asked', async () => {
  const draft = { name: 'acme', speaks: { chat: vendor.baseUrl }, key: vendorKey };
  const { ok, isPrivate, error } = (await look(draft)).json;
  assert.deepEqual([ok, isPrivate, vendor.seen.length], [false, true, 0]);
  assert.match(error, /is not asked: its host is not a public address/);
  assert.doesNotMatch(error, /XYZ1/);
  for (const speaks of [
    'http://169.254.169.254/latest',
    'http://localhost:5432',
    'http://[::1]:9/v1',
    'http://2130706433/',
  ])
    assert.equal((await look({ ...draft, speaks: { chat: speaks } })).json.isPrivate, true, speaks);
  assert.equal((await look(draft, ada)).status, 403);
  assert.equal((await look({ ...draft, speaks: { chat: 'file:///etc/passwd' } })).status, 400);
  assert.equal((await look({ ...draft, key: 'secret:acme' })).status, 400);
  assert.equal((await look({ name: 'acme', key: vendorKey })).status, 404);
  assert.equal(vendor.seen.length, 0);
});

test("a wrong key gets the vendor's own words without the key, the right one its models with their known prices and limits", async () => {
  await addToTopFile(`providers: { acme: { keys: "secret:acme", speaks: { chat: "${vendor.baseUrl}" } } }`);
  assert.equal((await look({ name: 'acme' })).status, 409, 'it has no key yet');
  const wrong = (await look({ name: 'acme', key: 'sk-wrong-0123456789abcdef' })).json;
  assert.deepEqual([wrong.ok, wrong.status], [false, 401]);
  assert.match(wrong.error, /status 401: Incorrect API key provided: \*\*\*/);
  const { ok, models, others } = (await look({ name: 'acme', key: vendorKey })).json;
  assert.deepEqual(
    [ok, models.map(({ id, state }: { id: string; state: string }) => [id, state]), others],
    [
      true,
      [
        ['gpt-5.4-mini', 'known'],
        ['tiny-1', 'unpriced'],
      ],
      ['text-embedding-tiny'],
    ],
  );
  assert.deepEqual(models[1].entry.targets, ['acme/tiny-1']);
});

test('a stored key serves at once without a restart, and a replaced one goes on until its successor has answered', async () => {
  await addToTopFile('models: { tiny-1: { owned_by: acme, targets: [acme/tiny-1], price: { input: 1, output: 2 } } }');
  assert.equal((await call()).status, 404, 'no key yet');
  const stored = await boss.send('/admin/secrets', { body: { name: 'acme', value: vendorKey, reason: 'a contract' } });
  assert.equal(stored.status, 200, stored.text);
  assert.deepEqual([stored.json.lastFour, stored.json.usedBy], ['XYZ1', ['acme']]);
  await until('the model is served', async () => (await call()).status === 200, 10_000);
  const again = await boss.send('/admin/secrets', { body: { name: 'acme', value: newKey } });
  assert.deepEqual([again.status, again.json.error.code], [409, 'secret_exists']);
  const replaced = await boss.send('/admin/secrets', { body: { name: 'acme', value: newKey, overlap: 'worked' } });
  assert.equal(replaced.json.older.length, 1);
  assert.equal((await call()).status, 200, 'the vendor does not know the new key yet');
  vendor.key = newKey;
  await until('the new key has answered', async () => {
    assert.ok([200, 502, 503].includes((await call()).status));
    return (
      (await boss.send('/admin/secrets')).json.rows.find(({ name }: { name: string }) => name === 'acme').older
        .length === 0
    );
  });
});

test('no answer, page, log line or audit row has the key, and a client can name no secret', async () => {
  const operatorSees = [
    '/admin/secrets',
    '/admin/config',
    '/admin/audit',
    '/admin/upstreams',
    '/admin/requests',
    '/openapi.json',
  ];
  for (const path of operatorSees)
    assert.doesNotMatch((await boss.send(path)).text, /0123456789abcdef|fedcbaXYZ/, path);
  assert.doesNotMatch(testbed.lines.join(''), /0123456789abcdef|fedcbaXYZ/);
  for (const path of ['/admin/secrets', '/admin/config']) assert.equal((await ada.send(path)).status, 403);
  assert.equal((await ada.send('/me', { method: 'PATCH', body: { name: 'secret:acme' } })).status, 200);
  assert.doesNotMatch((await ada.send('/me')).text, /XYZ/);
  const { rows } = (await boss.send('/admin/audit')).json;
  const actions = rows.map(({ action, subject, reason }: Record<string, string>) => [action, subject, reason]);
  assert.ok(actions.some((row: string[]) => row.join() === 'secret.set,acme,a contract'));
});

test('a key that the settings name is not deleted; once they do not, it is', async () => {
  const remove = () => boss.send('/admin/secrets/acme/delete', { body: { reason: 'the end' } });
  const refused = await remove();
  assert.deepEqual([refused.status, refused.json.error.code], [409, 'secret_in_use']);
  assert.match(refused.json.error.message, /^The settings of acme name "secret:acme"/);
  const [{ name: file, text: previous }] = (await boss.send('/admin/config')).json.files;
  const text = previous.replace('"secret:acme"', '""');
  await boss.send('/admin/config/save', { body: { file, text, previous, reason: 'the end' } });
  await until('the model is gone', async () => (await call()).status === 404, 10_000);
  assert.equal((await remove()).status, 200);
  assert.deepEqual(
    (await boss.send('/admin/secrets')).json.rows.filter(({ name }: { name: string }) => name === 'acme'),
    [],
  );
});
