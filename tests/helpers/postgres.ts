/** A PostgreSQL of this test's own, to be stopped, frozen, copied and promoted, where the machine has the programs. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from './free-port.ts';

const versions = '/usr/lib/postgresql';
const programs = existsSync(versions)
  ? readdirSync(versions)
      .toSorted((one, other) => Number(one) - Number(other))
      .map((version) => join(versions, version, 'bin'))
      .findLast((path) => existsSync(join(path, 'postgres')))
  : undefined;

export const hasPostgresPrograms = programs !== undefined;

/** Tests with a server of their own are defined where tests on PostgreSQL are asked for and its programs are installed. */
export const hasPostgres = (process.env['TEST_DATABASE_URL'] ?? '') !== '' && hasPostgresPrograms;

export interface TestPostgres {
  readonly url: string;
  readonly port: number;
  /** SIGSTOP for all of its processes: connections stay, nothing is answered, new ones hang. */
  freeze(): void;
  thaw(): void;
  /** As a crash: running transactions are gone, committed ones are not. */
  crash(): Promise<void>;
  start(): Promise<void>;
  /** Runs SQL with the server's own client; rows as lines, columns parted by `|`. */
  sql(text: string, timeoutMs?: number): string;
  /** Runs one of PostgreSQL's programs against this server, and resolves with what it printed. */
  run(program: string, ...words: string[]): string;
  /** A second server that follows this one; with `synchronous` nothing is acknowledged that it does not have. */
  follower(synchronous: boolean): Promise<TestPostgres>;
  /** Makes a follower stop following and accept writes. */
  promote(): void;
  close(): Promise<void>;
}

/** The server refuses to run as root. */
const owner = process.getuid?.() === 0 ? accountOf('postgres') : undefined;

function accountOf(name: string): { uid: number; gid: number } | undefined {
  const line = readFileSync('/etc/passwd', 'utf8').match(new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm'));
  return line === null ? undefined : { uid: Number(line[1]), gid: Number(line[2]) };
}

/** Not the system's temporary directory: that may be one which the server's account cannot enter. */
function directoryOfServer(isLarge = false): string {
  const directory = mkdtempSync(join(!isLarge && existsSync('/dev/shm') ? '/dev/shm' : '/tmp', 'postgres-'));
  if (owner !== undefined) chownSync(directory, owner.uid, owner.gid);
  return directory;
}

const execute = (program: string, words: readonly string[], as: object = owner ?? {}, timeout = 60_000) =>
  execFileSync(join(programs!, program), words, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout,
    cwd: '/',
    maxBuffer: 256 * 2 ** 20,
    ...as,
  });

/** Starts a server with an empty database; `options` as `name=value`. Where it gets large it is not kept in memory. */
export async function startPostgres(options: readonly string[] = [], isLarge = false): Promise<TestPostgres> {
  const directory = directoryOfServer(isLarge);
  execute('initdb', ['-D', join(directory, 'data'), '-U', 'gateway', '--auth=trust', '--no-sync']);
  return launch(directory, options);
}

async function launch(directory: string, options: readonly string[]): Promise<TestPostgres> {
  const port = await freePort();
  const settings = [`port=${port}`, `unix_socket_directories=${directory}`, 'listen_addresses=127.0.0.1', 'fsync=off'];
  const words = [...settings, 'shared_buffers=32MB', ...options].flatMap((setting) => ['-c', setting]);
  const address = ['-h', '127.0.0.1', '-p', `${port}`, '-U', 'gateway'];
  let server: ChildProcess | undefined;
  const sql = (text: string, timeout?: number) =>
    execute('psql', [...address, '-d', 'postgres', '-AtqX', '-c', text], undefined, timeout).trim();

  async function start(): Promise<void> {
    const data = join(directory, 'data');
    server = spawn(join(programs!, 'postgres'), ['-D', data, ...words], { stdio: 'ignore', cwd: '/', ...owner });
    for (let attempt = 0; ; attempt++) {
      try {
        return void sql('select 1');
      } catch (error) {
        if (attempt > 1_000 || server.exitCode !== null) throw error;
      }
      await pause(50);
    }
  }

  function signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    for (const pid of [server.pid!, ...childrenOf(server.pid!)]) kill(pid, name);
  }

  async function crash(): Promise<void> {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, 'exit');
    server.kill('SIGQUIT');
    await gone;
  }

  await start();
  return {
    url: `postgres://gateway@127.0.0.1:${port}/postgres`,
    port,
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    crash,
    start,
    sql,
    // As who asks, so that it may write where they may.
    run: (program, ...more) => execute(program, [...address, ...more], {}),
    async follower(synchronous) {
      const copy = directoryOfServer();
      execute('pg_basebackup', [...address, '-D', join(copy, 'data'), '-R', '-X', 'stream', '-c', 'fast', '--no-sync']);
      const following = await launch(copy, options);
      for (let attempt = 0; sql('select count(*) from pg_stat_replication') === '0' && attempt < 100; attempt++)
        await pause(50);
      if (synchronous) {
        sql("alter system set synchronous_standby_names = '*'");
        sql('select pg_reload_conf()');
      }
      return following;
    },
    promote() {
      // What it copied from the other's settings would make it wait for a follower of its own.
      sql('alter system reset synchronous_standby_names');
      sql('select pg_reload_conf()');
      sql('select pg_promote()');
    },
    async close() {
      await crash();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const [, fields] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(/\) /);
        return Number(fields!.split(' ')[1]) === parent;
      } catch {
        return false; // It has ended meanwhile.
      }
    })
    .map(Number);
}

/** A process of a connection may have ended since it was seen. */
function kill(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
