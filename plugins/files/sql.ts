/** Statements of files, values in them, and the error of a store without room. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Orm } from '../common/domain/database.ts';

export type Runner = Pick<Orm, 'execute'>;

/** As text, since drivers encode dates differently. */
export function instant(milliseconds: number): SQL {
  return sql`${new Date(milliseconds).toISOString()}::timestamptz`;
}

export async function rowsOf<Row>(runner: Runner, statement: SQL): Promise<Row[]> {
  return (await runner.execute(statement)) as Row[];
}

const noRoom = 'The gateway has no room for files at the moment; try again later.';

export function storageFull(cause?: unknown, message = noRoom): GatewayError {
  return new GatewayError('overloaded', message, { code: 'storage_full', retryAfterMs: 60_000, cause });
}
