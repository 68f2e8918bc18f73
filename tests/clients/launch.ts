/** Starts a coding client headless, in a home of its own, with a proxy that notices whatever it wants from elsewhere. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client, Turn } from './clients.ts';
import { connectClient } from './settings.ts';

export interface Finished {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Addresses off this machine that it tried to reach, by a proxy that says no. */
  readonly strayed: readonly string[];
  readonly tookMs: number;
}

const longestTurnMs = 60_000;

/**
 * One turn in `directory`, with nothing of this process's environment but the path. `connected` runs when its settings are
 * written, right before it starts; when it has ended they are taken back.
 */
export async function run(
  client: Client,
  directory: string,
  given: Omit<Turn, 'home'>,
  connected: () => void,
): Promise<Finished> {
  const home = await mkdtemp(join(tmpdir(), 'client-home-'));
  const proxy = await startRefusingProxy();
  try {
    const turn = { ...given, home };
    const undo = await connectClient(client, turn);
    const { words, environment } = await client.prepare(turn);
    connected();
    const startedAt = performance.now();
    const [command, ...rest] = words;
    const child = spawn(command!, rest, {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own: what it has started may outlive it, and hold its output open.
      detached: true,
      env: {
        PATH: process.env['PATH']!,
        HOME: home,
        TMPDIR: home,
        LANG: 'C.UTF-8',
        ...proxy.environment,
        ...environment,
      },
    });
    const printed = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => (printed.stdout += chunk));
    child.stderr.on('data', (chunk) => (printed.stderr += chunk));
    const end = () => endGroup(child.pid!);
    const limit = setTimeout(end, longestTurnMs);
    child.once('exit', end);
    const [exitCode] = (await once(child, 'close')) as [number | null];
    clearTimeout(limit);
    const tookMs = Math.round(performance.now() - startedAt);
    await undo();
    const strayed = proxy.requested.filter((request) => client.wantsAnyway?.test(request) !== true);
    return { exitCode, ...printed, strayed, tookMs };
  } finally {
    proxy.stop();
    await rm(home, { recursive: true, force: true, maxRetries: 3 });
  }
}

function endGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // None of it is left.
  }
}

/** Notes what it is asked for and refuses it. */
async function startRefusingProxy() {
  const requests: string[] = [];
  const server = createServer((incoming, outgoing) => {
    requests.push(`${incoming.method} ${incoming.url}`);
    outgoing.writeHead(403).end();
  });
  server.on('connect', (incoming, socket) => {
    requests.push(`CONNECT ${incoming.url}`);
    // One that went away does not hear the refusal.
    socket.on('error', () => undefined).end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const environment: Record<string, string> = { NO_PROXY: '127.0.0.1,localhost', no_proxy: '127.0.0.1,localhost' };
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']) {
    environment[name] = address;
    environment[name.toLowerCase()] = address;
  }
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { requested: requests, environment, stop };
}
