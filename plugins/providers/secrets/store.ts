/** Keys of vendors that are kept sealed in the database: read by every process, replaced with an overlap, never shown. */
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Log, Random } from '../../../core/contract/host-tools.ts';
import type { SecretOverlap } from '../../common/domain/admin/vendor-secrets.ts';
import type { Database, Orm } from '../../common/domain/database.ts';
import type { KeySource } from '../../common/kit/secrets/key-source.ts';
import {
  howToOpen,
  nonceBytes,
  type SealedPlace,
  type SealingKey,
  seal,
  unseal,
} from '../../common/kit/secrets/sealing.ts';

const topic = 'vendor secret';
const mostNames = 1_000;
/** The newest of a name, and those that are used beside it. */
const mostVersions = 3;
const longestOverlapMs = 30 * 86_400_000;

/** A secret as it is stored, with its text where it can be decrypted. */
export interface StoredSecret extends SealedPlace {
  readonly keyId: string;
  readonly sealed: string;
  readonly until: number | undefined;
  readonly untilWorked: boolean;
  readonly setAt: number;
  readonly setBy: string;
  readonly opened: { readonly text: string; readonly key: SealingKey } | undefined;
}

export interface SecretStoreOptions {
  readonly database: Database;
  readonly source: KeySource;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Called when other texts are to be used, or the names have changed. */
  readonly changed: () => void;
  /** Whether this text of a secret has answered a call in this process. */
  readonly hasWorked: (name: string, text: string) => boolean;
}

export class SecretStore {
  readonly #options: SecretStoreOptions;
  /** By name, the newest first. */
  #stored: ReadonlyMap<string, readonly StoredSecret[]> = new Map();
  /** Counts loads: the result of an older one that arrives late is ignored. */
  #readings = 0;
  #unreadable = '';

  constructor(options: SecretStoreOptions) {
    this.#options = options;
    options.database.onChange(topic, () => void this.refresh());
  }

  get stored(): ReadonlyMap<string, readonly StoredSecret[]> {
    return this.#stored;
  }

  /** The texts that a name stands for now, the newest first. */
  textsOf(name: string): readonly string[] {
    return this.#valid(name).flatMap(({ opened }) => opened?.text ?? []);
  }

  /** Reads all of them. Rejects if the database cannot be read, or the gateway's own key cannot be used. */
  async load(): Promise<void> {
    const { database, source } = this.#options;
    const reading = ++this.#readings;
    const rows = (await database.orm.execute(
      sql`select name, version, key_id, sealed, valid_until, until_worked, set_at, set_by from ${tableIn(database)}
          order by name, version desc`,
    )) as unknown as Row[];
    if (reading !== this.#readings) return;
    const keys = rows.length === 0 ? [] : source.read();
    this.#replace(rows.map((row) => this.#read(row, keys)));
  }

  /** Like `load`; on an error the known state stays. */
  async refresh(): Promise<void> {
    await this.load().catch((error: unknown) => {
      this.#options.log.warn({ error }, 'the keys of vendors could not be read; keeping the last known state');
    });
  }

  /** Ends overlaps at their time, or once the newer secret has worked. */
  endOverlaps(): Promise<void> | undefined {
    const ended = [...this.#stored.values()].flatMap((versions) => {
      const newest = versions[0]!.opened?.text;
      return versions.slice(1).filter((one) => {
        if (!this.#isValid(one)) return true;
        return one.untilWorked && newest !== undefined && this.#options.hasWorked(one.name, newest);
      });
    });
    return ended.length === 0 ? undefined : this.#delete(ended);
  }

  async set(name: string, text: string, by: string, overlap: SecretOverlap, isNew: boolean): Promise<void> {
    await this.load();
    if (!this.#stored.has(name) && this.#stored.size >= mostNames)
      throw new GatewayError('conflict', `There are ${mostNames} secrets already.`);
    const key = this.#sealingKey();
    const { database, clock, random } = this.#options;
    const now = clock.now();
    const before = this.#stored.get(name) ?? [];
    if (isNew && before.length > 0) throw new GatewayError('conflict', taken, { field: 'name', code: 'secret_exists' });
    const version = Math.max(now, (before[0]?.version ?? 0) + 1);
    const sealed = seal(key, text, { name, version }, random.bytes(nonceBytes));
    await database.change(topic, name, async (orm) => {
      await this.#retire(orm, name, before[0]?.version ?? -1, overlap, now);
      await orm.execute(
        sql`insert into ${tableIn(database)}
              (name, version, key_id, sealed, valid_until, until_worked, set_at, set_by)
            values (${name}, ${version}, ${key.id}, ${sealed}, null, false, ${timestamp(now)}, ${by.slice(0, 200)})`,
      );
    });
    await this.load();
  }

  async remove(name: string): Promise<void> {
    await this.load();
    if (!this.#stored.has(name)) throw new GatewayError('not_found', 'There is no such secret.', { field: 'name' });
    const { database } = this.#options;
    await database.change(topic, name, (orm) =>
      orm.execute(sql`delete from ${tableIn(database)} where name = ${name}`),
    );
    await this.load();
  }

  /** Seals with the first key what was sealed with another; what cannot be opened is left, or given up. */
  async reseal(givesUp: boolean): Promise<{ done: number; left: number }> {
    await this.load();
    const { database, random } = this.#options;
    const all = [...this.#stored.values()].flat();
    if (all.length === 0) return { done: 0, left: 0 };
    const key = this.#sealingKey();
    const others = all.filter(({ keyId }) => keyId !== key.id);
    const lost = others.filter(({ opened }) => opened === undefined);
    if (givesUp && lost.length > 0) await this.#delete(lost);
    let done = 0;
    for (const { name, version, opened } of others) {
      if (opened === undefined) continue;
      const sealed = seal(key, opened.text, { name, version }, random.bytes(nonceBytes));
      await database.change(topic, name, (orm) =>
        orm.execute(
          sql`update ${tableIn(database)} set key_id = ${key.id}, sealed = ${sealed}
              where name = ${name} and version = ${version}`,
        ),
      );
      done++;
    }
    await this.load();
    return { done, left: givesUp ? 0 : lost.length };
  }

  /** The key for new secrets; made where nothing is stored that another one has sealed. */
  #sealingKey(): SealingKey {
    const { source } = this.#options;
    const keys = source.read();
    const all = [...this.#stored.values()].flat();
    const isOurs = all.length === 0 || all.some(({ keyId }) => keys.some(({ id }) => id === keyId));
    if (!isOurs) throw new GatewayError('conflict', keyLost, { code: 'secrets_key_missing' });
    return (keys.length > 0 ? keys : source.make())[0]!;
  }

  /** Replaced versions end at once, or are used for a while. */
  async #retire(orm: Orm, name: string, newest: number, overlap: SecretOverlap, now: number): Promise<void> {
    const table = tableIn(this.#options.database);
    const lastsMs = overlap === 'worked' ? longestOverlapMs : Math.min(overlap, longestOverlapMs);
    const until = timestamp(now + lastsMs);
    if (overlap === 0) await orm.execute(sql`delete from ${table} where name = ${name}`);
    else
      await orm.execute(
        sql`update ${table} set valid_until = ${until}, until_worked = ${overlap === 'worked'}
            where name = ${name} and valid_until is null`,
      );
    const kept = (this.#stored.get(name) ?? []).slice(0, mostVersions - 1).map(({ version }) => version);
    const oldest = kept.at(-1) ?? newest;
    await orm.execute(sql`delete from ${table} where name = ${name} and version < ${oldest}`);
  }

  async #delete(ended: readonly StoredSecret[]): Promise<void> {
    const { database } = this.#options;
    for (const { name, version } of ended)
      await database.change(topic, name, (orm) =>
        orm.execute(sql`delete from ${tableIn(database)} where name = ${name} and version = ${version}`),
      );
    await this.load();
  }

  #valid(name: string): readonly StoredSecret[] {
    return (this.#stored.get(name) ?? []).filter((one) => this.#isValid(one));
  }

  #isValid({ until }: StoredSecret): boolean {
    return until === undefined || until > this.#options.clock.now();
  }

  /** What was opened before stays open where the key is gone since. */
  #read(row: Row, keys: readonly SealingKey[]): StoredSecret {
    const place = { name: row.name, version: Number(row.version) };
    const before = this.#stored.get(row.name)?.find(({ sealed }) => sealed === row.sealed);
    const known = before?.version === place.version ? before.opened : undefined;
    const key = keys.find(({ id }) => id === row.key_id);
    const text = known !== undefined || key === undefined ? undefined : unseal(key, row.sealed, place);
    return {
      ...place,
      keyId: row.key_id,
      sealed: row.sealed,
      until: row.valid_until === null ? undefined : new Date(row.valid_until).getTime(),
      untilWorked: row.until_worked,
      setAt: new Date(row.set_at).getTime(),
      setBy: row.set_by,
      opened: known ?? (text === undefined ? undefined : { text, key: key! }),
    };
  }

  #replace(all: readonly StoredSecret[]): void {
    const before = usedOf(this.#stored);
    this.#stored = Map.groupBy(all, ({ name }) => name);
    const lost = all.filter(({ opened }) => opened === undefined).map(({ name }) => name);
    if (lost.length > 0 && lost.join() !== this.#unreadable)
      this.#options.log.error({ secrets: [...new Set(lost)] }, `keys of vendors cannot be decrypted: ${howToOpen}`);
    this.#unreadable = lost.join();
    if (usedOf(this.#stored) !== before) this.#options.changed();
  }
}

const keyLost = `What is stored was sealed with a key that this gateway does not have: ${howToOpen}, or delete those secrets first.`;
const taken = 'There is a secret of this name already: replace it, or choose another name.';

interface Row {
  readonly name: string;
  readonly version: string | number;
  readonly key_id: string;
  readonly sealed: string;
  readonly valid_until: string | Date | null;
  readonly until_worked: boolean;
  readonly set_at: string | Date;
  readonly set_by: string;
}

function usedOf(stored: ReadonlyMap<string, readonly StoredSecret[]>): string {
  return JSON.stringify(
    [...stored].map(([name, versions]) => [
      name,
      ...versions.map(({ version, opened, until }) => [version, opened !== undefined, until]),
    ]),
  );
}

const timestamp = (milliseconds: number) => sql`${new Date(milliseconds).toISOString()}::timestamptz`;

function tableIn({ schema }: Database) {
  return sql`${sql.identifier(schema)}.vendor_secrets`;
}
