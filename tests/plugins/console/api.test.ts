/** Every route of the API with every role, and what an answer may never hold: over services in memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import type { Role } from '../../../plugins/console/actor.ts';
import { createApi } from '../../../plugins/console/api/index.ts';
import { access, mayAsk } from '../../../plugins/console/api/routing/access.ts';
import { caller, everybody, type Reply, type Who } from './caller.ts';
import { type FakeConsole, fakeConsole } from './fake-console.ts';
import { clientAccount } from './fakes/world.ts';

/** What is written down here by hand, so that a slip in the table is seen: who is let in. */
const expected: Readonly<Record<string, readonly Who[]>> = {
  public: ['anonymous', 'client', 'auditor', 'operator', 'token'],
  program: ['anonymous', 'client', 'auditor', 'operator', 'token'],
  person: ['client', 'auditor', 'operator'],
  own: ['client', 'operator'],
  any: ['client', 'auditor', 'operator', 'token'],
  read: ['auditor', 'operator', 'token'],
  act: ['operator', 'token'],
};

/** Routes that the app really has. */
function routesOf(services: FakeConsole): string[] {
  return createApi(services)
    .routes.filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method} ${path}`)
    .filter((route, index, all) => all.indexOf(route) === index);
}

test("the table lists exactly the app's routes", () => {
  const routes = routesOf(fakeConsole());
  assert.ok(routes.length > 60, `${routes.length} routes`);
  assert.deepEqual(routes.toSorted(), Object.keys(access).toSorted());
});

test('only intended routes are public, and routes that act on others are for operators', () => {
  const open = Object.keys(access).filter((route) => access[route] === 'public');
  assert.deepEqual(open.toSorted(), [
    'GET /info',
    'GET /members/join',
    'GET /public/legal/:name',
    'GET /public/models',
    'GET /public/status',
    'POST /company-sign-in',
    'POST /connect/code',
    'POST /first-operator',
  ]);
  const programs = Object.keys(access).filter((route) => access[route] === 'program');
  assert.deepEqual(programs.toSorted(), ['GET /connect/authorize', 'POST /connect/register', 'POST /connect/token']);
  const admin = Object.keys(access).filter((route) => route.includes(' /admin/'));
  for (const route of admin) assert.ok(['read', 'act'].includes(access[route]!), route);
  const changes = admin.filter((route) => !route.startsWith('GET ') && access[route] !== 'act');
  assert.deepEqual(changes, ['POST /admin/prices/quote', 'POST /admin/prices/example']);
});

for (const who of everybody) {
  test(`each route admits or refuses ${who} as the table says`, async () => {
    for (const route of routesOf(fakeConsole())) {
      const send = caller(fakeConsole(), who);
      const path = route.replace(/:\w+/g, 'nothing');
      const reply = await send(path, path.startsWith('GET ') ? undefined : {});
      const admitted = expected[access[route]!.replace(/:.*/, '')]!.includes(who);
      const refusal = who === 'anonymous' ? 401 : 403;
      if (admitted) assert.ok(![401, 405].includes(reply.status), `${route} as ${who}: ${reply.status} ${reply.text}`);
      else assert.equal(reply.status, refusal, `${route} as ${who}: ${reply.text}`);
      // Programs of others read errors as OAuth has them.
      if (reply.status >= 400)
        assert.equal(typeof (reply.json.error_description ?? reply.json.error.message), 'string', route);
      const shared = reply.status < 400 && /^GET \/public\//.test(route) ? 'public, max-age=60' : 'no-store';
      assert.equal(reply.headers.get('cache-control'), shared, route);
    }
  });
}

test('an actor with an unknown role has no access', () => {
  const stranger = { kind: 'person', id: 'x', label: 'x', role: 'root' as Role } as const;
  for (const needed of ['any', 'read', 'act'] as const) assert.equal(mayAsk(needed, stranger), false);
});

test('a route outside the table is a 404 for operators too', async () => {
  const send = caller(fakeConsole(), 'operator');
  for (const route of ['GET /admin', 'GET /admin/vaults', 'PUT /me', 'DELETE /keys', 'POST /usage'])
    assert.equal((await send(route)).status, 404, route);
});

test("another account's key, request and task get the same 404 as unknown ids", async () => {
  const services = fakeConsole();
  const send = caller(services, 'client');
  const theirs = {
    key: services.world.keys.find(({ accountId }) => accountId !== clientAccount)!.id,
    request: services.world.requests.find(({ accountId }) => accountId !== clientAccount)!.id,
    task: 'task_5',
  };
  const terms = { name: 'mine now' };
  for (const [of, unknown] of [
    [`PATCH /keys/${theirs.key}`, 'PATCH /keys/unknown'],
    [`DELETE /keys/${theirs.key}`, 'DELETE /keys/unknown'],
    [`POST /keys/${theirs.key}/rotate`, 'POST /keys/unknown/rotate'],
    [`GET /usage/${theirs.request}`, 'GET /usage/unknown'],
    [`GET /tasks/${theirs.task}`, 'GET /tasks/unknown'],
    [`DELETE /tasks/${theirs.task}`, 'DELETE /tasks/unknown'],
  ] as const) {
    const body = of.startsWith('PATCH') ? terms : of.endsWith('/rotate') ? { overlapHours: 1 } : undefined;
    const [one, other] = [await send(of, body), await send(unknown, body)];
    assert.deepEqual([one.status, one.text], [404, other.text], of);
  }
  assert.equal(services.world.keys.find(({ id }) => id === theirs.key)!.revokedAt, undefined);
});

test("a client's lists have only their own rows, with any query", async () => {
  const services = fakeConsole();
  const send = caller(services, 'client');
  const other = services.world.accounts[1]!.id;
  const mine = new Set(services.world.requests.filter((row) => row.accountId === clientAccount).map(({ id }) => id));
  for (const route of ['GET /usage?limit=500', `GET /usage?limit=500&accountId=${other}`]) {
    const { rows } = (await send(route)).json;
    assert.ok(rows.length > 20);
    for (const { id } of rows) assert.ok(mine.has(id));
  }
  const ledger = (await send(`GET /wallet/ledger?limit=500&accountId=${other}`)).json.rows;
  for (const { accountId } of ledger) assert.equal(accountId, clientAccount);
  for (const { prompt } of (await send('GET /tasks')).json.rows) assert.notEqual(prompt, 'A fox in a library');
});

test('a client sees neither provider, address, key nor own cost of a request', async () => {
  const services = fakeConsole();
  const send = caller(services, 'client');
  const charged = services.world.charges.find(({ accountId }) => accountId === clientAccount)!.requestId;
  const reply = await Promise.all(
    [
      '/home',
      '/usage?limit=500',
      `/usage/${charged}`,
      '/usage.csv',
      '/usage/sums',
      '/usage/series',
      '/usage/activity?by=key',
      '/wallet',
      '/tasks',
    ].map((path) => send(`GET ${path}`)),
  );
  for (const { status, text } of reply) {
    assert.equal(status, 200);
    for (const word of ['provider"', 'upstreamModel', 'upstreamId', 'credential', 'ownCost', 'absorbed', 'openai#'])
      assert.equal(text.includes(`"${word}`), false, `${word} in ${text.slice(0, 300)}`);
    assert.doesNotMatch(text, /vendorMessage|the words of a vendor|vendor-request-1/);
  }
  const operators = await caller(services, 'auditor')(`GET /admin/requests/${charged}`);
  const { vendorMessage, vendorRequestId } = operators.json.attempts[0];
  assert.deepEqual([vendorMessage, vendorRequestId], ['the words of a vendor', 'vendor-request-1']);
  const timeline = (await send(`GET /usage/${charged}`)).json;
  assert.match(timeline.charge.formula, /input|image|second/);
  assert.deepEqual(Object.keys(timeline.attempts[0]).toSorted(), [
    'durationMs',
    'number',
    'result',
    'startedAt',
    'status',
  ]);
  const forOperator = (await caller(services, 'operator')(`GET /admin/requests/${charged}`)).json;
  assert.ok(forOperator.attempts[0].credential.includes('#'));
});

test('a key is returned once, and by no other route', async () => {
  const services = fakeConsole();
  const send = caller(services, 'client');
  const made = (await send('POST /keys', { name: 'laptop' })).json;
  const boss = caller(services, 'operator');
  const everything = await Promise.all([
    send('GET /keys'),
    send('GET /me'),
    boss(`GET /admin/accounts/${clientAccount}/keys`),
    boss('GET /admin/audit'),
  ]);
  for (const { text } of everything) assert.equal(text.includes(made.key), false);
  assert.ok(everything[0]!.text.includes(made.prefix));
});

test('terms of a key are returned as they were given, and wrong ones name their field', async () => {
  const send = caller(fakeConsole(), 'client');
  const terms = {
    name: 'build',
    models: ['gpt-5.4-mini'],
    addresses: ['203.0.113.0/24'],
    limits: { rpm: 60 },
    cap: { amount: '5.000000001', every: 'day' },
    expiresAt: '2030-01-01T00:00:00Z',
    tags: ['team=search', 'env'],
  };
  const { id } = (await send('POST /keys', terms)).json;
  const row = (await send('GET /keys')).json.rows.find((key: { id: string }) => key.id === id);
  assert.deepEqual([row.limits, row.tags, row.capSpent], [{ rpm: 60 }, terms.tags, '0.00']);
  assert.deepEqual([row.cap, row.expiresAt], [{ amount: '5.000000001', every: 'day' }, '2030-01-01T00:00:00.000Z']);
  for (const [field, wrong] of [
    ['name', { name: '' }],
    ['cap.amount', { name: 'x', cap: { amount: '1e3', every: 'day' } }],
    ['limits.rpm', { name: 'x', limits: { rpm: 0 } }],
    ['json', { name: 'x', accountId: 'another' }],
  ] as const) {
    const reply = await send('POST /keys', wrong);
    assert.equal(reply.status, 400);
    assert.equal(reply.json.error.field, field, reply.text);
  }
});

test('money moves once for each Idempotency-Key, and not without one', async () => {
  const services = fakeConsole();
  const send = caller(services, 'operator');
  const path = `POST /admin/accounts/${clientAccount}/credit`;
  const body = { amount: '12.50', reason: 'a bank transfer' };
  assert.equal((await send(path, body)).status, 400);
  const once = { 'idempotency-key': 'transfer-0001' };
  const before = (await send(`GET /admin/accounts/${clientAccount}`)).json.pool.balance;
  const [first, second] = [await send(path, body, once), await send(path, body, once)];
  assert.equal(first.json.balance, second.json.balance);
  assert.equal(parseUsd(first.json.balance) - parseUsd(before), parseUsd('12.50'));
  const noReason = await send(path, { amount: '1' }, once);
  assert.equal(noReason.json.error.field, 'reason');
  for (const amount of ['0', '-5', '1e9', '0.0000000001', 'NaN'])
    assert.equal((await send(path, { ...body, amount }, once)).status, 400, amount);
});

test('each change of an operator is in the audit log with its reason and outcome, also a refused one', async () => {
  const services = fakeConsole();
  const send = caller(services, 'operator');
  const once = { 'idempotency-key': 'debit-00001' };
  await send('POST /admin/upstreams/openai/disable', { reason: 'an outage' });
  const path = `POST /admin/accounts/${clientAccount}/debit`;
  assert.equal((await send(path, { amount: '999999', reason: 'too much' }, once)).status, 402);
  const { rows } = (await send('GET /admin/audit')).json;
  const [debit, disable] = rows;
  assert.deepEqual(
    [disable.action, disable.subject, disable.reason, disable.result, disable.address, disable.actor],
    ['upstream.disable', 'openai', 'an outage', 'done', '203.0.113.7', 'operator@example.test'],
  );
  assert.deepEqual([debit.action, debit.result], ['account.debit', 'insufficient_balance']);
  assert.equal(
    (await caller(services, 'auditor')('GET /admin/audit.csv')).text.split('\r\n')[1]?.includes('debit'),
    true,
  );
});

test('cells that a spreadsheet would execute are quoted', async () => {
  const services = fakeConsole();
  const send = caller(services, 'operator');
  for (const reason of ['=HYPERLINK("http://evil.example")', '+1+2', '-2+3', '@SUM(A1)'])
    await send('POST /admin/upstreams/openai/wake', { reason });
  const csv = (await send('GET /admin/audit.csv')).text;
  assert.ok(csv.includes(`"'=HYPERLINK(""http://evil.example"")"`));
  for (const cell of [",'+1+2,", ",'-2+3,", ",'@SUM(A1),"]) assert.ok(csv.includes(cell), cell);
  assert.equal(/(^|,)"?[=+@]/m.test(csv), false);
  const ledger = (await send('GET /admin/ledger.csv')).text;
  assert.match(ledger, /,-\d+\.\d+,/);
});

test('a list is paged to its end without a row twice', async () => {
  const send = caller(fakeConsole(), 'operator');
  const seen = new Set<string>();
  let after: string | null = '';
  let pages = 0;
  while (after !== null) {
    const { rows, next }: { rows: { id: string }[]; next: string | null } = (
      await send(`GET /admin/requests?limit=40&from=2000-01-01T00:00:00Z${after === '' ? '' : `&after=${after}`}`)
    ).json;
    for (const { id } of rows) assert.equal(seen.has(id), false);
    for (const { id } of rows) seen.add(id);
    after = next;
    pages++;
  }
  assert.ok(pages > 5);
  for (const limit of ['0', '501', 'x', '-1'])
    assert.equal((await send(`GET /admin/requests?limit=${limit}`)).json.error.field, 'limit', limit);
  assert.equal((await send('GET /admin/requests?after=nonsense')).status, 400);
  assert.equal((await send('GET /admin/requests?from=yesterday')).json.error.field, 'from');
});

test('operators see capacity, circuits and times of upstreams, and null for unknown figures', async () => {
  const { rows } = (await caller(fakeConsole(), 'operator')('GET /admin/upstreams')).json;
  const of = (name: string) => rows.find(({ provider }: { provider: string }) => provider === name);
  assert.deepEqual([of('openai').room, of('openai').targets], [null, []]);
  assert.deepEqual(of('google').room, { limit: 40, inFlight: 12, queue: 100, waiting: 0 });
  assert.deepEqual(of('google').targets.slice(0, 1), [
    {
      model: 'gemini-3.8-flash',
      circuit: 'open',
      opensForMs: 7_500,
      inFlight: 12,
      recent: 32,
      failed: 17,
      firstByteMs: 420,
      wholeMs: null,
      keys: [{ credential: 'google#1', answered: 0.4, firstByteMs: 420, wholeMs: null }],
    },
  ]);
});

test('a missing service is a 404 not_available, and missing in the features of /me', async () => {
  const services = fakeConsole({ bare: true });
  const send = caller(services, 'operator');
  const { features } = (await send('GET /me')).json;
  assert.deepEqual(new Set(Object.values(features)), new Set([false]));
  for (const path of [
    '/admin/requests',
    '/admin/upstreams',
    '/admin/money',
    '/admin/config',
    '/admin/prices',
    '/payments',
  ]) {
    const reply = await send(`GET ${path}`);
    assert.deepEqual([reply.status, reply.json.error.code], [404, 'not_available'], path);
  }
  assert.equal((await send('GET /home')).status, 200);
});

test('the running configuration comes with its warnings, each with its line where that is known', async () => {
  const { notices } = (await caller(fakeConsole(), 'auditor')('GET /admin/config')).json;
  assert.deepEqual(
    notices.map(({ level, where }: { level: string; where: string | null }) => [level, where]),
    [
      ['info', 'shared.yaml:1'],
      ['warning', null],
      ['warning', 'main.yaml:11'],
    ],
  );
});

test('an auditor reads the configuration without secrets', async () => {
  const services = fakeConsole();
  const operatorSees = (await caller(services, 'operator')('GET /admin/config')).json.files[1];
  const auditorSees = (await caller(services, 'auditor')('GET /admin/config')).json.files[1];
  assert.ok(operatorSees.text.includes('sk-ant-written-out-in-the-file'));
  assert.equal(auditorSees.text.includes('sk-ant-written-out'), false);
  assert.ok(auditorSees.text.includes('${OPENAI_API_KEY:-}'));
  assert.deepEqual([operatorSees.writable, auditorSees.writable], [true, false]);
});

test('names that contain scripts are returned unchanged, as JSON', async () => {
  const send = caller(fakeConsole(), 'client');
  const name = '<img src=x onerror=alert(1)>';
  await send('POST /keys', { name });
  const reply = await send('GET /keys');
  assert.equal(reply.json.rows[0].name, name);
  assert.match(reply.headers.get('content-type')!, /^application\/json/);
});

test('bodies that are no JSON, or of another shape, are refused in the common shape of errors', async () => {
  const send = caller(fakeConsole(), 'client');
  for (const body of ['{', '[]', 'null', '"text"', '{"name":"a","__proto__":{"x":1},"more":1}']) {
    const reply = await send('POST /keys', body);
    assert.equal(reply.status, 400, body);
    assert.deepEqual(Object.keys(reply.json), ['error'], body);
  }
});

test('changes need our header and origin, except with a token that no browser sends by itself', async () => {
  const services = fakeConsole();
  const send = caller(services, 'operator');
  const body = { reason: 'test' };
  for (const headers of [
    { 'x-console': '0' },
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'same-site' },
  ] as Record<string, string>[]) {
    const reply = await send('POST /admin/upstreams/openai/wake', body, headers);
    assert.deepEqual([reply.status, reply.json.error.code], [403, 'csrf']);
  }
  assert.equal((await caller(services, 'token')('POST /admin/upstreams/openai/wake', body)).status, 200);
});

test('too many requests of one caller get 429, and other callers are served', async () => {
  const services = fakeConsole();
  const send = caller(services, 'client');
  let refused: Reply | undefined;
  for (let question = 0; question <= 900; question++) {
    const reply = await send('GET /info');
    if (reply.status === 429) refused = reply;
  }
  assert.equal(refused?.json.error.code, 'rate_limited');
  assert.ok(Number(refused?.headers.get('retry-after')) > 0);
  assert.equal((await caller(services, 'operator')('GET /info')).status, 200);
  services.host.advance(60_000);
  assert.equal((await send('GET /info')).status, 200);
});

test('the API description has every route, its access and the shape of errors', async () => {
  const services = fakeConsole();
  const document = (await caller(services, 'token')('GET /openapi.json')).json;
  const described = Object.entries(document.paths as Record<string, object>).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
  );
  const missing = routesOf(services).filter((route) => !described.includes(route) && route !== 'GET /openapi.json');
  assert.deepEqual(missing, []);
  assert.equal(document.paths['/admin/tokens'].post.description, 'For operators.');
  assert.ok(document.paths['/keys'].post.responses.default);
});

test('a plan is bought once per idempotency key, and a code credits its value', async () => {
  const services = fakeConsole();
  const send = caller(services, 'client');
  const once = { 'idempotency-key': 'buy-pro-once' };
  const [first, second] = [
    await send('POST /wallet/plans/pro', undefined, once),
    await send('POST /wallet/plans/pro', undefined, once),
  ];
  assert.deepEqual([first.status, first.json.price], [200, '20.00']);
  assert.equal(first.json.balance, second.json.balance);
  const boss = caller(services, 'operator');
  const made = await boss('POST /admin/codes', { gift: { kind: 'balance', amount: '7' }, count: 2 });
  assert.equal(made.json.codes.length, 2);
  const redeemed = await send('POST /wallet/redeem', { code: made.json.codes[0] });
  assert.equal(redeemed.json.amount, '7.00');
  assert.equal((await send('POST /wallet/redeem', { code: made.json.codes[0] })).status, 409);
  const { rows: codes } = (await boss('GET /admin/codes')).json;
  const users = async (who: 'operator' | 'auditor' | 'client') =>
    await caller(
      services,
      who,
    )(`GET /admin/codes/${codes.find(({ uses }: { uses: number }) => uses === 1).id}/redemptions`);
  for (const who of ['operator', 'auditor'] as const)
    assert.deepEqual(
      (await users(who)).json.rows.map(({ accountId }: { accountId: string }) => accountId),
      [services.world.accounts[0]!.id],
    );
  assert.equal((await users('client')).status, 403);
  assert.equal((await send('POST /wallet/redeem', { code: 'unknown' })).status, 404);
  assert.equal((await boss('GET /admin/audit')).text.includes(made.json.codes[0]), false);
});

test("a quote is the formula's text", async () => {
  const send = caller(fakeConsole(), 'auditor');
  const usage = { input: 1_000, output: 100 };
  const reply = (await send('POST /admin/prices/quote', { model: 'gpt-5.4-mini', usage, ratio: '2' })).json;
  assert.deepEqual([reply.cost, reply.ownCost, reply.ratio], ['0.0024', '0.00084', '2']);
  assert.match(reply.formula, /1000 input × 0\.75/);
  assert.equal((await send('POST /admin/prices/quote', { model: 'nothing', usage })).status, 404);
});

test('an example is charged by the prices in the request, with the ratios of the default plan and of the model', async () => {
  const send = caller(fakeConsole(), 'auditor');
  const price = { input: '2.50', output: '10', above: { '200k': { input: '5' } }, service: { flex: '0.5' } };
  const body = { price, cost: { input: '1' }, multiplier: '2', usage: { input: 300_000 } };
  const answer = (await send('POST /admin/prices/example', { ...body, service: 'flex' })).json;
  // 300,000 × (5 × 0.5) / 1M × 2
  assert.deepEqual([answer.cost, answer.ownCost, answer.ratio, answer.tier], ['1.50', '0.30', '2', '>200k + flex']);
  for (const [change, field] of [
    [{ price: { ...price, above: { many: { input: '5' } } } }, 'price'],
    [{ cost: { input: '-1' } }, 'cost'],
    [{ service: 'priority' }, 'service'],
    [{ multiplier: '-2' }, 'multiplier'],
  ] as const) {
    const refused = await send('POST /admin/prices/example', { ...body, ...change });
    assert.deepEqual([refused.status, refused.json.error.field], [400, field], refused.text);
  }
});
