/**
 * `node tests/bench/nodes.ts [--seconds 6] [--processes 1,2,4,8] [--accounts 1000] [--calls 100000] [--connections 16] [--delay 25] [--workers]`:
 * what a call costs gateways, database and Redis where so many gateway processes spend the same accounts (1: a hot one) on a PostgreSQL and a
 * Redis of this run's own, with so many calls in the tables; and whether any account was spent beyond its balance. Each process has an
 * address of its own, or, with `--workers`, all are workers of one primary. Each has as many clients as the others and the
 * vendor takes its time, so the load grows with the processes. docker/SCALING.md computes from these figures.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { sql } from 'drizzle-orm';
import { type Fleet, gather } from '../end-to-end/fleet.ts';
import { type Customer, modelAt, until } from '../end-to-end/testbed.ts';
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { startRedis, type TestRedis } from '../helpers/redis.ts';
import { type LoadResult, run as load } from './load.ts';
import { makeRows } from './pages-rows.ts';
import { children, processTicks } from './processes.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '6' },
    processes: { type: 'string', default: '1,2,4,8' },
    accounts: { type: 'string', default: '1000' },
    calls: { type: 'string', default: '100000' },
    connections: { type: 'string', default: '16' },
    delay: { type: 'string', default: '25' },
    workers: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const warmUpSeconds = 4;
const accountCount = Number(values.accounts);
const calls = Number(values.calls);
/** Connections of each process. */
const connections = Number(values.connections);
const delayMs = Number(values.delay);

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'a'.repeat(900) }], max_tokens: 200 });
const usage = { prompt_tokens: 200, completion_tokens: 30, total_tokens: 230 };
const message = { role: 'assistant', content: 'a'.repeat(120) };
const answer = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  model: 'm',
  choices: [{ index: 0, message, finish_reason: 'stop' }],
  usage,
});
const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) };
const upstream = createServer({ keepAliveTimeout: 600_000 }, (request, reply) => {
  request.resume();
  setTimeout(() => reply.writeHead(200, headers).end(answer), delayMs);
});
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
const upstreamPort = (upstream.address() as AddressInfo).port;
const [postgres, redis] = await Promise.all([startPostgres(['shared_buffers=256MB'], true), startRedis()]);

interface Servers {
  readonly gateways: () => readonly number[];
  readonly database: () => readonly number[];
  readonly redis: () => readonly number[];
}

console.log(
  `${accountCount} accounts, ${calls} calls in the tables, ${availableParallelism()} cores for load, vendor, servers and gateways together`,
);
let failed = false;
try {
  for (const count of values.processes.split(',').map(Number))
    failed = (await measure(count, postgres, redis)) || failed;
} finally {
  upstream.close();
  await Promise.all([postgres.close(), redis.stop()]);
}
process.exit(failed ? 1 : 0);

/** Prints one line; true: money or calls were lost. */
async function measure(count: number, store: TestPostgres, counters: TestRedis): Promise<boolean> {
  const fleet = await gather(
    {
      plans: {
        default: 'open',
        offers: { open: { price: 0, limits: { rpm: 10_000_000, tpm: '1000M', concurrency: 1_000 } } },
      },
      providers: { bench: { keys: 'bench-key', speaks: { chat: `http://127.0.0.1:${upstreamPort}/v1` } } },
      models: { m: modelAt('bench') },
    },
    values.workers ? 1 : count,
    { database: store.url, environment: { REDIS_URL: counters.url }, ...(values.workers ? { workers: count } : {}) },
  );
  try {
    const customers = await fleet.runAsCommand(async ({ customer }) => {
      const made: Customer[] = [];
      for (let left = accountCount; left > 0; left -= 20)
        made.push(...(await Promise.all(Array.from({ length: Math.min(left, 20) }, () => customer()))));
      return made;
    });
    if (calls > 0)
      makeRows(store, fleet.store.schema, { accountId: customers[0]!.accountId, until: Date.now(), calls });
    store.sql('vacuum analyze');
    for (const node of fleet.nodes) await node.start();
    await until('all of them serve', async () => (await living(fleet)) === count, 120_000);
    await drive(fleet, customers, count, warmUpSeconds);
    const servers = serversOf(fleet, store, counters);
    const before = look(servers);
    const logBefore = Number(store.sql("select pg_current_wal_lsn() - '0/0'"));
    const results = await drive(fleet, customers, count, seconds);
    // What is written in batches is a part of it.
    await pause(1_500);
    const used = look(servers).map((ticks, index) => (ticks - before[index]!) * 10_000);
    const logBytes = Number(store.sql("select pg_current_wal_lsn() - '0/0'")) - logBefore;
    const requests = results.reduce((sum, each) => sum + each.requests, 0);
    const failures = results.reduce((sum, each) => sum + each.failures, 0);
    for (const node of fleet.nodes) await node.end('SIGTERM');
    const [left] = await fleet.rows<{ overspent: number; leases: number }>(
      sql`select (select count(*)::int from ${fleet.table('calls')} where balance_after < 0) as overspent,
            (select count(*)::int from ${fleet.table('leases')}) as leases`,
    );
    const [gateway, database, redisUs] = used.map((microseconds) => (microseconds / requests).toFixed(0));
    console.log(
      `${count} processes: ${Math.round(requests / seconds)} calls/s; us of a core each: gateway ${gateway}, database ${database}, Redis ${redisUs}; ` +
        `${Math.round(logBytes / requests)} bytes of log each; ${failures} failures, ${left!.overspent} charges beyond a balance, ` +
        `${left!.leases} leases left after the drain; load ${loadavg()[0]!.toFixed(1)}`,
    );
    return failures + left!.overspent + left!.leases > 0;
  } finally {
    await fleet.close();
  }
}

/** Each process, or the address that they share so many times, with each account in turn. */
async function drive(
  { nodes }: Fleet,
  customers: readonly Customer[],
  count: number,
  forSeconds: number,
): Promise<LoadResult[]> {
  const keys = customers.map(({ key }) => key);
  return Promise.all(
    Array.from({ length: count }, (_, index) => {
      const port = Number(new URL(nodes[index % nodes.length]!.origin).port);
      return load({ port, key: '', keys, body, path: '/v1/chat/completions', connections, seconds: forSeconds });
    }),
  );
}

/** Processes that serve. */
async function living(fleet: Fleet): Promise<number> {
  const [row] = await fleet.rows<{ count: number }>(
    sql`select count(*)::int as count from ${fleet.table('journal_cursor')} where updated_at > clock_timestamp() - interval '15 seconds'`,
  );
  return row!.count;
}

function serversOf(fleet: Fleet, store: TestPostgres, counters: TestRedis): Servers {
  const redisPid = Number(/process_id:(\d+)/.exec(counters.command('info', 'server'))![1]);
  return {
    gateways: () => fleet.nodes.flatMap(({ pid }) => [pid, ...children(pid)]),
    database: () => store.sql('select pid from pg_stat_activity where pid <> pg_backend_pid()').split('\n').map(Number),
    redis: () => [redisPid],
  };
}

/** The kernel's ticks of each. */
function look({ gateways, database, redis: counters }: Servers): number[] {
  return [gateways, database, counters].map((ids) => ids().reduce((sum, id) => sum + ticksOf(id), 0));
}

/** A connection may have ended meanwhile. */
function ticksOf(id: number): number {
  try {
    return processTicks(id);
  } catch {
    return 0;
  }
}
