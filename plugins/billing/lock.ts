/** One process alone writes a journal: a lock file that a dead process cannot keep. */
import { existsSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Clock } from '../../core/contract.ts';

/** A holder on another machine (or in another container) counts as dead when it has not shown itself for so long. */
const silenceMs = 15_000;

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When the process started, as the kernel counts; tells it from a later process of the same number. */
  readonly born: string;
  readonly token: string;
  readonly seenAt: number;
}

export interface Lock {
  /** Shows that this process is alive; every few seconds. */
  beat(): void;
  release(): void;
}

/** Takes the lock at `path`, or throws a sentence that names the holder. */
export function takeLock(path: string, token: string, clock: Clock): Lock {
  const mine = (): string => {
    const holder: Holder = { pid: process.pid, host: hostname(), born: birth(process.pid), token, seenAt: clock.now() };
    return JSON.stringify(holder);
  };
  const draft = `${path}.${token}`;
  writeFileSync(draft, mine(), { mode: 0o600 });
  try {
    clearStale(path, token, clock);
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw taken(path, readHolder(path));
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return {
    beat: () => {
      if (readHolder(path)?.token !== token) return;
      writeFileSync(draft, mine(), { mode: 0o600 });
      renameSync(draft, path);
    },
    release: () => {
      if (readHolder(path)?.token === token) rmSync(path, { force: true });
    },
  };
}

function taken(path: string, holder: Holder | undefined): Error {
  return new Error(
    `${path} is held by process ${holder?.pid ?? '?'} on ${holder?.host ?? '?'}: only one process may write this journal`,
  );
}

/** Moves a dead holder's lock away. Renaming is atomic, so of two starters only one moves it; the other sees a new one. */
function clearStale(path: string, token: string, clock: Clock): void {
  const holder = readHolder(path);
  if (holder === undefined) {
    // Locks appear whole, by link or rename: one that cannot be read is what a power cut left.
    if (existsSync(path)) rmSync(path, { force: true });
    return;
  }
  if (isAlive(holder, clock)) throw taken(path, holder);
  const aside = `${path}.stale.${token}`;
  renameSync(path, aside);
  const moved = readHolder(aside);
  if (moved?.token !== holder.token) {
    renameSync(aside, path);
    throw taken(path, moved);
  }
  rmSync(aside, { force: true });
}

function isAlive(holder: Holder, clock: Clock): boolean {
  if (holder.host !== hostname()) return Math.abs(clock.now() - holder.seenAt) < silenceMs;
  if (holder.pid === process.pid) return holder.born === birth(process.pid);
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return holder.born === birth(holder.pid);
}

/** Field 22 of /proc/PID/stat, after the name in parentheses: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
function birth(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

function readHolder(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder;
  } catch {
    return undefined;
  }
}
