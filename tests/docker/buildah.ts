/** Builds the Dockerfile with buildah, in layers, on a base image that is made of Debian packages and this machine's own Node and npm. For root. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

const tools = ['buildah', 'mmdebstrap'];
const debianPackages = ['ca-certificates', 'libatomic1', 'libstdc++6'];
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** What the base image takes from this machine so that npm reaches its registry. */
const registryVariables = /^(npm_config_(registry|cafile|noproxy)|node_extra_ca_certs)$/i;

/** The part of an image's configuration that a container engine acts upon. */
export interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly WorkingDir: string;
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Volumes: Readonly<Record<string, unknown>>;
  readonly Healthcheck: { readonly Test: readonly string[] };
  readonly StopSignal: string;
}

/** Installs what is missing. Returns why it cannot, or undefined. */
export function installBuildTools(): string | undefined {
  const missing = tools.filter((tool) => spawnSync(tool, ['--version']).error !== undefined);
  if (missing.length === 0) return undefined;
  console.log(`installing ${missing.join(' and ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = (...words: string[]) => spawnSync('apt-get', ['-q', ...words], { env }).status === 0;
  const isInstalled = apt('update') && apt('install', '-y', '--no-install-recommends', ...missing);
  return isInstalled ? undefined : `${missing.join(' and ')} cannot be installed.`;
}

/** Images and containers in a directory of their own. */
export class ImageStore {
  readonly #directory: string;
  readonly #options: readonly string[];

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true });
    const optionsFor = (driver: string) => [
      ...['--root', join(directory, driver), '--runroot', join(directory, 'run'), '--storage-driver', driver],
    ];
    // Where overlays cannot be mounted, layers are copied.
    const hasOverlay = spawnSync('buildah', [...optionsFor('overlay'), 'containers']).status === 0;
    this.#options = optionsFor(hasOverlay ? 'overlay' : 'vfs');
  }

  /** Debian's essential packages, what Node is linked to, Node, npm and the account `node`: what the official image consists of. */
  makeBase(name: string): void {
    const archive = join(this.#directory, 'base.tar');
    const suite = execFileSync('sh', ['-c', '. /etc/os-release; echo "$VERSION_CODENAME"'], {
      encoding: 'utf8',
    }).trim();
    const sources = ['/etc/apt/sources.list', '/etc/apt/sources.list.d/debian.sources'].filter((path) =>
      existsSync(path),
    );
    const include = `--include=${debianPackages.join(',')}`;
    execFileSync('mmdebstrap', ['--quiet', '--variant=essential', include, suite, archive, ...sources]);
    const container = this.#run('from', 'scratch');
    this.#run('add', '--quiet', container, archive, '/');
    this.#run('copy', '--quiet', container, process.execPath, '/usr/local/bin/node');
    this.#run('copy', '--quiet', container, npmDirectory(), '/usr/local/lib/node_modules/npm');
    const prepare = [
      'ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm',
      'echo node:x:1000:1000::/home/node:/bin/sh >>/etc/passwd',
      'echo node:x:1000: >>/etc/group',
      'mkdir /home/node && chown node:node /home/node',
    ].join(' && ');
    this.#run('run', '--isolation', 'chroot', container, '--', 'sh', '-ec', prepare);
    const variables = Object.entries(process.env).filter(([variable]) => registryVariables.test(variable));
    for (const [variable, value] of [['PATH', path], ...variables])
      this.#run('config', '--env', `${variable}=${value}`, container);
    this.#run('commit', '--quiet', '--rm', container, name);
  }

  /** Prints what the build prints. Packages come from npm's cache on this machine or from its registry. */
  build(dockerfile: string, name: string): void {
    const mounts = [
      [join(homedir(), '.npm'), '/root/.npm:rw'],
      [join(homedir(), '.npmrc'), '/root/.npmrc:ro'],
      ['/etc/ssl', '/etc/ssl:ro'],
    ].filter(([path]) => existsSync(path!));
    const volumes = mounts.flatMap(([path, target]) => ['--volume', `${path}:${target}`]);
    const words = ['bud', '--isolation', 'chroot', '--pull-never', '--layers', '--format', 'docker', ...volumes];
    const ignore = ['--ignorefile', `${dockerfile}.dockerignore`];
    execFileSync('buildah', [...this.#options, ...words, ...ignore, '-t', name, '-f', dockerfile, '.'], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  }

  /** Makes a container; returns the directory that is its root. */
  mount(image: string): string {
    return this.#run('mount', this.#run('from', '--pull-never', image));
  }

  configOf(image: string): ImageConfig {
    const { Docker } = JSON.parse(this.#run('inspect', '--type', 'image', image)) as {
      Docker: { config: ImageConfig };
    };
    return Docker.config;
  }

  /** Bytes of its layers as a registry keeps and sends them. */
  compressedBytes(image: string): number {
    const directory = join(this.#directory, 'pushed');
    const options = ['--quiet', '--format', 'oci', '--compression-format', 'gzip'];
    this.#run('push', ...options, image, `dir:${directory}`);
    const { layers } = JSON.parse(readFileSync(join(directory, 'manifest.json'), 'utf8')) as {
      layers: { size: number }[];
    };
    rmSync(directory, { recursive: true });
    return layers.reduce((sum, { size }) => sum + size, 0);
  }

  /** Unmounts everything, so that the directory can be removed. */
  close(): void {
    this.#run('rm', '--all');
    const mounted = join(this.#options[1]!, 'overlay');
    spawnSync('umount', [mounted]);
  }

  #run(...words: string[]): string {
    return execFileSync('buildah', [...this.#options, ...words], { encoding: 'utf8', maxBuffer: 1e8 }).trim();
  }
}

/** The npm that runs this. */
function npmDirectory(): string {
  const path = process.env['npm_execpath'];
  if (path === undefined)
    throw new Error('start it with `npm run test:image`: the base image gets the npm that runs it');
  return dirname(dirname(path));
}
