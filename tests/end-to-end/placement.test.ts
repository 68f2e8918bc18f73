/** Calls that are bound to regions, or of which nothing is kept: providers with the labels serve them, and no other one is asked, whatever fails. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { WebSocket } from 'ws';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { accountAdmin } from '../../plugins/common/domain/admin/accounts.ts';
import { projectAdmin } from '../../plugins/common/domain/organizations/projects.ts';
import { dialectNames } from './dialects.ts';
import { type Customer, modelAt, speaks, startTestbed } from './testbed.ts';

const testbed = await startTestbed({
  offers: { european: { price: 0, regions: ['eu'] } },
  providers: ({ sandbox }) => {
    const provider = (labels: object) => ({
      keys: 'vendor-key-of-the-sandbox',
      speaks: {
        ...speaks(sandbox),
        'openai-embeddings': `${sandbox}/v1`,
        'openai-images': `${sandbox}/v1`,
        'openai-realtime': `${sandbox}/v1`,
      },
      ...labels,
    });
    return {
      unknown: provider({}),
      us: provider({ regions: ['us'] }),
      both: provider({ regions: ['eu', 'us'] }),
      eu: provider({ regions: ['eu'] }),
      discreet: provider({ zdr: true, regions: ['us'] }),
    };
  },
  models: {
    everywhere: modelAt('unknown/sandbox', 'us/sandbox', 'both/sandbox', 'eu/sandbox', 'discreet/sandbox'),
    american: { ...modelAt('us/sandbox', 'discreet/sandbox'), instead: { unavailable: ['everywhere'] } },
    vectors: { ...modelAt('us/vectors', 'eu/vectors'), kind: 'embedding', price: { input: 1 } },
    painter: { ...modelAt('us/painter'), kind: 'image', price: { image: 1 } },
    voice: { ...modelAt('us/voice'), kind: 'realtime' },
  },
});
after(() => testbed.stop());

const admin = testbed.gateway.gateway.find(accountAdmin)!;

async function bound(terms: { regions?: string[]; project?: string }, plan?: string): Promise<Customer> {
  const { accountId } = await testbed.customer(plan === undefined ? {} : { plan });
  if (terms.project !== undefined)
    await testbed.gateway.gateway
      .find(projectAdmin)!
      .create(accountId, { name: terms.project, regions: ['eu', 'asia'] });
  const { key } = await admin.createKey(accountId, { name: 'bound', ...terms });
  return { accountId, key };
}

/** The providers that were asked, by name, for each call. */
async function asked(customer: Customer, calls: number): Promise<string[][]> {
  const { calls: rows } = await testbed.records(customer, calls);
  return rows.map(({ attempts }) => attempts.map(({ provider }) => provider));
}

test('a key that is bound to a region is served there alone, in each protocol, whole and streamed', async () => {
  const customer = await bound({ regions: ['eu'] });
  for (const name of dialectNames)
    for (const stream of [false, true])
      assert.equal((await testbed.call(customer, name, { model: 'everywhere', prompt: 'Hi', stream })).status, 200);
  assert.deepEqual(
    await asked(customer, 8),
    Array.from({ length: 8 }, () => ['eu']),
  );
  const free = await testbed.customer();
  await testbed.call(free, 'chat', { model: 'everywhere', prompt: 'Hi' });
  assert.deepEqual(await asked(free, 1), [['unknown']]);
});

test('a failure in the region is not followed by an attempt outside, and another model is not taken there', async () => {
  const customer = await bound({ regions: ['eu'] });
  const failed = await testbed.call(customer, 'chat', { model: 'everywhere', prompt: 'Hi [[sandbox: status=503]]' });
  assert.equal(failed.status, 503);
  for (const providers of await asked(customer, 1)) for (const name of providers) assert.equal(name, 'eu');
  const refused = await testbed.call(customer, 'chat', { model: 'american', prompt: 'Hi' });
  assert.equal(refused.status, 403, refused.text);
});

test('plan, project and key allow together what each of them allows; nothing in common is a refusal that names the model', async () => {
  const inProject = await bound({ project: 'p', regions: ['eu', 'us'] });
  await testbed.call(inProject, 'chat', { model: 'everywhere', prompt: 'Hi' });
  assert.deepEqual(await asked(inProject, 1), [['eu']]);
  const byPlan = await bound({}, 'european');
  await testbed.call(byPlan, 'chat', { model: 'everywhere', prompt: 'Hi' });
  assert.deepEqual(await asked(byPlan, 1), [['eu']]);
  const before = testbed.sandbox.bill().requests;
  for (const none of [await bound({ project: 'p', regions: ['us'] }), await bound({ regions: ['us'] }, 'european')])
    for (const name of dialectNames) {
      const { status, text } = await testbed.call(none, name, { model: 'everywhere', prompt: 'Hi' });
      assert.deepEqual([status, /no region/.test(text), /everywhere/.test(text)], [403, true, true], text);
    }
  assert.equal(testbed.sandbox.bill().requests, before);
});

test('other endpoints obey too: embeddings, orders of images and realtime sessions', async () => {
  const customer = await bound({ regions: ['eu'] });
  const post = (path: string, body: object) =>
    fetch(testbed.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${customer.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const vectors = await post('/v1/embeddings', { model: 'vectors', input: 'Hi' });
  assert.equal(vectors.status, 200, await vectors.text());
  assert.deepEqual(await asked(customer, 1), [['eu']]);
  const images = await post('/v1/images/generations', { model: 'painter', prompt: 'A lighthouse' });
  const { error } = (await images.json()) as { error: { code: string; param: string } };
  assert.deepEqual([images.status, error.code, error.param], [403, 'region_unavailable', 'model']);
  const socket = new WebSocket(`${testbed.origin.replace('http', 'ws')}/v1/realtime?model=voice`, {
    headers: { authorization: `Bearer ${customer.key}` },
  });
  const status = await new Promise((resolve) => {
    socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
    socket.on('open', () => resolve('open'));
    socket.on('error', () => {});
  });
  socket.terminate();
  assert.equal(status, 403);
});

test('an account of which nothing is kept is served by providers that keep nothing, from its next call on', async () => {
  const customer = await testbed.customer();
  const { accountId } = customer;
  await testbed.call(customer, 'chat', { model: 'everywhere', prompt: 'Hi' });
  await admin.setRetention(accountId, 'none');
  await testbed.call(customer, 'chat', { model: 'everywhere', prompt: 'Hi' });
  assert.deepEqual(await asked(customer, 2), [['unknown'], ['discreet']]);
  const { key } = await admin.createKey(accountId, { name: 'eu', regions: ['eu'] });
  const { status, text } = await testbed.call({ accountId, key }, 'chat', { model: 'everywhere', prompt: 'Hi' });
  assert.deepEqual([status, /kept/.test(text)], [403, true]);
  assert.equal((await testbed.gateway.gateway.find(accounts)!.find(accountId))!.id, accountId);
});
