/** Which queries a replica may answer: rows and sums of pages; what refunds and grants are decided by is read from the database itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChargeStore } from '../../../../plugins/billing/archive/reader.ts';
import { openLedgerQueries, withPages } from '../../../../plugins/billing/reports/ledger-queries.ts';
import { requestIdAt } from '../../../helpers/fakes.ts';

const at = Date.UTC(2026, 4, 1);

/** The databases that a query of pages has asked. */
async function askedBy(ask: (pages: NonNullable<ReturnType<typeof queriesWith>['pages']>) => Promise<unknown>) {
  const asked = new Set<string>();
  await ask(queriesWith((name) => asked.add(name)).pages!).catch(() => undefined);
  return [...asked];
}

function queriesWith(note: (name: string) => void) {
  const orm = (name: string) => {
    const execute = async () => {
      note(name);
      return [];
    };
    return { execute } as unknown as ChargeStore['orm'];
  };
  const archive = { linesOf: async () => [], linesWithin: async () => [] } as unknown as ChargeStore['archive'];
  const store = { orm: orm('database'), schema: 'x', archive, now: () => at };
  const queries = openLedgerQueries({
    store,
    audit: async () => {
      note('database');
      return { ok: true, violations: [], rows: 0 } as never;
    },
    self: () => ({}) as never,
    journal: () => undefined,
    mismatch: () => undefined,
  });
  assert.equal(withPages(queries, store, undefined).pages, undefined);
  return withPages(queries, store, orm('replica'));
}

test('pages read rows and sums from the replica, and single charges, balances and the audit from the database itself', async () => {
  const id = requestIdAt(at);
  const span = { from: at - 900_000, until: at };
  const page = { limit: 10 } as never;
  assert.deepEqual(await askedBy((pages) => pages.ledger(undefined, {}, page)), ['replica']);
  assert.deepEqual(await askedBy((pages) => pages.chargesOf([id], undefined)), ['replica']);
  assert.deepEqual(await askedBy((pages) => pages.spend(span, 'model', 5)), ['replica']);
  assert.deepEqual(await askedBy((pages) => pages.totals(span)), ['replica']);
  assert.deepEqual(await askedBy((pages) => pages.charge(id, undefined)), ['database']);
  assert.deepEqual(await askedBy((pages) => pages.balances([id])), ['database']);
  assert.deepEqual(await askedBy((pages) => pages.reconcile()), ['database']);
  assert.deepEqual(await askedBy((pages) => pages.nodes()), ['database']);
});
