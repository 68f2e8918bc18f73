/**
 * Other gateways beside this one, where they are installed: `BENCH_PEERS=litellm,portkey npm run bench`. Each is a file in `peers/`;
 * one more gateway is one more file there, and a line here. They are measured whole: all of their processes and threads.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../helpers/free-port.ts';
import { litellm } from './peers/litellm.ts';
import type { Peer } from './peers/peer.ts';
import { portkey } from './peers/portkey.ts';
import { measuredCore, pinAll, type Started } from './processes.ts';

const peers: ReadonlyMap<string, Peer> = new Map(Object.entries({ litellm, portkey }));

/** Milliseconds between two looks, and how many there are: some take a minute to start. */
const lookMs = 500;
const looks = 240;

/** Those that `BENCH_PEERS` names, in front of the vendor on this port. Throws when one is not known or does not start. */
export async function startPeers(upstreamPort: number, model: string): Promise<Record<string, Started>> {
  const started: Record<string, Started> = {};
  for (const name of (process.env['BENCH_PEERS'] ?? '').split(',').filter(Boolean)) {
    const peer = peers.get(name);
    if (peer === undefined) throw new Error(`BENCH_PEERS: "${name}" is none of ${[...peers.keys()].join(', ')}`);
    started[name] = await startPeer(name, peer, `http://127.0.0.1:${upstreamPort}`, model);
  }
  return started;
}

async function startPeer(name: string, peer: Peer, upstream: string, model: string): Promise<Started> {
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), `bench-${name}-`));
  const [command, ...words] = peer.start({ directory, port, upstream, model });
  const child = spawn(command!, words, { stdio: 'ignore', cwd: directory });
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}${peer.ready}`).then(
      ({ ok }) => ok,
      () => false,
    );
  child.once('error', () => {});
  for (let look = 0; !(await isReady()); look++) {
    if (child.exitCode !== null || child.pid === undefined || look === looks) throw new Error(`${name} did not start`);
    await pause(lookMs);
  }
  const started = { process: child, port, key: 'bench', isWhole: true, headers: peer.headers?.(upstream) ?? {} };
  pinAll(started, measuredCore);
  return started;
}
