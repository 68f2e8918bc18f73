/** Two gateway processes on one PostgreSQL renew the tokens of one connection to a server of tools: one of them does, also when one is killed meanwhile. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before } from 'node:test';
import { sql } from 'drizzle-orm';
import { KeySource } from '../../plugins/common/kit/secrets/key-source.ts';
import { ConnectionStore } from '../../plugins/mcp/connect/store.ts';
import { databaseUrl, testOnServer } from '../helpers/database.ts';
import { until } from '../helpers/until.ts';
import { type GuardedServer, startGuardedServer } from '../plugins/mcp/guarded-server.ts';
import { type Fleet, gather } from './fleet.ts';

const sealingKey = 'the-key-that-seals-all-connections';
const ends: (() => Promise<unknown>)[] = [];
let server: GuardedServer;
let fleet: Fleet;
let key: string;
let store: ConnectionStore;
let owner: string;

if (databaseUrl !== undefined) {
  before(() => start().catch(async (error: unknown) => close().then(() => Promise.reject(error))));
  after(close);
}

async function start(): Promise<void> {
  server = await startGuardedServer();
  ends.push(() => server.stop());
  const connect = { per: 'account', allow_private: true };
  const sections = {
    plugins: ['storage', 'auth', 'plans', 'rate-limit', 'billing', 'mcp'],
    plans: { default: 'open', offers: { open: { price: 0 } } },
    mcp: { servers: { team: { url: `${server.origin}/mcp`, allow_private: true, connect } } },
  };
  const environment = { GATEWAY_SECRETS_KEY: sealingKey };
  fleet = await gather(sections, 2, { environment });
  ends.push(() => fleet.close());
  await Promise.all(fleet.nodes.map((node) => node.start()));
  const customer = await fleet.runAsCommand((gateway) => gateway.customer());
  key = customer.key;
  owner = `account ${customer.accountId}`;
  const random = { bytes: (count: number) => randomBytes(count), fraction: Math.random };
  const source = new KeySource({ directory: '/nonexistent', environment, random });
  store = new ConnectionStore({ database: fleet.store, source, random, clock: { now: Date.now, monotonic: Date.now } });
}

async function close(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

/** A connection that has to be renewed before it is used. */
async function connected(): Promise<void> {
  Object.assign(server, { held: undefined });
  server.grants.length = 0;
  // What processes still keep is refused.
  server.expire();
  const { origin } = server;
  const metadata = {
    ...{ issuer: origin, authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token` },
    response_types_supported: ['code'],
    token_endpoint_auth_methods_supported: ['none'],
  };
  const client = { client_id: 'gateway' };
  const tokens = server.grant(client.client_id, 'ada');
  const service = { issuer: origin, metadata, client, resource: `${origin}/mcp` };
  await store.save('team', owner, { ...service, ...tokens, until: Date.now() });
}

async function whoami(node: number): Promise<string> {
  const params = { name: 'team__whoami', arguments: {} };
  const answer = await fetch(`${fleet.nodes[node]!.origin}/mcp`, {
    method: 'POST',
    headers: {
      ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' },
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  return /"text":"ada"/.test(await answer.text()) ? 'ada' : `status ${answer.status}`;
}

const allAnswered = (answers: readonly string[]) => assert.deepEqual([...new Set(answers)], ['ada']);

testOnServer(
  '100 calls over two processes with a token that has ended are all answered, and it is renewed once',
  async () => {
    await connected();
    allAnswered(await Promise.all(Array.from({ length: 100 }, (_, number) => whoami(number % 2))));
    assert.deepEqual(server.grants, ['refresh_token']);
    // A token that the server has used up is one of the faults.
    assert.deepEqual(server.faults, []);
  },
);

testOnServer(
  'a process that is killed while it renews leaves that to the other one, and no call there fails',
  async () => {
    await connected();
    const released = Promise.withResolvers<void>();
    server.held = released.promise;
    const lost = Array.from({ length: 10 }, () => whoami(0).catch(() => 'lost'));
    await until('the first process asks', () => server.grants.length === 1);
    const waiting = Array.from({ length: 10 }, () => whoami(1));
    await fleet.nodes[0]!.end('SIGKILL');
    assert.deepEqual([...new Set(await Promise.all(lost))], ['lost']);
    // The other one asks for nothing while the lease lasts. Then its time is over.
    assert.equal(server.grants.length, 1);
    const leases = fleet.table('mcp_connections');
    const [lease] = await fleet.rows<{ left: number }>(
      sql`select extract(epoch from renewing_until - now())::float8 as left from ${leases}`,
    );
    assert.ok(lease!.left > 0 && lease!.left <= 12, String(lease!.left));
    await fleet.store.orm.execute(sql`update ${leases} set renewing_until = now()`);
    await until('the other process asks', () => server.grants.length === 2);
    released.resolve();
    allAnswered(await Promise.all(waiting));
    assert.deepEqual(server.grants, ['refresh_token', 'refresh_token']);
    assert.deepEqual(server.faults, []);
  },
);
