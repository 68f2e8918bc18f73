/** Runs a program with a directory as its read-only root, as an ordinary account without privileges: what a container is for a process. For root on Linux. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Room {
  readonly root: string;
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  /** An account of the root's own /etc/passwd. */
  readonly user: string;
  /** Directories of this machine by their path inside: all that can be written but /tmp. */
  readonly volumes: Readonly<Record<string, string>>;
}

export const canMakeRooms = (): boolean =>
  process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'mount', '--bind', '/usr', '/usr']).status === 0;

/** Its standard output can be read; a signal sent to it reaches the program. */
export function startInRoom(words: readonly string[], room: Room): ChildProcess {
  return spawn('unshare', ['-m', 'sh', '-euc', enterScript(room), 'sh', ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...room.environment, HOME: '/tmp' },
  });
}

function enterScript({ root, directory, user, volumes }: Room): string {
  return [
    `mount --bind ${root} ${root}`,
    `mount --rbind /dev ${root}/dev`,
    `mount --rbind /proc ${root}/proc`,
    `mount -t tmpfs tmpfs ${root}/tmp`,
    `mount -o remount,bind,ro ${root}`,
    ...Object.entries(volumes).map(([inside, path]) => `mount --bind ${path} ${root}${inside}`),
    `exec chroot ${root} env -C ${directory} ${identityOf(user, root)} "$@"`,
  ].join('\n');
}

/** The rights of an ordinary account, and no way to more. */
function identityOf(user: string, root: string): string {
  const accounts = readFileSync(join(root, 'etc/passwd'), 'utf8').split('\n');
  const account = accounts.map((line) => line.split(':')).find(([name]) => name === user);
  if (account === undefined) throw new Error(`the image has no account ${user}`);
  const [, , id, group] = account;
  return `setpriv --reuid=${id} --regid=${group} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all`;
}
