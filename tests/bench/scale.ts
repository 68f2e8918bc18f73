/**
 * `npm run bench:scale -- [--seconds 8]`: what one and two gateway processes ask of a PostgreSQL and a Redis of
 * this run's own, idle and under load: statements, bytes of log, rows, counter scripts, connections. Counts and ratios, which
 * do not depend on how busy the machine is the way times do. docker/SCALING.md quotes them.
 */
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Fleet, gather } from '../end-to-end/fleet.ts';
import { type Customer, modelAt } from '../end-to-end/testbed.ts';
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { startRedis, type TestRedis } from '../helpers/redis.ts';
import { run as load } from './load.ts';
import { startSlowVendor, vendorMs } from './slow-vendor.ts';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '8' } } });
const seconds = Number(values.seconds);
const idleSeconds = 5;
const accountCount = 4;
const connections = 16;

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'a'.repeat(900) }], max_tokens: 200 });
const vendor = await startSlowVendor();

const tracked = ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track=top'];
const [postgres, redis] = await Promise.all([startPostgres(tracked), startRedis()]);
postgres.sql('create extension pg_stat_statements');
for (const count of [1, 2]) await measure(count, postgres, redis);
vendor.close();
await Promise.all([postgres.close(), redis.stop()]);

interface Snapshot {
  readonly statements: number;
  readonly transactions: number;
  readonly walBytes: number;
  readonly scripts: number;
}

function look({ sql }: TestPostgres, { command }: TestRedis): Snapshot {
  const isTransaction = "query ~* '^(begin|commit|rollback)'";
  const isOurs = "query !~ 'pg_stat_|pg_current_wal'";
  const [statements, transactions] = sql(
    `select coalesce(sum(calls) filter (where not ${isTransaction} and ${isOurs}), 0), coalesce(sum(calls) filter (where query ~* '^commit'), 0) from pg_stat_statements`,
  )
    .split('|')
    .map(Number);
  const scripts = Array.from(
    command('info', 'commandstats').matchAll(/cmdstat_(?:eval|evalsha):calls=(\d+)/g),
    ([, calls]) => Number(calls),
  );
  return {
    statements: statements!,
    transactions: transactions!,
    walBytes: Number(sql("select pg_current_wal_lsn() - '0/0'")),
    scripts: scripts.reduce((sum, calls) => sum + calls, 0),
  };
}

async function measure(count: number, store: TestPostgres, counters: TestRedis): Promise<void> {
  const fleet = await gather(
    {
      plans: {
        default: 'open',
        offers: { open: { price: 0, limits: { rpm: 10_000_000, tpm: '1000M', concurrency: 1_000 } } },
      },
      providers: {
        bench: { keys: 'key', speaks: { chat: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1` } },
      },
      models: { m: modelAt('bench') },
    },
    count,
    { database: store.url, environment: { REDIS_URL: counters.url } },
  );
  try {
    const customers = await fleet.runAsCommand(({ customer }) =>
      Promise.all(Array.from({ length: accountCount }, () => customer())),
    );
    for (const node of fleet.nodes) await node.start();
    await pause(1_000);
    const atRest = look(store, counters);
    await pause(idleSeconds * 1_000);
    const begun = look(store, counters);
    const requests = await drive(fleet, customers);
    await pause(500);
    print(fleet, { count, requests, atRest, begun, ended: look(store, counters) });
  } finally {
    await fleet.close();
  }
}

async function drive(fleet: Fleet, customers: readonly Customer[]): Promise<number> {
  const loads = fleet.nodes.flatMap(({ origin }) =>
    customers.map(({ key }) => {
      const port = Number(new URL(origin).port);
      return load({ port, key, body, path: '/v1/chat/completions', connections: connections / accountCount, seconds });
    }),
  );
  const results = await Promise.all(loads);
  const failures = results.reduce((sum, each) => sum + each.failures, 0);
  if (failures > 0) throw new Error(`${failures} calls failed`);
  return results.reduce((sum, each) => sum + each.requests, 0);
}

interface Report {
  readonly count: number;
  readonly requests: number;
  readonly atRest: Snapshot;
  readonly begun: Snapshot;
  readonly ended: Snapshot;
}

function print({ store: { schema } }: Fleet, { count, requests, atRest, begun, ended }: Report): void {
  const by = (name: keyof Snapshot, from: Snapshot, to: Snapshot) => to[name] - from[name];
  const one = (text: string) => Number(postgres.sql(text));
  const spent = one(`select coalesce(sum(cost), 0) from "${schema}".calls`) / 1e9;
  const statements = by('statements', begun, ended);
  const bytesOf = (table: string) =>
    Math.round(one(`select pg_total_relation_size('"${schema}".${table}')`) / requests);
  const connected = one("select count(*) from pg_stat_activity where application_name like 'model-gateway%'");
  const rows: [string, string][] = [
    ['requests', `${requests} (${Math.round(requests / seconds)}/s)`],
    ['statements a second for each process, idle', (by('statements', atRest, begun) / idleSeconds / count).toFixed(1)],
    ['statements for each request', (statements / requests).toFixed(3)],
    ['transactions committed for each request', (by('transactions', begun, ended) / requests).toFixed(3)],
    ['statements for each dollar charged', (statements / spent).toFixed(0)],
    ['counter scripts for each request', (by('scripts', begun, ended) / requests).toFixed(2)],
    ['connections to PostgreSQL for each process', (connected / count).toFixed(0)],
    ['connections to Redis for each process', (redisClients() / count).toFixed(0)],
    ['bytes of write-ahead log for each request', (by('walBytes', begun, ended) / requests).toFixed(0)],
    ...['ledger', 'calls', 'requests'].map((table): [string, string] => [
      `bytes of ${table} for each request`,
      `${bytesOf(table)}`,
    ]),
  ];
  console.log(
    `\n${count === 1 ? 'one process' : `${count} processes`}, ${accountCount} accounts, vendor ${vendorMs} ms`,
  );
  for (const [name, value] of rows) console.log(`| ${name} | ${value} |`);
}

/** Without the one that asks. */
function redisClients(): number {
  return redis
    .command('client', 'list')
    .split('\n')
    .filter((line) => !line.includes('cmd=client')).length;
}
