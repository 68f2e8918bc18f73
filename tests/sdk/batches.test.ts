/** The official OpenAI and Anthropic clients order batches, follow them and read their results, before the demo gateway. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI, { toFile } from 'openai';
import { until } from '../helpers/until.ts';
import { type Demo, model, shaped, startDemo } from './demo.ts';

let demo: Demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo.stop());

const openai = (key = demo.keys.good) => new OpenAI({ baseURL: `${demo.origin}/v1`, apiKey: key, maxRetries: 0 });
const anthropic = (key = demo.keys.good) => new Anthropic({ baseURL: demo.origin, apiKey: key, maxRetries: 0 });

const chatLine = (custom_id: string, body: object, more: object = {}) => ({
  custom_id,
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model, messages: [{ role: 'user', content: `Say ${custom_id}` }], ...body },
  ...more,
});

async function order(lines: readonly (object | string)[], client = openai()) {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
  const file = await client.files.create({ file: await toFile(Buffer.from(text), 'in.jsonl'), purpose: 'batch' });
  return client.batches.create({
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
    metadata: { of: 'a test' },
  });
}

async function ended(id: string, client = openai()) {
  for (let tries = 0; tries < 600; tries++) {
    const batch = await client.batches.retrieve(id, { maxRetries: 3 });
    if (['completed', 'failed', 'expired', 'cancelled'].includes(batch.status)) return batch;
    await pause(100);
  }
  throw new Error('the batch did not end');
}

const linesIn = async (id: string) =>
  (await (await openai().files.content(id)).text())
    .trimEnd()
    .split('\n')
    // biome-ignore lint/suspicious/noExplicitAny: lines of two shapes
    .map((line) => JSON.parse(line) as any);

test('each line is answered once, in the files of results and errors, and is a paid call', async () => {
  const billed = await demo.billed();
  const placed = await order([
    chatLine('one', {}),
    chatLine('two', {}),
    '',
    chatLine('bad', { model: 'no-such-model' }),
    chatLine('three', { messages: [{ role: 'user', content: '[[sandbox: status=400]]' }] }),
  ]);
  assert.deepEqual(
    [placed.object, placed.endpoint, placed.metadata],
    ['batch', '/v1/chat/completions', { of: 'a test' }],
  );
  const batch = await ended(placed.id);
  assert.equal(batch.status, 'completed');
  assert.deepEqual(batch.request_counts, { total: 4, completed: 2, failed: 2 });
  const { input_tokens, output_tokens, total_tokens } = batch.usage!;
  assert.ok(input_tokens > 0 && output_tokens > 0 && total_tokens === input_tokens + output_tokens);
  const answers = await linesIn(batch.output_file_id!);
  assert.deepEqual(
    answers.map(({ custom_id }) => custom_id),
    ['one', 'two'],
  );
  for (const { response, error } of answers) {
    assert.deepEqual([response.status_code, error], [200, null]);
    assert.equal(response.body.object, 'chat.completion');
    assert.ok(response.request_id);
  }
  const failures = await linesIn(batch.error_file_id!);
  assert.deepEqual(
    failures.map(({ custom_id, response }) => [custom_id, response.status_code]),
    [
      ['bad', 404],
      ['three', 400],
    ],
  );
  assert.equal(await demo.billed(), billed + 2);
  const client = new OpenAI({ baseURL: `${demo.origin}/v1`, apiKey: 'unused', adminAPIKey: demo.keys.good });
  // The ledger is written a moment after the batch has ended.
  await until('the sums of both lines', async () => {
    const report = await client.admin.organization.usage.completions({ start_time: batch.created_at - 60 });
    const [sums] = report.data.flatMap(({ results }) => results);
    return sums?.object === 'organization.usage.completions.result' && sums.num_model_requests === 2;
  });
  assert.deepEqual(
    (await openai().batches.list()).data.map(({ id }) => id),
    [batch.id],
  );
  await assert.rejects(openai(demo.keys.narrow).batches.retrieve(batch.id), { status: 404 });
  await assert.rejects(openai(demo.keys.narrow).files.content(batch.output_file_id!), { status: 404 });
});

test('an input with mistakes fails as a whole, with the line and the field of each, and nothing is sent', async () => {
  const billed = await demo.billed();
  const placed = await order([
    chatLine('one', {}),
    'no json',
    chatLine('one', {}),
    chatLine('two', { stream: true }),
    chatLine('three', {}, { url: '/v1/embeddings' }),
    chatLine('four', { model: '' }),
  ]);
  const batch = await ended(placed.id);
  assert.equal(batch.status, 'failed');
  assert.deepEqual(
    batch.errors!.data!.map(({ line, code, param }) => [line, code, param]),
    [
      [2, 'invalid_json_line', null],
      [3, 'duplicate_custom_id', 'custom_id'],
      [4, 'invalid_request', 'body.stream'],
      [5, 'invalid_url', 'url'],
      [6, 'missing_required_parameter', 'body.model'],
    ],
  );
  assert.equal(await demo.billed(), billed);
});

test('a cancelled batch ends with its finished lines, and names the rest', async () => {
  const slow = '[[sandbox: delay=1500ms]]';
  const lines = Array.from({ length: 12 }, (_, index) =>
    chatLine(`line-${index}`, { messages: [{ role: 'user', content: slow }] }),
  );
  const placed = await order(lines);
  while ((await openai().batches.retrieve(placed.id)).status !== 'in_progress') await pause(50);
  await pause(300);
  assert.equal((await openai().batches.cancel(placed.id)).status, 'cancelling');
  const batch = await ended(placed.id);
  assert.equal(batch.status, 'cancelled');
  const { total, completed, failed } = batch.request_counts!;
  assert.equal(total, 12);
  assert.equal(completed + failed, 12);
  assert.ok(failed > 0);
  const rest = await linesIn(batch.error_file_id!);
  assert.ok(rest.every(({ response, error }) => response === null && error.code === 'batch_cancelled'));
  if (completed > 0) assert.equal((await linesIn(batch.output_file_id!)).length, completed);
});

test('a batch whose first line the balance does not cover is refused with the needed amount', async () => {
  await assert.rejects(order([chatLine('one', {})], openai(demo.keys.broke)), (error) => {
    assert.ok(error instanceof OpenAI.APIError);
    assert.equal(error.status, 402);
    assert.match(error.message, /The first request of this batch needs 0\.\d+ USD at most/);
    return true;
  });
});

test('the other client has its own form of batches, of any model', async () => {
  const { batches } = anthropic().messages;
  const message = (model: string) => ({ model, max_tokens: 50, messages: [{ role: 'user' as const, content: 'Hi' }] });
  const placed = await batches.create({
    requests: [
      { custom_id: 'first', params: message('claude-opus-5') },
      { custom_id: 'second', params: message(model) },
      { custom_id: 'third', params: message('no-such-model') },
      { custom_id: 'fourth', params: Object.assign(message('claude-opus-5'), { fallbacks: [{ model: 'dear' }] }) },
    ],
  });
  assert.deepEqual(
    [placed.type, placed.processing_status, placed.request_counts.processing],
    ['message_batch', 'in_progress', 0],
  );
  let batch = placed;
  while (batch.processing_status !== 'ended') {
    await pause(100);
    batch = await batches.retrieve(placed.id);
  }
  assert.deepEqual(batch.request_counts, { processing: 0, succeeded: 2, errored: 2, canceled: 0, expired: 0 });
  const results = new Map<string, Anthropic.Messages.MessageBatchResult>();
  for await (const { custom_id, result } of await batches.results(placed.id)) results.set(custom_id, result);
  const first = results.get('first');
  assert.ok(first?.type === 'succeeded' && first.message.type === 'message' && first.message.content.length > 0);
  assert.equal(results.get('second')?.type, 'succeeded');
  const third = results.get('third');
  assert.ok(third?.type === 'errored');
  if (!shaped) assert.equal(third.error.error.type, 'not_found_error');
  const fourth = results.get('fourth');
  assert.ok(fourth?.type === 'errored' && JSON.stringify(fourth).includes('fallbacks[0].model'));
  const listed: string[] = [];
  for await (const { id } of batches.list()) listed.push(id);
  assert.deepEqual(listed, [placed.id]);
  await assert.rejects(anthropic(demo.keys.narrow).messages.batches.retrieve(placed.id), { status: 404 });
  assert.deepEqual(await batches.delete(placed.id), { id: placed.id, type: 'message_batch_deleted' });
  await assert.rejects(batches.retrieve(placed.id), { status: 404 });
});

test('faults of an order are reported', async () => {
  const file = await openai().files.create({ file: await toFile(Buffer.from('{}'), 'x'), purpose: 'user_data' });
  const base = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' } as const;
  await assert.rejects(openai().batches.create(base), { status: 400 });
  await assert.rejects(openai().batches.create({ ...base, input_file_id: 'file-none' }), { status: 404 });
  await assert.rejects(openai().batches.create({ ...base, endpoint: '/v1/videos' }), { status: 400 });
  await assert.rejects(openai().batches.create({ ...base, completion_window: '1h' as '24h' }), { status: 400 });
  await assert.rejects(anthropic().messages.batches.create({ requests: [] }), { status: 400 });
});

test('the ledger passes its audit at the end', async () => {
  assert.deepEqual((await demo.audit()).violations, []);
});
