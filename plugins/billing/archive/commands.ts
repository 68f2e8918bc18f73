/** The operator's commands on archived calls: what there is, whether all of it can be read, and sums that are made of it again. */
import { sql } from 'drizzle-orm';
import type { Command } from '../../../core/contract/commands.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Database, Orm } from '../../common/domain/database.ts';
import { formatUsd, money } from '../../common/domain/money.ts';
import type { SumTable } from '../../common/rollups/table.ts';
import { callSums } from '../ledger/call-sums.ts';
import { rowsOf, tablesOf } from '../model/sql.ts';
import type { Contents } from './contents.ts';
import { filesOf, findFaults, loadArchive, loadedShape } from './loading.ts';
import { callSumsBeside } from './sums.ts';

interface Listed {
  readonly account: string;
  readonly month: string;
  readonly files: number;
  readonly calls: number;
  readonly cost: string;
  readonly bytes: number;
}

export function archiveCommands({ orm, schema }: Database, contents: Pick<Contents, 'read'>): Command[] {
  return [
    {
      name: 'archive list',
      summary: 'Lists archived calls by account and month: files, calls, cost, bytes',
      arguments: ['[account]'],
      run: async ({ account }) => {
        const owned = typeof account === 'string' ? sql`where account_id = ${account}` : sql``;
        const rows = await rowsOf<Listed>(
          orm,
          sql`select account_id as account, month, count(*)::int as files, sum(calls)::int as calls, sum(cost)::text as cost,
                sum(bytes)::float8 as bytes from ${tablesOf(schema)('archives')} ${owned} group by 1, 2 order by 1, 2`,
        );
        const listed = [...rows].map((row) => ({ ...row, cost: formatUsd(money(BigInt(row.cost))) }));
        const lines = listed.map(
          ({ account: id, month, files, calls, cost, bytes }) =>
            `${id}  ${month}  ${calls} calls  ${cost} USD  ${files} files  ${bytes} bytes`,
        );
        return { json: listed, text: lines.length === 0 ? 'No calls are archived.' : lines.join('\n') };
      },
    },
    {
      name: 'archive verify',
      summary:
        'Reads every file of archived calls, and names those that are missing or altered; exit code 1 if there is one',
      run: async () => {
        let [files, calls] = [0, 0];
        for await (const file of filesOf(orm, schema)) [files, calls] = [files + 1, calls + file.calls];
        const faults = await findFaults(orm, schema, contents);
        const lines = faults.map(({ what, object }) => `${what}: ${object}`);
        const verdict = faults.length === 0 ? `All ${files} files with ${calls} calls are as they were sealed.` : '';
        return {
          json: { ok: faults.length === 0, files, calls, faults },
          text: faults.length === 0 ? verdict : lines.join('\n'),
          exitCode: faults.length === 0 ? 0 : 1,
        };
      },
    },
  ];
}

/** Makes sums again of all calls: those in files lie in a table of their own meanwhile. */
export async function withArchivedCalls(
  orm: Orm,
  schema: string,
  contents: Pick<Contents, 'read'>,
  rebuild: (sums: SumTable) => Promise<void>,
): Promise<void> {
  const table = tablesOf(schema);
  const [row] = await rowsOf<{ has: boolean }>(orm, sql`select exists (select from ${table('archives')}) as has`);
  if (!row!.has) return rebuild(callSums);
  const into = table('archived_calls');
  const drop = () => orm.execute(sql`drop table if exists ${into}`);
  // An interrupted rebuild may have left tables.
  await drop();
  try {
    await orm.execute(sql`create unlogged table ${into} as ${loadedShape(schema)}`);
    const faults = await loadArchive({ runner: orm, schema, contents, into });
    if (faults.length > 0) {
      const names = faults.slice(0, 5).map(({ what, object }) => `${what}: ${object}`);
      const message = `No sum was made again, because archived calls would be missing: ${names.join('; ')}. Run "archive verify".`;
      throw new GatewayError('conflict', message);
    }
    await rebuild(callSumsBeside(into));
  } finally {
    await drop();
  }
}
