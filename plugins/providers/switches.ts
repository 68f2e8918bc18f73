/** Which providers and keys an operator has taken out of use: kept in the database, obeyed by every process on it. */
import { hash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { Clock, Log } from '../../core/contract.ts';
import type { Database } from '../../core/vocabulary.ts';

export interface SwitchesOptions {
  /** undefined: what is switched off stays so until this process ends. */
  readonly database: Database | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Told what is off whenever that may have changed: names of providers, and digests of keys. */
  readonly obey: (off: ReadonlySet<string>) => void;
  /** Told that the keys of a provider rest no longer. */
  readonly wake: (provider: string) => void;
}

const topic = 'upstream';
const wakeTopic = 'upstream wake';

/**
 * Names a key for good, whatever its number is, without telling it: 96 bits of a digest. It holds a colon, which no name of
 * a provider does.
 */
export function digestOf(provider: string, key: string): string {
  return `${provider}:${hash('sha256', `${provider}\0${key}`, 'base64url').slice(0, 16)}`;
}

export class Switches {
  readonly #options: SwitchesOptions;
  #off: ReadonlySet<string> = new Set();
  /** Counts readings: an older one that comes back late does not undo a newer one. */
  #readings = 0;

  constructor(options: SwitchesOptions) {
    this.#options = options;
    const { database, wake } = options;
    database?.onChange(topic, () => void this.refresh());
    database?.onChange(wakeTopic, wake);
  }

  /** Reads what is off. Rejects when the database cannot be read. */
  async load(): Promise<void> {
    const { database } = this.#options;
    if (database === undefined) return;
    const reading = ++this.#readings;
    const rows = (await database.orm.execute(
      sql`select provider, key_digest from ${tableIn(database)}`,
    )) as unknown as { provider: string; key_digest: string }[];
    if (reading !== this.#readings) return;
    this.#set(new Set(rows.map(({ provider, key_digest: digest }) => (digest === '' ? provider : digest))));
  }

  /** The same; what cannot be read stays as it was. */
  async refresh(): Promise<void> {
    await this.load().catch((error: unknown) => {
      this.#options.log.warn({ error }, 'which upstreams are disabled could not be read; what was known holds');
    });
  }

  /** `digest` names one key; undefined: the whole provider. */
  async set(provider: string, digest: string | undefined, disabled: boolean): Promise<void> {
    const { database, clock } = this.#options;
    if (database === undefined) {
      const off = new Set(this.#off);
      if (disabled) off.add(digest ?? provider);
      else off.delete(digest ?? provider);
      this.#set(off);
      return;
    }
    const table = tableIn(database);
    const named = digest ?? '';
    const statement = disabled
      ? sql`insert into ${table} values (${provider}, ${named}, ${new Date(clock.now()).toISOString()}::timestamptz)
              on conflict do nothing`
      : sql`delete from ${table} where provider = ${provider} and key_digest = ${named}`;
    await database.change(topic, provider, (orm) => orm.execute(statement));
    await this.load();
  }

  /** Here at once, elsewhere within a second. */
  wake(provider: string): void {
    const { database, wake, log } = this.#options;
    wake(provider);
    database?.announce(wakeTopic, provider).catch((error: unknown) => {
      log.warn({ error, provider }, 'other processes could not be told that keys rest no longer');
    });
  }

  /** For whoever has got other keys meanwhile. */
  again(): void {
    this.#options.obey(this.#off);
  }

  #set(off: ReadonlySet<string>): void {
    this.#off = off;
    this.#options.obey(off);
  }
}

function tableIn({ schema }: Database) {
  return sql`${sql.identifier(schema)}.disabled_upstreams`;
}
