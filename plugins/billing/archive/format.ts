/** The format of a file of old calls: a head, a line for each call, and a name that its digest is part of. Pure. */
import { hash } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import { firstIdAt } from '../../common/kit/arrival.ts';
import { moneyColumns } from '../ledger/call-rows.ts';

/** So that a call is found, and a page shown, by reading little. */
export const mostCalls = 5_000;
/** Characters of the lines of a file, about; a call's attempts may be long. */
export const mostCharacters = 8_000_000;

/** Calls are archived this long after their arrival at the earliest (`billing.archive.after`). */
export const leastAfterMs = 31 * 86_400_000;

/** Calls of other requests are rows. */
export const mayBeArchived = (requestId: string, now: number): boolean =>
  requestId.toLowerCase() < firstIdAt(now - leastAfterMs);

/** The files of an account are a chain: each has the digest of the one before. */
export interface Link {
  readonly number: number;
  readonly digest: string;
}

/** A call as a line of a file. */
export interface CallLine {
  readonly id: string;
  /** Decimal nano-USD. */
  readonly cost: string;
  /** When it ended: `2026-05-03T12:00:00.123000Z`. */
  readonly at: string;
  readonly line: string;
}

/** A file with what the database keeps of it. */
export interface SealedCalls extends Link {
  readonly accountId: string;
  /** `2026-05` */
  readonly month: string;
  readonly calls: number;
  readonly cost: string;
  readonly firstId: string;
  readonly lastId: string;
  readonly firstAt: string;
  readonly lastAt: string;
  readonly header: string;
  readonly previous: string | undefined;
  readonly object: string;
}

export function sealedOf(
  { schema, accountId, month }: { readonly schema: string; readonly accountId: string; readonly month: string },
  lines: readonly CallLine[],
  before: Link | undefined,
): { readonly sealed: SealedCalls; readonly content: string } {
  const times = lines.map(({ at }) => at).sort();
  const described = {
    accountId,
    number: (before?.number ?? 0) + 1,
    month,
    calls: lines.length,
    cost: String(lines.reduce((sum, { cost }) => sum + BigInt(cost), 0n)),
    previous: before?.digest,
  };
  const header = headerOf(described);
  const content = `${header}\n${lines.map(({ line }) => `${line}\n`).join('')}`;
  const digest = digestOf(content);
  const bounds = { firstId: lines[0]!.id, lastId: lines.at(-1)!.id, firstAt: times[0]!, lastAt: times.at(-1)! };
  return { sealed: { ...described, ...bounds, header, digest, object: objectOf(schema, described, digest) }, content };
}

export function headerOf(
  file: Pick<SealedCalls, 'accountId' | 'number' | 'month' | 'calls' | 'cost' | 'previous'>,
): string {
  const { accountId, number, month, calls, cost, previous = null } = file;
  return JSON.stringify({ format: 'model-gateway calls 1', account: accountId, number, month, calls, cost, previous });
}

export const digestOf = (content: string): string => hash('sha256', content);

/** The same calls behind the same file have the same name: written again after a crash, they replace themselves. */
export function objectOf(
  schema: string,
  { accountId, month }: Pick<SealedCalls, 'accountId' | 'month'>,
  digest: string,
): string {
  const folder = /^[\w-]+$/.test(accountId) ? accountId : digestOf(accountId);
  return `archive/${schema}/${folder}/${month}-${digest}.jsonl.gz`;
}

/** The lines of its calls. */
export const linesOf = (content: string): string[] => content.split('\n').slice(1, -1);

/** The call's id stands first in its line. */
export const idIn = (line: string): string => line.slice(7, 43);

/** When the call ended stands last in it. */
export const endIn = (line: string): string => line.slice(-29, -2);

/** A row of `calls` as a line. The trigger that lets calls be deleted makes the same (`refuse_unarchived_deletion`). */
export const lineOfCall = sql`(select row_to_json(kept)::text from (select ${sql.raw(
  moneyColumns
    .map((name) =>
      name.endsWith('_at') ? `to_char(${name} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as ${name}` : name,
    )
    .join(', '),
)}) as kept)`;

/** Lines as rows of `calls`; the columns that are no money are empty. */
export function callsIn(table: (name: string) => SQL, lines: readonly string[]): SQL {
  return sql`json_populate_recordset(null::${table('calls')}, ${`[${lines.join(',')}]`}::text::json)`;
}

export const monthAt = (at: number): string => new Date(at).toISOString().slice(0, 7);

export const startOf = (month: string): number => Date.parse(`${month}-01T00:00:00Z`);

export function endOf(month: string): number {
  const start = new Date(startOf(month));
  return start.setUTCMonth(start.getUTCMonth() + 1);
}
