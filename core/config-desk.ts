/** The gateway's own files for people: shown as they are written, looked over, and saved whole or not at all. */
import { constants } from 'node:fs';
import { access, chmod, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ConfigCheck, ConfigDesk, ConfigView } from './desk.ts';
import { GatewayError } from './errors.ts';
import type { House } from './house.ts';
import { configSchema } from './json-schema.ts';
import type { Reloader } from './reload.ts';
import { display } from './yaml.ts';

export class FileDesk implements ConfigDesk {
  readonly #house: House;
  readonly #reloader: Reloader;
  /** The plugins stay the same as long as the process. */
  #schema: Promise<object> | undefined;

  constructor(house: House, reloader: Reloader) {
    this.#house = house;
    this.#reloader = reloader;
  }

  async view(): Promise<ConfigView> {
    const { generation, loadedAt } = this.#reloader;
    const read = [...this.#house.file.yaml.files];
    this.#schema ??= configSchema(this.#house.seats.map(({ plugin }) => plugin));
    return {
      files: await Promise.all(
        read.map(async ([path, text]) => ({
          name: display(path),
          // What was saved since it was taken up is what the next save is compared with.
          text: await readFile(path, 'utf8').catch(() => text),
          writable: await mayReplace(path),
        })),
      ),
      schema: await this.#schema,
      loadedAt,
      generation,
    };
  }

  async check(file: string, text: string): Promise<ConfigCheck> {
    return this.#reloader.check(this.#pathOf(file), text);
  }

  async save(file: string, text: string, previous: string): Promise<ConfigCheck> {
    const path = this.#pathOf(file);
    await refuseOvertaken(path, previous);
    return this.#reloader.save(path, text, () => replace(path, text, previous));
  }

  reload(): Promise<ConfigCheck> {
    return this.#reloader.reload();
  }

  /** Only the files that the gateway is made of: whoever may save them may not write anywhere else. */
  #pathOf(name: string): string {
    const path = [...this.#house.file.yaml.files.keys()].find((known) => display(known) === name);
    if (path !== undefined) return path;
    throw new GatewayError('not_found', 'This gateway was not read from a file of that name.', { field: 'file' });
  }
}

/** It is written beside and renamed into its place, so the directory counts too. */
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

async function refuseOvertaken(path: string, previous: string): Promise<void> {
  if ((await readFile(path, 'utf8').catch(() => undefined)) === previous) return;
  throw new GatewayError('conflict', 'The file has changed meanwhile: load it again.', { code: 'config_changed' });
}

/** What was there stays beside it as `.bak`. A link stays a link; what it leads to is replaced. */
async function replace(path: string, text: string, previous: string): Promise<void> {
  await refuseOvertaken(path, previous);
  try {
    const real = await realpath(path);
    const { mode } = await stat(real);
    await put(`${real}.bak`, previous, mode);
    await put(real, text, mode);
  } catch (error) {
    throw new GatewayError('forbidden', 'The file cannot be written by this process.', {
      code: 'config_read_only',
      cause: error,
    });
  }
}

/** Whoever reads meanwhile finds the old text or the new one, never a part. */
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
