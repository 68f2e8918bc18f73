/**
 * `node tests/bench/workers.ts [--seconds 6] [--rounds 7]`, and a part of `npm run bench`: what a call costs two workers behind one address, on a
 * PostgreSQL and a Redis of this run's own, beside one process without workers: processor time of primary, workers and their threads.
 */
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Fleet, gather } from '../end-to-end/fleet.ts';
import { type Customer, modelAt } from '../end-to-end/testbed.ts';
import { startPostgres } from '../helpers/postgres.ts';
import { hasRedis, startRedis } from '../helpers/redis.ts';
import { run as load } from './load.ts';
import { median } from './measure.ts';
import { children, processTicks } from './processes.ts';
import { startSlowVendor } from './slow-vendor.ts';

const accountCount = 4;
const connections = 64;
/** For each process that serves, however many share the load: V8 compiles what has been called often enough, not for long enough. */
const warmCallsPerProcess = 30_000;
const warmSeconds = 3;

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'a'.repeat(900) }], max_tokens: 200 });

interface Subject {
  readonly fleet: Fleet;
  readonly customers: readonly Customer[];
  readonly processes: number;
}

interface Warm extends Subject {
  /** The same to the end: reading a process that has ended, and so was replaced, fails. */
  readonly ids: readonly number[];
}

export async function twoWorkers(seconds: number, rounds: number): Promise<void> {
  if (!hasRedis) {
    console.log('\nTwo workers: there is no Redis here');
    return;
  }
  const vendor = await startSlowVendor();
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  const started: Subject[] = [];
  try {
    const store = { database: postgres.url, environment: { REDIS_URL: redis.url } };
    for (const workers of [undefined, 2])
      started.push(await startSubject(store, vendor.address() as AddressInfo, workers));
    const warm: Warm[] = [];
    for (const subject of started) warm.push(await warmUp(subject));
    const measured: number[][] = [];
    for (let round = 0; round < rounds; round++) {
      const costs: number[] = [];
      for (const subject of warm) costs.push(await measure(subject, seconds));
      measured.push(costs);
    }
    report(measured);
  } finally {
    await Promise.all(started.map(({ fleet }) => fleet.close()));
    vendor.close();
    await Promise.all([postgres.close(), redis.stop()]);
  }
}

async function startSubject(
  store: { database: string; environment: Record<string, string> },
  { port }: AddressInfo,
  workers: number | undefined,
): Promise<Subject> {
  const limits = { rpm: 10_000_000, tpm: '1000M', concurrency: 1_000 };
  const sections = {
    plans: { default: 'open', offers: { open: { price: 0, limits } } },
    providers: { bench: { keys: 'key', speaks: { chat: `http://127.0.0.1:${port}/v1` } } },
    models: { m: modelAt('bench') },
  };
  // The flag of `npm start` and of the image.
  const environment = { ...store.environment, NODE_OPTIONS: '--max-semi-space-size=64' };
  const fleet = await gather(sections, 1, { ...store, environment, ...(workers === undefined ? {} : { workers }) });
  try {
    const customers = await fleet.runAsCommand(({ customer }) =>
      Promise.all(Array.from({ length: accountCount }, () => customer())),
    );
    await fleet.nodes[0]!.start();
    return { fleet, customers, processes: workers ?? 1 };
  } catch (error) {
    await fleet.close();
    throw error;
  }
}

async function warmUp(subject: Subject): Promise<Warm> {
  let missing = warmCallsPerProcess * subject.processes;
  while (missing > 0) missing -= await drive(subject, warmSeconds);
  const { pid } = subject.fleet.nodes[0]!;
  return { ...subject, ids: [pid, ...children(pid)] };
}

/** Milliseconds a call. */
async function measure(subject: Warm, seconds: number): Promise<number> {
  const usedMs = () => subject.ids.reduce((sum, id) => sum + processTicks(id), 0) * 10;
  const before = usedMs();
  const calls = await drive(subject, seconds);
  // Rows that wait are written.
  await pause(1_500);
  return (usedMs() - before) / calls;
}

async function drive({ fleet, customers }: Subject, seconds: number): Promise<number> {
  const port = Number(new URL(fleet.nodes[0]!.origin).port);
  const options = { port, body, path: '/v1/chat/completions', connections: connections / accountCount, seconds };
  const results = await Promise.all(customers.map(({ key }) => load({ ...options, key })));
  const failures = results.reduce((sum, each) => sum + each.failures, 0);
  if (failures > 0) throw new Error(`${failures} calls failed`);
  const calls = results.reduce((sum, { requests }) => sum + requests, 0);
  if (calls === 0) throw new Error('no call was answered');
  return calls;
}

function report(measured: readonly number[][]): void {
  const [one, two] = [0, 1].map((place) => median(measured.map((costs) => costs[place]!)).toFixed(3));
  const ratios = measured.map(([alone, shared]) => shared! / alone!);
  const each = ratios.map((ratio) => ratio.toFixed(2)).join(', ');
  console.log(
    `\nTwo workers on PostgreSQL and Redis: ${two} ms of processor time a call, one process ${one}: ${median(ratios).toFixed(2)} times (${each})`,
  );
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { seconds: { type: 'string', default: '6' }, rounds: { type: 'string', default: '7' } },
  });
  await twoWorkers(Number(values.seconds), Number(values.rounds));
  process.exit(0);
}
