/** Installs the coding clients in their pinned versions, outside the repository, from whatever registry npm is set up with. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

type ClientName = 'claude-code' | 'codex' | 'copilot' | 'gemini-cli' | 'qwen-code' | 'opencode' | 'aider';

interface Distribution {
  readonly version: string;
  /** npm specification of the package that holds the program, for this platform where there are several. */
  readonly package: string;
  /** The binary, or the script for Node, inside of `node_modules` or of Python's environment. */
  readonly binary: string;
  /** The package is one of pip. */
  readonly isPython?: true;
}

const platform = `${process.platform}-${process.arch}`;
/** As the builds of one of them are called. */
const triple: Readonly<Record<string, string>> = {
  'linux-x64': 'x86_64-unknown-linux-musl',
  'linux-arm64': 'aarch64-unknown-linux-musl',
  'darwin-x64': 'x86_64-apple-darwin',
  'darwin-arm64': 'aarch64-apple-darwin',
};

const distributions: Readonly<Record<ClientName, Distribution>> = {
  'claude-code': {
    version: '2.1.329',
    package: `@anthropic-ai/claude-code-${platform}@2.1.329`,
    binary: `@anthropic-ai/claude-code-${platform}/claude`,
  },
  codex: {
    version: '0.169.0',
    package: `@openai/codex@0.169.0-${platform}`,
    binary: `@openai/codex/vendor/${triple[platform]}/bin/codex`,
  },
  copilot: {
    version: '1.0.102',
    package: `@github/copilot-${platform}@1.0.102`,
    binary: `@github/copilot-${platform}/copilot`,
  },
  'gemini-cli': {
    version: '0.61.0',
    package: '@google/gemini-cli@0.61.0',
    binary: '@google/gemini-cli/bundle/gemini.js',
  },
  'qwen-code': {
    version: '0.24.4',
    package: '@qwen-code/qwen-code@0.24.4',
    binary: '@qwen-code/qwen-code/cli-entry.js',
  },
  opencode: {
    version: '1.18.33',
    package: `opencode-${platform}@1.18.33`,
    binary: `opencode-${platform}/bin/opencode`,
  },
  aider: { version: '0.86.2', package: 'aider-chat==0.86.2', binary: 'bin/aider', isPython: true },
};

export const clientNames = Object.keys(distributions) as ClientName[];

/** A client could not be had: no registry in reach, or none for this platform. */
export class NotInstalled extends Error {}

/** The path of the client's binary; downloads 100 to 180 MB when this version is not in the cache. Throws NotInstalled. */
export const install = (name: ClientName): Promise<string> => installed(name, distributions[name]);

/** The same of any program. */
export async function installed(name: string, distribution: Distribution): Promise<string> {
  const { version, package: specification, binary, isPython } = distribution;
  const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'model-gateway/clients');
  const folder = join(cache, `${name}-${version}`);
  if (isPython) return installPython(folder, specification, binary);
  const path = join(folder, 'node_modules', binary);
  if (existsSync(path)) return path;
  // Under its final name stands only what is whole.
  const draft = `${folder}.${process.pid}`;
  try {
    await mkdir(draft, { recursive: true });
    const words = [
      'install',
      '--prefix',
      draft,
      '--no-save',
      '--ignore-scripts',
      '--omit=optional',
      '--no-audit',
      '--no-fund',
      '--fetch-retries=1',
      '--loglevel=error',
      specification,
    ];
    await promisify(execFile)('npm', words, { timeout: 300_000 });
    if (!existsSync(join(draft, 'node_modules', binary))) throw new Error(`the package does not hold ${binary}`);
    await rm(folder, { recursive: true, force: true });
    await rename(draft, folder);
    return path;
  } catch (error) {
    throw new NotInstalled(`${specification} cannot be installed: ${(error as Error).message.slice(0, 500)}`);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Environments hold their own path, so it is made where it stays; the mark says that it is whole. */
async function installPython(folder: string, specification: string, binary: string): Promise<string> {
  const mark = join(folder, 'whole');
  if (existsSync(mark)) return join(folder, binary);
  const run = promisify(execFile);
  const words = ['install', '--quiet', '--retries=1', '--disable-pip-version-check', specification];
  try {
    await rm(folder, { recursive: true, force: true });
    await run('python3', ['-m', 'venv', folder], { timeout: 60_000 });
    await run(join(folder, 'bin/pip'), words, { timeout: 300_000 });
    await writeFile(mark, '');
    return join(folder, binary);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw new NotInstalled(`${specification} cannot be installed: ${(error as Error).message.slice(0, 500)}`);
  }
}

/** The version of a client by the name of one of its turns. */
export function versionOf(title: string): string {
  const name = title.toLowerCase().replaceAll(' ', '-') as string;
  return Object.entries(distributions).find(([one]) => name.startsWith(one))![1].version;
}
