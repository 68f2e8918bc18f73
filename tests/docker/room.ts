/** A directory as the root of a process: the machine's programs to read, and nothing else of it. For root on Linux. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export interface Room {
  readonly root: string;
  /** Runs a command to its end. Throws when it fails. */
  run(command: string, where: Where): Promise<void>;
  /** Begins one that goes on. Its root cannot be written, apart from `writable` and /tmp. */
  serve(words: readonly string[], where: Where, writable: readonly string[]): ChildProcess;
}

export interface Where {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  /** An account of the room; root if not said. */
  readonly user?: string | undefined;
}

/** The account that the official image has. */
const accounts = { node: 1000 } as const;
const path = '/opt/node:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin';

export const canMakeRooms = (): boolean =>
  process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'mount', '--bind', '/usr', '/usr']).status === 0;

export function makeRoom(root: string): Room {
  for (const name of ['usr', 'etc', 'dev', 'proc', 'tmp', 'root/.npm', 'opt/node'])
    mkdirSync(join(root, name), { recursive: true });
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, join(root, name));
  writeFileSync(join(root, 'opt/node/node'), '');
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/tmp:/bin/sh\n');
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nnode:x:1000:\n');
  for (const name of ['hosts', 'resolv.conf', 'nsswitch.conf']) writeFileSync(join(root, 'etc', name), '');
  mkdirSync(join(root, 'etc/ssl'));
  const enter = (words: readonly string[], where: Where, writable?: readonly string[]) =>
    spawn('unshare', ['-m', 'sh', '-euc', enterScript(root, where, writable), 'sh', ...words], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {
        ...registryOf(process.env),
        ...where.environment,
        PATH: path,
        HOME: where.user === undefined ? '/root' : '/tmp',
      },
    });
  return {
    root,
    async run(command, where) {
      const [code] = (await once(enter(['sh', '-euc', command], where), 'exit')) as [number | null];
      if (code !== 0) throw new Error(`exit ${code}: ${command}`);
    },
    serve: (words, where, writable) => enter(words, where, writable),
  };
}

/** Of this process's environment what a package manager needs to reach its registry. */
function registryOf(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const wanted = /^(npm_config_|https?_proxy$|no_proxy$|node_extra_ca_certs$|ssl_cert)/i;
  return Object.fromEntries(Object.entries(environment).filter(([name]) => wanted.test(name)));
}

function enterScript(root: string, { directory, user }: Where, writable: readonly string[] | undefined): string {
  const bind = (from: string, to: string, options = 'ro') =>
    existsSync(from) ? [`mount --bind ${from} ${root}${to}`, `mount -o remount,bind,${options} ${root}${to}`] : [];
  const locked =
    writable === undefined
      ? bind(join(homedir(), '.npm'), '/root/.npm', 'rw')
      : [...writable.map((name) => `mount --bind ${root}${name} ${root}${name}`), `mount -o remount,bind,ro ${root}`];
  const identity = user === undefined ? '' : identityOf(user);
  return [
    `mount --bind ${root} ${root}`,
    ...bind('/usr', '/usr'),
    ...bind('/etc/ssl', '/etc/ssl'),
    ...['hosts', 'resolv.conf', 'nsswitch.conf'].flatMap((name) => bind(`/etc/${name}`, `/etc/${name}`)),
    ...bind(process.execPath, '/opt/node/node'),
    `mount --rbind /dev ${root}/dev`,
    `mount --rbind /proc ${root}/proc`,
    `mount -t tmpfs tmpfs ${root}/tmp`,
    ...locked,
    `exec chroot ${root} env -C ${directory} ${identity} "$@"`,
  ].join('\n');
}

/** No rights but an ordinary account's, and no way to more. */
function identityOf(user: string): string {
  const id = accounts[user as keyof typeof accounts];
  if (id === undefined) throw new Error(`the room has no account ${user}`);
  return `setpriv --reuid=${id} --regid=${id} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all`;
}
