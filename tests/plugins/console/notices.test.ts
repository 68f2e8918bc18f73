/** Notices in the console's API: chosen by people with an account of their own, tried a few times a minute, audited. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';

test('a client reads and changes notices of the own account, and a fault names its field', async () => {
  const services = fakeConsole();
  const send = caller(services, 'client');
  const before = (await send('GET /notices?language=de')).json;
  assert.equal(before.webhook, null);
  assert.deepEqual(before.kinds[1], {
    ...{ kind: 'cap_share', title: 'A key nears its spend cap', unit: 'share' },
    ...{ channels: ['mail'], threshold: '0.80', usual: '0.80' },
  });
  const kinds = [{ kind: 'low_balance', channels: ['webhook'], threshold: '12.5' }];
  const changed = await send('PATCH /notices', { language: 'en', kinds, url: 'https://hooks.example.test/x' });
  assert.equal(changed.status, 200, changed.text);
  assert.deepEqual(changed.json.webhook, { url: 'https://hooks.example.test/x', secret: 'whsec_1' });
  assert.deepEqual(changed.json.kinds[0].channels, ['webhook']);
  for (const [field, body] of [
    ['language', {}],
    ['language', { language: 'fr' }],
    ['url', { language: 'en', url: 'ftp://hooks.example.test' }],
    ['url', { language: 'en', url: 'http://127.0.0.1:9/' }],
    ['kinds.0.threshold', { language: 'en', kinds: [{ ...kinds[0], threshold: '-1' }] }],
    ['kinds.0.channels.0', { language: 'en', kinds: [{ ...kinds[0], channels: ['pigeon'] }] }],
  ] as const) {
    const refused = await send('PATCH /notices', body);
    assert.deepEqual([refused.status, refused.json.error.field], [400, field], refused.text);
  }
  for (const who of ['anonymous', 'auditor', 'token'] as const)
    assert.ok([401, 403].includes((await caller(services, who)('GET /notices')).status), who);
});

test('a test says why it was not taken, leaves an audit row, and is refused beyond six a minute', async () => {
  const services = fakeConsole();
  const send = caller(services, 'client');
  const body = { channel: 'webhook', language: 'en' };
  for (let count = 0; count < 6; count++)
    assert.deepEqual((await send('POST /notices/test', body)).json, { fault: 'it answered 500' });
  const refused = await send('POST /notices/test', body);
  assert.equal(refused.status, 429);
  assert.ok(Number(refused.headers.get('retry-after')) > 0);
  const rows = (await caller(services, 'operator')('GET /admin/audit?action=notices.test')).json.rows;
  assert.equal(rows.length, 7);
  assert.equal(rows[1].result, 'refused');
});

test('operators and auditors read what an account was sent, and what accounts get that have chosen nothing; clients do not', async () => {
  const services = fakeConsole();
  for (const who of ['operator', 'auditor', 'token'] as const) {
    const send = caller(services, who);
    const { rows } = (await send('GET /admin/accounts/any/notices')).json;
    assert.deepEqual(
      rows.map(({ at: _at, ...row }: { at: number }) => row),
      [
        {
          kind: 'low_balance',
          channel: 'webhook',
          title: 'Low balance',
          sentAt: null,
          fault: 'it answered 500',
          waits: true,
        },
      ],
    );
    const { kinds, webhook } = (await send('GET /admin/notices')).json;
    assert.deepEqual([kinds[0].usual, webhook], ['5.00', undefined]);
  }
  for (const path of ['GET /admin/notices', 'GET /admin/accounts/any/notices'])
    assert.equal((await caller(services, 'client')(path)).status, 403);
});
