/** Starts a Redis (or a cluster of them) of this test's own, on loopback, where the machine has one. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { freePort } from './free-port.ts';
import { temporaryDirectory } from './temporary-directory.ts';

/** false: `redis-server` is not installed, so tests that want it are not defined. The whole run of CI installs it. */
export const hasRedis = (() => {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** SIGSTOP: connected and silent. */
  pause(): void;
  resume(): void;
  kill(): Promise<void>;
  /** Again on the same port, empty. */
  restart(): Promise<void>;
  /** Runs one command with the server's own client. */
  command(...words: string[]): string;
  stop(): Promise<void>;
}

export async function startRedis(options: readonly string[] = []): Promise<TestRedis> {
  const port = await freePort();
  const directory = temporaryDirectory('redis-');
  const words = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', directory, '--save', '', ...options];
  const command = (...given: string[]) =>
    execFileSync('redis-cli', ['-p', `${port}`, ...given], { encoding: 'utf8', timeout: 10_000, stdio: 'pipe' }).trim();
  const launch = async () => {
    const child = spawn('redis-server', words, { stdio: 'ignore' });
    for (let attempt = 0; ; attempt++) {
      try {
        if (command('ping') === 'PONG') return child;
      } catch (error) {
        if (attempt > 3_000) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  let server = await launch();
  const kill = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, 'exit');
    server.kill('SIGKILL');
    await gone;
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pause: () => void server.kill('SIGSTOP'),
    resume: () => void server.kill('SIGCONT'),
    kill,
    async restart() {
      await kill();
      server = await launch();
    },
    command,
    async stop() {
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Three servers that share the slots among them. */
export async function startRedisCluster(): Promise<{ readonly urls: string; stop(): Promise<void> }> {
  const options = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000'];
  const servers = await Promise.all([0, 1, 2].map(() => startRedis(options)));
  const addresses = servers.map(({ port }) => `127.0.0.1:${port}`);
  execFileSync('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-yes'], { stdio: 'ignore' });
  for (const { command } of servers)
    for (let attempt = 0; !command('cluster', 'info').includes('cluster_state:ok') && attempt < 200; attempt++)
      await new Promise((resolve) => setTimeout(resolve, 50));
  return {
    urls: servers.map(({ url }) => url).join(','),
    async stop() {
      for (const server of servers) await server.stop();
    },
  };
}
