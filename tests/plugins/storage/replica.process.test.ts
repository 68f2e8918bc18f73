/** Pages on a real streaming replica: its lag by the replayed commits, a replay that stands still, and a replica that goes away. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../plugins/storage/database.ts';
import { until } from '../../end-to-end/testbed.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { hasPostgres, startPostgres } from '../../helpers/postgres.ts';

test('pages read a streaming replica, and the database itself while the replica stands still or is away', {
  skip: !hasPostgres,
}, async (context) => {
  const primary = await startPostgres();
  context.after(() => primary.close());
  const follower = await primary.follower(false);
  context.after(() => follower.close());
  const host = fakeHost({ schema: 'paged' });
  // The least lag there is: any commit that is not replayed is too much.
  const replica = { url: follower.url, lagMs: 1 };
  const database = await openDatabase(host, { database: primary.url, maxConnections: 3, replica });
  context.after(() => database.close());
  const [{ work } = { work: () => undefined as unknown }] = host.intervals.filter(({ name }) =>
    name.includes('replica'),
  );
  const read = async () => {
    const rows = (await database.pages!.execute(
      sql`select pg_is_in_recovery() as replica, (select count(*)::int from paged.changes) as changes`,
    )) as unknown as { replica: boolean; changes: number }[];
    return rows[0]!;
  };
  const seen = async (isUsed: boolean) =>
    until(`it is ${isUsed ? '' : 'not '}used`, async () => {
      await work();
      return database.replica!().isUsed === isUsed;
    });

  await seen(true);
  const before = await read();
  assert.equal(before.replica, true);
  follower.sql('select pg_wal_replay_pause()');
  await database.announce('key', 'one');
  await seen(false);
  assert.ok(database.replica!().lagMs! > 1, 'it says by how much');
  assert.deepEqual(await read(), { replica: false, changes: before.changes + 1 });
  follower.sql('select pg_wal_replay_resume()');
  await seen(true);
  assert.deepEqual(await read(), { replica: true, changes: before.changes + 1 });
  await follower.crash();
  assert.deepEqual(await read(), { replica: false, changes: before.changes + 1 });
  await seen(false);
  await follower.start();
  await seen(true);
  assert.equal((await read()).replica, true);
});
