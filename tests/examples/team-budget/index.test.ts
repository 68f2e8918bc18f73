/** The budgets in a gateway of their own: what fits is made, what does not is refused, and the page shows each account its own teams. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import {
  chatAnswer,
  checkGateway,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from 'model-gateway/testing';

let vendor: Vendor;
let gateway: TestGateway;

before(async () => {
  vendor = await startVendor();
  vendor.play(chatAnswer('Noted.'));
  const plugins = ['storage', 'auth', 'console', './', 'providers', 'models', 'admission', 'billing', 'route'];
  gateway = await startGateway(
    {
      plugins: [...plugins, 'protocol-convert', 'endpoints'],
      console: { sign_up: 'open' },
      'team-budget': { teams: { search: '0.02', tiny: '0.000001' } },
      providers: {
        vendor: {
          keys: 'vendor-key',
          speaks: { chat: `${vendor.origin}/v1`, 'openai-embeddings': `${vendor.origin}/v1` },
        },
      },
      models: {
        m: { owned_by: 'vendor', targets: ['vendor'], max_output: 100, price: { input: 10, output: 100 } },
        e: { kind: 'embedding', owned_by: 'vendor', targets: ['vendor'], price: { input: 10 } },
      },
    },
    { from: import.meta.dirname },
  );
});
after(async () => {
  await gateway?.stop();
  await vendor.stop();
});

/** A new account with money, and its keys by project. */
async function accountWith(name: string) {
  const { id } = (await gateway.run('accounts create', { name, credit: '10' })) as { id: string };
  const keyOf = async (project: string | undefined) =>
    ((await gateway.run('keys create', { account: name, name: 'test', project })) as { key: string }).key;
  return { id, keyOf };
}

const post = (key: string, path = '/v1/chat/completions', body: object = {}) =>
  gateway.post(
    path,
    { model: 'm', messages: [{ role: 'user', content: 'Hello' }], ...body },
    { authorization: `Bearer ${key}` },
  );

interface Row {
  readonly account: string;
  readonly team: string;
  readonly spent: string;
  readonly held: string;
  readonly limit?: string;
}

/** Once nothing is held any more: calls are settled a moment after their answer. */
async function spentBy(account: string): Promise<Row[]> {
  for (const until = Date.now() + 60_000; Date.now() < until; await setTimeout(20)) {
    const { rows } = (await gateway.run('team-budget')) as { rows: Row[] };
    const own = rows.filter((row) => row.account === account);
    if (own.every(({ held }) => held === '0.00')) return own;
  }
  throw new Error('something is held for ever');
}

test('calls of all operations count for the team of their key, until its budget is used up: 402 with a code', async () => {
  const { id, keyOf } = await accountWith('ada');
  const key = await keyOf('search');
  const other = await keyOf(undefined);
  assert.equal((await post(key)).status, 200);
  const [first] = await spentBy(id);
  assert.equal(first!.team, 'search');
  assert.ok(Number(first!.spent) > 0);
  let answer = await post(key);
  for (let calls = 0; answer.status === 200 && calls < 100; calls++) answer = await post(key);
  assert.equal(answer.status, 402);
  assert.equal(answer.headers.get('x-should-retry'), 'false');
  assert.match(await answer.text(), /has used up its budget of 0\.02 USD.*"code":"team_budget_reached"/);
  const [used] = await spentBy(id);
  assert.ok(Number(used!.spent) <= 0.02);
  assert.equal(used!.limit, '0.02');
  assert.equal((await post(other)).status, 200);
  assert.equal((await spentBy(id)).length, 1);
});

test('embeddings of a team without room are refused too, and what a vendor refuses costs the team nothing', async () => {
  const { id, keyOf } = await accountWith('bob');
  const refused = await post(await keyOf('tiny'), '/v1/embeddings', {
    model: 'e',
    input: 'a text',
    messages: undefined,
  });
  assert.equal(refused.status, 402);
  vendor.play({ status: 400, body: '{"error":{"message":"no"}}' });
  assert.equal((await post(await keyOf('search'))).status, 400);
  vendor.play(chatAnswer('Noted.'));
  assert.deepEqual(
    (await spentBy(id)).map(({ team, spent }) => [team, spent]),
    [
      ['search', '0.00'],
      ['tiny', '0.00'],
    ],
  );
});

test('many calls at once: only those are made that fit together', async () => {
  const { id, keyOf } = await accountWith('eve');
  const key = await keyOf('search');
  const statuses = await Promise.all(Array.from({ length: 8 }, async () => (await post(key)).status));
  assert.deepEqual([...new Set(statuses)].toSorted(), [200, 402]);
  assert.ok(Number((await spentBy(id))[0]!.spent) <= 0.02);
});

test('the page shows a person the teams of their own account, and nothing without sign-in', async () => {
  const at = `${gateway.origin}/console/api`;
  const headers = { origin: gateway.origin, 'x-console': '1', 'content-type': 'application/json' };
  assert.equal((await fetch(`${at}/pages/team-budget`)).status, 401);
  const body = JSON.stringify({ email: 'fay@example.com', password: 'correct horse battery', name: 'Fay' });
  const made = await fetch(`${at}/auth/sign-up/email`, { method: 'POST', headers, body });
  assert.equal(made.status, 200, await made.clone().text());
  const cookie = made.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ');
  const created = await fetch(`${at}/keys`, {
    method: 'POST',
    headers: { ...headers, cookie },
    body: JSON.stringify({ name: 'mine', project: 'tiny' }),
  });
  const { key } = (await created.json()) as { key: string };
  assert.equal((await post(key)).status, 402);
  const shown = await fetch(`${at}/pages/team-budget`, { headers: { cookie } });
  const { rows } = (await shown.json()) as { rows: Row[] };
  assert.deepEqual(
    rows.map(({ team, spent, limit }) => [team, spent, limit]),
    [['tiny', '0.00', '0.000001']],
  );
  const module = await fetch(`${gateway.origin}/console/modules/pages/team-budget.js`);
  assert.equal(await module.text(), await readFile(new URL('./page.js', import.meta.url), 'utf8'));
});

test('without the plugin that asks rules, or with it below billing, one sentence says what to change', async () => {
  const sentences = (...owner: readonly string[]) => {
    const plugins = ['storage', 'auth', 'console', './', 'providers', 'models', ...owner, 'route', 'protocol-convert'];
    const file = { plugins, 'team-budget': { teams: {} }, providers: {}, models: {} };
    return checkGateway(file, { from: import.meta.dirname });
  };
  assert.match((await sentences('billing')).join(), /point "admission".*add "admission"/);
  assert.match((await sentences('billing', 'admission')).join(), /move "admission" above "billing"/);
  assert.deepEqual(await sentences('admission', 'billing'), []);
});
