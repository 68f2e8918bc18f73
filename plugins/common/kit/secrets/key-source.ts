/** The gateway's own keys for sealing: from the environment, else from a file in the data directory that is made at first use. */
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Random } from '../../../../core/contract/host-tools.ts';
import { leastKeyCharacters, type SealingKey, sealingKey } from './sealing.ts';

export const keyVariable = 'GATEWAY_SECRETS_KEY';
const keyFile = 'secrets.key';
const mostKeys = 8;

export interface KeySourceOptions {
  /** Common to all processes of this machine. */
  readonly directory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly random: Random;
}

export class KeySource {
  readonly #options: KeySourceOptions;
  readonly #file: string;

  constructor(options: KeySourceOptions) {
    this.#options = options;
    this.#file = join(options.directory, keyFile);
  }

  /** The first seals, all of them open. Throws an Error with a sentence where a key cannot be used. */
  read(): readonly SealingKey[] {
    const { environment } = this.#options;
    const path = environment[`${keyVariable}_FILE`];
    const given = path ? (textOf(path) ?? missing(path)) : environment[keyVariable];
    const written = keysIn(given ?? '', keyVariable);
    // What was sealed before there was a variable stays readable.
    const ofFile = keysIn(textOf(this.#file) ?? '', this.#file);
    return [...new Set([...written, ...ofFile])].map(sealingKey);
  }

  /** Makes the file with a new key; where another process was sooner, that one's is used. */
  make(): readonly SealingKey[] {
    const { directory, random } = this.#options;
    mkdirSync(directory, { recursive: true });
    const temporary = `${this.#file}.${random.bytes(6).toString('hex')}`;
    writeFileSync(temporary, `${random.bytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx', flush: true });
    try {
      linkSync(temporary, this.#file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      rmSync(temporary);
    }
    return this.read();
  }
}

function missing(path: string): never {
  throw new Error(`the file ${path} of ${keyVariable}_FILE does not exist`);
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

function keysIn(text: string, where: string): string[] {
  const keys = text.split(/[\s,]+/).filter((key) => key !== '');
  if (keys.length > mostKeys) throw new Error(`${where} has more than ${mostKeys} keys`);
  if (keys.some((key) => key.length < leastKeyCharacters))
    throw new Error(`${where}: a key must have at least ${leastKeyCharacters} characters`);
  return keys;
}
