/** Budgets over every operation that is charged: each counts in all scopes of its call, and is refused in its protocol where one is used up. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { accountAdmin } from '../../plugins/common/domain/admin/accounts.ts';
import { ledger, pool } from '../../plugins/common/domain/ledger.ts';
import { money, parseUsd } from '../../plugins/common/domain/money.ts';
import { budgetAdmin } from '../../plugins/common/domain/organizations/budgets.ts';
import { projectAdmin } from '../../plugins/common/domain/organizations/projects.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';
import { fileRoutes } from '../plugins/batches/native/file-vendor.ts';
import { BatchVendor } from '../plugins/batches/native/stand-in.ts';
import { openWorld } from '../plugins/mcp/world.ts';
import { batchOf, type Caller, messages, operationSections, operations, post, yamlOf } from './operations.ts';
import { type Message, refusal, type Talk, talk } from './sockets.ts';

const person = '00000000-0000-4000-8000-000000000001';
const credit = parseUsd('100');
const budgets = [
  { of: 'account', amount: 50, every: 'month' },
  { of: 'project', amount: 50, every: 'quarter', zone: 'Europe/Berlin' },
  { of: 'person', amount: 50, every: 'week' },
  { of: 'models', models: ['*'], amount: 50, every: 'year' },
  { of: 'models', models: ['*'], by: 'person', amount: 50, every: 'ever' },
];

let native: BatchVendor;
let gateway: TestGateway;
const find = <T>(service: { name: string; type?: T }) => gateway.gateway.find(service)!;

before(async () => {
  native = new BatchVendor();
  native.add(fileRoutes(native));
  await native.start();
  const known = operationSections(native.origin);
  const batches = { ...known['batches'], covered: 1 };
  const sections = { ...known, batches, billing: { budgets, hold: { output_tokens: 100 } } };
  gateway = await startGateway(`
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, files, sandbox, auth, providers, models, idempotency, billing, route, protocol-convert, endpoints, websockets, uploads, batches, task-store]
${yamlOf(sections)}
`);
});
after(async () => {
  await gateway?.stop();
  native?.close();
});

let names = 0;

interface Customer extends Caller {
  readonly id: string;
  readonly project: string;
}

/** A person's key in a project, with a cap and a budget of its own. */
async function customer(): Promise<Customer> {
  const name = `account ${++names}`;
  const { id } = await find(accounts).create(name, 'free');
  await find(ledger).credit(id, credit, { kind: 'manual', reason: 'test', reference: name });
  const { key, id: keyId } = await find(accountAdmin).createKey(id, { name, project: 'search' }, person);
  await find(budgetAdmin).set(id, 'owner', { of: 'key', subject: keyId, amount: credit, every: 'day' });
  const project = (await find(projectAdmin).named(id, 'search'))!.id;
  return { id, key, project, origin: gateway.origin };
}

async function spentOf(id: string): Promise<readonly bigint[]> {
  return (await find(budgetAdmin).list(id)).flatMap(({ states }) => states.map(({ spent }) => spent));
}

const costs = async (id: string) => {
  const { balance, held } = await find(pool).view(id);
  return { cost: money(credit - balance - held), held };
};

test('every operation counts in all scopes of its call', async () => {
  const asked = Object.entries(operations).map(async ([title, [, request]]) => {
    const who = await customer();
    const answer = await request(who);
    if (answer instanceof Response) assert.ok(answer.status < 300, `${title}: ${await answer.text()}`);
    return { title, who };
  });
  for (const { title, who } of await Promise.all(asked)) {
    const cost = await until(`${title} is charged`, async () => {
      const known = await costs(who.id);
      return known.held === 0n && known.cost > 0n && known.cost;
    });
    assert.deepEqual(await spentOf(who.id), new Array(budgets.length + 1).fill(cost), title);
  }
});

/** A customer with a budget of the project that allows so much. */
async function limited(usd = '0'): Promise<Customer> {
  const who = await customer();
  await limit(who, usd);
  return who;
}

const limit = ({ id, project }: Customer, usd: string) =>
  find(budgetAdmin).set(id, 'owner', { of: 'project', subject: project, amount: parseUsd(usd), every: 'month' });

const reached = /The budget of the project search, [\d.]+ USD a month, has [\d.]+ USD left/;
const opened = new Set([
  'a turn of responses over WebSocket',
  'a response of a realtime session',
  'a turn of a live session',
]);
/** Where the protocol has another place for it. */
const places: Record<string, RegExp> = {
  messages: /"type":"billing_error",.*"details":\{"error_code":"budget_reached"\}/,
  'generate-content': /"status":"FAILED_PRECONDITION",.*"reason":"BUDGET_REACHED"/,
};

for (const [title, [, request]] of Object.entries(operations).filter(([title]) => !opened.has(title))) {
  test(`${title} beyond a budget is refused with 402 in its protocol, costs nothing and holds nothing`, async () => {
    const who = await limited();
    const answer = (await request(who)) as Response;
    const text = await answer.text();
    assert.equal(answer.status, 402, text);
    assert.match(text, reached);
    assert.match(text, places[title] ?? /"code":"budget_reached"/);
    assert.deepEqual(await costs(who.id), { cost: 0n, held: 0n });
  });
}

/** Until this process has read the changed budget. */
const heard = (who: Customer) =>
  until('calls are refused', async () => {
    const answer = await post(who, '/v1/chat/completions', { model: 'm', messages });
    await answer.text();
    return answer.status === 402;
  });

test('a turn over WebSocket beyond a budget is an error event, and the next one is made once there is room', async () => {
  const who = await limited();
  const client = await talk(who.origin, who.key);
  const [event] = await client.turn({ model: 'm', input: 'Hello' });
  assert.deepEqual([event.status, event.error.code], [402, 'budget_reached']);
  assert.match(event.error.message, reached);
  await limit(who, '1');
  await until(
    'a turn is made',
    async () => (await client.turn({ model: 'm', input: 'Hello' })).at(-1).type !== 'error',
  );
  await client.close();
});

const realtime = '/v1/realtime?model=talk';
const live = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';

function asks(client: Talk, text: string): void {
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
  client.send({ type: 'conversation.item.create', item });
  client.send({ type: 'response.create', response: { output_modalities: ['text'] } });
}
const of = (client: Talk, wanted: string): Message[] => client.messages.filter(({ type }) => type === wanted);

test('a realtime session beyond a budget is not opened, and one that is open ends with its error before the next response', async () => {
  const who = await limited('1');
  const client = await talk(who.origin, who.key, realtime);
  asks(client, 'Hello');
  await until('the response is done', () => of(client, 'response.done').length === 1);
  await limit(who, '0');
  await heard(who);
  asks(client, 'Hello again');
  assert.equal(await client.closed, 1008);
  const [event] = of(client, 'error');
  assert.equal(event.error.code, 'budget_reached');
  assert.match(event.error.message, reached);
  assert.equal(of(client, 'response.created').length, 1);
  const { status, json } = await refusal(who.origin, realtime, { authorization: `Bearer ${who.key}` });
  assert.deepEqual([status, json.error.code], [402, 'budget_reached']);
});

test('a live session beyond a budget is closed with the reason before anything is asked', async () => {
  const who = await limited();
  const client = await talk(who.origin, who.key, live, { 'x-goog-api-key': who.key });
  const reason = new Promise<string>((resolve) => client.socket.on('close', (_, text) => resolve(text.toString())));
  client.send({ setup: { model: 'models/talk' } });
  assert.equal(await client.closed, 1008);
  assert.match(await reason, /budget of the project search/);
  assert.deepEqual(await costs(who.id), { cost: 0n, held: 0n });
});

const long = 'Hello [[sandbox: tokens=4000]]';

test('a streamed answer that reaches a budget in the middle ends with an error that names it', async () => {
  const who = await limited('0.002');
  const given = { model: 'm', stream: true, messages: [{ role: 'user', content: long }] };
  const answer = await post(who, '/v1/chat/completions', given);
  const text = await answer.text();
  assert.equal(answer.status, 200);
  assert.match(text, reached);
  assert.match(text, /"code":"budget_reached"/);
});

test('a realtime response that reaches a budget in the middle ends its session with an error that names it', async () => {
  const who = await limited('0.003');
  const client = await talk(who.origin, who.key, realtime);
  asks(client, long);
  assert.equal(await client.closed, 1008);
  const [event] = of(client, 'error');
  assert.equal(event.error.code, 'budget_reached');
  assert.match(event.error.message, reached);
});

test('a line of a batch that does not fit in a budget beside the others waits, and is not made once the batch is cancelled', async () => {
  // A line holds less than this, and costs more than half of it.
  const who = await limited('0.0002');
  const order = await batchOf(who, 'm', 2, 'Hello [[sandbox: tokens=50]]');
  const { id } = (await order.json()) as { id: string };
  assert.equal(order.status, 200);
  const read = async (path: string, method = 'GET') =>
    (await fetch(who.origin + path, { method, headers: { authorization: `Bearer ${who.key}` } })).text();
  const batch = async () => JSON.parse(await read(`/v1/batches/${id}`));
  await until('one line is made', async () => (await batch()).request_counts.completed === 1);
  await read(`/v1/batches/${id}/cancel`, 'POST');
  const ended = await until('it has ended', async () => {
    const found = await batch();
    return found.status === 'cancelled' && found;
  });
  assert.deepEqual(ended.request_counts, { total: 2, completed: 1, failed: 1 });
  assert.match(await read(`/v1/files/${ended.error_file_id}/content`), /"code":"batch_cancelled"/);
  const { cost } = await costs(who.id);
  assert.ok(cost > parseUsd('0.0001') && cost < parseUsd('0.0002'));
});

test('a call of a tool counts in a budget, and is refused with 402 beyond it before its server is asked', async () => {
  const world = await openWorld({
    servers: ', price: { call: 0.5 }',
    more: 'billing: { budgets: [{ of: account, amount: 0.75, every: day }] }',
  });
  try {
    const { id, key } = await world.account('25');
    const client = await world.client(key, 'modern');
    await client.callTool({ name: 'new__echo', arguments: { text: 'one' } });
    await world.charges(id, 1);
    const asked = world.servers.modern.seen.length;
    await assert.rejects(client.callTool({ name: 'new__echo', arguments: { text: 'two' } }), (error: Error) => {
      assert.match(error.message, /"code":-32000,.*budget of this account, 0\.75 USD a day, has 0\.25 USD left/);
      assert.match(error.message, /"data":\{"code":"budget_reached"/);
      return true;
    });
    assert.equal(world.servers.modern.seen.length, asked);
    assert.equal((await world.charges(id, 1)).length, 1);
    await client.close();
  } finally {
    await world.stop();
  }
});
