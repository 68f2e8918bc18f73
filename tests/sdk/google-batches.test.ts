/** The official Google client orders batches, follows them and reads their results, before the demo gateway. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type ApiError, type BatchJob, GoogleGenAI, type InlinedRequest } from '@google/genai';
import { type Demo, model, shaped, startDemo } from './demo.ts';

let demo: Demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo.stop());

const keyHeaders = (key: string): Record<string, string> => ({ 'x-goog-api-key': key });

function client(apiVersion = 'v1beta', key = demo.keys.good): GoogleGenAI {
  return new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: demo.origin, apiVersion } });
}

const requestOf = (text: string, more: Partial<InlinedRequest> = {}): InlinedRequest => ({
  contents: [{ role: 'user', parts: [{ text }] }],
  ...more,
});
const failing = requestOf('[[sandbox: status=400]]');
const hasStatus = (status: number) => (error: ApiError) => error.status === status;

async function ended({ name }: BatchJob, { batches } = client()): Promise<BatchJob> {
  for (let tries = 0; tries < 600; tries++) {
    const batch = await batches.get({ name: name! });
    if (!['JOB_STATE_PENDING', 'JOB_STATE_RUNNING'].includes(batch.state!)) return batch;
    await pause(100);
  }
  throw new Error('the batch did not end');
}

for (const version of ['v1beta', 'v1', 'v1alpha']) {
  test(`requests in an order are answered inside it, each once, and paid (${version})`, async () => {
    const { batches } = client(version);
    const billed = await demo.billed();
    const config = { systemInstruction: 'Be brief.', maxOutputTokens: 100 };
    const placed = await batches.create({
      model,
      src: [
        requestOf('Say one', { metadata: { key: 'a' }, config }),
        failing,
        requestOf('Say three', { metadata: { key: 'a' } }),
      ],
      config: { displayName: 'Drei "Fragen"' },
    });
    assert.match(placed.name!, /^batches\/\w+$/);
    assert.deepEqual(
      [placed.displayName, placed.model, placed.state],
      ['Drei "Fragen"', `models/${model}`, 'JOB_STATE_PENDING'],
    );
    const batch = await ended(placed, client(version));
    assert.equal(batch.state, 'JOB_STATE_SUCCEEDED');
    assert.ok(batch.endTime! >= batch.createTime!);
    const answers = batch.dest!.inlinedResponses!;
    assert.deepEqual(
      answers.map(({ metadata, error }) => [metadata, error !== undefined]),
      [
        [{ key: 'a' }, false],
        [undefined, true],
        [{ key: 'a' }, false],
      ],
    );
    assert.match(answers[0]!.response!.candidates![0]!.content!.parts![0]!.text!, /Say one/);
    assert.ok(answers[2]!.response!.usageMetadata!.totalTokenCount! > 0);
    if (!shaped) assert.equal(answers[1]!.error!.code, 400);
    assert.equal(await demo.billed(), billed + 2);
    const raw = await fetch(`${demo.origin}/v1beta/${batch.name}`, { headers: keyHeaders(demo.keys.good) });
    const json = (await raw.json()) as { done: boolean; response: object; metadata: { output: object } };
    assert.equal(json.done, true);
    assert.deepEqual((json.response as { inlinedResponses: object }).inlinedResponses, {
      inlinedResponses: (json.metadata.output as { inlinedResponses: { inlinedResponses: object } }).inlinedResponses
        .inlinedResponses,
    });
    const other = client(version, demo.keys.narrow).batches;
    await assert.rejects(other.get({ name: batch.name! }), hasStatus(404));
    await assert.rejects(other.delete({ name: batch.name! }), hasStatus(404));
    await batches.delete({ name: batch.name! });
    await assert.rejects(batches.get({ name: batch.name! }), hasStatus(404));
  });
}

test('lines of a file are answered in a file', async () => {
  const { files, batches } = client();
  const lines = [
    { key: 'one', request: { contents: [{ parts: [{ text: 'Say one' }] }], generation_config: { temperature: 0.5 } } },
    { key: 'one', request: { contents: [{ parts: [{ text: 'Say two' }] }], model: `models/${model}` } },
    { request: failing },
  ];
  const text = `${lines.map((line) => JSON.stringify(line)).join('\r\n')}\r\n`;
  const source = await files.upload({ file: new Blob([text], { type: 'application/jsonl' }) });
  const batch = await ended(await batches.create({ model: `models/${model}`, src: source.name! }));
  assert.equal(batch.state, 'JOB_STATE_SUCCEEDED');
  const name = batch.dest!.fileName!;
  assert.equal((await files.get({ name })).source, 'GENERATED');
  const address = `${demo.origin}/download/v1beta/${name}:download?alt=media`;
  const results = (await (await fetch(address, { headers: keyHeaders(demo.keys.good) })).text()).trimEnd().split('\n');
  assert.deepEqual(
    // biome-ignore lint/suspicious/noExplicitAny: lines of two shapes
    results.map((line) => JSON.parse(line) as any).map(({ key, response, error }) => [key, !!response, !!error]),
    [
      ['one', true, false],
      ['one', true, false],
      [undefined, false, true],
    ],
  );
  await batches.delete({ name: batch.name! });
  await files.get({ name });
  await files.get({ name: source.name! });
});

test('embeddings are ordered as a list and as a file', async () => {
  const { files, batches } = client();
  const embedding = 'gemini-embedding-001';
  const billed = await demo.billed();
  const placed = await batches.createEmbeddings({
    model: embedding,
    src: { inlinedRequests: { contents: ['one', 'two'], config: { outputDimensionality: 64 } } },
    config: { displayName: 'words' },
  });
  assert.deepEqual([placed.displayName, placed.model], ['words', `models/${embedding}`]);
  const listed = await ended(placed);
  assert.equal(listed.state, 'JOB_STATE_SUCCEEDED');
  const vectors = listed.dest!.inlinedEmbedContentResponses!.map(({ response }) => response!.embedding!.values!);
  assert.deepEqual(
    vectors.map(({ length }) => length),
    [64, 64],
  );
  assert.notDeepEqual(vectors[0], vectors[1]);
  const line = { key: 'a', request: { content: { parts: [{ text: 'one' }] }, outputDimensionality: 64 } };
  const file = new Blob([`${JSON.stringify(line)}\n`], { type: 'application/jsonl' });
  const source = await files.upload({ file });
  const kept = await ended(await batches.createEmbeddings({ model: embedding, src: { fileName: source.name! } }));
  const address = `${demo.origin}/download/v1beta/${kept.dest!.fileName}:download?alt=media`;
  const result = (await (await fetch(address, { headers: keyHeaders(demo.keys.good) })).json()) as {
    key: string;
    response: { embedding: { values: number[] } };
  };
  assert.deepEqual([result.key, result.response.embedding.values], ['a', vectors[0]]);
  assert.equal(await demo.billed(), billed + 3);
  await assert.rejects(
    batches.createEmbeddings({ model: embedding, src: { inlinedRequests: { contents: [] } } }),
    hasStatus(400),
  );
  for (const { name } of [listed, kept]) await batches.delete({ name: name! });
});

test("lists have pages, with only this protocol's batches", async () => {
  const { batches } = client();
  const names: string[] = [];
  for (const text of ['1', '2', '3']) names.push((await batches.create({ model, src: [requestOf(text)] })).name!);
  const listed: string[] = [];
  for await (const { name } of await batches.list({ config: { pageSize: 2 } })) listed.push(name!);
  assert.deepEqual(listed, names.toReversed());
  const chat = await fetch(`${demo.origin}/v1/batches`, { headers: { authorization: `Bearer ${demo.keys.good}` } });
  assert.equal(((await chat.json()) as { object: string }).object, 'list');
  for (const name of names) {
    await ended({ name });
    await batches.delete({ name });
  }
});

test('a cancelled batch finishes its running lines and begins no others', async () => {
  const { batches } = client();
  const slow = Array.from({ length: 12 }, () => requestOf('[[sandbox: delay=1500ms]]'));
  const placed = await batches.create({ model, src: slow });
  await pause(500);
  await assert.rejects(batches.delete({ name: placed.name! }), hasStatus(400));
  await batches.cancel({ name: placed.name! });
  const batch = await ended(placed);
  assert.equal(batch.state, 'JOB_STATE_CANCELLED');
  const answers = batch.dest!.inlinedResponses!;
  assert.equal(answers.length, 12);
  assert.ok(answers.some(({ error }) => error !== undefined));
});

test('faults of an order are reported, and nothing is kept of it', async () => {
  const { batches, files } = client();
  const kept = async () => {
    const names: string[] = [];
    for await (const { name } of await files.list()) names.push(name!);
    return names;
  };
  const order = async (batch: unknown, name = model) => {
    const answer = await fetch(`${demo.origin}/v1beta/models/${name}:batchGenerateContent`, {
      method: 'POST',
      headers: { ...keyHeaders(demo.keys.good), 'content-type': 'application/json' },
      body: JSON.stringify({ batch }),
    });
    const json = (await answer.json()) as { error?: { message: string }; message?: string };
    return [answer.status, json.error?.message ?? json.message ?? ''] as const;
  };
  const requests = (...list: unknown[]) => ({ input_config: { requests: { requests: list } } });
  const request = { contents: [] };
  const before = await kept();
  const cases: [unknown, number, RegExp][] = [
    [undefined, 400, /"batch"/],
    [{}, 400, /inputConfig/],
    [requests(), 400, /not empty/],
    [{ inputConfig: { fileName: 'files/none' } }, 404, /no such file/],
    [requests({ request }, {}), 400, /requests\[1\]/],
    [requests({ request: {} }), 400, /contents/],
    [requests({ request: { ...request, model: 'models/other' } }), 400, /model of the batch/],
    [requests({ request, metadata: { key: 'x'.repeat(300) } }), 400, /shorter/],
    [{ ...requests({ request }), webhookConfig: {} }, 422, /webhookConfig/],
  ];
  for (const [batch, status, words] of cases) {
    const [answered, message] = await order(batch);
    assert.equal(answered, status);
    assert.match(message, words);
  }
  assert.equal((await order(requests({ request }), 'nowhere'))[0], 404);
  const narrow = client('v1beta', demo.keys.narrow).batches;
  await assert.rejects(narrow.create({ model, src: [requestOf('x')] }), hasStatus(404));
  const bad = await files.upload({
    file: new Blob(['{"request":{"contents":[]}}\nno json\n'], { type: 'text/plain' }),
  });
  await assert.rejects(batches.create({ model, src: bad.name! }), (error: ApiError) => /line 2/.test(error.message));
  assert.deepEqual(await kept(), [bad.name, ...before]);
  assert.equal((await demo.audit()).violations.length, 0);
});
