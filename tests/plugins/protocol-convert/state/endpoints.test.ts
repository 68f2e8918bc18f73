/** The addresses of kept answers: read, listed, deleted; forwarded where an upstream keeps them; 404 for everybody else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { UpstreamRefusal } from '../../../../core/contract/upstream-failures.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import { endpointMatches } from '../../../../plugins/common/kit/endpoint-rules.ts';
import { framesOf } from '../../../../plugins/common/wire/frame.ts';
import { message, user, world } from './harness.ts';

const relayedAnswer = { id: 'resp_up', object: 'response', status: 'completed', output: [message('x', 'msg_up')] };
const ok = (body: object) => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

test('a kept answer is read as it was given', async () => {
  const here = await world();
  const id = await here.keep({ model: 'm', input: 'x' }, [message('y')]);
  const { status, json } = await here.call('GET', `/v1/responses/${id}`);
  assert.equal(status, 200);
  assert.deepEqual(json, { id, object: 'response', status: 'completed', output: [message('y')] });
});

test('an answer that is not there, or is another account’s, is 404 in the protocol’s shape', async () => {
  const here = await world();
  const id = await here.keep({ model: 'm', input: 'x' }, [message('y')]);
  for (const [method, suffix] of [
    ['GET', ''],
    ['DELETE', ''],
    ['GET', '/input_items'],
    ['POST', '/cancel'],
  ] as const) {
    const endpoint = here.state.endpoints.find((one) => one.method === method && one.path.endsWith(suffix || '_id'))!;
    await assert.rejects(
      here.call(method, `/v1/responses/${id}${suffix}`, { account: 'bert' }),
      (error: GatewayError) => {
        const answer = endpoint.renderError!(error, {} as never);
        assert.equal(answer.status, 404);
        assert.deepEqual(JSON.parse(answer.body as string), {
          error: {
            message: `Response with id '${id}' not found.`,
            type: 'invalid_request_error',
            param: null,
            code: null,
          },
        });
        return true;
      },
    );
  }
  await here.call('GET', `/v1/responses/${id}`);
});

test('a deleted answer is gone, and a later answer of its chain is not', async () => {
  const here = await world();
  const id = await here.keep({ model: 'm', input: 'x' }, [message('y')]);
  const next = await here.keep({ model: 'm', previous_response_id: id, input: 'z' }, [message('w')]);
  const { json } = await here.call('DELETE', `/v1/responses/${id}`);
  assert.deepEqual(json, { id, object: 'response', deleted: true });
  await assert.rejects(here.call('GET', `/v1/responses/${id}`), GatewayError);
  const { request } = await here.open({ model: 'm', previous_response_id: next, input: 'on' });
  assert.equal((request.json['input'] as unknown[]).length, 5);
});

async function listed(query: string): Promise<JsonObject> {
  const here = await world();
  const input = [
    user('a'),
    { role: 'user', content: [{ type: 'input_text', text: 'b' }] },
    { type: 'function_call_output', call_id: 'c', output: 'o' },
  ];
  const id = await here.keep({ model: 'm', input }, [message('y')]);
  return (await here.call('GET', `/v1/responses/${id}/input_items${query}`)).json;
}

test('the input is listed newest first, with ids and parts', async () => {
  const list = await listed('');
  const data = list['data'] as JsonObject[];
  assert.deepEqual(
    data.map((item) => item['type']),
    ['function_call_output', 'message', 'message'],
  );
  assert.deepEqual(data[2]!['content'], [{ type: 'input_text', text: 'a' }]);
  assert.equal(new Set(data.map((item) => item['id'])).size, 3);
  assert.deepEqual(
    [list['object'], list['first_id'], list['last_id'], list['has_more']],
    ['list', data[0]!['id'], data[2]!['id'], false],
  );
});

test('the list is cut into pages that follow one another', async () => {
  const here = await world();
  const input = Array.from({ length: 7 }, (_, index) => user(`n${index}`));
  const id = await here.keep({ model: 'm', input }, [message('y')]);
  const seen: unknown[] = [];
  let after = '';
  for (let pages = 0; pages < 9; pages++) {
    const { json } = await here.call('GET', `/v1/responses/${id}/input_items?order=asc&limit=3${after}`);
    seen.push(...(json['data'] as JsonObject[]).map((item) => (item['content'] as JsonObject[])[0]!['text']));
    if (json['has_more'] !== true) break;
    after = `&after=${json['last_id']}`;
  }
  assert.deepEqual(seen, ['n0', 'n1', 'n2', 'n3', 'n4', 'n5', 'n6']);
});

for (const [what, query, field] of [
  ['limit of nothing', '?limit=0', 'limit'],
  ['limit above the highest', '?limit=101', 'limit'],
  ['unknown order', '?order=up', 'order'],
  ['item that is not in it', '?after=msg_z', 'after'],
] as const) {
  test(`a list with an ${what} is refused by name`, async () => {
    await assert.rejects(listed(query), (error: GatewayError) => error.status === 400 && error.field === field);
  });
}

test('an answer that the gateway stores is streamed again as it was, from the number that the client names', async () => {
  const here = await world();
  const called = {
    id: 'fc_1',
    type: 'function_call',
    status: 'completed',
    call_id: 'c',
    name: 'f',
    arguments: '{"a":1}',
  };
  const reasoned = { id: 'rs_1', type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] };
  const id = await here.keep({ model: 'm', input: 'x' }, [reasoned, message('y'), called]);
  const replay = async (query: string) => {
    const { text } = await here.call('GET', `/v1/responses/${id}?stream=true${query}`);
    return framesOf(text).map(({ json }) => json);
  };
  const events = await replay('');
  const types = events.map(({ type }) => String(type).replace('response.', ''));
  assert.deepEqual(types, [
    ...['created', 'in_progress', 'output_item.added', 'reasoning_summary_part.added', 'reasoning_summary_text.delta'],
    ...['reasoning_summary_text.done', 'reasoning_summary_part.done', 'output_item.done', 'output_item.added'],
    ...['content_part.added', 'output_text.delta', 'output_text.done', 'content_part.done', 'output_item.done'],
    ...['output_item.added', 'function_call_arguments.delta', 'function_call_arguments.done', 'output_item.done'],
    'completed',
  ]);
  assert.deepEqual(
    events.map((event) => event['sequence_number']),
    events.map((_, index) => index),
  );
  const { json } = await here.call('GET', `/v1/responses/${id}`);
  assert.deepEqual(events.at(-1)!['response'], json);
  assert.deepEqual(await replay('&starting_after=15'), events.slice(16));
  for (const after of ['-1', 'x', '1.5'])
    await assert.rejects(replay(`&starting_after=${after}`), (error: GatewayError) => {
      return error.status === 400 && error.field === 'starting_after';
    });
});

test('an answer is not cancelled, wherever it is stored: nothing is sent, and it stays', async () => {
  const here = await world();
  const stored = await here.keep({ model: 'm', input: 'x' }, [message('y')]);
  await here.relay({ model: 'm', input: 'x' }, relayedAnswer);
  const endpoint = here.state.endpoints.find(({ path }) => path.endsWith('/cancel'))!;
  // Without an answer of the upstream, a request to it would fail the call in another way.
  for (const id of [stored, relayedAnswer.id])
    await assert.rejects(here.call('POST', `/v1/responses/${id}/cancel`), (error: GatewayError) => {
      assert.deepEqual([error.status, error.code], [400, 'unsupported']);
      const { body, status } = endpoint.renderError!(error, {} as never);
      const { message: text, ...shape } = (JSON.parse(body as string) as { error: JsonObject }).error;
      assert.match(String(text), /background/);
      assert.deepEqual([status, shape], [400, { type: 'invalid_request_error', param: null, code: 'unsupported' }]);
      return true;
    });
  await here.call('GET', `/v1/responses/${stored}`);
  await here.call('GET', `/v1/responses/${relayedAnswer.id}`, { upstream: ok(relayedAnswer) });
});

test('a relayed answer is asked for where it is, by its key, and nothing else of the client goes there', async () => {
  const here = await world();
  await here.relay({ model: 'm', input: 'x' }, relayedAnswer);
  const upstream = ok({ id: 'resp_up', from: 'upstream' });
  const { json, sent } = await here.call('GET', '/v1/responses/resp_up?include[]=a&key=secret', { upstream });
  assert.deepEqual(json, { id: 'resp_up', from: 'upstream' });
  assert.equal(sent?.method, 'GET');
  assert.equal(sent.url, 'https://vendor.example/v1/responses/resp_up?include%5B%5D=a');
  assert.equal(sent.headers['authorization'], 'Bearer key-two');
  assert.equal(sent.headers['content-type'], undefined);
  assert.deepEqual([sent.body, sent.credential], [undefined, 'vendor#2']);
  const list = await here.call('GET', '/v1/responses/resp_up/input_items?limit=5', { upstream });
  assert.equal(list.sent?.url, 'https://vendor.example/v1/responses/resp_up/input_items?limit=5');
});

test('a relayed answer that is deleted is deleted there, and forgotten here', async () => {
  const here = await world();
  await here.relay({ model: 'm', input: 'x' }, relayedAnswer);
  const { sent } = await here.call('DELETE', '/v1/responses/resp_up', { upstream: ok({ deleted: true }) });
  assert.equal(sent?.method, 'DELETE');
  await assert.rejects(here.call('GET', '/v1/responses/resp_up', { upstream: ok({}) }), GatewayError);
});

test('a deletion that the upstream refuses is a refusal, and nothing is forgotten', async () => {
  const here = await world();
  await here.relay({ model: 'm', input: 'x' }, relayedAnswer);
  const gone = { ...ok({ error: { message: 'no such response' } }), status: 404 };
  await assert.rejects(here.call('DELETE', '/v1/responses/resp_up', { upstream: gone }), (error: UpstreamRefusal) => {
    assert.ok(error instanceof UpstreamRefusal);
    assert.deepEqual([error.status, error.answer?.status], [404, 404]);
    return true;
  });
  await here.call('GET', '/v1/responses/resp_up', { upstream: ok({}) });
});

test('a relayed answer whose key is gone is not found', async () => {
  const here = await world();
  await here.relay({ model: 'm', input: 'x' }, relayedAnswer, { credential: 'vendor#9' });
  await assert.rejects(
    here.call('GET', '/v1/responses/resp_up', { upstream: ok({}) }),
    (error: GatewayError) => error.status === 404,
  );
});

test('the addresses answer by themselves, so nothing is held or charged, and are limited with the protocol’s other calls', async () => {
  const { state } = await world();
  for (const endpoint of state.endpoints) {
    assert.ok(endpoint.handle !== undefined && endpoint.setsOnOpen === undefined);
    assert.ok(endpointMatches('responses', endpoint));
  }
});
