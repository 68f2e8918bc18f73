/** What ends or refuses a run beside money: lines of batches, `background`, the deadline, and runs of one account at once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../helpers/until.ts';
import { type Json, openWorld } from './world.ts';

const tool = { type: 'mcp', server_label: 'town', server_url: 'gateway://sandbox', require_approval: 'never' };
const body = { model: 'of-chat', input: 'What is the weather in Oslo?', tools: [tool] };

test('lines of a batch and requests in the background run no tools of the gateway, and cost nothing', async () => {
  await using world = await openWorld({
    first: ['files'],
    plugins: ['web-search'],
    last: ['uploads', 'batches'],
    more: 'web-search: { engine: tavily, price: 0.25, api: { url: "sandbox:/search" } }',
  });
  const { key, id } = await world.account();
  const answer = await world.post('/v1/responses', key, { ...body, background: true });
  assert.deepEqual([answer.status, ((await answer.json()) as Json).error.param], [400, 'background']);
  const turn = {
    model: 'of-messages',
    max_tokens: 50,
    messages: [{ role: 'user', content: 'Search the web for boats.' }],
  };
  const servers = { mcp_servers: [{ type: 'url', name: 'town', url: 'gateway://sandbox' }] };
  const search = { tools: [{ type: 'web_search_20250305', name: 'web_search' }] };
  const requests = [servers, search].map((more, index) => ({
    custom_id: `line-${index}`,
    params: { ...turn, ...more },
  }));
  const order = await world.post('/v1/messages/batches', key, { requests });
  assert.equal(order.status, 200, await order.clone().text());
  const { id: batch }: Json = await order.json();
  const get = (path: string) =>
    fetch(`${world.gateway.origin}/v1/messages/batches/${batch}${path}`, {
      headers: { authorization: `Bearer ${key}` },
    });
  await until(
    'the end of the batch',
    async () => ((await (await get('')).json()) as Json).processing_status === 'ended',
  );
  const lines = (await (await get('/results')).text())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Json);
  assert.equal(lines.length, 2);
  for (const { result } of lines) {
    assert.equal(result.type, 'errored');
    assert.match(JSON.stringify(result.error), /Lines of a batch cannot call tools of this gateway/);
  }
  assert.equal(await world.balance(id), '100.00');
});

test('a run that has lasted as long as its deadline makes the calls of its turn and no further turn', async () => {
  await using world = await openWorld({ loop: '{ deadline: 1s }' });
  const { key, id } = await world.account();
  const late = { ...body, input: `[[sandbox: delay=1100ms]] ${body.input}` };
  const { status, output }: Json = await (await world.post('/v1/responses', key, late)).json();
  assert.equal(status, 'incomplete');
  assert.deepEqual(
    output.map(({ type }: Json) => type),
    ['mcp_list_tools', 'mcp_call'],
  );
  assert.equal((await world.charges(id, 2)).length, 2);
});

test('an account has as many runs at once as it may, and another one when one of them has ended', async () => {
  await using world = await openWorld({ loop: '{ per_account: 1 }' });
  const { key } = await world.account();
  const other = await world.account();
  const first = new AbortController();
  const held = await fetch(`${world.gateway.origin}/v1/responses`, {
    ...{ method: 'POST', signal: first.signal },
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ ...body, stream: true, input: '[[sandbox: stall]] Wait for ever.' }),
  });
  assert.equal(held.status, 200);
  const asked = () => world.post('/v1/responses', key, body);
  const refused = await asked();
  const { error }: Json = await refused.json();
  assert.deepEqual(
    [refused.status, error.message],
    [429, 'This account has as many runs with tools as it may at once, 1; wait for one to end.'],
  );
  assert.equal(refused.headers.get('retry-after'), '1');
  assert.equal((await world.post('/v1/responses', other.key, body)).status, 200, 'of another account');
  assert.equal((await world.post('/v1/responses', key, { model: 'of-chat', input: 'Hello' })).status, 200, 'no run');
  first.abort();
  await until('the place of the run that has ended', async () => (await asked()).status === 200);
});
