/** Uploads in pieces under a wall clock that jumps: over after their time, found again at it, and no lock for an account. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { UploadSessions } from '../../../plugins/uploads/google/sessions.ts';
import { PartUploads } from '../../../plugins/uploads/parts/rows.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { fakeHost } from '../../helpers/fakes.ts';

const day = 86_400_000;
const host = fakeHost();
let store: TestDatabase;
before(async () => {
  store = await openDatabase({ plugins: ['uploads'] });
});
after(() => store.close());

const order = {
  ...{ accountId: 'account', fileId: 'file_1', name: 'x', purpose: 'user_data', mediaType: 'text/plain' },
  ...{ bytes: 4, lifetimeMs: undefined },
};

test('an upload in parts, and a session of Google, are expired while the clock is ahead, and continue when it is back', async () => {
  const parts = new PartUploads(store, host.clock, host.random);
  const sessions = new UploadSessions(store, host.clock, host.random);
  const { id } = await parts.begin(order);
  const secret = await sessions.begin({ ...order, keyId: 'key', chosenName: undefined });
  for (const by of [-40 * day, -3_600_000, 40 * day]) {
    host.jump(by);
    const isOver = by > 0;
    assert.equal((await parts.find('account', id)) === undefined, isOver, String(by));
    assert.equal((await sessions.find(secret)) === undefined, isOver, String(by));
    host.jump(-by);
    assert.equal((await parts.find('account', id))?.id, id);
    assert.equal((await sessions.find(secret))?.name, 'x');
  }
});

test("uploads dated by a clock that was ahead do not use up the account's uploads when it is back", async () => {
  const table = (name: string) => sql`${sql.identifier(store.schema)}.${sql.identifier(name)}`;
  const parts = new PartUploads(store, host.clock, host.random);
  const sessions = new UploadSessions(store, host.clock, host.random);
  const of = { ...order, accountId: 'ahead' };
  const session = { ...of, keyId: 'key', chosenName: undefined };
  host.jump(3 * day);
  const { id } = await parts.begin(of);
  await sessions.begin(session);
  for (const [name, key] of [
    ['part_uploads', 'id'],
    ['resumable_uploads', 'digest'],
  ] as const)
    await store.orm.execute(
      sql`insert into ${table(name)} select (jsonb_populate_record(one, jsonb_build_object(${key}::text, 'copy-' || number))).*
          from ${table(name)} as one, generate_series(1, 1000) as number where account_id = 'ahead'`,
    );
  await assert.rejects(parts.begin(of), { kind: 'rate_limited' });
  await assert.rejects(sessions.begin(session), { kind: 'rate_limited' });
  host.jump(-3 * day);
  await parts.begin(of);
  await sessions.begin(session);
  assert.equal((await parts.find('ahead', id))?.id, id);
});
