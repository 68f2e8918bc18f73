/** Shows, checks and atomically saves the gateway's own configuration files. */
import { constants, existsSync } from 'node:fs';
import { access, chmod, mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import type { ConfigCheck, ConfigFiles, ConfigSource, ConfigText, ConfigView } from '../../contract/config-files.ts';
import { GatewayError } from '../../contract/errors.ts';
import { configSchema } from '../json-schema.ts';
import type { Reloader } from '../reload.ts';
import type { GatewayRuntime } from '../runtime.ts';
import { display } from '../yaml.ts';
import { isShipped } from './own-file.ts';

export class GatewayConfigFiles implements ConfigFiles {
  readonly #runtime: GatewayRuntime;
  readonly #reloader: Reloader;
  /** Cached: the list of plugins does not change while the process lives. */
  #schema: Promise<object> | undefined;

  constructor(runtime: GatewayRuntime, reloader: Reloader) {
    this.#runtime = runtime;
    this.#reloader = reloader;
  }

  async view(): Promise<ConfigView> {
    const { generation, loadedAt } = this.#reloader;
    const { files: read, includes, own } = this.#runtime.file.yaml;
    this.#schema ??= configSchema(this.#runtime.plugins.map(({ plugin }) => plugin));
    return {
      files: await Promise.all(
        [...read].map(async ([path, text]) => {
          const writable = path === own ? await mayMake(path) : await mayReplace(path);
          const reason = path === own ? 'data' : 'mounted';
          const readOnly = isShipped(path) ? 'shipped' : writable ? undefined : reason;
          return {
            name: display(path),
            // From disk, since `save` compares with what is there.
            text: await readFile(path, 'utf8').catch(() => text),
            writable,
            readOnly,
            includes: (includes.get(path) ?? []).map(display),
          } as const;
        }),
      ),
      schema: await this.#schema,
      notices: this.#runtime.notices(),
      loadedAt,
      generation,
    };
  }

  async check(file: string, text: string): Promise<ConfigCheck> {
    return this.#reloader.check(new Map([[this.#pathOf(file), text]]));
  }

  async save(file: string, text: string, previous: string): Promise<ConfigCheck> {
    const path = this.#pathOf(file);
    await refuseOvertaken(path, previous);
    return this.#reloader.save(new Map([[path, text]]), () => replace(path, text, previous));
  }

  running(): readonly ConfigText[] {
    const { files } = this.#runtime.file.yaml;
    const top = this.#top();
    return [...files].map(([path, text]) => ({ path: relative(top, path), text }));
  }

  onApplied(listener: (source: ConfigSource) => void): void {
    this.#reloader.onApplied(listener);
  }

  async onDisk(paths: readonly string[]): Promise<ReadonlyMap<string, string | undefined>> {
    const texts = paths.map(async (path) => {
      const file = this.#keptPath(path);
      return [path, (await textOf(file)) ?? (file === this.#runtime.file.yaml.own ? '' : undefined)] as const;
    });
    return new Map(await Promise.all(texts));
  }

  async checkAll(texts: readonly ConfigText[]): Promise<ConfigCheck> {
    return this.#reloader.check(this.#drafts(texts));
  }

  async saveAll(texts: readonly ConfigText[], previous: ReadonlyMap<string, string | undefined>): Promise<ConfigCheck> {
    const writes = texts.map(({ path, text }) => ({ file: this.#keptPath(path), text, before: previous.get(path) }));
    for (const { file, before } of writes) await refuseOvertaken(file, before);
    return this.#reloader.save(this.#drafts(texts), async () => {
      const undo: (() => Promise<void>)[] = [];
      try {
        for (const { file, text, before } of writes) {
          await replace(file, text, before);
          undo.unshift(() => (before === undefined ? rm(file) : replace(file, before, text)));
        }
      } catch (error) {
        for (const step of undo) await step().catch(() => undefined);
        throw error;
      }
    });
  }

  reload(): Promise<ConfigCheck> {
    return this.#reloader.reload();
  }

  reapply(): Promise<ConfigCheck> {
    return this.#reloader.reapply();
  }

  #drafts(texts: readonly ConfigText[]): ReadonlyMap<string, string> {
    return new Map(texts.map(({ path, text }) => [this.#keptPath(path), text]));
  }

  /** The directory of the file that is served, whether or not an own one lies over it. */
  #top(): string {
    return dirname(resolve(this.#runtime.file.file));
  }

  /** A file of this gateway, or one beside them that it was read from before. */
  #keptPath(path: string): string {
    const file = resolve(this.#top(), path);
    const known = [...this.#runtime.file.yaml.files.keys()];
    if (known.includes(file)) return file;
    if (/\.ya?ml$/.test(file) && known.some((other) => dirname(other) === dirname(file))) return file;
    throw new GatewayError('not_found', 'This gateway was not read from a file of that name.', { field: 'file' });
  }

  /** Only files of this gateway can be written. */
  #pathOf(name: string): string {
    const path = [...this.#runtime.file.yaml.files.keys()].find((known) => display(known) === name);
    if (path !== undefined) return path;
    throw new GatewayError('not_found', 'This gateway was not read from a file of that name.', { field: 'file' });
  }
}

/** A save writes a temporary file and renames it, so the directory must be writable too. */
async function mayReplace(path: string): Promise<boolean> {
  try {
    const real = await realpath(path);
    await access(real, constants.W_OK);
    await access(dirname(real), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

const isWritable = (path: string) =>
  access(path, constants.W_OK).then(
    () => true,
    () => false,
  );

/** Whether an own file can be written, or made below the nearest directory that is there. */
async function mayMake(path: string): Promise<boolean> {
  if ((await textOf(path)) !== undefined) return mayReplace(path);
  let directory = dirname(path);
  while (!existsSync(directory) && directory !== dirname(directory)) directory = dirname(directory);
  return (await stat(directory)).isDirectory() && isWritable(directory);
}

const textOf = (path: string) => readFile(path, 'utf8').catch(() => undefined);

/** An own file that is not there yet counts as an empty one. */
async function refuseOvertaken(path: string, previous: string | undefined): Promise<void> {
  const now = await textOf(path);
  if (now === previous || (now === undefined && previous === '')) return;
  throw new GatewayError('conflict', 'The file has changed meanwhile: load it again.', { code: 'config_changed' });
}

/** Keeps the previous text as `.bak`; undefined: the file is new. Of a symbolic link it replaces the target. */
async function replace(path: string, text: string, previous: string | undefined): Promise<void> {
  await refuseOvertaken(path, previous);
  try {
    if ((await textOf(path)) === undefined) {
      await mkdir(dirname(path), { recursive: true });
      await put(path, text, 0o600);
      return;
    }
    const real = await realpath(path);
    const { mode } = await stat(real);
    await put(`${real}.bak`, previous ?? '', mode);
    await put(real, text, mode);
  } catch (error) {
    throw new GatewayError('forbidden', 'The file cannot be written by this process.', {
      code: 'config_read_only',
      cause: error,
    });
  }
}

/** Replaces a file atomically. */
async function put(path: string, text: string, mode: number): Promise<void> {
  const temporary = `${path}.new`;
  try {
    await writeFile(temporary, text, { mode, flush: true });
    await chmod(temporary, mode);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
