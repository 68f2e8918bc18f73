/** What the database says of itself: its name, its movements of money, and restorations that wait for an operator. */
import { sql } from 'drizzle-orm';
import type { Orm } from '../../common/domain/database.ts';
import type { Movement } from '../ledger/entries.ts';
import { jsonOf, millisecondsOf, rowsOf, tablesOf, time } from '../model/sql.ts';

/** The database was put back: what happened between `since` and `until` may be missing. */
export interface Restore {
  /** The process that found it, by its journal. */
  readonly journal: string;
  readonly since: number;
  readonly until: number;
  /** Ended calls that came back from its journal. */
  readonly calls: number;
  /** Remembered movements that the database lacks. */
  readonly lost: readonly Movement[];
}

export interface RestoreRows {
  /** The database's name; made when there is none. */
  identity(): Promise<string>;
  /** Movements from then on, oldest first; only the newest `limit`. */
  movementsSince(at: number, limit: number): Promise<Movement[]>;
  /** The references among these that the database lacks. */
  lacking(references: readonly string[]): Promise<Set<string>>;
  /** The time of the newest call or movement that it has. */
  newest(): Promise<number | undefined>;
  /** Adds a restoration that waits for an operator, or what more the same process has found. */
  note(found: Restore): Promise<void>;
  /** Restores that wait, or that were accepted. */
  list(state: 'waiting' | 'accepted'): Promise<Restore[]>;
  /** Journals of processes that served within a month and have not been started since the first of those that wait was found. */
  silent(): Promise<string[]>;
  /** Accepts all that wait; resolves with their number. */
  accept(): Promise<number>;
}

interface StoredMovement extends Omit<Movement, 'at' | 'of' | 'expiresAt'> {
  readonly at: string;
  readonly of: string | null;
  readonly expires: string | null;
}

interface StoredRestore extends Omit<Restore, 'since' | 'until' | 'calls'> {
  readonly since: string;
  readonly until: string;
  readonly calls: string;
}

export function sqlRestores(orm: Orm, schema: string): RestoreRows {
  return { ...knowledge(orm, tablesOf(schema)), ...restorations(orm, tablesOf(schema)) };
}

type Table = ReturnType<typeof tablesOf>;

/** Queries of the database's own records. */
function knowledge(orm: Orm, table: Table): Pick<RestoreRows, 'identity' | 'movementsSince' | 'lacking' | 'newest'> {
  return {
    async identity() {
      const read = sql`select id::text as id from ${table('identity')}`;
      const [known] = await rowsOf<{ id: string }>(orm, read);
      if (known !== undefined) return known.id;
      await orm.execute(sql`insert into ${table('identity')} (id) values (gen_random_uuid()) on conflict do nothing`);
      return (await rowsOf<{ id: string }>(orm, read))[0]!.id;
    },
    async movementsSince(at, limit) {
      const rows = await rowsOf<StoredMovement>(
        orm,
        // Grants of plans are given again by themselves, and expired ones expire again.
        sql`select coalesce(ledger.reference, grants.reference) as reference, ledger.account_id as account, ledger.kind,
              ledger.amount::text as amount, coalesce(ledger.detail->>'reason', '') as reason, ledger.detail->>'of' as of,
              ${millisecondsOf(sql`grants.expires_at`)} as expires, ${millisecondsOf(sql`ledger.created_at`)} as at
            from ${table('ledger')} as ledger left join ${table('grants')} as grants
              on grants.account_id = ledger.account_id and grants.id = ledger.grant_id
            where ledger.created_at >= ${time(at)}::timestamptz and ledger.kind <> 'EXPIRE'
              and (ledger.kind <> 'CREDIT' or grants.kind <> 'plan')
            order by ledger.created_at desc, ledger.seq desc limit ${limit}::int`,
      );
      return rows.reverse().map(({ of, expires, at: moved, ...rest }) => ({
        ...rest,
        ...(of === null ? {} : { of }),
        ...(expires === null ? {} : { expiresAt: Number.parseInt(expires, 10) }),
        at: Number.parseInt(moved, 10),
      }));
    },
    async lacking(references) {
      const rows = await rowsOf<{ reference: string }>(
        orm,
        sql`select value as reference from json_array_elements_text(${jsonOf(references)}) as known (value)
            where not exists (select from ${table('movement_references')} where reference = value)`,
      );
      return new Set(rows.map(({ reference }) => reference));
    },
    async newest() {
      const [row] = await rowsOf<{ at: string | null }>(
        orm,
        sql`select ${millisecondsOf(sql`max(at)`)} as at from (
              (select created_at as at from ${table('ledger')} order by seq desc limit 1)
              union all (select created_at from ${table('calls')} order by id desc limit 1)) as last`,
      );
      return row?.at == null ? undefined : Number.parseInt(row.at, 10);
    },
  };
}

/** Restorations of it. */
function restorations(orm: Orm, table: Table): Pick<RestoreRows, 'note' | 'list' | 'silent' | 'accept'> {
  return {
    async note({ journal, since, until, calls, lost }) {
      await orm.execute(
        sql`insert into ${table('restores')} as known (journal, since, until, calls, lost)
              values (${journal}, ${time(since)}::timestamptz, ${time(until)}::timestamptz, ${calls}::bigint, ${jsonOf(lost)})
            on conflict (journal) where accepted_at is null do update set since = least(known.since, excluded.since),
              until = greatest(known.until, excluded.until), calls = greatest(known.calls, excluded.calls), lost = excluded.lost`,
      );
    },
    async list(state) {
      const accepted = state === 'accepted' ? sql`not null` : sql`null`;
      const rows = await rowsOf<StoredRestore>(
        orm,
        sql`select journal, ${millisecondsOf(sql`since`)} as since, ${millisecondsOf(sql`until`)} as until, calls::text as calls, lost
            from ${table('restores')} where accepted_at is ${accepted} order by id`,
      );
      const read = (digits: string) => Number.parseInt(digits, 10);
      return rows.map((row) => ({ ...row, since: read(row.since), until: read(row.until), calls: read(row.calls) }));
    },
    async silent() {
      const rows = await rowsOf<{ journal: string }>(
        orm,
        // A fleet starts together: some minutes before the first finding is since.
        sql`select journal from ${table('journal_cursor')} as cursors
            where started_at > now() - interval '30 days'
              and started_at < (select min(found_at) from ${table('restores')} where accepted_at is null) - interval '10 minutes'
              and not exists (select from ${table('restores')} as restores where restores.journal = cursors.journal and accepted_at is null)
            order by started_at desc limit 20`,
      );
      return rows.map(({ journal }) => journal);
    },
    async accept() {
      const rows = await rowsOf(
        orm,
        sql`update ${table('restores')} set accepted_at = now() where accepted_at is null returning 1 as one`,
      );
      return rows.length;
    },
  };
}
