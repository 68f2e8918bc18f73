/** Where pages are read: at the replica while it is near enough and answers, and at the database itself otherwise. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { Orm } from '../../../plugins/common/domain/database.ts';
import { Replica } from '../../../plugins/storage/replica.ts';
import { fakeHost } from '../../helpers/fakes.ts';

function stage() {
  const host = fakeHost();
  /** What the servers say: `lag` as the replica measures it, null of a server that follows none. */
  const servers = { lag: 0 as number | null, isReplicaAway: false, isPrimaryAway: false };
  const answering = (name: string, isAway: () => boolean) =>
    ({
      execute: async () => {
        if (isAway()) throw Object.assign(new Error(`${name} is away`), { code: 'ECONNREFUSED' });
        return [{ end: '0/1', lag: servers.lag, from: name }];
      },
    }) as unknown as Orm;
  const replica = new Replica({
    name: 'postgres://replica/x',
    primary: answering('primary', () => servers.isPrimaryAway),
    replica: { orm: answering('replica', () => servers.isReplicaAway), renew() {}, close: async () => undefined },
    lagMs: 10_000,
    clock: host.clock,
    log: host.log,
  });
  const read = async () => ((await replica.orm.execute(sql`select 1`)) as unknown as { from: string }[])[0]!.from;
  return { host, servers, replica, read };
}

test('pages read the database itself until the replica was seen, and then the replica up to the lag that is allowed', async () => {
  const { host, servers, replica, read } = stage();
  assert.equal(await read(), 'primary');
  assert.deepEqual(replica.state, { isUsed: false, lagMs: undefined });
  for (const [lag, from] of [
    [0, 'replica'],
    [10_000, 'replica'],
    [10_001, 'primary'],
    [900, 'replica'],
  ] as const) {
    servers.lag = lag;
    await replica.look();
    assert.equal(await read(), from, `${lag}`);
    assert.deepEqual(replica.state, { isUsed: from === 'replica', lagMs: lag });
  }
  assert.deepEqual(
    host.lines.map(({ message }) => message),
    ['pages read the database itself: its replica lags', 'the replica has caught up: pages read it again'],
  );
});

test('a read that the replica fails is answered by the database itself, as are those after it until the replica was seen again', async () => {
  const { servers, replica, read } = stage();
  await replica.look();
  servers.isReplicaAway = true;
  assert.equal(await read(), 'primary');
  servers.isReplicaAway = false;
  assert.equal(await read(), 'primary');
  await replica.look();
  assert.equal(await read(), 'replica');
});

test('a statement that is wrong in itself fails as at the database, and the replica stays in use', async () => {
  const { servers, replica, read } = stage();
  await replica.look();
  [servers.isReplicaAway, servers.isPrimaryAway] = [true, true];
  await assert.rejects(read, /primary is away/);
  servers.isReplicaAway = false;
  assert.equal(await read(), 'replica');
});

test('an observed delay is not trusted once looks get no answer, and a server that follows none is not read', async () => {
  const { host, servers, replica, read } = stage();
  await replica.look();
  host.advance(5_001);
  assert.equal(await read(), 'primary');
  servers.lag = null;
  await replica.look();
  assert.equal(await read(), 'primary');
  servers.lag = 0;
  servers.isPrimaryAway = true;
  await replica.look();
  await assert.rejects(read, /primary is away/);
});
