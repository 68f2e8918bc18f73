/**
 * The data directory's memory of its database, beside the journal: the last movements of money that the database
 * acknowledged, and how much of the journal it had. A database that was put back shows by it.
 */
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { makeDirectory } from '../../../core/tools/unwritable.ts';
import type { Movement } from '../ledger/entries.ts';

/** Movements that are kept at least, as long as they are there. */
export const mostMovements = 5_000;
const compactBytes = 4 * 2 ** 20;

/** The part of a journal that the database had. */
export interface Mark {
  readonly journal: string;
  readonly applied: number;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

export class Memory {
  readonly #directory: string;
  readonly #path: string;

  /** The directory belongs to one schema of the database with this name. */
  constructor(directory: string, schema: string, identity: string) {
    this.#directory = join(directory, 'acknowledged');
    this.#path = join(this.#directory, `${schema}-${identity}`);
  }

  /** The newest movements, oldest first. Lines that a power cut tore are left out. */
  movements(): Movement[] {
    const found = this.#lines('log').map((line) => decode<Movement>(line));
    return found.filter((each) => each !== undefined).slice(-mostMovements);
  }

  /** Durable when it resolves. */
  async add(movements: readonly Movement[]): Promise<void> {
    if (movements.length === 0) return;
    makeDirectory(this.#directory);
    const file = await open(this.#name('log'), 'a', 0o600);
    try {
      // The line feed first: a torn line must not spoil the next one.
      await file.appendFile(`\n${movements.map(encode).join('\n')}\n`);
      await file.datasync();
    } finally {
      await file.close();
    }
    if (statSync(this.#name('log')).size > compactBytes) this.#replace('log', this.movements().map(encode).join('\n'));
  }

  mark(): Mark | undefined {
    return this.#lines('mark').map((line) => decode<Mark>(line))[0];
  }

  /** Not synced: an older mark only shows less. */
  setMark(mark: Mark): void {
    makeDirectory(this.#directory);
    this.#replace('mark', encode(mark));
  }

  #name(kind: 'log' | 'mark'): string {
    return `${this.#path}.${kind}`;
  }

  #lines(kind: 'log' | 'mark'): string[] {
    try {
      return readFileSync(this.#name(kind), 'utf8').split('\n');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  }

  #replace(kind: 'log' | 'mark', text: string): void {
    const path = this.#name(kind);
    writeFileSync(`${path}.new`, `${text}\n`, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
}

function encode(value: object): string {
  const json = JSON.stringify(value);
  return `${checksumOf(json)} ${json}`;
}

function decode<Value>(line: string): Value | undefined {
  const json = line.slice(9);
  return json.length > 0 && line.slice(0, 8) === checksumOf(json) ? (JSON.parse(json) as Value) : undefined;
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(8, '0');
}
