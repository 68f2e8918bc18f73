/** Testing an upstream by the API: access, result, audit row and rate. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Probe, upstreamProbes } from '../../../plugins/common/domain/admin/upstreams.ts';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';
import { operatorOf, startDemo, type TestConsole } from './start-console.ts';

const wanted = { credential: 'openai#1', model: 'gpt-5.4' };
const address = 'POST /admin/upstreams/openai/test';

test('an operator tests a model by a key, and gets a result and an audit row', async () => {
  const services = fakeConsole();
  const send = caller(services, 'operator');
  const { rows } = (await send('GET /admin/upstreams/openai/choices')).json;
  assert.ok(
    rows.some(
      ({ model, protocols }: { model: string; protocols: string[] }) => model === 'gpt-5.4' && protocols[0] === 'chat',
    ),
  );
  const { status, json } = await send(address, wanted);
  assert.equal(status, 200);
  assert.deepEqual(
    [json.ok, json.status, json.firstByteMs, json.totalMs, json.error, json.text],
    [true, 200, 412, 655, null, 'ok'],
  );
  const failed = (await send(address, { ...wanted, credential: 'openai#2' })).json;
  assert.deepEqual(
    [failed.ok, failed.status, failed.error],
    [false, 429, 'Rate limit reached for *** in organization ***.'],
  );
  const audit = (await send('GET /admin/audit')).json.rows.slice(0, 2);
  assert.deepEqual(
    audit.map(({ action, subject, reason, result }: Record<string, string>) => [action, subject, reason, result]),
    [
      ['upstream.test', 'openai#2', 'gpt-5.4', 'failed'],
      ['upstream.test', 'openai#1', 'gpt-5.4', 'done'],
    ],
  );
});

test('an auditor sees the models to test and may not test; a client sees nothing of it', async () => {
  const services = fakeConsole();
  assert.equal((await caller(services, 'auditor')('GET /admin/upstreams/openai/choices')).status, 200);
  assert.equal((await caller(services, 'auditor')(address, wanted)).status, 403);
  assert.equal((await caller(services, 'client')('GET /admin/upstreams/openai/choices')).status, 403);
  assert.equal((await caller(services, 'client')(address, wanted)).status, 403);
  const { rows } = (await caller(services, 'operator')('GET /admin/audit')).json;
  assert.equal(
    rows.some(({ action }: { action: string }) => action === 'upstream.test'),
    false,
  );
});

test('the request has exactly the sent values, and accepts no other member', async () => {
  const services = fakeConsole();
  const requests: Probe[] = [];
  const upstreamProbesService = services.host.get(upstreamProbes);
  services.host.provide(upstreamProbes, {
    ...upstreamProbesService,
    probe: (probe, send) => {
      requests.push(probe);
      return upstreamProbesService.probe(probe, send);
    },
  });
  const send = caller(services, 'token');
  await send(address, { ...wanted, protocol: 'chat' });
  assert.deepEqual(requests, [{ ...wanted, protocol: 'chat', provider: 'openai' }]);
  const more = await send(address, { ...wanted, url: 'http://10.0.0.1/' });
  assert.equal(more.status, 400);
  assert.equal((await send(address, { credential: 'openai#1' })).json.error.field, 'model');
  const none = await send('POST /admin/upstreams/missing/test', wanted);
  assert.deepEqual([none.status, none.json.error.field], [404, 'provider']);
  assert.equal(requests.length, 2);
});

test('more than thirty tests in a minute are refused', async () => {
  const services = fakeConsole();
  const send = caller(services, 'operator');
  for (let count = 0; count < 30; count++) assert.equal((await send(address, wanted)).status, 200);
  const late = await send(address, wanted);
  assert.equal(late.status, 429);
  assert.ok(Number(late.headers.get('retry-after')) > 0);
  services.host.advance(60_000);
  assert.equal((await send(address, wanted)).status, 200);
});

describe('a test runs on the whole demo gateway', () => {
  let testbed: TestConsole;
  before(async () => {
    testbed = await startDemo();
  });
  after(() => testbed.stop());

  test('every chat vendor answers a test in each of its protocols, without a charge', async () => {
    const boss = await operatorOf(testbed);
    const upstreams: { provider: string; keys: { credential: string }[] }[] = (await boss.send('/admin/upstreams')).json
      .rows;
    const protocols = new Set<string>();
    for (const { provider, keys } of upstreams) {
      const [choice] = (await boss.send(`/admin/upstreams/${provider}/choices`)).json.rows;
      for (const protocol of choice?.protocols ?? []) {
        const body = { credential: keys[0]!.credential, model: choice.model, protocol };
        const { json } = await boss.send(`/admin/upstreams/${provider}/test`, { body });
        assert.deepEqual([json.ok, json.status, json.error], [true, 200, null], `${provider} by ${protocol}`);
        assert.ok(json.text.length > 0 && json.usage.output > 0, JSON.stringify(json));
        assert.ok(json.firstByteMs >= 0 && json.firstByteMs <= json.totalMs);
        protocols.add(protocol);
      }
    }
    assert.deepEqual([...protocols].toSorted(), ['chat', 'messages', 'responses']);
    const { rows } = (await boss.send('/admin/ledger?limit=500')).json;
    assert.deepEqual(
      rows.filter(({ kind }: { kind: string }) => kind === 'CHARGE'),
      [],
    );
    assert.equal((await boss.send('/admin/monitor')).json.requests, 0);
  });
});
