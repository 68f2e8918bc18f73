/** A file that is put into a store in several calls of the model: by another process, after a lost answer, and what it costs in all. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { database } from '../../../plugins/common/domain/database.ts';
import { tableOf } from '../../../plugins/common/kit/sql.ts';
import { chunksOf } from '../../../plugins/vector-stores/text/chunks.ts';
import { fc } from '../../helpers/properties.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { until } from '../../helpers/until.ts';
import { startModel } from './model.ts';
import { fileOf, type Json, openWorld } from './world.ts';

const chunking = { maxTokens: 800, overlapTokens: 0 };
const chunking_strategy = { type: 'static' as const, static: { max_chunk_size_tokens: 800, chunk_overlap_tokens: 0 } };
const whole = Array.from({ length: 14_000 }, (_, index) => `word${index}`).join(' ');
const polling = { pollIntervalMs: 20 };

test('a file that one process has begun is ended by the next one, and each piece is paid once', async () => {
  await using model = await startModel();
  const directory = temporaryDirectory('stores-');
  const pieces = [...chunksOf(whole, chunking)];
  assert.ok(pieces.length > 40, 'three calls of the model');
  let [account, key, store, upload] = ['', '', '', ''];
  {
    await using world = await openWorld({ embeddings: model.url, options: { directory } });
    const made = await world.account();
    [account, key] = [made.id, made.key];
    store = (await made.client.vectorStores.create({})).id;
    upload = (await made.client.files.create({ file: fileOf('a.txt', whole), purpose: 'assistants' })).id;
    model.hold();
    await made.client.vectorStores.files.create(store, { file_id: upload, chunking_strategy });
    await until('the first call of the model', async () => model.seen.length === 1);
    // What runs is ended, and nothing is begun.
    const stopped = world.gateway.gateway.stop(10_000);
    model.release();
    await stopped;
    assert.equal(model.seen.length, 1);
  }
  await using world = await openWorld({ embeddings: model.url, options: { directory } });
  const client = world.clientOf(key);
  const of = { vector_store_id: store };
  const file = await client.vectorStores.files.poll(store, upload, polling);
  assert.equal(file.status, 'completed');
  assert.deepEqual(
    model.seen.flat(),
    pieces.map(({ text }) => text),
  );
  const { data } = await client.vectorStores.files.content(upload, of);
  assert.equal(data.map(({ text }) => text).join(''), whole);

  // As if the last process had been killed between the answer of the model and the rows that keep it.
  const store_ = world.gateway.gateway.find(database)!;
  const [files, chunks] = [tableOf(store_, 'vector_store_files'), tableOf(store_, 'vector_chunks')];
  const last = model.seen.at(-1)!.length;
  const kept = pieces.length - last;
  await store_.orm.execute(sql`delete from ${chunks} where number >= ${kept}::int`);
  await store_.orm.execute(sql`update ${files} set state = 'in_progress', chunks = ${kept}::int, due_at = now()`);
  const calls = model.seen.length;
  const other = await client.files.create({ file: fileOf('b.txt', 'a short one'), purpose: 'assistants' });
  await client.vectorStores.files.createAndPoll(store, { file_id: other.id }, polling);
  await client.vectorStores.files.poll(store, upload, polling);
  const again: Json = await client.vectorStores.files.content(upload, of);
  assert.equal(again.data.map(({ text }: Json) => text).join(''), whole);
  assert.equal(model.seen.length, calls + 1, 'the short file alone was sent');
  const charges = await world.charges(account, calls + 1);
  const cents = charges.reduce((sum, charge) => sum + Math.round(Number(charge) * 100), 0);
  assert.deepEqual([charges.length, cents], [calls + 1, -(pieces.length + 1)]);
});

test('a worker that has lost its file keeps nothing more of it', async () => {
  await using model = await startModel();
  await using world = await openWorld({ embeddings: model.url });
  const { client } = await world.account();
  const { id } = await client.vectorStores.create({});
  const { id: file_id } = await client.files.create({ file: fileOf('a.txt', whole), purpose: 'assistants' });
  model.hold();
  await client.vectorStores.files.create(id, { file_id, chunking_strategy });
  await until('the first call of the model', async () => model.seen.length === 1);
  await client.vectorStores.files.delete(file_id, { vector_store_id: id });
  model.release();
  const other = await client.files.create({ file: fileOf('b.txt', 'a short one'), purpose: 'assistants' });
  await client.vectorStores.files.createAndPoll(id, { file_id: other.id }, polling);
  const { file_counts: counts } = await client.vectorStores.retrieve(id);
  assert.deepEqual([counts.total, counts.completed], [1, 1]);
  const found = await client.vectorStores.search(id, { query: 'x', max_num_results: 50 });
  assert.deepEqual(
    found.data.map(({ filename }) => filename),
    ['b.txt'],
  );
});

test('a file that waits when nothing of its account may be kept any more fails, and nothing of it stays', async () => {
  await using model = await startModel();
  await using world = await openWorld({ embeddings: model.url });
  const { client, id: name } = await world.account();
  const { id } = await client.vectorStores.create({});
  const { id: file_id } = await client.files.create({ file: fileOf('a.txt', whole), purpose: 'assistants' });
  model.hold();
  await client.vectorStores.files.create(id, { file_id, chunking_strategy });
  await until('the first call of the model', async () => model.seen.length === 1);
  const command = world.gateway.gateway.commands.find((one) => one.name === 'accounts retention')!;
  await command.run({ name, retention: 'none' });
  await until('the change', async () =>
    client.vectorStores.create({}).then(
      () => false,
      () => true,
    ),
  );
  model.release();
  const file = await client.vectorStores.files.poll(id, file_id, polling);
  assert.deepEqual([file.status, file.usage_bytes, model.seen.length], ['failed', 0, 1]);
});

test('an account pays one token for each piece of its files and each query, whatever their texts and pieces are', async () => {
  await using model = await startModel();
  await using world = await openWorld({ embeddings: model.url });
  const { client, id: account } = await world.account();
  const { id } = await client.vectorStores.create({});
  const words = fc.array(fc.constantFrom('ship ', 'é', '鯨', 'lighthouse. ', '\n\n', '🐋'), {
    minLength: 1,
    maxLength: 4_000,
  });
  let [tokens, calls] = [0, 0];
  await fc.assert(
    fc.asyncProperty(
      words,
      fc.integer({ min: 100, max: 200 }),
      fc.integer({ min: 0, max: 50 }),
      async (some, most, overlap) => {
        const text = `a${some.join('')}`.trim();
        const { id: file_id } = await client.files.create({ file: fileOf('a.txt', text), purpose: 'assistants' });
        const size = { max_chunk_size_tokens: most, chunk_overlap_tokens: overlap };
        const put = { file_id, chunking_strategy: { type: 'static' as const, static: size } };
        const file = await client.vectorStores.files.createAndPoll(id, put, polling);
        assert.equal(file.status, 'completed');
        await client.vectorStores.search(id, { query: ['one', 'two'] });
        tokens += [...chunksOf(text, { maxTokens: most, overlapTokens: overlap })].length + 2;
        assert.equal(model.seen.flat().length, tokens);
        calls = model.seen.length;
        const charges = await world.charges(account, calls);
        assert.equal(charges.length, calls);
        assert.equal(
          charges.reduce((sum, charge) => sum + Math.round(Number(charge) * 100), 0),
          -tokens,
        );
      },
    ),
    { numRuns: 6 },
  );
});
