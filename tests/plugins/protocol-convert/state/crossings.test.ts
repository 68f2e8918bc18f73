/** Bodies of one protocol at another's address: understood as what they are, answered as the address promises. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import { DroppedParameters } from '../../../../plugins/common/canonical/dropped-parameters.ts';
import { call } from '../../../../plugins/common/domain/calls.ts';
import { decodeRequest } from '../../../../plugins/protocol-convert/protocols/responses/decode/request.ts';
import { mustEmulate, mustEstimate } from '../../../../plugins/protocol-convert/state/emulation.ts';
import { targetFor } from '../harness.ts';
import { message, user, world } from './harness.ts';

const chatPath = '/v1/chat/completions';

function decoded(json: JsonObject) {
  const losses = new DroppedParameters({});
  return { prompt: decodeRequest(json, { dropped: losses, open: () => undefined }), dropped: losses };
}

test('a body with input at the chat address is a responses request that is answered as chat', async () => {
  const here = await world();
  const body = { model: 'm', input: 'hi', stream: true, max_tokens: 70, stream_options: { include_usage: true } };
  const { request } = await here.open(body, { path: chatPath });
  assert.deepEqual(
    [request.protocol.name, request.call.protocol, request.decodeWith?.name],
    ['chat', 'chat', 'responses'],
  );
  assert.deepEqual([request.call.stream, request.call.maxOutputTokens, request.call.billable], [true, 70, true]);
  assert.deepEqual(request.clientJson, body, 'the chat encoder reads the client’s own options');
  assert.throws(() => request.prepare(targetFor('chat', 'm')), /never relayed/);
  assert.ok(mustEmulate(request, targetFor('chat', 'm')));
  const { prompt, dropped: losses } = decoded(request.json);
  assert.deepEqual([prompt.maxOutputTokens, losses.dropped], [70, []]);
});

test('members of chat in a responses body are decoded by their meaning', async () => {
  const here = await world();
  const body = {
    model: 'm',
    input: [
      { role: 'system', content: 'rules' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look' },
          { type: 'image_url', image_url: { url: 'https://x.example/a.png', detail: 'low' } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'read', arguments: '{"a":1}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'found' },
    ],
    tools: [
      { type: 'function', function: { name: 'read', description: 'reads', parameters: { type: 'object' } } },
      { type: 'function', name: 'flat', parameters: { type: 'object' } },
      {
        type: 'custom',
        custom: { name: 'patch', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: X' } } },
      },
    ],
    tool_choice: { type: 'function', function: { name: 'read' } },
    reasoning_effort: 'low',
    response_format: { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' }, strict: true } },
    n: 1,
  };
  const { request } = await here.open(body, { path: chatPath });
  const { prompt, dropped: losses } = decoded(request.json);
  assert.deepEqual(losses.dropped, []);
  assert.deepEqual(
    prompt.turns.map(({ role, parts }) => [role, parts.map(({ kind }) => kind)]),
    [
      ['system', ['text']],
      ['user', ['text', 'image']],
      ['assistant', ['tool-call']],
      ['user', ['tool-result']],
    ],
  );
  assert.deepEqual(
    prompt.tools.map((tool) => [tool.kind, tool.name]),
    [
      ['function', 'read'],
      ['function', 'flat'],
      ['custom', 'patch'],
    ],
  );
  assert.deepEqual([prompt.toolChoice, prompt.reasoning], [{ mode: 'required', names: ['read'] }, { effort: 'low' }]);
  assert.deepEqual(prompt.output, { form: 'schema', name: 's', schema: { type: 'object' }, strict: true });
});

test('several answers are refused by name, as the protocol gives one', async () => {
  const here = await world();
  await assert.rejects(
    here.open({ model: 'm', input: 'x', n: 2 }, { path: chatPath }),
    (error: GatewayError) => error.field === 'n',
  );
});

test('a body with messages stays chat, whatever else it has', async () => {
  const here = await world();
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], input: 'ignored' };
  const { request } = await here.open(body, { path: chatPath });
  assert.equal(request.decodeWith?.name, undefined);
  assert.equal(Buffer.from(request.prepare(targetFor('chat', 'm')).body).toString(), JSON.stringify(body));
});

test('it may continue an answer that the gateway keeps, but none that an upstream keeps', async () => {
  const here = await world();
  const id = await here.keep({ model: 'm', input: 'x' }, [message('y')]);
  const { exchange, request } = await here.open(
    { model: 'm', previous_response_id: id, input: 'z' },
    { path: chatPath },
  );
  assert.deepEqual(
    [request.protocol.name, exchange.get(call).protocol, request.decodeWith?.name],
    ['chat', 'chat', 'responses'],
  );
  assert.equal((request.json['input'] as unknown[]).length, 3);
  await here.relay({ model: 'm', input: 'x' }, { id: 'resp_up', status: 'completed', output: [message('y')] });
  await assert.rejects(
    here.open({ model: 'm', previous_response_id: 'resp_up', input: 'z' }, { path: chatPath }),
    (error: GatewayError) => error.code === 'previous_response_not_found',
  );
});

test('its answer is a chat completion, which has no id to come back to', async () => {
  const here = await world();
  const { exchange, request } = await here.open({ model: 'm', input: 'x' }, { path: chatPath });
  assert.equal(here.state.keeper.recordTranslated(exchange, request), undefined);
});

test('a chat body at the compaction address is a chat call', async () => {
  const here = await world();
  const body = { model: 'm', messages: [{ role: 'user', content: 'sum up' }], stream: true, max_tokens: 9 };
  const { request } = await here.open(body, { path: '/v1/responses/compact' });
  assert.deepEqual([request.protocol.name, request.call.protocol, request.compaction], ['chat', 'chat', undefined]);
  const prepared = request.prepare(targetFor('chat', 'm'));
  assert.equal(prepared.path, '/chat/completions');
  assert.equal(Buffer.from(prepared.body).toString(), JSON.stringify(body));
});

test('the official compaction is relayed to an upstream that has it, and emulated where it is said that it has not', async () => {
  const here = await world();
  const { request } = await here.open({ model: 'm', input: [user('x')] }, { path: '/v1/responses/compact' });
  assert.deepEqual([request.protocol.name, request.compaction, request.call.billable], ['responses', 'answer', true]);
  assert.equal(request.prepare(targetFor('responses', 'm')).path, '/responses/compact');
  assert.equal(mustEmulate(request, targetFor('responses', 'm')), false);
  assert.equal(mustEmulate(request, targetFor('responses', 'm', { traits: { compaction: false } })), true);
});

test('counting is free, goes to the address that counts, and is estimated where there is none', async () => {
  const here = await world();
  const { request } = await here.open({ model: 'm', input: 'x' }, { path: '/v1/responses/input_tokens' });
  assert.equal(request.call.billable, false);
  assert.equal(request.prepare(targetFor('responses', 'm')).path, '/responses/input_tokens');
  assert.equal(here.state.keeper.recordTranslated({} as never, request), undefined);
  assert.equal(mustEstimate(request, targetFor('responses', 'm')), false);
  assert.equal(mustEstimate(request, targetFor('responses', 'm', { traits: { token_counting: false } })), true);
});
