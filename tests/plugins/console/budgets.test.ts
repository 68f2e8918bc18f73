/** Budgets by the API of clients and operators, on a whole gateway: set, raised for a period, ended, and never another account's. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser } from './browser.ts';
import { clientOf, operatorOf, startDemo, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
let [operator, ada, ben]: Browser[] = [];
before(async () => {
  testbed = await startDemo('demo', 'console: { sign_up: open }');
  operator = await operatorOf(testbed);
  ada = await clientOf(testbed);
  ben = await clientOf(testbed, 'ben@example.test');
});
after(() => testbed?.stop());

const call = async (who: Browser | undefined, path: string, method = 'GET', body?: unknown) =>
  who!.send(path, { method, ...(body === undefined ? {} : { body }) });

interface Row {
  readonly id: string;
  readonly setBy: string;
  readonly amount: string;
  readonly states: readonly { readonly scope: string; readonly name: string | null; readonly ceiling: string }[];
}

test('a client sets a budget of a project, adds to it for its period and ends it, each with a row of the audit log', async () => {
  const { id: projectId } = (await call(ada, '/projects', 'POST', { name: 'eval' })).json;
  const terms = {
    of: 'project',
    subject: projectId,
    every: 'month',
    warn: [0.5],
    instead: 'demo-chat',
    amount: '12.50',
  };
  const made: Row = (await call(ada, '/budgets', 'POST', terms)).json;
  assert.deepEqual([made.setBy, made.amount, made.states[0]!.name], ['owner', '12.50', 'eval']);
  const changed: Row = (await call(ada, '/budgets', 'POST', { ...terms, amount: '20' })).json;
  assert.deepEqual([changed.id, changed.amount], [made.id, '20.00']);
  const addition = { scope: made.states[0]!.scope, amount: '5', reason: 'a release' };
  const added: Row = (await call(ada, '/budgets/additions', 'POST', addition)).json;
  assert.deepEqual([added.amount, added.states[0]!.ceiling], ['20.00', '25.00']);
  assert.equal((await call(ada, `/budgets/${made.id}`, 'DELETE')).status, 200);
  assert.deepEqual((await call(ada, '/budgets')).json.rows, []);
  for (const action of ['budget.set', 'budget.add', 'budget.end'])
    assert.equal((await call(operator, `/admin/audit?action=${action}`)).json.rows[0].result, 'done', action);
});

test("an operator's budget of an account is shown to its client, who can neither raise nor end it", async () => {
  const { account } = (await call(ada, '/me')).json;
  const path = `/admin/accounts/${account.id}/budgets`;
  const terms = { of: 'account', every: 'day', amount: '3', reason: 'a trial' };
  const made: Row = (await call(operator, path, 'POST', terms)).json;
  const [seen]: Row[] = (await call(ada, '/budgets')).json.rows;
  assert.deepEqual([seen!.id, seen!.setBy], [made.id, 'operator']);
  const addition = { scope: made.states[0]!.scope, amount: '5', reason: 'more' };
  const refused = [
    await call(ada, '/budgets/additions', 'POST', addition),
    await call(ada, `/budgets/${made.id}`, 'DELETE'),
    await call(ada, path),
    await call(ada, path, 'POST', terms),
  ];
  assert.deepEqual(
    refused.map(({ status }) => status),
    [404, 404, 403, 403],
  );
  assert.equal((await call(operator, `${path}/additions`, 'POST', addition)).json.states[0].ceiling, '8.00');
  assert.equal((await call(operator, `${path}/${made.id}`, 'DELETE', { reason: 'it is over' })).status, 200);
});

test("another account's budget is not found, and terms that count nothing name their field", async () => {
  const made: Row = (await call(ada, '/budgets', 'POST', { of: 'account', every: 'week', amount: '7' })).json;
  assert.deepEqual((await call(ben, '/budgets')).json.rows, []);
  assert.equal((await call(ben, `/budgets/${made.id}`, 'DELETE')).status, 404);
  const field = async (terms: object) =>
    (await call(ada, '/budgets', 'POST', { of: 'account', every: 'week', amount: '7', ...terms })).json.error.field;
  assert.deepEqual(
    [await field({ zone: 'Nowhere' }), await field({ of: 'models' }), await field({ subject: 'x' })],
    ['zone', 'models', 'subject'],
  );
});

test('the time zone of an account moves the periods of its budgets, by its people and by operators, with a row of the audit log', async () => {
  const terms = { of: 'account', every: 'day', amount: '3' };
  const made = (await call(ada, '/budgets', 'POST', terms)).json;
  assert.deepEqual([made.zone, (await call(ada, '/budgets')).json.zone], [null, null]);
  assert.equal((await call(ada, '/budgets/zone', 'POST', { zone: 'Asia/Kathmandu' })).status, 200);
  const listed = (await call(ada, '/budgets')).json;
  assert.equal(listed.zone, 'Asia/Kathmandu');
  assert.match(listed.rows.find(({ id }: Row) => id === made.id).states[0].until, /T18:15:00/);
  const wrong = await call(ada, '/budgets/zone', 'POST', { zone: 'Mars/Olympus' });
  assert.deepEqual([wrong.status, wrong.json.error.field], [400, 'zone']);
  const { account } = (await call(ada, '/me')).json;
  const path = `/admin/accounts/${account.id}/zone`;
  assert.equal((await call(operator, path, 'POST', { zone: null, reason: 'as before' })).status, 200);
  assert.equal((await call(ada, '/budgets')).json.zone, null);
  const [row] = (await call(operator, '/admin/audit?action=account.zone')).json.rows;
  assert.deepEqual([row.result, row.reason], ['done', 'as before']);
  await call(ada, `/budgets/${made.id}`, 'DELETE');
});
