/** A gateway without requests leaves its database nearly alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { databaseUrl } from '../helpers/database.ts';
import { statementCounts } from './statement-counter.ts';
import { startTestbed, until } from './testbed.ts';

const seconds = 10;

/** What an idle process of the main gateway asks in ten seconds, at most. */
const allowed: readonly (readonly [RegExp, number])[] = [
  // Notifications tell of changes; this is in case they cease to arrive.
  [/^select id, topic, subject from \S+\.changes/, 6],
  // The next task, callback and batch that fall due: every five seconds, batches every ten, tasks of other processes every second.
  [/^select \(extract\(epoch from min\(greatest\(due_at, lease_until\)\)/, databaseUrl === undefined ? 8 : 16],
  // Where processes share the balances: that this one lives, and what it has leased.
  [/^update \S+\."?journal_cursor"? set updated_at/, databaseUrl === undefined ? 0 : 3],
  [/^select account_id from \S+\."?leases"?/, databaseUrl === undefined ? 0 : 1],
];

test('the main gateway sends at most a few statements in ten idle seconds', async () => {
  await using _testbed = await startTestbed();
  // What a start leaves to do, and the proof that notifications arrive.
  await pause(2_000);
  await until('a start has left nothing to do', async () => {
    const counts = statementCounts();
    await pause(1_000);
    const others = Object.entries(statementCounts()).filter(([words]) => !allowed.some(([known]) => known.test(words)));
    return others.every(([words, count]) => count === counts[words]);
  });
  const before = statementCounts();
  const began = performance.now();
  await pause(seconds * 1_000);
  const after = statementCounts();
  // A busy machine ends a pause late.
  const longer = (performance.now() - began) / (seconds * 1_000);
  assert.ok(Object.keys(before).length > 0, 'nothing is counted');
  const sums = allowed.map(() => 0);
  for (const [words, count] of Object.entries(after)) {
    const more = count - (before[words] ?? 0);
    const index = allowed.findIndex(([known]) => known.test(words));
    assert.ok(more === 0 || index >= 0, `${more} × ${words}`);
    if (index >= 0) sums[index]! += more;
  }
  assert.ok(sums[0]! >= 1, 'changes are polled');
  for (const [index, [known, most]] of allowed.entries())
    assert.ok(sums[index]! <= Math.floor(most * longer), `${sums[index]} × ${known}, of ${most} at most`);
});
