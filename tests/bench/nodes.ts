/**
 * `TEST_DATABASE_URL=postgres://… node tests/bench/nodes.ts [--seconds 6] [--connections 16] [--delay 25] [--workers]`:
 * the throughput of one, two and four gateway processes on one PostgreSQL that spend four rich accounts, and whether any of
 * these was spent beyond its balance. Each process has an address of its own, or, with `--workers`, all are workers of one
 * primary behind one address. Each process has as many clients as the others, whatever their number, and the
 * vendor takes its time: so the load doubles with the processes, and it is seen whether they hinder one another. With
 * `--delay 0` they take all the processor there is, and on a few cores it is seen how these are shared, no more.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { sql } from 'drizzle-orm';
import { type Fleet, gather } from '../end-to-end/fleet.ts';
import { type Customer, modelAt, until } from '../end-to-end/testbed.ts';
import { type LoadResult, run as load } from './load.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '6' },
    connections: { type: 'string', default: '16' },
    delay: { type: 'string', default: '25' },
    workers: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
/** Connections of each process. */
const connections = Number(values.connections);
const delayMs = Number(values.delay);

interface Run {
  readonly nodes: number;
  readonly perSecond: number;
  /** Milliseconds of processor time of the gateway processes for each call. */
  readonly processorMs: number;
  readonly failures: number;
  readonly overspent: number;
  readonly leases: number;
}

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'a'.repeat(900) }] });
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
const runs: Run[] = [];
for (const nodes of [1, 2, 4]) {
  const run = await measure(nodes);
  runs.push(run);
  console.log(
    `${nodes} processes: ${Math.round(run.perSecond)} calls/s, ${run.processorMs.toFixed(3)} ms of processor time each, ` +
      `${run.failures} failures, ${run.overspent} charges beyond a balance, ${run.leases} leases left after the drain`,
  );
}
upstream.close();
console.log(`\n${availableParallelism()} cores for load, vendor, database and gateways together`);
for (const [fewer, more] of [[runs[0]!, runs[1]!] as const, [runs[1]!, runs[2]!] as const]) {
  const seen = more.perSecond / fewer.perSecond;
  const each = (2 * fewer.processorMs) / more.processorMs;
  console.log(
    `${fewer.nodes} -> ${more.nodes}: throughput × ${seen.toFixed(2)} as seen; × ${each.toFixed(2)} by processor time, while cores last`,
  );
}
process.exit(runs.some(({ overspent, failures, leases }) => overspent + failures + leases > 0) ? 1 : 0);

async function measure(count: number): Promise<Run> {
  const fleet = await gather(
    {
      plans: { default: 'open', offers: { open: { price: 0 } } },
      providers: { bench: { keys: 'bench-key', speaks: { chat: `http://127.0.0.1:${upstreamPort}/v1` } } },
      models: { m: modelAt('bench') },
    },
    values.workers ? 1 : count,
    values.workers ? { workers: count } : {},
  );
  try {
    for (const node of fleet.nodes) await node.start();
    await until('all of them serve', async () => (await living(fleet)) === count, 60_000);
    const customers = await fleet.runAsCommand(({ customer }) => Promise.all([1, 2, 3, 4].map(() => customer())));
    await drive(fleet, customers, count, 2);
    const before = processorMs(fleet);
    const counts = await drive(fleet, customers, count, seconds);
    const used = processorMs(fleet) - before;
    const requests = counts.reduce((sum, each) => sum + each.requests, 0);
    for (const node of fleet.nodes) await node.end('SIGTERM');
    const [row] = await fleet.rows<{ overspent: number; leases: number }>(
      sql`select (select count(*)::int from ${fleet.table('movements')} where kind = 'CHARGE' and balance_after < 0) as overspent,
            (select count(*)::int from ${fleet.table('leases')}) as leases`,
    );
    const failures = counts.reduce((sum, each) => sum + each.failures, 0);
    return { nodes: count, perSecond: requests / seconds, processorMs: used / requests, failures, ...row! };
  } finally {
    await fleet.close();
  }
}

/** Each account on each process, or so many times on the address that they share. */
async function drive(
  { nodes }: Fleet,
  customers: readonly Customer[],
  count: number,
  forSeconds: number,
): Promise<LoadResult[]> {
  const each = Math.max(1, Math.floor(connections / customers.length));
  const loads = Array.from({ length: count }, (_, index) =>
    customers.map(({ key }) => {
      const port = Number(new URL(nodes[index % nodes.length]!.origin).port);
      const options = { port, key, body, path: '/v1/chat/completions' };
      return load({ ...options, connections: each, seconds: forSeconds });
    }),
  );
  return Promise.all(loads.flat());
}

/** Processes that serve. */
async function living(fleet: Fleet): Promise<number> {
  const [row] = await fleet.rows<{ count: number }>(
    sql`select count(*)::int as count from ${fleet.table('journal_cursor')} where updated_at > clock_timestamp() - interval '15 seconds'`,
  );
  return row!.count;
}

function processorMs(fleet: Fleet): number {
  let ticks = 0;
  for (const pid of fleet.nodes.flatMap((node) => [node.pid, ...childrenOf(node.pid)])) {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks * 10;
}

/** A primary's workers. */
function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return text === '' ? [] : text.split(' ').map(Number);
}
