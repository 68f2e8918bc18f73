/** Starts the processes of a benchmark, each on the core it belongs to, and reads what they cost. */
import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** The measured process alone; load, vendor and database share the other core. */
export const measuredCore = '0';
export const otherCore = '1';

/**
 * The same for everybody who is measured: room for the young generation, so that garbage is not what differs. Node strips the types, as in
 * `npm start`: tsx gives each closure its name by Object.defineProperty, which nothing does where the gateway serves.
 */
const nodeFlags = ['--max-semi-space-size=64'];

export interface Started {
  readonly process: ChildProcess;
  readonly port: number;
  readonly key: string;
  /** Its children and all of its threads stand on its core and count; otherwise those of the database do not. */
  readonly isWhole?: boolean;
  /** Headers that it needs beside the key. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Forks a module of this folder and waits for the port it reports. */
export async function start(module: string, words: readonly string[], core: string, isWhole = false): Promise<Started> {
  const child = fork(join(import.meta.dirname, module), words, {
    execArgv: nodeFlags,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  pin(child.pid!, core);
  const { port, key } = await new Promise<{ port: number; key?: string }>((resolve, reject) => {
    child.once('message', (message) => resolve(message as { port: number }));
    child.once('exit', (code) => reject(new Error(`${module} ended with ${code}`)));
  });
  for (const descendant of children(child.pid!)) pin(descendant, isWhole ? core : otherCore);
  for (const { thread, ofDrivers } of threads(child.pid!)) if (ofDrivers && !isWhole) pin(thread, otherCore, '-pc');
  return { process: child, port, key: key ?? 'none', isWhole };
}

export const hasNginx = existsSync('/usr/sbin/nginx');

/** nginx as a streaming reverse proxy: one worker, buffering off, upstream connections kept. */
export async function startNginx(upstreamPort: number): Promise<Started> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-nginx-'));
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  writeFileSync(
    join(directory, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${directory}/pid; error_log ${directory}/error.log;
     events { worker_connections 4096; }
     http { access_log off; client_body_temp_path ${directory}; proxy_temp_path ${directory}; fastcgi_temp_path ${directory}; uwsgi_temp_path ${directory}; scgi_temp_path ${directory};
       upstream vendor { server 127.0.0.1:${upstreamPort}; keepalive 512; }
       server { listen 127.0.0.1:${port}; keepalive_requests 1000000;
         location / { proxy_pass http://vendor; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } } }`,
  );
  const child = spawn('/usr/sbin/nginx', ['-c', join(directory, 'nginx.conf'), '-p', directory], { stdio: 'ignore' });
  await pause(500);
  const started = { process: child, port, key: 'none', isWhole: true };
  pinAll(started, measuredCore);
  return started;
}

/** Puts a process and all that it has started on a core. */
export function pinAll({ process: child }: Started, core: string): void {
  for (const id of [child.pid!, ...children(child.pid!)]) pin(id, core);
}

/** Runs a load process, a module of this folder, on the other core and gives what it reports. */
export async function load<T>(options: object, module = 'load.ts'): Promise<T> {
  const child = fork(join(import.meta.dirname, module), [JSON.stringify(options)], { execArgv: nodeFlags });
  pin(child.pid!, otherCore);
  return await new Promise<T>((resolve, reject) => {
    child.once('message', (message) => resolve(message as T));
    child.once('exit', (code) => reject(new Error(`the load ended with ${code}`)));
  });
}

/** What a process answers when it is sent a message: a number of milliseconds. */
export async function answerOf({ process: child }: Started, requested: 'look' | 'collect' = 'look'): Promise<number> {
  child.send(requested);
  const [milliseconds] = (await once(child, 'message')) as [number];
  return milliseconds;
}

export function stop({ process: child }: Started): void {
  if (child.connected) child.disconnect();
  else child.kill('SIGQUIT');
}

/** Milliseconds of processor time that a process has used in all threads but those of the database drivers, or as a whole. */
export function processorMs({ process: child, isWhole = false }: Started): number {
  let ticks = 0;
  for (const id of [child.pid!, ...(isWhole ? children(child.pid!) : [])]) {
    for (const { stat, ofDrivers } of threads(id)) {
      if (isWhole || !ofDrivers) ticks += Number(stat[11]) + Number(stat[12]);
    }
  }
  return ticks * 10;
}

/** Processor time of one process with all its threads, in the kernel's ticks of 10 ms. */
export function processTicks(id: number): number {
  return threads(id).reduce((sum, { stat }) => sum + Number(stat[11]) + Number(stat[12]), 0);
}

/** Waits until a process has written what it had put off: it uses next to nothing, or ten seconds have passed. */
export async function settled(started: Started): Promise<void> {
  for (let used = processorMs(started), looks = 0; looks < 40; looks++) {
    await pause(250);
    const now = processorMs(started);
    if (now - used <= 20) return;
    used = now;
  }
}

/** A process's threads: id, the fields of `stat` behind the name, and whether it is one that Node's worker_threads made. */
function threads(id: number): { thread: number; stat: string[]; ofDrivers: boolean }[] {
  return readdirSync(`/proc/${id}/task`).map((thread) => {
    const text = readFileSync(`/proc/${id}/task/${thread}/stat`, 'utf8');
    const [, name, fields] = /^\d+ \((.*)\) (.*)$/s.exec(text)!;
    return { thread: Number(thread), stat: fields!.split(' '), ofDrivers: name === 'WorkerThread' };
  });
}

/** Resident memory in KiB. */
export function residentKiB({ process: child }: Started): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1]);
}

export function children(id: number): number[] {
  const direct = readFileSync(`/proc/${id}/task/${id}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  return direct.flatMap((child) => [child, ...children(child)]);
}

function pin(id: number, core: string, flags = '-apc'): void {
  execFileSync('taskset', [flags, core, String(id)], { stdio: 'ignore' });
}
