/** Finds the records of a damaged or moved-away journal that the database lacks, and applies the sound ones. */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import type { Database } from '../../common/domain/database.ts';
import { formatUsd, type Money, money } from '../../common/domain/money.ts';
import { postRecords } from '../ledger/batch.ts';
import type { EndRecord } from '../model/records.ts';
import { jsonOf, rowsOf, tablesOf } from '../model/sql.ts';
import { type Inspection, inspectJournal, type OpenCall } from './inspection.ts';
import type { Files } from './segments.ts';

const pageSize = 1_000;

export interface Findings extends Inspection {
  readonly directory: string;
  /** Ends that the database lacks. */
  readonly lacking: readonly EndRecord[];
  /** Calls without an end that the database does not know either. */
  readonly left: readonly OpenCall[];
}

export async function findingsIn({ orm, schema }: Database, files: Files, directory: string): Promise<Findings> {
  const inspection = inspectJournal(files, directory);
  const { ends, open } = inspection;
  const unknown = new Set<string>();
  const ids = [...ends, ...open].map(({ id }) => id);
  for (let from = 0; from < ids.length; from += pageSize) {
    const rows = await rowsOf<{ id: string }>(
      orm,
      sql`select value as id from json_array_elements_text(${jsonOf(ids.slice(from, from + pageSize))}) as known (value)
          where not exists (select from ${tablesOf(schema)('calls')} as calls where calls.id = value::uuid)
            and not exists (select from ${tablesOf(schema)('archived_charges')} as archived where archived.id = value::uuid)`,
    );
    for (const { id } of rows) unknown.add(id);
  }
  const isUnknown = ({ id }: { readonly id: string }) => unknown.has(id);
  return { ...inspection, directory, lacking: ends.filter(isUnknown), left: open.filter(isUnknown) };
}

/** Applies the ends that the database lacks, each once, however often this is repeated. Resolves with the charges by account. */
export async function applySound(
  { orm, schema }: Database,
  lacking: readonly EndRecord[],
): Promise<Map<string, Money>> {
  const charged = new Map<string, Money>();
  for (const [account, records] of Map.groupBy(lacking, (record) => record.account)) {
    await orm.transaction((transaction) => postRecords(transaction, schema, account, records));
    const sum = records.reduce((total, record) => total + (record.kind === 'SETTLE' ? BigInt(record.cost) : 0n), 0n);
    charged.set(account, money(sum));
  }
  return charged;
}

/** Keeps what could not be applied in a file beside the journal's own, and moves the journal away if `moveTo` says so. */
export function keepRest(
  findings: Findings,
  at: number,
  moveTo: string | undefined,
): { file: string; directory: string } {
  const { directory, name, damage, missing, positionFault, left } = findings;
  const rest = {
    journal: name ?? null,
    at: new Date(at).toISOString(),
    damage,
    missing,
    position: positionFault ?? null,
    open: left.map(({ held, at: begun, ...call }) => ({
      ...call,
      held: formatUsd(held),
      at: new Date(begun).toISOString(),
    })),
  };
  writeFileSync(join(directory, 'salvaged.json'), `${JSON.stringify(rest, undefined, 2)}\n`, { mode: 0o600 });
  if (moveTo !== undefined) renameSync(directory, moveTo);
  return { file: join(moveTo ?? directory, 'salvaged.json'), directory: moveTo ?? directory };
}

/** Sums by account, the largest first: `alice 0.30 USD (2 calls)`. */
export function sumsByAccount(calls: readonly { readonly account: string; readonly amount: bigint }[]): string[] {
  return [...Map.groupBy(calls, ({ account }) => account)]
    .map(([account, own]) => ({
      account,
      count: own.length,
      sum: own.reduce((total, { amount }) => total + amount, 0n),
    }))
    .sort((one, other) => (one.sum < other.sum ? 1 : -1))
    .map(({ account, count, sum }) => `${account} ${formatUsd(money(sum))} USD (${count} calls)`);
}
