/** The request log's settings, changed while the gateway serves. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { database } from '../../../plugins/common/domain/database.ts';
import plugin from '../../../plugins/request-log/index.ts';
import { openDatabase } from '../../helpers/database.ts';
import { fakeExchange, fakeHost, okAnswer, prepare, setUp } from '../../helpers/fakes.ts';

test('lines are written by the latest setting; rows are kept in any case', async () => {
  await using store = await openDatabase({ plugins: ['request-log'] });
  const host = fakeHost({ schema: store.schema });
  host.provide(database, store);
  const part = await setUp(plugin, host);
  const lines = () => host.lines.filter(({ message }) => message === 'request').length;
  const run = async () => {
    const exchange = fakeExchange({ id: randomUUID() });
    await part.handle!(exchange, async () => okAnswer);
    await exchange.end();
  };
  await run();
  const commit = await prepare(plugin, part, { lines: false });
  await run();
  assert.equal(lines(), 2);
  commit();
  await run();
  assert.equal(lines(), 2);
  await assert.rejects(prepare(plugin, part, { lines: 'yes' }));
  await part.lifecycle!.stop!();
});
