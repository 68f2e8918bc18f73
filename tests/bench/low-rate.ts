/**
 * `npm run bench:rate -- [--rate 200] [--seconds 10] [--pairs 2] [--against DIRECTORY]`: the main gateway with the embedded database at a
 * steady low rate, and at rest: statements and transactions a second, processor time of the gateway and all its child
 * processes, and how long 99 of 100 calls take, beside a bare forwarder at the same rate. With another checkout to compare with, the two take turns, and each pair gives its own ratio.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { children } from './processes.ts';
import { startSlowVendor } from './slow-vendor.ts';
import type { Counts } from './statement-counter.ts';

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '10' },
    pairs: { type: 'string', default: '2' },
    against: { type: 'string' },
  },
});
const rate = Number(values.rate);
const seconds = Number(values.seconds);
const warmSeconds = 5;
const here = join(import.meta.dirname, '../..');

interface Spent {
  readonly statements: number;
  readonly transactions: number;
  /** Of the gateway's process, and of its child processes. */
  readonly gatewayMs: number;
  readonly childrenMs: number;
  readonly counts: Counts;
}

interface Measured {
  readonly idle: Spent;
  readonly loaded: Spent;
  /** How long each call took, in rising order. */
  readonly latenciesMs: readonly number[];
}

const vendor = await startSlowVendor();

for (let pair = 1; pair <= Number(values.pairs); pair += 1) {
  printLatencies(`bare forwarder, ${pair}`, await bareLatenciesMs());
  const own = await measure(here);
  print(`this checkout, ${pair}`, own);
  if (values.against === undefined) continue;
  const other = await measure(resolve(values.against));
  print(`${values.against}, ${pair}`, other);
  const each = ({ loaded, latenciesMs }: Measured) => allOf(loaded) / latenciesMs.length;
  const quotient = (over: number, under: number) => (over / under).toFixed(2);
  console.log(
    `pair ${pair}: processor time of a call, other ÷ this, ${quotient(each(other), each(own))}; at rest, ${quotient(allOf(other.idle), allOf(own.idle))}`,
  );
}
vendor.close();

async function measure(root: string): Promise<Measured> {
  const { port: vendorPort } = vendor.address() as AddressInfo;
  const counter = join(import.meta.dirname, 'statement-counter.ts');
  const child = fork(join(root, 'tests/bench/gateway.ts'), [String(vendorPort), 'full'], {
    cwd: root,
    execArgv: ['--max-semi-space-size=64', '--import', counter],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [{ port, key }] = (await once(child, 'message')) as [{ port: number; key: string }];
  await pause(2_000);
  const idle = await spent(child, () => pause(seconds * 1_000));
  await load(port, key, warmSeconds);
  let latenciesMs: number[] = [];
  const loaded = await spent(child, async () => {
    latenciesMs = await load(port, key, seconds);
  });
  child.disconnect();
  await once(child, 'exit');
  return { idle, loaded, latenciesMs };
}

async function bareLatenciesMs(): Promise<number[]> {
  const { port: vendorPort } = vendor.address() as AddressInfo;
  const child = fork(join(import.meta.dirname, 'bare.ts'), [String(vendorPort)], {
    execArgv: ['--max-semi-space-size=64'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  await load(port, 'none', warmSeconds);
  const latenciesMs = await load(port, 'none', seconds);
  child.disconnect();
  await once(child, 'exit');
  return latenciesMs;
}

async function spent(child: ChildProcess, work: () => Promise<unknown>): Promise<Spent> {
  const before = await look(child);
  await work();
  const after = await look(child);
  const counts = Object.fromEntries(
    Object.entries(after.counts)
      .map(([words, count]) => [words, count - (before.counts[words] ?? 0)] as const)
      .filter(([, count]) => count > 0),
  );
  const statements = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return {
    statements,
    transactions: counts['commit'] ?? 0,
    gatewayMs: after.gatewayMs - before.gatewayMs,
    childrenMs: after.childrenMs - before.childrenMs,
    counts,
  };
}

function allOf({ gatewayMs, childrenMs }: Spent): number {
  return gatewayMs + childrenMs;
}

async function look(child: ChildProcess): Promise<Pick<Spent, 'counts' | 'gatewayMs' | 'childrenMs'>> {
  child.send('count');
  const [counts] = (await once(child, 'message')) as [Counts];
  const childrenMs = children(child.pid!).reduce((sum, id) => sum + processorMsOf(id), 0);
  return { counts, gatewayMs: processorMsOf(child.pid!), childrenMs };
}

/** Of all its threads. */
function processorMsOf(id: number): number {
  const fields = readFileSync(`/proc/${id}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** So many calls a second, evenly spread, however long each takes. Resolves with the time that each took, in rising order. */
async function load(port: number, key: string, forSeconds: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true });
  const body = JSON.stringify({
    model: 'bench-chat',
    messages: [{ role: 'user', content: 'a'.repeat(900) }],
    max_tokens: 200,
  });
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  };
  const send = () =>
    new Promise<number>((done, fail) => {
      const asked = performance.now();
      const target = { port, host: '127.0.0.1', method: 'POST', path: '/v1/chat/completions', agent, headers };
      request(target, (reply) => {
        if (reply.statusCode !== 200) fail(new Error(`status ${reply.statusCode}`));
        reply.resume().on('end', () => done(performance.now() - asked));
      })
        .on('error', fail)
        .end(body);
    });
  const begun = performance.now();
  const pending: Promise<number>[] = [];
  for (const total = rate * forSeconds; pending.length < total; await pause(2)) {
    const due = Math.min(total, Math.floor(((performance.now() - begun) / 1_000) * rate));
    while (pending.length < due) pending.push(send());
  }
  const latenciesMs = await Promise.all(pending);
  agent.destroy();
  return latenciesMs.sort((left, right) => left - right);
}

function printLatencies(name: string, latenciesMs: readonly number[]): void {
  const [half, most] = [0.5, 0.99].map((part) => latenciesMs[Math.floor(part * latenciesMs.length)]!.toFixed(1));
  console.log(
    `\n${name}: ${latenciesMs.length} calls in ${seconds} s, half within ${half} ms, 99 of 100 within ${most} ms`,
  );
}

function print(name: string, { idle, loaded, latenciesMs }: Measured): void {
  const second = (count: number) => (count / seconds).toFixed(1);
  const calls = latenciesMs.length;
  printLatencies(name, latenciesMs);
  console.log(`  statements a second: ${second(loaded.statements)}, at rest ${second(idle.statements)}`);
  console.log(`  transactions a second: ${second(loaded.transactions)}, at rest ${second(idle.transactions)}`);
  const each = (milliseconds: number) => (milliseconds / calls).toFixed(2);
  console.log(
    `  processor time: ${each(allOf(loaded))} ms a call (gateway ${each(loaded.gatewayMs)}, database ${each(loaded.childrenMs)}), at rest ${second(allOf(idle))} ms a second (gateway ${second(idle.gatewayMs)}, database ${second(idle.childrenMs)})`,
  );
  const most = Object.entries(loaded.counts).toSorted(([, left], [, right]) => right - left);
  for (const [words, count] of most.slice(0, 8)) console.log(`    ${second(count).padStart(6)}/s ${words}`);
}
