/** What a container engine would do with our files, as far as a process goes: the image's entry point, a service's words and variables, on ports of this machine. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../helpers/free-port.ts';
import { environmentOf, readDockerfile } from './dockerfile.ts';

const image = readDockerfile(readFileSync('docker/Dockerfile', 'utf8')).at(-1)!.instructions;
const last = (name: string) => image.findLast((instruction) => instruction.name === name)!;
// In the image `bin.js` starts the same file as JavaScript.
const entry = last('ENTRYPOINT').words.map((word) => (word === 'bin.js' ? 'core/process/main.ts' : word));
const healthCheck = last('HEALTHCHECK').words;
const ofImage = environmentOf(last('ENV'));
const readyWithinMs = 60_000;

/** Nothing else of this process's environment: what a file does not set is not there. */
const ofMachine = { PATH: process.env['PATH'] ?? '', HOME: tmpdir(), TMPDIR: tmpdir() };

export interface Container {
  readonly origin: string;
  /** Whether the image's health check succeeds. */
  isHealthy(): boolean;
  /** Runs another command of the image beside it, as `docker compose exec` does; resolves with what it printed. */
  run(...command: string[]): string;
  kill(): Promise<void>;
  /** Ends it in order, and resolves with its exit code. */
  stop(): Promise<number | null>;
}

/** Resolves when it is ready. Its port and its volume are this machine's own. */
export async function startContainer(
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Container> {
  const port = await freePort();
  const volume = mkdtempSync(join(tmpdir(), 'container-'));
  const env = { ...ofMachine, ...ofImage, ...environment, PORT: `${port}`, DATA_DIR: volume };
  const child = spawn(process.execPath, [...entry.slice(1), ...command], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  child.stdout!.on('data', (chunk) => (printed += chunk));
  const origin = `http://127.0.0.1:${port}`;
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    const code = await ended(child, signal);
    await rm(volume, { recursive: true, force: true });
    return code;
  };
  const until = performance.now() + readyWithinMs;
  while ((await fetch(`${origin}/readyz`).catch(() => undefined))?.status !== 200) {
    assert.equal(child.exitCode, null, `it ended at its start: ${printed}`);
    assert.ok(performance.now() < until, `it is not ready: ${printed}`);
    await pause(100);
  }
  const execute = (words: readonly string[]) => execFileSync(process.execPath, words, { env, encoding: 'utf8' });
  return {
    origin,
    isHealthy() {
      try {
        execute(healthCheck.slice(1));
        return true;
      } catch {
        return false;
      }
    },
    run: (...words) => execute([...entry.slice(1), ...words]),
    kill: async () => void (await end('SIGKILL')),
    stop: () => end('SIGTERM'),
  };
}

/** A container that does its work and ends: resolves with what it printed. */
export async function runContainer(
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const volume = mkdtempSync(join(tmpdir(), 'container-'));
  const env = { ...ofMachine, ...ofImage, ...environment, DATA_DIR: volume };
  try {
    return (await promisify(execFile)(process.execPath, [...entry.slice(1), ...command], { env })).stdout;
  } finally {
    await rm(volume, { recursive: true, force: true });
  }
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const gone = once(child, 'exit') as Promise<[number | null]>;
  child.kill(signal);
  return (await gone)[0];
}

const nginx = '/usr/sbin/nginx';
/** It keeps bodies in directories that root alone may use. */
export const hasNginx = existsSync(nginx) && process.getuid?.() === 0;

export interface Front {
  readonly origin: string;
  /** What it has logged of requests. */
  lines(): string;
  close(): Promise<void>;
}

/** nginx with our file; instead of the services' names, which only a network of containers knows, these ports. */
export async function startFront(ports: readonly number[]): Promise<Front> {
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'front-'));
  const log = join(directory, 'access.log');
  const text = readFileSync('docker/nginx.conf', 'utf8')
    .replace(/^.*server gateway:8080 resolve(.*)$/m, (_, terms) =>
      ports.map((each) => `server 127.0.0.1:${each}${terms}`).join('\n'),
    )
    .replace('listen 8080', `listen 127.0.0.1:${port}`)
    .replace('/var/log/nginx/access.log', log);
  const file = join(directory, 'nginx.conf');
  writeFileSync(file, text);
  execFileSync(nginx, ['-q', '-t', '-c', file], { stdio: ['ignore', 'ignore', 'inherit'] });
  const words = ['-c', file, '-g', `daemon off; pid ${join(directory, 'pid')}; error_log stderr crit;`];
  const child = spawn(nginx, words, { stdio: ['ignore', 'inherit', 'inherit'] });
  const origin = `http://127.0.0.1:${port}`;
  while ((await fetch(`${origin}/healthz`).catch(() => undefined)) === undefined) {
    assert.equal(child.exitCode, null, 'nginx ended at its start');
    await pause(50);
  }
  return {
    origin,
    lines: () => readFileSync(log, 'utf8'),
    async close() {
      await ended(child, 'SIGTERM');
      await rm(directory, { recursive: true, force: true });
    },
  };
}
