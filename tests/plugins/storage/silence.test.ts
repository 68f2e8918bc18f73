/** A PostgreSQL that vanishes without a word and comes back on new connections alone: readiness follows within seconds. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { database } from '../../../plugins/common/domain/database.ts';
import { databaseUrl, openDatabase, testOnServer } from '../../helpers/database.ts';
import { startGateway } from '../../helpers/gateway.ts';

/** While silent nothing passes, and connections of before stay without a word for ever. */
async function startSilencer(url: string) {
  const { hostname, port } = new URL(url);
  let silent = false;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const isDead = silent;
    const far = connect(Number(port) || 5432, hostname);
    let dead = isDead;
    const kill = () => {
      dead = true;
    };
    silenced.push(kill);
    for (const socket of [near, far]) sockets.add(socket.on('error', () => {}));
    near.on('data', (chunk) => void (dead || far.write(chunk)));
    far.on('data', (chunk) => void (dead || near.write(chunk)));
    near.on('close', () => far.destroy());
  });
  const silenced: (() => void)[] = [];
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as { port: number }).port,
    silence() {
      silent = true;
      for (const kill of silenced.splice(0)) kill();
    },
    heal() {
      silent = false;
      // Those that were opened meanwhile got no answer, and get none now.
      for (const kill of silenced.splice(0)) kill();
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

testOnServer('readyz is 200 within 5 s after a silent outage, and statements work then', async (context) => {
  const way = await startSilencer(databaseUrl!);
  const url = new URL(databaseUrl!);
  url.host = `127.0.0.1:${way.port}`;
  const schema = `silence_${randomBytes(6).toString('hex')}`;
  const gateway = await startGateway(
    `gateway: test\nschema: ${schema}\nlisten: 127.0.0.1:0\nplugins: [storage, request-log, auth, plans, providers, models, idempotency, billing, route, protocol-convert, files, endpoints, batches, task-store, alerts, console]\n` +
      `storage: { database: "${url}", pool: 3, bridge: 0s }\nplans: { default: open, offers: { open: { price: 0 } } }\nproviders: { acme: { keys: k, speaks: { chat: "http://127.0.0.1:1/v1" } } }\nmodels: { m: { owned_by: a, targets: [acme], price: { input: 1, output: 1 }, created: 2026-01-01 } }\nfiles: { disk: shared }\n`,
  );
  const ready = async () => (await fetch(`${gateway.origin}/readyz`)).status;
  const store = gateway.gateway.find(database)!;
  context.after(async () => {
    await gateway.stop();
    way.close();
    await using own = await openDatabase({ schema });
    await own.orm.execute(sql`drop schema if exists ${sql.identifier(schema)} cascade`);
  });
  assert.equal(await ready(), 200);
  for (const outageMs of [7_000]) {
    way.silence();
    // All of the pool waits for answers that will never come.
    const stuck = Array.from({ length: 4 }, () => store.orm.execute(sql`select 1`).then(String, String));
    await pause(outageMs);
    assert.equal(await ready(), 503);
    way.heal();
    const since = performance.now();
    while ((await ready()) !== 200) {
      assert.ok(performance.now() - since < 5_000, 'not ready within 5 s');
      await pause(25);
    }
    await Promise.all(stuck);
    await store.orm.execute(sql`select 1`);
    // Far below the 45 s after which a statement without an answer is given up.
    assert.ok(performance.now() - since < 15_000);
    const lines = gateway.lines.map((line) => JSON.parse(line) as { level: string; msg: string });
    assert.deepEqual(
      lines.filter(({ level, msg }) => /^(?:warn|error)$/.test(level) || /again$/.test(msg)).map(({ msg }) => msg),
      ['the configuration has warnings', 'the database does not answer', 'the database answers again'],
    );
  }
});
