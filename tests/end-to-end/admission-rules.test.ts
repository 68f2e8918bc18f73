/** Admission rules over every operation that is charged: reserved before the call, settled once with what it was charged, or given back. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { type ErrorDetails, GatewayError } from '../../core/contract/errors.ts';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { accountAdmin } from '../../plugins/common/domain/admin/accounts.ts';
import { ledgerQueries } from '../../plugins/common/domain/admin/ledger.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../plugins/common/domain/money.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';
import { fileRoutes } from '../plugins/batches/native/file-vendor.ts';
import { BatchVendor } from '../plugins/batches/native/stand-in.ts';
import { acts, type Recorded, recorded } from './admission-recorder.ts';
import { type Caller, messages, operationSections, operations, post as postBy, yamlOf } from './operations.ts';
import { refusal, talk } from './sockets.ts';

let native: BatchVendor;
let gateway: TestGateway;
let accountId: string;
let key: string;

before(async () => {
  native = new BatchVendor();
  native.add(fileRoutes(native));
  await native.start();
  const recorder = join(import.meta.dirname, 'admission-recorder.ts');
  gateway = await startGateway(`
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, files, sandbox, auth, "${recorder}", providers, models, idempotency, admission, billing, route, protocol-convert, endpoints, websockets, uploads, batches, task-store]
${yamlOf(operationSections(native.origin))}
`);
  const find = <T>(service: { name: string; type?: T }) => gateway.gateway.find(service)!;
  accountId = (await find(accounts).create('ada', 'free')).id;
  await find(ledger).credit(accountId, parseUsd('100'), { kind: 'manual', reason: 'test', reference: 'one' });
  const made = await find(accounts).createKey(accountId, { name: 'test' });
  key = made.key;
  await find(accountAdmin).setProject(accountId, made.id, 'search');
});
after(async () => {
  native?.close();
});
beforeEach(() => {
  recorded.length = 0;
  for (const name of Object.keys(acts)) delete acts[name];
});

const find = <T>(service: { name: string; type?: T }) => gateway.gateway.find(service)!;

const client = () => ({ origin: gateway.origin, key });
const post = (path: string, body: object, headers: Record<string, string> = {}) =>
  postBy(client(), path, body, headers);

const ends = () => recorded.filter(({ what }) => what !== 'reserve');
const open = () => recorded.filter(({ what, reservation }) => what === 'reserve' && reservation !== undefined).length;
const allEnded = () => until('every reservation has its end', () => recorded.length > 0 && ends().length >= open());

for (const [title, [operation, request]] of Object.entries(operations)) {
  test(`${title}: each rule reserves once, and settles once with the account's charge`, async () => {
    const answer = await request(client());
    if (answer instanceof Response) assert.ok(answer.status < 300, await answer.text());
    await until('the call is settled', () => recorded.some(({ end }) => end !== undefined && end.cost > 0n));
    await allEnded();
    const settled = recorded.filter(({ end }) => end !== undefined && end.cost > 0n);
    assert.deepEqual(
      settled.map(({ what, rule }) => [what, rule]),
      [
        ['settle', 'second'],
        ['settle', 'first'],
      ],
    );
    const { call, end } = settled[0]!;
    assert.equal(call.operation, operation);
    assert.deepEqual(call.caller, { accountId, keyId: call.caller.keyId, project: 'search' });
    assert.equal(end!.outcome, 'answered');
    assert.ok(Object.values(end!.usage!).some((count) => count > 0));
    assert.ok(call.amount > 0n);
    const charge = await until('the charge is written', () => find(ledgerQueries).charge(call.id, accountId));
    assert.equal(end!.cost, charge.cost);
    assert.deepEqual(reservationsOf('first'), endsOf('first'));
    assert.deepEqual(reservationsOf('second'), endsOf('second'));
  });
}

const reservationsOf = (rule: string) => textsOf(recorded.filter((one) => one.what === 'reserve' && one.rule === rule));
const endsOf = (rule: string) => textsOf(recorded.filter((one) => one.what !== 'reserve' && one.rule === rule));
const textsOf = (some: readonly Recorded[]) => some.map(({ reservation }) => reservation).toSorted();

const said = (text: string) => [{ role: 'user', content: text }];
const chat = (text: string, more: object = {}, headers = {}) =>
  post('/v1/chat/completions', { model: 'm', messages: said(text), ...more }, headers);
const kinds = () => recorded.map(({ what, rule }) => `${what} ${rule}`);

function refuseSecond(
  kind: 'rate_limited' | 'insufficient_balance' = 'rate_limited',
  details: ErrorDetails = { code: 'team_budget_reached', retryAfterMs: 3_000 },
): void {
  acts['second'] = () => {
    throw new GatewayError(kind, 'The budget of this team is used up.', details);
  };
}

/** Where the protocol has another place for it. */
const places: Record<string, RegExp> = {
  messages: /"type":"rate_limit_error",.*"details":\{"error_code":"team_budget_reached"\}/,
  'generate-content': /"status":"RESOURCE_EXHAUSTED",.*"reason":"TEAM_BUDGET_REACHED"/,
  "Google's embeddings": /"status":"RESOURCE_EXHAUSTED",.*"reason":"TEAM_BUDGET_REACHED"/,
};
const googleEmbedding = { content: { parts: [{ text: 'Hello' }] } };
const refused: Record<string, (client: Caller) => Promise<unknown>> = {
  "Google's embeddings": () => post('/v1beta/models/e:embedContent', googleEmbedding),
};
for (const title of ['chat', 'responses', 'messages', 'generate-content', 'embeddings', 'speech', 'images', 'videos'])
  refused[title] = operations[title]![1];
for (const [title, request] of Object.entries(refused)) {
  test(`${title} that the second rule refuses: the client gets its error with its code, and the first rule releases once`, async () => {
    refuseSecond();
    const answer = (await request(client())) as Response;
    assert.equal(answer.status, 429);
    assert.equal(answer.headers.get('retry-after'), '3');
    const text = await answer.text();
    assert.match(text, /The budget of this team is used up/);
    assert.match(text, places[title] ?? /"code":"team_budget_reached"/);
    assert.deepEqual(kinds(), ['reserve first', 'release first']);
  });
}

test("a 429 of a rule without a code has the protocol's own", async () => {
  refuseSecond('rate_limited', {});
  assert.match(await (await chat('Hello')).text(), /"code":"rate_limit_exceeded"/);
});

test("a rule's own code reaches the client with 402", async () => {
  refuseSecond('insufficient_balance');
  const answer = await chat('Hello');
  assert.equal(answer.status, 402);
  assert.match(await answer.text(), /"code":"team_budget_reached"/);
});

test('a refused turn and a refused session end with an error, and release their reservations', async () => {
  refuseSecond();
  const client = await talk(gateway.origin, key);
  const [error] = await client.turn({ model: 'm', input: 'Hello' });
  assert.equal(error.error.code, 'team_budget_reached');
  await client.close();
  const refusedUpgrade = await refusal(gateway.origin, '/v1/realtime?model=talk', { authorization: `Bearer ${key}` });
  assert.equal(refusedUpgrade.status, 429);
  assert.deepEqual(kinds(), ['reserve first', 'release first', 'reserve first', 'release first']);
});

const bothReleased = ['reserve first', 'reserve second', 'release second', 'release first'];

test('the balance does not cover the call: both rules give back, the last first', async () => {
  const poor = await find(accounts).create('poor', 'free');
  const { key: poorKey } = await find(accounts).createKey(poor.id, { name: 'test' });
  const body = { model: 'm', messages };
  const answer = await post('/v1/chat/completions', body, { authorization: `Bearer ${poorKey}` });
  assert.equal(answer.status, 402);
  await allEnded();
  assert.deepEqual(kinds(), bothReleased);
  const order = { model: 'i', prompt: 'a boat' };
  recorded.length = 0;
  assert.equal((await post('/v1/images/generations', order, { authorization: `Bearer ${poorKey}` })).status, 402);
  await allEnded();
  assert.deepEqual(kinds(), bothReleased);
});

test('a call that reaches no vendor is given back; one that a vendor refuses is settled without a cost', async () => {
  assert.equal((await chat('Hello', { model: 'gone' })).status, 502);
  await allEnded();
  assert.deepEqual(kinds(), bothReleased);
  recorded.length = 0;
  assert.equal((await chat('Hello [[sandbox: status=400]]')).status, 400);
  await allEnded();
  const [end] = ends();
  assert.deepEqual([end!.what, end!.end!.outcome, end!.end!.cost], ['settle', 'failed', 0n]);
});

test('a task that fails at its vendor is settled without a cost, once, when it ends', async () => {
  const content = [{ type: 'text', text: 'a boat [[sandbox: failed takes=1s]]' }];
  assert.equal((await post('/v1/contents/generations/tasks', { model: 'v', content })).status, 200);
  assert.deepEqual(kinds(), ['reserve first', 'reserve second']);
  await allEnded();
  assert.deepEqual(kinds().slice(2), ['settle second', 'settle first']);
  assert.ok(ends().every(({ end }) => end!.cost === 0n && end!.outcome === 'failed'));
});

const cuts: Record<string, readonly [directive: string, outcome: string]> = {
  'a stream breaks off': ['cut_after=3', 'failed'],
  'a client leaves a stream': ['chunks=40 chunk_delay=50ms', 'client_left'],
};
for (const [title, [directive, outcome]] of Object.entries(cuts)) {
  test(`${title}: it is settled once with what it was charged`, async () => {
    const leaving = new AbortController();
    const answer = await fetch(`${gateway.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', stream: true, messages: said(`Hello [[sandbox: ${directive}]]`) }),
      signal: leaving.signal,
    });
    await answer.body!.getReader().read();
    if (outcome === 'client_left') leaving.abort();
    await allEnded();
    assert.deepEqual(kinds(), ['reserve first', 'reserve second', 'settle second', 'settle first']);
    const { call, end } = ends()[0]!;
    assert.equal(end!.outcome, outcome);
    const charge = await until('the charge is written', () => find(ledgerQueries).charge(call.id, accountId));
    assert.equal(end!.cost, charge.cost);
    assert.ok(end!.cost > 0n);
  });
}

test('a repetition with the same Idempotency-Key reserves nothing more', async () => {
  const headers = { 'idempotency-key': 'once' };
  assert.equal((await chat('Hello', {}, headers)).status, 200);
  await until('it is answered again', async () => (await chat('Hello', {}, headers)).status === 200);
  await allEnded();
  assert.equal(recorded.length, 4);
});

test('the gateway stops while a call runs: it is settled once', async () => {
  const running = chat('Hello [[sandbox: delay=60s]]').catch((error: unknown) => error);
  await until('it is admitted', () => recorded.length === 2);
  await gateway.stop();
  await running;
  assert.deepEqual(kinds().slice(0, 2), ['reserve first', 'reserve second']);
  assert.equal(ends().length, 2);
});
