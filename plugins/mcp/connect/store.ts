/** Connections to servers and browsers on their way to one: rows, with all that is secret sealed by the gateway's own key. */
import { hash } from 'node:crypto';
import { type AnyColumn, and, asc, count, eq, gt, inArray, isNotNull, isNull, lt, or, sql } from 'drizzle-orm';
import { bigint, pgSchema, text, timestamp } from 'drizzle-orm/pg-core';
import type { Clock, Random } from '../../../core/contract/host-tools.ts';
import { isObject, tryParse } from '../../../core/json/json.ts';
import type { Database } from '../../common/domain/database.ts';
import type { KeySource } from '../../common/kit/secrets/key-source.ts';
import { nonceBytes, type SealedPlace, type SealingKey, seal, unseal } from '../../common/kit/secrets/sealing.ts';
import type { Grant, Started } from './flow.ts';

const visitMs = 10 * 60_000;
/** An owner's browsers that are on their way at once. */
const mostVisits = 20;
/** Longer than a token service is waited for, and shorter than a call waits for other tokens: where the process that asks is killed, another one does. */
const renewing = '12 seconds';
const pageRows = 500;

export interface Connection {
  /** undefined: the server takes it no more, or it cannot be opened. */
  readonly grant: Grant | undefined;
  readonly version: number;
}

interface Visit {
  readonly server: string;
  readonly owner: string;
  readonly started: Started;
}

interface Sealed {
  readonly server: string;
  readonly owner: string;
  readonly sealed: string;
}

interface StoreParts {
  readonly database: Database;
  readonly source: KeySource;
  readonly clock: Clock;
  readonly random: Random;
}

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' });

function tablesOf(schema: string) {
  const space = pgSchema(schema);
  const connections = space.table('mcp_connections', {
    server: text('server').notNull(),
    owner: text('owner').notNull(),
    sealed: text('sealed'),
    version: bigint('version', { mode: 'number' }).notNull(),
    renewingUntil: instant('renewing_until'),
    connectedAt: instant('connected_at').notNull(),
  });
  const visits = space.table('mcp_visits', {
    stateHash: text('state_hash').primaryKey(),
    server: text('server').notNull(),
    owner: text('owner').notNull(),
    person: text('person').notNull(),
    sealed: text('sealed').notNull(),
    expiresAt: instant('expires_at').notNull(),
  });
  return { connections, visits };
}

/** As the index has it. */
const accountIn = (owner: AnyColumn) => sql`split_part(${owner}, ' ', 2)`;
const hashOf = (state: string) => hash('sha256', state, 'base64url');
const placeOf = (kind: string, server: string, owner: string): SealedPlace => ({
  name: `mcp ${kind} ${server} ${owner}`,
  version: 0,
});

export class ConnectionStore {
  readonly #parts: StoreParts;
  readonly #tables: ReturnType<typeof tablesOf>;
  #keys: readonly SealingKey[] = [];

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.#tables = tablesOf(parts.database.schema);
  }

  /** What the browser brings back; undefined: too many of this owner are on their way. */
  async begin(server: string, owner: string, person: string, started: Started): Promise<string | undefined> {
    const { visits } = this.#tables;
    const now = this.#parts.clock.now();
    await this.#orm.delete(visits).where(lt(visits.expiresAt, new Date(now)));
    const [waiting] = await this.#orm.select({ all: count() }).from(visits).where(eq(visits.owner, owner));
    if ((waiting?.all ?? 0) >= mostVisits) return undefined;
    const { state } = started;
    const sealed = this.#seal(started, placeOf('visit', server, owner));
    const expiresAt = new Date(now + visitMs);
    await this.#orm.insert(visits).values({ stateHash: hashOf(state), server, owner, person, sealed, expiresAt });
    return state;
  }

  /** Once, for the person who has begun. */
  async end(state: string, person: string): Promise<Visit | undefined> {
    const { visits } = this.#tables;
    const own = and(eq(visits.stateHash, hashOf(state)), eq(visits.person, person));
    const [row] = await this.#orm
      .delete(visits)
      .where(and(own, gt(visits.expiresAt, new Date(this.#parts.clock.now()))))
      .returning();
    if (row === undefined) return undefined;
    const { server, owner, sealed } = row;
    const started = this.#open<Started>(sealed, placeOf('visit', server, owner));
    return started && { server, owner, started };
  }

  async read(server: string, owner: string): Promise<Connection | undefined> {
    const [row] = await this.#orm.select().from(this.#tables.connections).where(this.#at(server, owner));
    if (row === undefined) return undefined;
    const place = placeOf('connection', server, owner);
    return { grant: row.sealed === null ? undefined : this.#open<Grant>(row.sealed, place), version: row.version };
  }

  /** By server, those of these owners. */
  async list(owners: readonly string[]) {
    const { connections } = this.#tables;
    const { server, owner, sealed, connectedAt } = connections;
    return this.#orm
      .select({ server, owner, sealed, connectedAt })
      .from(connections)
      .where(inArray(owner, [...owners]));
  }

  async save(server: string, owner: string, grant: Grant): Promise<void> {
    const now = new Date(this.#parts.clock.now());
    const sealed = this.#seal(grant, placeOf('connection', server, owner));
    const row = { sealed, version: now.getTime(), renewingUntil: null, connectedAt: now };
    const { connections } = this.#tables;
    await this.#orm
      .insert(connections)
      .values({ server, owner, ...row })
      .onConflictDoUpdate({ target: [connections.server, connections.owner], set: row });
  }

  /** Whether it was there. */
  async remove(server: string, owner: string): Promise<boolean> {
    const { connections } = this.#tables;
    const rows = await this.#orm
      .delete(connections)
      .where(this.#at(server, owner))
      .returning({ server: connections.server });
    return rows.length > 0;
  }

  /** What an account and the people in it have connected. */
  async ofAccount(accountId: string): Promise<readonly { readonly server: string; readonly owner: string }[]> {
    const { server, owner } = this.#tables.connections;
    return this.#orm
      .select({ server, owner })
      .from(this.#tables.connections)
      .where(sql`${accountIn(owner)} = ${accountId}`);
  }

  /** Accounts with connections behind this one, in their order. */
  async accountsAfter(accountId: string, most: number): Promise<readonly string[]> {
    const { connections } = this.#tables;
    const account = sql<string>`${accountIn(connections.owner)}`;
    const rows = await this.#orm
      .selectDistinct({ account })
      .from(connections)
      .where(sql`${account} > ${accountId}`)
      .orderBy(account)
      .limit(most);
    return rows.map((row) => row.account);
  }

  /** Seals with the first key what another one has sealed; what none opens is left, or ended. */
  async reseal(givesUp: boolean): Promise<{ readonly done: number; readonly left: number }> {
    const { connections } = this.#tables;
    const { server, owner, sealed } = connections;
    let [done, left] = [0, 0];
    for (let after = { server: '', owner: '' }; ; ) {
      const rows = await this.#orm
        .select({ server, owner, sealed })
        .from(connections)
        .where(and(sql`(${server}, ${owner}) > (${after.server}, ${after.owner})`, isNotNull(sealed)))
        .orderBy(asc(server), asc(owner))
        .limit(pageRows);
      for (const row of rows) {
        const outcome = await this.#resealed({ ...row, sealed: row.sealed! }, givesUp);
        if (outcome === 'done') done++;
        if (outcome === 'left') left++;
      }
      if (rows.length < pageRows) return { done, left };
      after = rows.at(-1)!;
    }
  }

  async #resealed(row: Sealed, givesUp: boolean): Promise<'done' | 'left' | undefined> {
    const place = placeOf('connection', row.server, row.owner);
    // A key that is gone opens nothing here, though this process remembers it.
    this.#keys = this.#parts.source.read();
    const [first] = this.#keys;
    if (first !== undefined && unseal(first, row.sealed, place) !== undefined) return undefined;
    const grant = this.#open<Grant>(row.sealed, place);
    if (grant === undefined && !givesUp) return 'left';
    const { connections } = this.#tables;
    const change = grant === undefined ? { sealed: null } : { sealed: this.#seal(grant, place) };
    const rows = await this.#orm
      .update(connections)
      // Tokens that another process has replaced meanwhile stay.
      .set(change)
      .where(and(this.#at(row.server, row.owner), eq(connections.sealed, row.sealed)))
      .returning({ server: connections.server });
    if (rows.length === 0) return 'left';
    return grant === undefined ? undefined : 'done';
  }

  /** Whether this process may ask for other tokens now: one of all does at a time. */
  async lease(server: string, owner: string, version: number): Promise<boolean> {
    const { connections } = this.#tables;
    const { renewingUntil } = connections;
    // By the database's clock: those of processes may differ.
    const rows = await this.#orm
      .update(connections)
      .set({ renewingUntil: sql`now() + ${renewing}::interval` })
      .where(
        and(
          this.#at(server, owner),
          eq(connections.version, version),
          or(isNull(renewingUntil), lt(renewingUntil, sql`now()`)),
        ),
      )
      .returning({ version: connections.version });
    return rows.length === 1;
  }

  /** What became of the lease: other tokens, none any more (`null`), or the same as before (undefined). */
  async renewed(server: string, owner: string, version: number, grant: Grant | null | undefined): Promise<void> {
    const sealed =
      grant === null || grant === undefined ? null : this.#seal(grant, placeOf('connection', server, owner));
    await this.#orm
      .update(this.#tables.connections)
      .set({ renewingUntil: null, ...(grant === undefined ? {} : { sealed, version: version + 1 }) })
      .where(and(this.#at(server, owner), eq(this.#tables.connections.version, version)));
  }

  get #orm() {
    return this.#parts.database.orm;
  }

  #at(server: string, owner: string) {
    const { connections } = this.#tables;
    return and(eq(connections.server, server), eq(connections.owner, owner));
  }

  #seal(value: object, place: SealedPlace): string {
    const { source, random } = this.#parts;
    this.#keys = source.read();
    if (this.#keys.length === 0) this.#keys = source.make();
    return seal(this.#keys[0]!, JSON.stringify(value), place, random.bytes(nonceBytes));
  }

  /** By the keys that are known, and by those of the file where none of them fits. */
  #open<T>(sealed: string, place: SealedPlace): T | undefined {
    const byKeys = () => this.#keys.flatMap((key) => unseal(key, sealed, place) ?? [])[0];
    let opened = byKeys();
    if (opened === undefined) {
      this.#keys = this.#parts.source.read();
      opened = byKeys();
    }
    const value = opened === undefined ? undefined : tryParse(opened);
    return isObject(value) ? (value as T) : undefined;
  }
}
