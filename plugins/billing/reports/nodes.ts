/** The nodes with journals of this database: version, start, last heartbeat, leases, pending rows. */
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import type { JournalBacklog, NodeView } from '../../common/domain/admin/ledger.ts';
import { money } from '../../common/domain/money.ts';
import type { Files } from '../journal/segments.ts';
import { millisecondsOf, type Runner, rowsOf, tablesOf } from '../model/sql.ts';

/** The most nodes listed, and how long a node without leases stays listed after its last heartbeat. */
const listed = 100;
const listedMs = 24 * 3_600_000;

/** This process's own values. */
export interface Self {
  readonly files: Files;
  readonly directory: string;
  /** Rows that the ledger does not have; undefined while it does not serve. */
  readonly pending: number | undefined;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

interface Row {
  readonly name: string;
  readonly seen_at: string | null;
  readonly started_at: string | null;
  readonly version: string | null;
  readonly leases: number;
  readonly leased: string;
}

/** This process first, then the others by last heartbeat. A process that stopped in good order is not listed. */
export async function listNodes(runner: Runner, schema: string, self: Self): Promise<NodeView[]> {
  const table = tablesOf(schema);
  const own = self.pending === undefined ? '' : nameOf(self);
  const rows = await rowsOf<Row>(
    runner,
    sql`select journal as name, case when isfinite(updated_at) then ${millisecondsOf(sql`updated_at`)} end as seen_at,
          ${millisecondsOf(sql`started_at`)} as started_at, version,
          coalesce(held.leases, 0)::int as leases, coalesce(held.leased, 0)::text as leased
        from ${table('journal_cursor')} as cursors left join (
          select node, count(*) as leases, sum(greatest(amount, 0)) as leased from ${table('leases')} group by node
        ) as held on held.node = cursors.journal
        where journal = ${own} or held.leases > 0
          or updated_at > now() - ${listedMs}::bigint * interval '1 millisecond'
        order by journal = ${own} desc, updated_at desc, journal limit ${listed}::int`,
  );
  return rows.map(({ name, version, seen_at: seenAt, started_at: startedAt, leases, leased }) => {
    const isSelf = name === own;
    return {
      name,
      self: isSelf,
      version: version ?? undefined,
      startedAt: startedAt === null ? undefined : Number.parseInt(startedAt, 10),
      seenAt: isSelf ? self.at : Number.parseInt(seenAt ?? '0', 10),
      journalPending: isSelf ? self.pending : undefined,
      leases,
      leased: money(BigInt(leased)),
    };
  });
}

/** The journal's name is stored beside it while a process serves from it. */
/** Its journal, beside the bound of rows at which calls are refused. */
export function journalOf(self: Self, limit: number, accepting: boolean): JournalBacklog | undefined {
  const { pending: rows } = self;
  if (rows === undefined) return undefined;
  return { name: nameOf(self), rows, share: accepting ? Math.min(1, rows / limit) : 1 };
}

function nameOf({ files, directory }: Self): string {
  return files.read(join(directory, 'name')).toString('utf8').trim();
}
