/** Providers and keys that an operator has disabled: stored in the database, applied by every process. */
import { hash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { Clock, Log } from '../../core/contract/host-tools.ts';
import type { Database } from '../common/domain/database.ts';

export interface SwitchesOptions {
  /** undefined: switches last until this process ends. */
  readonly database: Database | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Called after each change: names of disabled providers, and digests of disabled keys. */
  readonly applyDisabled: (off: ReadonlySet<string>) => void;
  /** Called when the cooldowns of a provider are cleared. */
  readonly clearCooldown: (provider: string) => void;
}

const topic = 'upstream';
const cooldownTopic = 'upstream wake';

/**
 * A stable name of a key, whatever its number, that does not reveal it: 96 bits of a digest. It holds a colon, which no
 * provider name does.
 */
export function digestOf(provider: string, key: string): string {
  return `${provider}:${hash('sha256', `${provider}\0${key}`, 'base64url').slice(0, 16)}`;
}

export class Switches {
  readonly #options: SwitchesOptions;
  #off: ReadonlySet<string> = new Set();
  /** Counts loads: the result of an older one that arrives late is ignored. */
  #readings = 0;

  constructor(options: SwitchesOptions) {
    this.#options = options;
    const { database, clearCooldown: onClearCooldown } = options;
    database?.onChange(topic, () => void this.refresh());
    database?.onChange(cooldownTopic, onClearCooldown);
  }

  /** Loads the disabled providers and keys. Rejects if the database cannot be read. */
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

  /** Like `load`; on an error the known state stays. */
  async refresh(): Promise<void> {
    await this.load().catch((error: unknown) => {
      this.#options.log.warn({ error }, 'the disabled upstreams could not be read; keeping the last known state');
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

  /** Clears the cooldown in this process at once, in others within a second. */
  clearCooldown(provider: string): void {
    const { database, clearCooldown: onClearCooldown, log } = this.#options;
    onClearCooldown(provider);
    database?.announce(cooldownTopic, provider).catch((error: unknown) => {
      log.warn({ error, provider }, 'other processes could not be notified that cooldowns were cleared');
    });
  }

  /** Applies the known state again, after keys have changed. */
  reapply(): void {
    this.#options.applyDisabled(this.#off);
  }

  #set(off: ReadonlySet<string>): void {
    this.#off = off;
    this.#options.applyDisabled(off);
  }
}

function tableIn({ schema }: Database) {
  return sql`${sql.identifier(schema)}.disabled_upstreams`;
}
