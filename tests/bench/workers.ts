/**
 * `node tests/bench/workers.ts [--seconds 6]`, and a part of `npm run bench`: what a call costs two workers behind one address, on a
 * PostgreSQL and a Redis of this run's own, beside one process without workers: processor time of primary, workers and their threads.
 */
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Fleet, gather } from '../end-to-end/fleet.ts';
import { type Customer, modelAt } from '../end-to-end/house.ts';
import { startPostgres } from '../helpers/postgres.ts';
import { hasRedis, startRedis } from '../helpers/redis.ts';
import { run as load } from './load.ts';
import { children, processTicks } from './processes.ts';
import { startSlowVendor } from './slow-vendor.ts';

const accountCount = 4;
const connections = 64;
const warmSeconds = 15;

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'a'.repeat(900) }], max_tokens: 200 });

export async function twoWorkers(seconds: number): Promise<void> {
  if (!hasRedis) {
    console.log('\nTwo workers: there is no Redis here');
    return;
  }
  const vendor = await startSlowVendor();
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  try {
    const measured = (workers: number | undefined) =>
      measure(
        { database: postgres.url, environment: { REDIS_URL: redis.url } },
        vendor.address() as AddressInfo,
        workers,
        seconds,
      );
    const one = await measured(undefined);
    const two = await measured(2);
    console.log(
      `\nTwo workers on PostgreSQL and Redis: ${two.toFixed(3)} ms of processor time a call, one process ${one.toFixed(3)}: ${(two / one).toFixed(2)} times`,
    );
  } finally {
    vendor.close();
    await Promise.all([postgres.close(), redis.stop()]);
  }
}

/** Milliseconds a call. */
async function measure(
  store: { database: string; environment: Record<string, string> },
  { port }: AddressInfo,
  workers: number | undefined,
  seconds: number,
): Promise<number> {
  const limits = { rpm: 10_000_000, tpm: '1000M', concurrency: 1_000 };
  const sections = {
    plans: { default: 'open', offers: { open: { price: 0, limits } } },
    providers: { bench: { keys: 'key', speaks: { chat: `http://127.0.0.1:${port}/v1` } } },
    models: { m: modelAt('bench') },
  };
  const fleet = await gather(sections, 1, { ...store, ...(workers === undefined ? {} : { workers }) });
  try {
    const customers = await fleet.atTheDesk(({ customer }) =>
      Promise.all(Array.from({ length: accountCount }, () => customer())),
    );
    const node = fleet.nodes[0]!;
    await node.start();
    await drive(fleet, customers, warmSeconds);
    const before = usedMs(node.pid);
    const calls = await drive(fleet, customers, seconds);
    // Rows that wait are written.
    await pause(1_500);
    return (usedMs(node.pid) - before) / calls;
  } finally {
    await fleet.close();
  }
}

async function drive({ nodes }: Fleet, customers: readonly Customer[], seconds: number): Promise<number> {
  const port = Number(new URL(nodes[0]!.origin).port);
  const options = { port, body, path: '/v1/chat/completions', connections: connections / accountCount, seconds };
  const results = await Promise.all(customers.map(({ key }) => load({ ...options, key })));
  const failures = results.reduce((sum, each) => sum + each.failures, 0);
  if (failures > 0) throw new Error(`${failures} calls failed`);
  return results.reduce((sum, { requests }) => sum + requests, 0);
}

function usedMs(pid: number): number {
  return [pid, ...children(pid)].reduce((sum, id) => sum + processTicks(id), 0) * 10;
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { seconds: { type: 'string', default: '6' } } });
  await twoWorkers(Number(values.seconds));
  process.exit(0);
}
