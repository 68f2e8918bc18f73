/** Crowds of connections before a gateway: idle ones, silent streams, and readers that take nothing for a while. */
import assert from 'node:assert/strict';
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import type { CrowdOrder } from './messages.ts';

export interface Crowds {
  readonly idle: number;
  readonly streams: number;
  readonly slowReaders: number;
}

/** A process of clients, or the vendor. */
class Crowd {
  readonly child = fork(join(import.meta.dirname, 'crowd-process.ts'));
  readonly #requested: PromiseWithResolvers<number>[] = [];

  constructor() {
    this.child.on('message', (message) => {
      const { number, reported } = message as { number: number; reported: number };
      this.#requested[number]!.resolve(reported);
    });
    this.child.once('exit', () => {
      for (const { reject } of this.#requested) reject(new Error('a process of the crowds has ended'));
    });
  }

  send(requested: CrowdOrder): Promise<number> {
    const answer = Promise.withResolvers<number>();
    this.child.send({ number: this.#requested.push(answer) - 1, requested });
    return answer.promise;
  }
}

/**
 * Plays all three, one after the other; what is promised is asserted, and each result goes to `say`. `perProcess`: the descriptors that
 * one process may have; more clients than that are several processes, and the gateway then has several workers behind its port.
 */
export async function playCrowds(crowds: Crowds, perProcess: number, say: (line: string) => void): Promise<void> {
  const most = Math.max(crowds.idle, crowds.streams, crowds.slowReaders);
  const clients = Array.from({ length: Math.ceil(most / perProcess) }, () => new Crowd());
  const vendor = new Crowd();
  const children: ChildProcess[] = [vendor.child, ...clients.map(({ child }) => child)];
  try {
    const sockets = Math.max(crowds.idle, 2 * crowds.streams, 2 * crowds.slowReaders);
    // Half as many again: the kernel does not divide connections evenly.
    const workers = sockets <= perProcess ? 1 : Math.ceil((1.5 * sockets) / perProcess);
    const upstreams = Math.max(crowds.streams, crowds.slowReaders) + 10;
    const { child, port } = await startGateway(await vendor.send({ kind: 'vendor' }), upstreams, workers);
    children.push(child);
    await play(crowds, { clients, vendor, port, gateway: child, say });
  } finally {
    for (const child of children) child.kill('SIGKILL');
  }
}

function startGateway(vendorPort: number, upstreams: number, workers: number) {
  const sections = `plugins: [passthrough]\npassthrough: { upstream: "http://127.0.0.1:${vendorPort}" }\nserver: { upstream_connections: ${upstreams}, stall_timeout: 10m }\n`;
  return startProcess(sections, workers);
}

/** A gateway as a process of its own, on a free port. */
export async function startProcess(sections: string, workers = 1): Promise<{ child: ChildProcess; port: number }> {
  const free = createServer();
  await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve));
  const { port } = free.address() as { port: number };
  await new Promise((resolve) => free.close(resolve));
  const file = join(temporaryDirectory('crowds-'), 'gateway.yaml');
  writeFileSync(file, `gateway: crowds\nlisten: 127.0.0.1:${port}\nlog: error\n${sections}`);
  const words = ['core/process/main.ts', 'serve', ...(workers > 1 ? ['--workers', String(workers)] : []), file];
  const child = spawn(process.execPath, [...process.execArgv, ...words], { stdio: ['ignore', 'ignore', 'inherit'] });
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  for (let tries = 0; !(await isReady()); tries++) {
    assert.ok(tries < 600 && child.exitCode === null, 'the gateway did not start');
    await pause(100);
  }
  return { child, port };
}

interface Stage {
  readonly clients: readonly Crowd[];
  readonly vendor: Crowd;
  readonly port: number;
  readonly gateway: ChildProcess;
  readonly say: (line: string) => void;
}

async function play(crowds: Crowds, { clients, vendor, port, gateway, say }: Stage): Promise<void> {
  const all = async (requested: (index: number) => CrowdOrder) => {
    const numbers = await Promise.all(clients.map((client, index) => client.send(requested(index))));
    return numbers.reduce((sum, number) => sum + number, 0);
  };
  const open = (count: number, path?: string) => {
    const share = (index: number) =>
      Math.floor((count * (index + 1)) / clients.length) - Math.floor((count * index) / clients.length);
    return all((index) => ({ kind: 'open', port, count: share(index), path }));
  };
  const leave = () => all(() => ({ kind: 'leave' }));
  const waitFor = async (count: number) => {
    let waiting = await vendor.send({ kind: 'waiting' });
    for (let tries = 0; waiting !== count && tries < 600; tries++) {
      await pause(100);
      waiting = await vendor.send({ kind: 'waiting' });
    }
    return waiting;
  };
  const served = async () => {
    const since = performance.now();
    const answer = await fetch(`http://127.0.0.1:${port}/small`);
    assert.equal(await answer.text(), 'ok');
    return `a request beside them took ${(performance.now() - since).toFixed(0)} ms; ${residentMegabytes(gateway.pid!)} MB resident`;
  };
  assert.equal(await open(crowds.idle), crowds.idle, 'every idle connection is there');
  say(`${crowds.idle} idle connections: ${await served()}`);
  await leave();

  assert.equal(await open(crowds.streams, '/silent'), crowds.streams);
  assert.equal(await waitFor(crowds.streams), crowds.streams, 'every stream has reached the vendor');
  say(`${crowds.streams} silent streams: ${await served()}`);
  await leave();
  assert.equal(await waitFor(0), 0, 'every stream has ended at the vendor');

  assert.equal(await open(crowds.slowReaders, '/big'), crowds.slowReaders);
  const took = await served();
  const whole = await all(() => ({ kind: 'read' }));
  assert.equal(whole, crowds.slowReaders, 'every slow reader gets all of it in the end');
  say(`${crowds.slowReaders} slow readers: ${took}`);
}

/** Memory of a process and its children; 0 where the system does not report it. */
export function residentMegabytes(pid: number): number {
  try {
    const own = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
    return Math.round(children.reduce((sum, child) => sum + residentMegabytes(child), own));
  } catch {
    return 0;
  }
}
