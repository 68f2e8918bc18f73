/** Which providers and keys an operator has taken out of use: kept in the database, obeyed by every process on it. */
import { sql } from 'drizzle-orm';
import type { Clock, Log } from '../../core/contract.ts';
import type { Database } from '../../core/vocabulary.ts';

export interface SwitchesOptions {
  /** undefined: what is switched off stays so until this process ends. */
  readonly database: Database | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Told what is off whenever that may have changed: provider names, and credentials. */
  readonly obey: (off: ReadonlySet<string>) => void;
  /** Told that the keys of a provider rest no longer. */
  readonly wake: (provider: string) => void;
}

const topic = 'upstream';
const wakeTopic = 'upstream wake';

/** Credentials are `PROVIDER#1`, so that names and credentials are never the same. */
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
      sql`select provider, credential from ${tableIn(database)}`,
    )) as unknown as { provider: string; credential: string }[];
    if (reading !== this.#readings) return;
    this.#set(new Set(rows.map(({ provider, credential }) => (credential === '' ? provider : credential))));
  }

  /** The same; what cannot be read stays as it was. */
  async refresh(): Promise<void> {
    await this.load().catch((error: unknown) => {
      this.#options.log.warn({ error }, 'which upstreams are disabled could not be read; what was known holds');
    });
  }

  async set(provider: string, credential: string | undefined, disabled: boolean): Promise<void> {
    const { database, clock } = this.#options;
    if (database === undefined) {
      const off = new Set(this.#off);
      if (disabled) off.add(credential ?? provider);
      else off.delete(credential ?? provider);
      this.#set(off);
      return;
    }
    const table = tableIn(database);
    const named = credential ?? '';
    await database.orm.execute(
      disabled
        ? sql`insert into ${table} values (${provider}, ${named}, ${new Date(clock.now()).toISOString()}::timestamptz)
              on conflict do nothing`
        : sql`delete from ${table} where provider = ${provider} and credential = ${named}`,
    );
    await this.load();
    await database.announce(topic, provider);
  }

  /** Here at once, elsewhere within a second. */
  wake(provider: string): void {
    const { database, wake, log } = this.#options;
    wake(provider);
    database?.announce(wakeTopic, provider).catch((error: unknown) => {
      log.warn({ error, provider }, 'other processes could not be told that keys rest no longer');
    });
  }

  #set(off: ReadonlySet<string>): void {
    this.#off = off;
    this.#options.obey(off);
  }
}

function tableIn({ schema }: Database) {
  return sql`${sql.identifier(schema)}.disabled_upstreams`;
}
