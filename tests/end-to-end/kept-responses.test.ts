/** Answers that clients come back to by id, through the whole gateway: continued, read, listed, deleted; no other account's. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import OpenAI from 'openai';
import { until } from '../helpers/until.ts';
import { type Customer, modelAt, startTestbed, usdInNano } from './testbed.ts';

const testbed = await startTestbed({
  providers: ({ sandbox }) => ({
    'chat-vendor': { keys: 'vendor-key-of-the-sandbox', speaks: { chat: `${sandbox}/v1` } },
  }),
  models: { 'chat-only': modelAt('chat-vendor/sandbox') },
});
after(() => testbed.stop());

const clientOf = ({ key }: Customer) => new OpenAI({ apiKey: key, baseURL: `${testbed.origin}/v1`, maxRetries: 0 });
const anna = await testbed.customer({ nanoUsd: usdInNano });
const bert = await testbed.customer({ nanoUsd: usdInNano });

const notFound = { status: 404, type: 'invalid_request_error' };
const lost = { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' };

const report = (id: string) => {
  const response = { id, object: 'response', created_at: 1, status: 'completed', model: 'replay', output: [] };
  const usage = { input_tokens: 500, output_tokens: 20, total_tokens: 520 };
  return JSON.stringify({ ...response, usage });
};
const streamOf = (id: string) => {
  const frame = (type: string, response: string) =>
    `event: ${type}\ndata: {"type":"${type}","sequence_number":0,"response":${response}}\n\n`;
  return frame('response.created', report(id)) + frame('response.completed', report(id));
};
const json = { headers: { 'content-type': 'application/json' } };

test('a relayed streamed answer can be continued right after its end, only by its account', async () => {
  const client = clientOf(anna);
  testbed.replay.play(
    { headers: { 'content-type': 'text/event-stream' }, body: streamOf('resp_1') },
    { ...json, body: report('resp_2') },
  );
  const { id } = await client.responses.stream({ model: 'replay', input: 'one' }).finalResponse();
  const next = { model: 'replay', input: 'two', previous_response_id: id };
  await assert.rejects(clientOf(bert).responses.create(next), lost);
  await assert.rejects(clientOf(bert).responses.retrieve(id), notFound);
  await assert.rejects(clientOf(bert).responses.inputItems.list(id), notFound);
  const answer = await client.responses.create(next);
  assert.equal(answer.id, 'resp_2');
  const sent = testbed.replay.requests.at(-1)!;
  assert.deepEqual(JSON.parse(sent.body.toString()), next);
  assert.equal((await testbed.records(anna, 2)).charges.at(-1)!.classes.input, 500);
});

test('a relayed answer is read and deleted at its vendor, without a charge', async () => {
  const client = clientOf(anna);
  testbed.replay.play({ ...json, body: report('resp_3') });
  await client.responses.create({ model: 'replay', input: 'one' });
  await testbed.records(anna, 3);
  const before = await testbed.balance(anna);
  assert.equal((await client.responses.retrieve('resp_3')).id, 'resp_3');
  assert.equal(testbed.replay.requests.at(-1)!.method, 'GET');
  assert.equal(testbed.replay.requests.at(-1)!.url, '/v1/responses/resp_3');
  await client.responses.delete('resp_3');
  assert.equal(testbed.replay.requests.at(-1)!.method, 'DELETE');
  await assert.rejects(client.responses.retrieve('resp_3'), notFound);
  assert.equal(await testbed.balance(anna), before);
});

test('an id that was never issued is refused before anything is sent or held', async () => {
  const client = clientOf(anna);
  const before = testbed.sandbox.bill();
  await assert.rejects(
    client.responses.create({ model: 'sandbox', input: 'x', previous_response_id: 'resp_no' }),
    lost,
  );
  await assert.rejects(client.responses.retrieve('resp_no'), notFound);
  await assert.rejects(client.responses.delete('resp_no'), notFound);
  await assert.rejects(client.responses.cancel('resp_no'), notFound);
  assert.deepEqual(testbed.sandbox.bill(), before);
});

test('a response is not cancelled, whether its vendor or the gateway stores it', async () => {
  const client = clientOf(anna);
  const refused = { status: 400, type: 'invalid_request_error', code: 'unsupported' };
  for (const [index, model] of ['sandbox', 'chat-only'].entries()) {
    const background = client.responses.create({ model, input: 'one', background: true });
    await assert.rejects(background, { status: 400, param: 'background' });
    const { id } = await client.responses.create({ model, input: 'one' });
    await testbed.records(anna, 4 + index);
    const [balance, bill] = [await testbed.balance(anna), testbed.sandbox.bill()];
    await assert.rejects(client.responses.cancel(id), refused, model);
    assert.equal((await client.responses.retrieve(id)).status, 'completed');
    assert.deepEqual([await testbed.balance(anna), testbed.sandbox.bill()], [balance, bill]);
    await assert.rejects(clientOf(bert).responses.cancel(id), notFound);
  }
});

test('stored chat completions are refused in the form of the protocol', async () => {
  const { completions } = clientOf(anna).chat;
  const refused = { status: 404, type: 'invalid_request_error', code: 'unsupported' };
  await assert.rejects(Promise.resolve(completions.list()), refused);
  await assert.rejects(completions.retrieve('chatcmpl-1'), refused);
  await assert.rejects(completions.update('chatcmpl-1', { metadata: { a: 'b' } }), refused);
  await assert.rejects(completions.delete('chatcmpl-1'), refused);
  await assert.rejects(Promise.resolve(completions.messages.list('chatcmpl-1')), refused);
});

test('reading a stored answer needs a key', async () => {
  const answer = await fetch(`${testbed.origin}/v1/responses/resp_x`);
  assert.equal(answer.status, 401);
});

test('counting the tokens of a responses prompt is free and answered by the vendor', async () => {
  const client = clientOf(anna);
  const before = await testbed.balance(anna);
  const { input_tokens: tokens, object } = await client.responses.inputTokens.count({
    model: 'sandbox',
    input: 'hello there',
  });
  assert.equal(object, 'response.input_tokens');
  assert.ok(tokens > 0);
  assert.equal(await testbed.balance(anna), before);
});

test('the database keeps stored answers by account', async () => {
  const client = clientOf(anna);
  const { id } = await client.responses.create({ model: 'sandbox', input: 'kept' });
  const row = await until('the answer is written', async () => {
    const rows = await testbed.rows<{ id: string; account_id: string; kind: string }>('kept_responses');
    return rows.find((one) => one.id === id);
  });
  assert.deepEqual([row.account_id, row.kind], [anna.accountId, 'relayed']);
});
