/** Writes all gateways' rows of a database into a file, as of one moment. */
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import packageFile from '../../../package.json' with { type: 'json' };
import type { Orm } from '../../common/domain/database.ts';
import { developmentRefusal, isOfDevelopment } from '../development.ts';
import { type Line, writeFile } from './file.ts';
import {
  lineOfRow,
  migrationsOf,
  type Runner,
  rowsOf,
  schemasIn,
  sequencesIn,
  sumOf,
  tableOf,
  tablesIn,
} from './tables.ts';

/** Rows may be large: recorded bodies, texts of batches. */
const pageRows = 200;

export interface Count {
  readonly schema: string;
  readonly tables: number;
  rows: number;
}

/** Resolves with what the file holds. */
export async function exportTo(path: string, orm: Orm, at: number): Promise<Count[]> {
  const counts: Count[] = [];
  await orm.transaction((transaction) => writeFile(path, linesFrom(transaction, at, counts)), {
    isolationLevel: 'repeatable read',
    accessMode: 'read only',
  });
  return counts;
}

async function* linesFrom(runner: Runner, at: number, counts: Count[]): AsyncGenerator<string> {
  const line = (value: Line) => JSON.stringify(value);
  const { version: program } = packageFile;
  yield line({ format: 'model-gateway storage', version: 1, program, at: new Date(at).toISOString() });
  for (const schema of await schemasIn(runner)) {
    const tables = await tablesIn(runner, schema);
    const count = { schema, tables: tables.length, rows: 0 };
    counts.push(count);
    const migrations = await migrationsOf(runner, schema);
    if (isOfDevelopment(migrations))
      throw new GatewayError('conflict', developmentRefusal(`The schema ${schema} of this database`));
    yield line({ schema, migrations });
    for (const { name, columns } of tables) {
      const sum = await sumOf(runner, schema, name);
      count.rows += sum.rows;
      yield line({ table: name, columns, ...sum });
      yield* rowsFrom(runner, schema, name);
    }
    for (const sequence of await sequencesIn(runner, schema)) yield line({ sequence });
  }
}

async function* rowsFrom(runner: Runner, schema: string, table: string): AsyncGenerator<string> {
  await runner.execute(
    sql`declare exported no scroll cursor for select ${lineOfRow} as line from ${tableOf(schema, table)} as each`,
  );
  for (;;) {
    const rows = await rowsOf<{ line: string }>(runner, sql`fetch forward ${sql.raw(String(pageRows))} from exported`);
    for (const { line } of rows) yield line;
    if (rows.length < pageRows) break;
  }
  await runner.execute(sql`close exported`);
}
