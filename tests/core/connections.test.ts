/** Sockets to vendors: beyond the most that are open at once a request is refused, never left waiting; and what a start warns of. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { defaultUpstreamSockets, shortage } from '../../core/gateway/descriptors.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';
import { startVendor, type Vendor } from '../helpers/vendor.ts';

let vendor: Vendor;
let gateway: TestGateway;
before(async () => {
  vendor = await startVendor();
  gateway = await startGateway(
    `gateway: test\nlisten: 127.0.0.1:0\nplugins: [passthrough]\npassthrough: { upstream: "${vendor.origin}" }\nserver: { upstream_connections: 20, drain: { grace: 10ms, deadline: 100ms } }\n`,
  );
});
after(async () => {
  await gateway.stop();
  await vendor.stop();
});

test('beyond the bound of connections to one key the answer is 503 with retry-after, and ended streams free their connections', async () => {
  for (const script of [{ body: 'silent', hang: true }, { after: new Promise<void>(() => {}) }]) {
    vendor.play(script);
    const leaving = new AbortController();
    const sent = vendor.requests.length;
    const running = Array.from({ length: 20 }, () =>
      fetch(`${gateway.origin}/a`, { signal: leaving.signal })
        .then((answer) => answer.text())
        .catch(() => undefined),
    );
    while (vendor.requests.length < sent + 20) await new Promise((resolve) => setTimeout(resolve, 10));
    const refused = await fetch(`${gateway.origin}/a`);
    assert.equal(refused.status, 503);
    assert.equal(refused.headers.get('retry-after'), '1');
    await refused.text();
    leaving.abort();
    await Promise.all(running);
    vendor.play({ body: 'ok' });
    await until('a connection is free', async () => (await fetch(`${gateway.origin}/a`)).status === 200);
  }
  for (const script of [{ body: 'cut', dieAfter: 1 }, { dieAtOnce: true }, { body: 'whole' }]) {
    vendor.play(script);
    for (let call = 0; call < 30; call++)
      await fetch(`${gateway.origin}/a`)
        .then((answer) => answer.text())
        .catch(() => undefined);
  }
  vendor.play({ body: 'ok' });
  assert.equal((await fetch(`${gateway.origin}/a`)).status, 200, 'ended requests have no place');
});

test("a limit of descriptors below the settings' needs is reported in one sentence", () => {
  assert.equal(defaultUpstreamSockets(undefined), 4_096);
  assert.equal(defaultUpstreamSockets(20_500), 10_000);
  const promised = { sockets: 10_000, upstreamConnections: 10_000 };
  assert.equal(shortage(undefined, promised), undefined);
  assert.equal(shortage(30_500, promised), undefined);
  assert.match(shortage(30_499, promised)!, /30499 descriptors.*30500.*server\.upstream_connections/);
});

const promising = `gateway: test
listen: 127.0.0.1:0
plugins: [sandbox, providers]
server: { upstream_connections: 10M, sockets: 1M }
providers:
  one: { keys: [a, b], speaks: { chat: "http://127.0.0.1:1/v1", responses: "http://127.0.0.1:1/v2", messages: "http://127.0.0.1:2" } }
  few: { keys: c, concurrency: 7, speaks: { chat: "http://127.0.0.1:1/v1" } }
  inside: { keys: d, speaks: { chat: "sandbox:/v1", messages: "sandbox:/v2" } }
  unused: { keys: [], speaks: { chat: "http://127.0.0.1:4/v1" } }
`;

test('connections are counted for each address and key; start and check warn of the sum', async (context) => {
  await using started = await startGateway(promising);
  context.after(() => started.stop());
  // Two addresses with two keys, one with a limit of its own, one inside this process.
  const upstreams = 5 * 10_000_000 + 7;
  const sentence = `promise ${2 * upstreams + 1_000_000 + 500} (${upstreams} connections to upstreams`;
  assert.ok(started.lines.some((line) => line.includes('has warnings') && line.includes(sentence)));
  const check = spawnSync(
    process.execPath,
    ['core/process/main.ts', 'check', join(started.directory, 'gateway.yaml')],
    {
      env: { ...process.env, DATA_DIR: started.directory },
      encoding: 'utf8',
    },
  );
  assert.ok(check.stdout.includes(sentence), check.stdout + check.stderr);
  assert.equal(check.status, 0);
});
