/** Pages of statements read indexes in the order of movements: none sorts all rows of an account, or of all. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SQL, sql } from 'drizzle-orm';
import { type LedgerStore, ledgerPage } from '../../../../plugins/billing/reports/ledger-pages.ts';
import { openDatabase } from '../../../helpers/database.ts';

test('a page of a statement, of one account and of all, of any kinds and behind any row, sorts no table', async () => {
  await using database = await openDatabase({ plugins: ['request-log', 'billing'] });
  let plan = '';
  const explain = (statement: SQL) =>
    database.orm.transaction(async (transaction) => {
      // An empty table would be sorted; with these a plan sorts only what no index has in order.
      for (const way of ['sort', 'seqscan', 'bitmapscan', 'hashjoin', 'mergejoin'])
        await transaction.execute(sql.raw(`set local enable_${way} = off`));
      const rows = (await transaction.execute(sql`explain ${statement}`)) as unknown as Record<string, string>[];
      plan = [...rows].map((row) => row['QUERY PLAN']).join('\n');
      return [];
    });
  const store = { orm: { execute: explain }, schema: database.schema } as unknown as LedgerStore;
  for (const account of ['alice', undefined])
    for (const kinds of [undefined, ['CHARGE'], ['DEBIT', 'CREDIT'], ['CHARGE', 'DEBIT']])
      for (const after of [undefined, '100']) {
        await ledgerPage(store, account, kinds === undefined ? {} : { kinds }, { limit: 50, after });
        assert.match(plan, /Index Scan Backward/);
        assert.doesNotMatch(plan, /\bSort {2}\(|Seq Scan/, plan);
      }
});
