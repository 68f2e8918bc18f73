/** Testing an upstream by the API: access, result, audit row and rate. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Probe, upstreamProbes } from '../../../plugins/common/domain/admin/upstreams.ts';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';
import { operatorOf, startDemo, type TestConsole } from './house.ts';

const wanted = { credential: 'openai#1', model: 'gpt-5.4' };
const address = 'POST /admin/upstreams/openai/test';

test('an operator tests a model by a key, and gets a result and an audit row', async () => {
  const hall = fakeConsole();
  const ask = caller(hall, 'operator');
  const { rows } = (await ask('GET /admin/upstreams/openai/choices')).json;
  assert.ok(
    rows.some(
      ({ model, protocols }: { model: string; protocols: string[] }) => model === 'gpt-5.4' && protocols[0] === 'chat',
    ),
  );
  const { status, json } = await ask(address, wanted);
  assert.equal(status, 200);
  assert.deepEqual(
    [json.ok, json.status, json.firstByteMs, json.totalMs, json.error, json.text],
    [true, 200, 412, 655, null, 'ok'],
  );
  const failed = (await ask(address, { ...wanted, credential: 'openai#2' })).json;
  assert.deepEqual(
    [failed.ok, failed.status, failed.error],
    [false, 429, 'Rate limit reached for *** in organization ***.'],
  );
  const audit = (await ask('GET /admin/audit')).json.rows.slice(0, 2);
  assert.deepEqual(
    audit.map(({ action, subject, reason, result }: Record<string, string>) => [action, subject, reason, result]),
    [
      ['upstream.test', 'openai#2', 'gpt-5.4', 'failed'],
      ['upstream.test', 'openai#1', 'gpt-5.4', 'done'],
    ],
  );
});

test('an auditor sees what could be tested and may not test; a client sees nothing of it', async () => {
  const hall = fakeConsole();
  assert.equal((await caller(hall, 'auditor')('GET /admin/upstreams/openai/choices')).status, 200);
  assert.equal((await caller(hall, 'auditor')(address, wanted)).status, 403);
  assert.equal((await caller(hall, 'client')('GET /admin/upstreams/openai/choices')).status, 403);
  assert.equal((await caller(hall, 'client')(address, wanted)).status, 403);
  const { rows } = (await caller(hall, 'operator')('GET /admin/audit')).json;
  assert.equal(
    rows.some(({ action }: { action: string }) => action === 'upstream.test'),
    false,
  );
});

test('the desk is asked for exactly what was sent, and nothing else can be', async () => {
  const hall = fakeConsole();
  const asked: Probe[] = [];
  const desk = hall.host.get(upstreamProbes);
  hall.host.provide(upstreamProbes, {
    ...desk,
    probe: (probe, send) => {
      asked.push(probe);
      return desk.probe(probe, send);
    },
  });
  const ask = caller(hall, 'token');
  await ask(address, { ...wanted, protocol: 'chat' });
  assert.deepEqual(asked, [{ ...wanted, protocol: 'chat', provider: 'openai' }]);
  const more = await ask(address, { ...wanted, url: 'http://10.0.0.1/' });
  assert.equal(more.status, 400);
  assert.equal((await ask(address, { credential: 'openai#1' })).json.error.field, 'model');
  const nobody = await ask('POST /admin/upstreams/nobody/test', wanted);
  assert.deepEqual([nobody.status, nobody.json.error.field], [404, 'provider']);
  assert.equal(asked.length, 2);
});

test('thirty tests in a minute are enough', async () => {
  const hall = fakeConsole();
  const ask = caller(hall, 'operator');
  for (let count = 0; count < 30; count++) assert.equal((await ask(address, wanted)).status, 200);
  const late = await ask(address, wanted);
  assert.equal(late.status, 429);
  assert.ok(Number(late.headers.get('retry-after')) > 0);
  hall.host.advance(60_000);
  assert.equal((await ask(address, wanted)).status, 200);
});

describe('on the whole demo gateway', () => {
  let house: TestConsole;
  before(async () => {
    house = await startDemo();
  });
  after(() => house.stop());

  test('every chat vendor answers a test in each of its protocols, without a charge', async () => {
    const boss = await operatorOf(house);
    const upstreams: { provider: string; keys: { credential: string }[] }[] = (await boss.ask('/admin/upstreams')).json
      .rows;
    const protocols = new Set<string>();
    for (const { provider, keys } of upstreams) {
      const [choice] = (await boss.ask(`/admin/upstreams/${provider}/choices`)).json.rows;
      for (const protocol of choice?.protocols ?? []) {
        const body = { credential: keys[0]!.credential, model: choice.model, protocol };
        const { json } = await boss.ask(`/admin/upstreams/${provider}/test`, { body });
        assert.deepEqual([json.ok, json.status, json.error], [true, 200, null], `${provider} by ${protocol}`);
        assert.ok(json.text.length > 0 && json.usage.output > 0, JSON.stringify(json));
        assert.ok(json.firstByteMs >= 0 && json.firstByteMs <= json.totalMs);
        protocols.add(protocol);
      }
    }
    assert.deepEqual([...protocols].toSorted(), ['chat', 'messages', 'responses']);
    const { rows } = (await boss.ask('/admin/ledger?limit=500')).json;
    assert.deepEqual(
      rows.filter(({ kind }: { kind: string }) => kind === 'CHARGE'),
      [],
    );
    assert.equal((await boss.ask('/admin/monitor')).json.requests, 0);
  });
});
