/** Requests that build on earlier answers: written out, pinned to who keeps them, or refused by the one code clients know. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import { call } from '../../../../plugins/common/domain/calls.ts';
import { targetFor } from '../harness.ts';
import { message, user, type World, world } from './harness.ts';

const first = { model: 'm', input: 'What is red?' };

function lost(field = 'previous_response_id') {
  return (error: unknown) => {
    assert.ok(error instanceof GatewayError, String(error));
    assert.deepEqual([error.status, error.code, error.field], [400, 'previous_response_not_found', field]);
    return true;
  };
}

function sentInput(at: Awaited<ReturnType<World['open']>>): JsonObject[] {
  const { body } = at.request.prepare(targetFor('responses', 'm'));
  return (JSON.parse(Buffer.from(body).toString()) as { input: JsonObject[] }).input;
}

test('a request that builds on nothing is opened without waiting for anything', async () => {
  const { state } = await world();
  const request = { builtOn: undefined } as never;
  assert.equal(state.resolver.resolve({} as never, request), undefined);
});

test('a kept answer is continued by the whole conversation up to it', async () => {
  const here = await world();
  const id = await here.keep(first, [message('A colour.')]);
  const { request } = await here.open({ model: 'm', previous_response_id: id, input: 'And blue?' });
  assert.equal('previous_response_id' in request.json, false);
  assert.equal(request.clientJson?.['previous_response_id'], id, 'answers echo what the client sent');
  const texts = (request.json['input'] as JsonObject[]).map((item) => JSON.stringify(item['content']));
  assert.equal(texts.length, 3);
  assert.match(texts[0]!, /What is red/);
  assert.match(texts[1]!, /A colour/);
  assert.match(texts[2]!, /And blue/);
});

test('a chain of answers holds everything from its beginning', async () => {
  const here = await world();
  let id = await here.keep(first, [message('one', 'msg_1')]);
  for (const word of ['two', 'three', 'four'])
    id = await here.keep({ model: 'm', previous_response_id: id, input: `${word}?` }, [message(word, `msg_${word}`)]);
  const { request } = await here.open({ model: 'm', previous_response_id: id, input: 'last' });
  assert.equal((request.json['input'] as unknown[]).length, 9);
});

test('the call counts the expanded conversation, so that the money held covers it', async () => {
  const here = await world();
  const id = await here.keep({ model: 'm', input: 'x'.repeat(40_000) }, [message('y'.repeat(10_000))]);
  const { exchange } = await here.open({ model: 'm', previous_response_id: id, input: 'go' });
  const { inputTokens } = exchange.get(call);
  assert.ok(inputTokens > 25_000 && inputTokens < 26_000, `${inputTokens}`);
});

test('for a vendor the conversation has no ids of ours and no reasoning that it could not read', async () => {
  const here = await world();
  const sealed = { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'gw1.sealed' };
  const bare = { id: 'rs_2', type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] };
  const id = await here.keep(first, [sealed, bare, message('A colour.')]);
  const at = await here.open({ model: 'm', previous_response_id: id, input: 'And blue?' });
  assert.deepEqual(
    sentInput(at).map((item) => [item['type'], item['id'], item['encrypted_content']]),
    [
      ['message', undefined, undefined],
      ['reasoning', undefined, 'gw1.sealed'],
      ['message', undefined, undefined],
      ['message', undefined, undefined],
    ],
  );
  const types = (at.request.json['input'] as JsonObject[]).map((item) => item['type']);
  assert.deepEqual(types, ['message', 'reasoning', 'reasoning', 'message', 'message'], 'a translation gets all of it');
});

test('bytes of the request that are not its input stay as they came', async () => {
  const here = await world();
  const id = await here.keep(first, [message('A colour.')]);
  const { request } = await here.open({
    model: 'm',
    metadata: { a: '1' },
    previous_response_id: id,
    input: 'x',
    top_p: 1,
  });
  const text = Buffer.from(request.prepare(targetFor('responses', 'm')).body).toString();
  assert.ok(text.startsWith('{"model":"m","metadata":{"a":"1"},"input":['), text);
  assert.ok(text.endsWith('],"top_p":1}'), text);
});

test('pitfall 205: an unknown, an expired and another account’s id are a previous response that was not found', async () => {
  const here = await world({ keep: '1h' });
  const id = await here.keep(first, [message('A colour.')]);
  const next = (previous_response_id: string) => ({ model: 'm', previous_response_id, input: 'x' });
  await assert.rejects(here.open(next('resp_unknown')), lost());
  await assert.rejects(here.open(next('')), lost());
  await assert.rejects(here.open(next('with space\0')), lost());
  await assert.rejects(here.open(next(id), { account: 'bert' }), lost());
  await here.open(next(id));
  here.host.advance(3_600_001);
  await assert.rejects(here.open(next(id)), lost());
});

test('an answer that was not to be stored, or failed, cannot be continued', async () => {
  const here = await world();
  const unstored = await here.keep({ ...first, store: false }, [message('A colour.')]);
  const failed = await here.keep(first, [], { status: 'failed' });
  for (const id of [unstored, failed])
    await assert.rejects(here.open({ model: 'm', previous_response_id: id, input: 'x' }), lost());
});

test('a lifetime of 0 stores nothing', async () => {
  const here = await world({ keep: '0s' });
  const id = await here.keep(first, [message('A colour.')]);
  await assert.rejects(here.open({ model: 'm', previous_response_id: id, input: 'x' }), lost());
});

test('a conversation that is larger than allowed is not kept, and the log says so', async () => {
  const here = await world({ max_bytes: 1_000 });
  const id = await here.keep({ model: 'm', input: 'x'.repeat(2_000) }, [message('A colour.')]);
  await assert.rejects(here.open({ model: 'm', previous_response_id: id, input: 'x' }), lost());
  assert.ok(here.host.lines.some(({ message: text }) => text === 'an answer is too large to be stored'));
});

test('an item of a kept answer is put where a request refers to it', async () => {
  const here = await world();
  await here.keep(first, [message('A colour.', 'msg_a'), message('Bright.', 'msg_b')]);
  const { request } = await here.open({
    model: 'm',
    input: [user('x'), { type: 'item_reference', id: 'msg_b' }, { id: 'msg_a' }, user('y')],
  });
  const input = request.json['input'] as JsonObject[];
  assert.deepEqual(input[1], message('Bright.', 'msg_b'));
  assert.deepEqual(input[2], message('A colour.', 'msg_a'));
});

test('an item that is not kept, or kept by another account, is refused by the same code', async () => {
  const here = await world();
  await here.keep(first, [message('A colour.', 'msg_a')]);
  const input = [{ type: 'item_reference', id: 'msg_a' }];
  await assert.rejects(here.open({ model: 'm', input }, { account: 'bert' }), lost('input'));
  await assert.rejects(here.open({ model: 'm', input: [{ type: 'item_reference', id: 'msg_z' }] }), lost('input'));
});

const relayedAnswer = {
  id: 'resp_upstream',
  object: 'response',
  status: 'completed',
  output: [message('A colour.', 'msg_up')],
  usage: { input_tokens: 900, output_tokens: 100, total_tokens: 1_000 },
};

test('a relayed answer is continued byte for byte by the key that keeps it', async () => {
  const here = await world();
  await here.relay(first, relayedAnswer);
  const body = { model: 'm', previous_response_id: 'resp_upstream', input: 'And blue?' };
  const { exchange, request, pin } = await here.open(body);
  assert.deepEqual(pin, { provider: 'vendor', credential: 'vendor#2', protocol: 'responses' });
  const sent = request.prepare(targetFor('responses', 'm')).body;
  assert.equal(Buffer.from(sent).toString(), JSON.stringify(body));
  const { inputTokens } = exchange.get(call);
  assert.ok(inputTokens > 1_000 && inputTokens < 1_100, `${inputTokens} covers what the upstream keeps`);
});

test('a relayed answer belongs to its account', async () => {
  const here = await world();
  await here.relay(first, relayedAnswer);
  const body = { model: 'm', previous_response_id: 'resp_upstream', input: 'x' };
  await assert.rejects(here.open(body, { account: 'bert' }), lost());
});

test('a reference to an item of a relayed answer pins the request as well', async () => {
  const here = await world();
  await here.relay(first, relayedAnswer);
  const { pin } = await here.open({ model: 'm', input: [user('x'), { type: 'item_reference', id: 'msg_up' }] });
  assert.equal(pin?.credential, 'vendor#2');
});

test('answers that are kept in different places cannot be continued together', async () => {
  const here = await world();
  const kept = await here.keep(first, [message('A colour.', 'msg_a')]);
  await here.relay(first, relayedAnswer);
  const references = (id: string) => [{ type: 'item_reference', id }];
  await assert.rejects(here.open({ model: 'm', previous_response_id: kept, input: references('msg_up') }), lost());
  await here.relay(
    first,
    { ...relayedAnswer, id: 'resp_2', output: [message('x', 'msg_2')] },
    { credential: 'other#1' },
  );
  await assert.rejects(
    here.open({ model: 'm', previous_response_id: 'resp_upstream', input: references('msg_2') }),
    lost(),
  );
});

test('a relayed answer that failed, or has no id, is not noted', async () => {
  const here = await world();
  await here.relay(first, { ...relayedAnswer, id: 'resp_f', status: 'failed' });
  await here.relay({ ...first, store: false }, { ...relayedAnswer, id: 'resp_s' });
  for (const id of ['resp_f', 'resp_s'])
    await assert.rejects(here.open({ model: 'm', previous_response_id: id, input: 'x' }), lost());
});

test('a compacted conversation goes on from its compaction, with what people had said', async () => {
  const here = await world();
  const compaction = { id: 'cmp_1', type: 'compaction', encrypted_content: 'gw1.sum' };
  const id = await here.keep(
    {
      model: 'm',
      input: [
        { type: 'message', role: 'developer', content: 'rules' },
        user('do it'),
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: 'ok' },
        { type: 'compaction_trigger' },
      ],
    },
    [compaction],
  );
  const { request } = await here.open({ model: 'm', previous_response_id: id, input: 'on' });
  const input = request.json['input'] as JsonObject[];
  assert.deepEqual(
    input.map((item) => [item['type'], item['role']]),
    [
      ['message', 'developer'],
      ['message', 'user'],
      ['compaction', undefined],
      ['message', 'user'],
    ],
  );
});

test('an id of another type than text is refused by its field', async () => {
  const here = await world();
  await assert.rejects(
    here.open({ model: 'm', previous_response_id: 7, input: 'x' }),
    (error: GatewayError) => error.kind === 'invalid_request' && error.field === 'previous_response_id',
  );
});
