/** `/v1/vector_stores` by the official client: the whole life of a store, what others see of it, what it costs, and what is refused. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { until } from '../../helpers/until.ts';
import { fileOf, openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  world = await openWorld({ settings: ', account: { stores: 5, files: 8, chunks: 40 }' });
});
after(() => world.gateway.stop());

const whales = 'Whales are mammals. They breathe air and sing songs in the deep sea.';
const cheese = 'Cheese is made of milk. Some of it ripens in caves for two years.';
const polling = { pollIntervalMs: 20 };

test('a store is created, filled, searched, changed, listed and deleted by the official client', async () => {
  const { client } = await world.account();
  const store = await client.vectorStores.create({
    ...{ name: 'knowledge', metadata: { team: 'zoo' }, expires_after: { anchor: 'last_active_at', days: 7 } },
  });
  assert.deepEqual(
    [store.object, store.name, store.status, store.usage_bytes],
    ['vector_store', 'knowledge', 'completed', 0],
  );
  assert.deepEqual([store.metadata, store.expires_after], [{ team: 'zoo' }, { anchor: 'last_active_at', days: 7 }]);
  assert.equal(store.expires_at, store.last_active_at! + 7 * 86_400);
  const upload = await client.files.create({ file: fileOf('whales.txt', whales), purpose: 'assistants' });
  const file = await client.vectorStores.files.createAndPoll(
    store.id,
    { file_id: upload.id, attributes: { topic: 'sea', year: 2024 } },
    polling,
  );
  assert.deepEqual(
    [file.status, file.id, file.vector_store_id, file.last_error],
    ['completed', upload.id, store.id, null],
  );
  assert.deepEqual(file.attributes, { topic: 'sea', year: 2024 });
  assert.deepEqual(file.chunking_strategy, {
    type: 'static',
    static: { max_chunk_size_tokens: 800, chunk_overlap_tokens: 400 },
  });
  const batch = await client.vectorStores.fileBatches.uploadAndPoll(
    store.id,
    { files: [fileOf('cheese.md', cheese)] },
    polling,
  );
  assert.deepEqual([batch.status, batch.file_counts.completed, batch.file_counts.total], ['completed', 1, 1]);
  const ofBatch = await client.vectorStores.fileBatches.listFiles(batch.id, { vector_store_id: store.id });
  assert.equal(ofBatch.data.length, 1);

  const found = await client.vectorStores.search(store.id, { query: 'songs of whales', max_num_results: 1 });
  assert.deepEqual(
    found.data.map(({ filename, content, attributes }) => [filename, content, attributes]),
    [['whales.txt', [{ type: 'text', text: whales }], { topic: 'sea', year: 2024 }]],
  );
  assert.ok(found.data[0]!.score > 0 && found.data[0]!.score <= 1);
  const both = await client.vectorStores.search(store.id, { query: ['songs of whales', 'milk and cheese'] });
  assert.deepEqual(both.data.map(({ filename }) => filename).sort(), ['cheese.md', 'whales.txt']);

  const content = await client.vectorStores.files.content(upload.id, { vector_store_id: store.id });
  assert.deepEqual(content.data, [{ type: 'text', text: whales }]);
  const changed = await client.vectorStores.files.update(upload.id, {
    ...{ vector_store_id: store.id, attributes: { topic: 'mammals' } },
  });
  assert.deepEqual(changed.attributes, { topic: 'mammals' });
  const renamed = await client.vectorStores.update(store.id, { name: 'facts', expires_after: null });
  assert.deepEqual([renamed.name, renamed.expires_at, renamed.metadata], ['facts', null, { team: 'zoo' }]);
  assert.equal(renamed.file_counts.completed, 2);
  assert.ok(renamed.usage_bytes > 0);

  const gone = await client.vectorStores.files.delete(upload.id, { vector_store_id: store.id });
  assert.deepEqual(gone, { id: upload.id, object: 'vector_store.file.deleted', deleted: true });
  await client.files.retrieve(upload.id);
  assert.deepEqual(
    (await client.vectorStores.search(store.id, { query: 'songs of whales' })).data.map(({ filename }) => filename),
    ['cheese.md'],
  );
  assert.equal((await client.vectorStores.delete(store.id)).deleted, true);
  await assert.rejects(client.vectorStores.retrieve(store.id), OpenAI.NotFoundError);
});

test('lists are read in pages, forwards and backwards', async () => {
  const { client } = await world.account();
  const made: string[] = [];
  for (const name of ['a', 'b', 'c', 'd', 'e']) made.push((await client.vectorStores.create({ name })).id);
  const all: string[] = [];
  for await (const { id } of client.vectorStores.list({ limit: 2 })) all.push(id);
  assert.deepEqual(all, made.toReversed());
  const page = await client.vectorStores.list({ limit: 2, order: 'asc', before: made[3]! });
  assert.deepEqual([page.data.map(({ id }) => id), page.has_more], [[made[1], made[2]], true]);
  await assert.rejects(client.vectorStores.create({ name: 'f' }), { status: 403, code: 'vector_store_space_used_up' });
});

test('a search with filters finds files by their attributes, and one with a threshold leaves out texts that are too far', async () => {
  const { client } = await world.account();
  const { id } = await client.vectorStores.create({});
  for (const [name, attributes] of [
    ['one.txt', { year: 2020, kind: 'note', open: true }],
    ['two.txt', { year: 2024, kind: 'letter', open: false }],
    ['three.txt', { kind: 'note' }],
  ] as const) {
    const { id: file_id } = await client.files.create({
      file: fileOf(name, `${whales} ${name}`),
      purpose: 'assistants',
    });
    await client.vectorStores.files.createAndPoll(id, { file_id, attributes: { ...attributes } }, polling);
  }
  const names = async (filters: OpenAI.ComparisonFilter | OpenAI.CompoundFilter) =>
    (await client.vectorStores.search(id, { query: 'whales', filters })).data.map(({ filename }) => filename).sort();
  const year = (type: OpenAI.ComparisonFilter['type'], value: number) => names({ type, key: 'year', value });
  assert.deepEqual(await year('gt', 2020), ['two.txt']);
  assert.deepEqual(await year('gte', 2020), ['one.txt', 'two.txt']);
  assert.deepEqual(await year('lt', 2024), ['one.txt']);
  assert.deepEqual(await year('lte', 2024), ['one.txt', 'two.txt']);
  assert.deepEqual(await year('eq', 2024), ['two.txt']);
  assert.deepEqual(await year('ne', 2024), ['one.txt', 'three.txt']);
  assert.deepEqual(await names({ type: 'in', key: 'kind', value: ['letter', 'post'] }), ['two.txt']);
  assert.deepEqual(await names({ type: 'nin', key: 'kind', value: ['letter'] }), ['one.txt', 'three.txt']);
  assert.deepEqual(await names({ type: 'eq', key: 'open', value: true }), ['one.txt']);
  const late: OpenAI.ComparisonFilter = { type: 'gt', key: 'year', value: 2022 };
  const note: OpenAI.ComparisonFilter = { type: 'eq', key: 'kind', value: 'note' };
  assert.deepEqual(await names({ type: 'or', filters: [late, note] }), ['one.txt', 'three.txt', 'two.txt']);
  assert.deepEqual(await names({ type: 'and', filters: [late, note] }), []);
  const near = await client.vectorStores.search(id, { query: whales, ranking_options: { score_threshold: 0.99 } });
  assert.deepEqual(near.data, []);
  await assert.rejects(
    client.vectorStores.search(id, {
      query: 'x',
      filters: { type: 'and', filters: [{ type: 'gt', key: 'year', value: 'x' }] },
    }),
    { status: 400, param: 'filters.filters[0].value' },
  );
});

test('a store, its files and its batches are not there for another account', async () => {
  const [one, other] = [await world.account(), await world.account()];
  const upload = await one.client.files.create({ file: fileOf('a.txt', cheese), purpose: 'assistants' });
  const { id } = await one.client.vectorStores.create({ file_ids: [upload.id] });
  const own = await other.client.vectorStores.create({});
  const batch = await one.client.vectorStores.fileBatches.create(id, { file_ids: [upload.id] });
  const of = { vector_store_id: id };
  const { vectorStores: stores } = other.client;
  const probes: (() => PromiseLike<unknown>)[] = [
    () => stores.retrieve(id),
    () => stores.update(id, { name: 'x' }),
    () => stores.delete(id),
    () => stores.search(id, { query: 'milk' }),
    () => stores.files.list(id),
    () => stores.files.retrieve(upload.id, of),
    () => stores.files.update(upload.id, { ...of, attributes: {} }),
    () => stores.files.delete(upload.id, of),
    () => stores.files.content(upload.id, of),
    () => stores.files.create(id, { file_id: upload.id }),
    () => stores.files.create(own.id, { file_id: upload.id }),
    () => stores.fileBatches.create(own.id, { file_ids: [upload.id] }),
    () => stores.fileBatches.retrieve(batch.id, of),
    () => stores.fileBatches.retrieve(batch.id, { vector_store_id: own.id }),
    () => stores.fileBatches.cancel(batch.id, of),
    () => stores.fileBatches.listFiles(batch.id, of),
  ];
  for (const probe of probes) await assert.rejects(Promise.resolve().then(probe), { status: 404 }, String(probe));
  assert.equal((await one.client.vectorStores.retrieve(id)).name, null);
});

test('requests for things that do not exist are refused by their field, and files that are no text fail by their reason', async () => {
  const { client } = await world.account();
  const { id } = await client.vectorStores.create({});
  const { vectorStores: stores } = client;
  const refused: [() => PromiseLike<unknown>, string][] = [
    [() => stores.create({ expires_after: { anchor: 'last_active_at', days: 366 } }), 'expires_after.days'],
    [() => stores.create({ file_ids: ['file-none'] }), 'file_ids[0]'],
    [() => stores.create({ rank: 1 } as never), 'rank'],
    [
      () =>
        stores.create({
          chunking_strategy: { type: 'static', static: { max_chunk_size_tokens: 100, chunk_overlap_tokens: 51 } },
        }),
      'chunking_strategy.static.chunk_overlap_tokens',
    ],
    [() => stores.files.create(id, { file_id: 'file-none' }), 'file_id'],
    [() => stores.search(id, { query: '' }), 'query'],
    [() => stores.search(id, { query: 'x', max_num_results: 51 }), 'max_num_results'],
    [
      () => stores.search(id, { query: 'x', ranking_options: { score_threshold: 2 } }),
      'ranking_options.score_threshold',
    ],
    [() => stores.search(id, { query: 'x', rewrite_query: true }), 'rewrite_query'],
    [() => stores.files.create(id, { file_id: 'f', attributes: { a: 'x'.repeat(513) } }), 'attributes'],
    [() => stores.list({ limit: 101 }), 'limit'],
  ];
  for (const [ask, param] of refused)
    await assert.rejects(
      Promise.resolve().then(ask),
      (error) => error instanceof OpenAI.APIError && error.param === param,
      param,
    );
  const put = async (name: string, bytes: string | Uint8Array<ArrayBuffer>) => {
    const { id: file_id } = await client.files.create({ file: fileOf(name, bytes), purpose: 'assistants' });
    return stores.files.createAndPoll(id, { file_id }, polling);
  };
  const codes: (string | undefined)[] = [];
  for (const [name, bytes] of [
    ['a.pdf', '%PDF-1.7 text'],
    ['a.bin', new Uint8Array([1, 0, 2])],
    ['a.txt', new Uint8Array([0xc3, 0x28])],
    ['a.html', '<p> </p>'],
  ] as const) {
    const { status, last_error } = await put(name, bytes);
    assert.equal(status, 'failed', name);
    codes.push(last_error?.code);
  }
  assert.deepEqual(codes, ['unsupported_file', 'unsupported_file', 'unsupported_file', 'invalid_file']);
});

test('a file that needs more chunks than the account has left fails whole, and nothing of it is found', async () => {
  const { client, id: account } = await world.account();
  const { id } = await client.vectorStores.create({});
  const text = Array.from({ length: 3_000 }, (_, index) => `word${index}`).join(' ');
  const chunking_strategy = {
    type: 'static' as const,
    static: { max_chunk_size_tokens: 100, chunk_overlap_tokens: 0 },
  };
  const { id: file_id } = await client.files.create({ file: fileOf('a.txt', text), purpose: 'assistants' });
  const file = await client.vectorStores.files.createAndPoll(id, { file_id, chunking_strategy }, polling);
  assert.deepEqual([file.status, file.usage_bytes, file.last_error?.code], ['failed', 0, 'server_error']);
  assert.match(file.last_error!.message, /all the space/);
  assert.deepEqual((await client.vectorStores.search(id, { query: 'word1' })).data, []);
  assert.ok((await world.charges(account, 1)).length >= 1);
});

test('a store forgets an uploaded file that its client deletes', async () => {
  const { client } = await world.account();
  const { id: file_id } = await client.files.create({ file: fileOf('a.txt', whales), purpose: 'assistants' });
  const { id } = await client.vectorStores.create({});
  await client.vectorStores.files.createAndPoll(id, { file_id }, polling);
  await client.files.delete(file_id);
  assert.deepEqual((await client.vectorStores.search(id, { query: 'whales' })).data, []);
  assert.equal((await client.vectorStores.retrieve(id)).file_counts.total, 0);
});

test('each vector is paid once, as a call of the model, and a store without money gets and finds nothing', async () => {
  const { client, id: account } = await world.account('1000');
  const { id: file_id } = await client.files.create({ file: fileOf('a.txt', whales), purpose: 'assistants' });
  const { id } = await client.vectorStores.create({});
  await client.vectorStores.files.createAndPoll(id, { file_id }, polling);
  await client.vectorStores.files.createAndPoll(id, { file_id, attributes: { again: true } }, polling);
  const direct = await client.embeddings.create({ model: 'vectors', input: whales });
  await client.vectorStores.search(id, { query: whales });
  const charges = await world.charges(account, 3);
  assert.equal(charges.length, 3);
  assert.equal(new Set(charges).size, 1, 'as much as the client would have paid');
  assert.equal(Number(charges[0]), -direct.usage.prompt_tokens / 100);
  const poor = await world.account('0.000001');
  const own = await poor.client.files.create({ file: fileOf('a.txt', whales), purpose: 'assistants' });
  const store = await poor.client.vectorStores.create({});
  const file = await poor.client.vectorStores.files.createAndPoll(store.id, { file_id: own.id }, polling);
  assert.deepEqual([file.status, file.last_error?.code], ['failed', 'server_error']);
  await assert.rejects(poor.client.vectorStores.search(store.id, { query: 'whales' }), { status: 402 });
});

test('files of a batch that are not done when it is cancelled stay cancelled', async () => {
  const { client } = await world.account();
  const { id } = await client.vectorStores.create({});
  const uploads = await Promise.all(
    ['a', 'b', 'c', 'd'].map((name) =>
      client.files.create({ file: fileOf(`${name}.txt`, `${cheese} ${name}`), purpose: 'assistants' }),
    ),
  );
  const batch = await client.vectorStores.fileBatches.create(id, { file_ids: uploads.map((one) => one.id) });
  await client.vectorStores.fileBatches.cancel(batch.id, { vector_store_id: id });
  const end = await client.vectorStores.fileBatches.poll(id, batch.id, polling);
  const { completed, cancelled, total, in_progress: open } = end.file_counts;
  assert.deepEqual([completed + cancelled, open], [total, 0]);
  assert.equal(total, 4);
});

test('an account of which nothing is kept gets no stores, and puts nothing into those that it has', async () => {
  const { client, id: account } = await world.account();
  const { id } = await client.vectorStores.create({});
  const command = world.gateway.gateway.commands.find(({ name }) => name === 'accounts retention')!;
  await command.run({ name: account, retention: 'none' });
  await until('the change', async () =>
    client.vectorStores.create({}).then(
      () => false,
      () => true,
    ),
  );
  const refused = { status: 403, code: 'retention_none' };
  await assert.rejects(client.vectorStores.create({}), refused);
  await assert.rejects(client.vectorStores.files.create(id, { file_id: 'file-none' }), refused);
  await assert.rejects(client.vectorStores.fileBatches.create(id, { file_ids: ['file-none'] }), refused);
  assert.equal((await client.vectorStores.delete(id)).deleted, true);
});
