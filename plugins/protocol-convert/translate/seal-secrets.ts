/** The secrets of seals: those of the configuration, and the one that was made while there were none; on one database they are the same. */
import { createHmac } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { Host } from '../../../core/contract/contract.ts';
import type { RotatedSecret } from '../../../core/contract/secret.ts';
import { type Database, database } from '../../common/domain/database.ts';
import { Sealer } from './seal.ts';
import { readOrMakeSecret, readSecretIn } from './seal-secret.ts';

const madeName = 'made secret';
const marksName = 'marks';

/** Throws if seals on this database were made with other secrets. */
export async function openSealer(host: Host, configured: readonly string[]): Promise<Sealer> {
  const { mode, commonDirectory, random } = host;
  if (mode !== 'serve') return Sealer.idle(random);
  const store = host.find(database);
  if (store === undefined) return Sealer.open(commonDirectory, configured, random);
  await migrate(store);
  const settings = new Settings(store);
  const own = await readSecretIn(commonDirectory);
  if (configured.length === 0) {
    const made = own ?? (await settings.find(madeName)) ?? (await readOrMakeSecret(commonDirectory, random));
    await settings.add(madeName, text(made));
  }
  const made = await settings.find(madeName);
  // What a process sealed with the file of its own directory can still be opened by it.
  const stored = [...(made === undefined ? [] : [text(made)]), ...(own === undefined ? [] : [text(own)])];
  const secrets = [
    ...configured.map((secret) => Buffer.from(secret, 'utf8')),
    ...[...new Set(stored)].map((secret) => Buffer.from(secret, 'hex')),
  ];
  await settings.admit(secrets);
  return new Sealer(secrets, random);
}

const text = (secret: Buffer | string) => (typeof secret === 'string' ? secret : secret.toString('hex'));
const migrate = (store: Database) => store.migrate('protocol-convert', new URL('../migrations/', import.meta.url));

export function rotatedSeals(host: Host, configured: readonly string[]): RotatedSecret {
  return {
    setting: 'protocol-convert.seal_secret',
    uses: 'what clients carry: reasoning, compacted history, ids of calls',
    secrets: configured.length,
    async rotate(givesUp) {
      const store = host.find(database);
      if (store !== undefined && configured.length > 0) {
        await migrate(store);
        const settings = new Settings(store);
        if (givesUp) await settings.forget(configured.map((secret) => Buffer.from(secret, 'utf8')));
      }
      return {
        done: 0,
        left: 0,
        advice:
          'clients hold sealed texts: the others can be removed when earlier conversations need not continue with them',
      };
    },
  };
}

class Settings {
  readonly #store: Database;

  constructor(store: Database) {
    this.#store = store;
  }

  get #table() {
    return sql`${sql.identifier(this.#store.schema)}.seal_settings`;
  }

  async find(name: string): Promise<string | undefined> {
    const result: unknown = await this.#store.orm.execute(sql`select value from ${this.#table} where name = ${name}`);
    const rows = (Array.isArray(result) ? result : (result as { rows: unknown[] }).rows) as { value: string }[];
    return rows[0]?.value;
  }

  /** The first writer wins. */
  async add(name: string, value: string): Promise<void> {
    await this.#store.orm.execute(
      sql`insert into ${this.#table} (name, value) values (${name}, ${value}) on conflict do nothing`,
    );
  }

  async admit(secrets: readonly Buffer[]): Promise<void> {
    const marks = secrets.map(markOf);
    await this.add(marksName, marks[0]!);
    const known = (await this.find(marksName))!.split(' ');
    if (!marks.some((mark) => known.includes(mark)))
      throw new Error(
        'protocol-convert.seal_secret is not the one that clients of this database have seals of; set it back to that one, or put the new one before it in a list',
      );
    if (!known.includes(marks[0]!)) await this.#set([marks[0]!, ...known.slice(0, 7)]);
  }

  /** From now on only these are known. */
  async forget(kept: readonly Buffer[]): Promise<void> {
    await this.#set([markOf(kept[0]!)]);
    await this.#store.orm.execute(sql`delete from ${this.#table} where name = ${madeName}`);
  }

  async #set(marks: readonly string[]): Promise<void> {
    await this.#store.orm.execute(sql`
      insert into ${this.#table} (name, value) values (${marksName}, ${marks.join(' ')})
      on conflict (name) do update set value = excluded.value`);
  }
}

/** Names the secret without showing it. */
const markOf = (secret: Buffer) => createHmac('sha256', secret).update('mark of a seal').digest('base64url');
