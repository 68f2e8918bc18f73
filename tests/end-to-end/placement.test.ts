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
      orders: { ...provider({ zdr: true }), speaks: { 'openai-images': `${sandbox}/v1` } },
    };
  },
  models: {
    everywhere: modelAt('unknown/sandbox', 'us/sandbox', 'both/sandbox', 'eu/sandbox', 'discreet/sandbox'),
    american: { ...modelAt('us/sandbox', 'discreet/sandbox'), instead: { unavailable: ['everywhere'] } },
    vectors: { ...modelAt('us/vectors', 'eu/vectors'), kind: 'embedding', price: { input: 1 } },
    painter: { ...modelAt('us/painter'), kind: 'image', price: { image: 1 } },
    ordered: { ...modelAt('orders/painter'), kind: 'image', price: { image: 1 } },
    drawn: { ...modelAt('discreet/painter'), kind: 'image', price: { image: 1 } },
    film: { ...modelAt('discreet/film'), kind: 'video', price: { second: 1 } },
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

/** Each of the lists of models, page by page where it has pages; and one model by its id. */
const lists: Record<string, (ask: Ask) => Promise<string[]>> = {
  chat: async (ask) => (await ask('/v1/models')).data.map(({ id }: { id: string }) => id),
  async messages(ask) {
    const found: string[] = [];
    for (let after = ''; ; after = `&after_id=${found.at(-1)}`) {
      const page = await ask(`/v1/models?limit=2${after}`, { 'anthropic-version': '2023-06-01' });
      found.push(...page.data.map(({ id }: { id: string }) => id));
      assert.deepEqual([page.first_id, page.last_id], [page.data[0]?.id ?? null, page.data.at(-1)?.id ?? null]);
      if (page.has_more === false) return found;
    }
  },
  async gemini(ask) {
    const found: string[] = [];
    for (let token = ''; ; ) {
      const page = await ask(`/v1beta/models?pageSize=2&pageToken=${token}`);
      found.push(...page.models.map(({ name }: { name: string }) => name.replace('models/', '')));
      if (page.nextPageToken === undefined) return found;
      token = page.nextPageToken;
    }
  },
};
// biome-ignore lint/suspicious/noExplicitAny: bodies of three dialects are asserted on
type Ask = (path: string, headers?: Record<string, string>) => Promise<any>;

function asker({ key }: Customer, status = 200): Ask {
  return async (path, headers = {}) => {
    const answer = await fetch(testbed.origin + path, { headers: { authorization: `Bearer ${key}`, ...headers } });
    assert.equal(answer.status, status, path);
    return answer.json();
  };
}

test('lists of models leave out those that account, plan, project and key leave no provider, in each dialect', async () => {
  const all = [
    'sandbox',
    'replay',
    'everywhere',
    'american',
    'vectors',
    'painter',
    'ordered',
    'drawn',
    'film',
    'voice',
  ];
  const discreet = await testbed.customer();
  await admin.setRetention(discreet.accountId, 'none');
  const cases: [Customer, string[]][] = [
    [await testbed.customer(), all],
    [await bound({ regions: ['eu'] }), ['everywhere', 'vectors']],
    [await bound({ project: 'p' }), ['everywhere', 'vectors']],
    [await bound({}, 'european'), ['everywhere', 'vectors']],
    [await bound({ regions: ['us'] }, 'european'), []],
    [await bound({ regions: ['us'] }), ['everywhere', 'american', 'vectors', 'painter', 'drawn', 'film', 'voice']],
    // Orders of images and videos are kept; a vendor that speaks generate-content makes images without one.
    [discreet, ['everywhere', 'american', 'drawn']],
  ];
  for (const [customer, served] of cases)
    for (const [dialect, list] of Object.entries(lists)) {
      assert.deepEqual((await list(asker(customer))).sort(), [...served].sort(), dialect);
    }
  const [, [european]] = cases as [unknown, [Customer]];
  assert.equal((await asker(european)('/v1/models/everywhere')).id, 'everywhere');
  const { error } = await asker(european, 403)('/v1/models/american');
  assert.deepEqual([error.code, error.param], ['region_unavailable', 'model']);
  assert.equal((await asker(discreet, 403)('/v1/models/film')).error.code, 'retention_none');
  assert.equal((await asker(european, 404)('/v1/models/nothing')).error.code, 'model_not_found');
  // The list needs no key here, and one that is not valid changes nothing.
  const wrong = { accountId: '', key: `${european.key.slice(0, -1)}_` };
  assert.equal((await lists['chat']!(asker(wrong))).length, all.length);
  assert.equal((await lists['gemini']!(asker(wrong))).length, all.length);
});

test('each chat model that is listed can be called, and each that is not listed is refused', async () => {
  const customer = await bound({ regions: ['us'] });
  const listed = new Set(await lists['chat']!(asker(customer)));
  for (const model of ['sandbox', 'everywhere', 'american'])
    for (const name of dialectNames) {
      const { status, text } = await testbed.call(customer, name, { model, prompt: 'Hi' });
      assert.equal(status, listed.has(model) ? 200 : 403, text);
    }
  const discreet = await testbed.customer();
  await admin.setRetention(discreet.accountId, 'none');
  for (const [model, served] of [
    ['drawn', true],
    ['ordered', false],
    ['painter', false],
  ] as const) {
    const { status, text } = await testbed.call(discreet, 'gemini', { model, prompt: 'Hi' });
    assert.equal(status !== 403, served, text);
  }
});
