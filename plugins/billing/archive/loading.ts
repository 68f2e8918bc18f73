/** Reads all archived files, in order, into a table beside `calls`, and finds those that are missing, altered or out of their chain. */
import { type SQL, sql } from 'drizzle-orm';
import { moneyColumns } from '../ledger/call-rows.ts';
import { type Runner, rowsOf, tablesOf } from '../model/sql.ts';
import type { Contents, StoredFile } from './contents.ts';
import { callsIn, headerOf, linesOf, objectOf, type SealedCalls } from './format.ts';
import { summedColumns } from './sums.ts';

/** Files that one read takes rows from at most, and calls of one statement. */
const pageFiles = 200;
const pageCalls = 1_000;

export interface FileFault {
  readonly what: string;
  readonly object: string;
}

export interface Loading {
  readonly runner: Runner;
  readonly schema: string;
  readonly contents: Pick<Contents, 'read'>;
  /** A new table. Its columns are those of `calls` that sums and replays need. */
  readonly into: SQL;
  /** Called for all calls of the files, some at a time, in a table with all columns of money. Within a transaction alone. */
  readonly each?: (calls: SQL) => Promise<void>;
}

type File = Omit<SealedCalls, 'firstAt' | 'lastAt'> & StoredFile;

const loadedColumns = sql`${summedColumns}, held_at`;
const money = sql.raw(moneyColumns.join(', '));
const page = sql.raw('pg_temp.archived_page');

/** Resolves with the faults; calls of files that cannot be read are not in the table. */
export async function loadArchive(loading: Loading): Promise<FileFault[]> {
  const { runner, schema, into, each } = loading;
  const calls = tablesOf(schema)('calls');
  if (each !== undefined)
    await runner.execute(
      sql`create temp table archived_page on commit drop as select ${money} from ${calls} with no data`,
    );
  const faults: FileFault[] = [];
  let before: File | undefined;
  for await (const file of filesOf(runner, schema)) {
    faults.push(...faultsOf(schema, file, before, await loadFile(loading, file)));
    before = file;
  }
  // Each is read by ids and by times.
  await runner.execute(sql`create index on ${into} (id)`);
  await runner.execute(sql`create index on ${into} (created_at)`);
  await runner.execute(sql`analyze ${into}`);
  return faults;
}

/** Faults of the files, without the calls in them. */
export async function findFaults(
  runner: Runner,
  schema: string,
  contents: Pick<Contents, 'read'>,
): Promise<FileFault[]> {
  const faults: FileFault[] = [];
  let before: File | undefined;
  for await (const file of filesOf(runner, schema)) {
    const read = await contents.read(file);
    faults.push(...faultsOf(schema, file, before, 'fault' in read ? read.fault : undefined));
    before = file;
  }
  return faults;
}

function faultsOf(schema: string, file: File, before: File | undefined, fault: string | undefined): FileFault[] {
  const { object } = file;
  return [
    ...(follows(schema, file, before) ? [] : [{ what: 'a file of archived calls is not in its chain', object }]),
    ...(fault === undefined ? [] : [{ what: `a file of archived calls ${fault}`, object }]),
  ];
}

/** The columns of such a table, for `create table … as`. */
export const loadedShape = (schema: string): SQL =>
  sql`select ${loadedColumns} from ${tablesOf(schema)('calls')} with no data`;

export async function* filesOf(runner: Runner, schema: string): AsyncGenerator<File> {
  for (let after: Pick<File, 'accountId' | 'number'> | undefined; ; ) {
    const behind =
      after === undefined ? sql`` : sql`where (account_id, number) > (${after.accountId}, ${after.number}::int)`;
    const rows: (Omit<File, 'previous'> & { previous: string | null })[] = await rowsOf(
      runner,
      sql`select account_id as "accountId", number, month, calls, cost::text as cost, first_id::text as "firstId",
            last_id::text as "lastId", header, digest, previous, object, bytes
          from ${tablesOf(schema)('archives')} ${behind} order by account_id, number limit ${pageFiles}::int`,
    );
    for (const row of rows) yield { ...row, previous: row.previous ?? undefined };
    if (rows.length < pageFiles) return;
    after = rows.at(-1)!;
  }
}

/** Each has the digest of the account's file before in its first line, which its own digest is of. */
function follows(schema: string, file: File, last: File | undefined): boolean {
  const before = last?.accountId === file.accountId ? last : undefined;
  return (
    file.number === (before?.number ?? 0) + 1 &&
    file.previous === before?.digest &&
    file.firstId <= file.lastId &&
    (before === undefined || before.lastId < file.firstId) &&
    file.header === headerOf(file) &&
    file.object === objectOf(schema, file, file.digest)
  );
}

/** Resolves with its fault. */
async function loadFile({ runner, schema, contents, into, each }: Loading, file: File): Promise<string | undefined> {
  const read = await contents.read(file);
  if ('fault' in read) return read.fault;
  const lines = linesOf(read.content);
  let [cost, isOwn] = [0n, lines.length === file.calls];
  for (let from = 0; from < lines.length; from += pageCalls) {
    const given = callsIn(tablesOf(schema), lines.slice(from, from + pageCalls));
    if (each !== undefined) {
      await runner.execute(sql`truncate ${page}`);
      await runner.execute(sql`insert into ${page} select ${money} from ${given}`);
    }
    const [row] = await rowsOf<{ cost: string; own: boolean }>(
      runner,
      sql`with loaded as (insert into ${into} select ${loadedColumns} from ${each === undefined ? given : page} returning id, account_id, cost)
        select sum(cost)::text as cost, bool_and(account_id = ${file.accountId} and id between ${file.firstId}::uuid and ${file.lastId}::uuid)
          as own from loaded`,
    );
    cost += BigInt(row!.cost);
    isOwn &&= row!.own;
    await each?.(page);
  }
  return isOwn && String(cost) === file.cost ? undefined : 'has other calls than its row says';
}
