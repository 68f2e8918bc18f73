/** Lists as CSV and for one account: tasks and ledger, a client's own and everybody's. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { taskAdmin } from '../../../plugins/common/domain/admin/tasks.ts';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';
import { fakeTasks } from './fakes/trade.ts';
import { clientAccount } from './fakes/world.ts';

const linesOf = (csv: string) => csv.trimEnd().split('\r\n');

test("a client's tasks as CSV are only their own, by the filters of the list, without accounts and addresses", async () => {
  const services = fakeConsole();
  const send = caller(services, 'client');
  const { status, headers, text } = await send(`GET /tasks.csv?accountId=${services.world.accounts[1]!.id}`);
  assert.equal(status, 200);
  assert.equal(headers.get('content-disposition'), 'attachment; filename="tasks.csv"');
  const [head, ...rows] = linesOf(text);
  assert.equal(head, 'createdAt,completedAt,id,requestId,kind,model,state,progress,prompt,errorCode,error,results');
  assert.deepEqual(
    rows.map((row) => row.split(',')[2]),
    ['task_1', 'task_2', 'task_3', 'task_4'],
  );
  assert.match(rows[3]!, /,failed,100,"A lighthouse.*",content_policy,The vendor refused this prompt\.,0$/);
  assert.match(rows[2]!, /,1$/, 'what was made is counted, its address expires');
  const failed = linesOf((await send('GET /tasks.csv?state=failed&kind=image')).text);
  assert.equal(failed.length, 2);
});

test('operators get all tasks as CSV, or those of an account', async () => {
  const services = fakeConsole();
  const send = caller(services, 'auditor');
  const [head, ...rows] = linesOf((await send('GET /admin/tasks.csv')).text);
  assert.equal(head!.split(',')[4], 'accountId');
  assert.deepEqual(
    new Set(rows.map((row) => row.split(',')[4])),
    new Set([clientAccount, services.world.accounts[1]!.id]),
  );
  const other = linesOf((await send(`GET /admin/tasks.csv?accountId=${services.world.accounts[1]!.id}`)).text);
  assert.equal(other.length, 2);
  assert.match(other[1]!, /,A fox in a library,/);
});

test('a prompt that a spreadsheet would execute is quoted', async () => {
  const services = fakeConsole();
  const admin = fakeTasks(services.world, clientAccount);
  const evil = ['=HYPERLINK("http://evil.example")', '+1+2', '-2+3', '@SUM(A1)', '\t=1'];
  services.host.provide(taskAdmin, {
    ...admin,
    list: async (filter, page, host) => {
      const { rows, next } = await admin.list(filter, page, host);
      return { rows: evil.map((prompt) => ({ ...rows[0]!, prompt })), next };
    },
  });
  for (const [who, path] of [
    ['client', '/tasks.csv'],
    ['operator', '/admin/tasks.csv'],
  ] as const) {
    const { text } = await caller(services, who)(`GET ${path}`);
    assert.ok(text.includes(`"'=HYPERLINK(""http://evil.example"")"`), text);
    for (const cell of [",'+1+2,", ",'-2+3,", ",'@SUM(A1),", ",'\t=1,"]) assert.ok(text.includes(cell), cell);
    assert.equal(/(^|,)"?[=+@\t]/m.test(text), false);
  }
});

test('the ledger of one account is returned as rows and as CSV', async () => {
  const services = fakeConsole();
  const send = caller(services, 'operator');
  const { rows } = (await send(`GET /admin/ledger?limit=500&accountId=${clientAccount}`)).json;
  assert.ok(rows.length > 5);
  for (const { accountId } of rows) assert.equal(accountId, clientAccount);
  const csv = linesOf((await send(`GET /admin/ledger.csv?accountId=${clientAccount}`)).text);
  const all = linesOf((await send('GET /admin/ledger.csv')).text);
  for (const line of csv.slice(1)) assert.equal(line.split(',')[3], clientAccount);
  assert.ok(csv.length > 6 && csv.length < all.length, `${csv.length} of ${all.length}`);
});

test('failures by cause and requests by duration are for operators; a cause filters the list of requests', async () => {
  const services = fakeConsole();
  const send = caller(services, 'auditor');
  const { rows } = (await send('GET /admin/monitor/causes?from=2020-01-01T00:00:00Z')).json;
  assert.ok(rows.length > 1);
  for (const { cause, result, requests } of rows) {
    const query = `from=2020-01-01T00:00:00Z&limit=500&result=${result}&cause=${encodeURIComponent(cause)}`;
    assert.equal((await send(`GET /admin/requests?${query}`)).json.rows.length, requests);
    const csv = linesOf((await send(`GET /admin/requests.csv?${query}`)).text);
    assert.equal(csv.length, requests + 1);
    assert.match(csv[0]!, /^receivedAt,day,time,requestId,/);
  }
  const durations = (await send('GET /admin/monitor/durations?from=2020-01-01T00:00:00Z')).json.rows;
  assert.equal(durations.at(-1).untilMs, null);
  const sums = (await send('GET /admin/monitor?from=2020-01-01T00:00:00Z')).json;
  const counted = durations.reduce((sum: number, { total }: { total: number }) => sum + total, 0);
  assert.equal(counted, sums.requests);
  for (const path of ['causes', 'durations'])
    assert.equal((await caller(services, 'client')(`GET /admin/monitor/${path}`)).status, 403);
});

test('an order of an image whose task has failed says so among the requests, and a task says what it cost', async () => {
  const services = fakeConsole();
  const send = caller(services, 'client');
  const { rows: tasks } = (await send('GET /tasks')).json;
  const failed = tasks.find(({ state }: { state: string }) => state === 'failed');
  const index = services.world.requests.findIndex(({ id }) => id === failed.requestId);
  const order = {
    ...services.world.requests[index]!,
    accountId: services.world.accounts[0]!.id,
    status: 200,
    outcome: 'complete' as const,
  };
  services.world.requests[index] = order;
  const { charges } = services.world;
  charges.splice(0, charges.length, ...charges.filter(({ requestId }) => requestId !== order.id));
  assert.equal((await send(`GET /usage/${order.id}`)).json.request.task, 'failed');
  const [from, until] = [0, 1].map((ms) => new Date(order.receivedAt + ms).toISOString());
  const { rows } = (await send(`GET /usage?from=${from}&until=${until}`)).json;
  assert.deepEqual(
    rows.filter(({ task }: { task: string | null }) => task === 'failed').map(({ id }: { id: string }) => id),
    [order.id],
  );
  assert.equal(typeof tasks.find(({ cost }: { cost: string | null }) => cost !== null)?.cost, 'string');
});
