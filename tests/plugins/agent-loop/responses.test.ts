/** Runs of clients that speak responses, with models of all four families. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ResponsesTalk } from '../../../plugins/agent-loop/dialects/responses.ts';
import type { Opening } from '../../../plugins/agent-loop/talk.ts';
import { eventsOf, families, type Json, openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.gateway.stop());

const tool = { type: 'mcp', server_label: 'town', server_url: 'gateway://sandbox', require_approval: 'never' };
const weather = 'What is the weather in Oslo?';
const types = (output: Json[]) => output.map(({ type }) => type);

for (const family of families) {
  test(`a model of ${family} gets a tool's result, and each step is charged once and billed together`, async () => {
    const { id, key } = await world.account();
    const response = await world.post('/v1/responses', key, { model: `of-${family}`, input: weather, tools: [tool] });
    const answer: Json = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    assert.deepEqual(types(answer.output), ['mcp_list_tools', 'mcp_call', 'message']);
    const [list, call, message] = answer.output;
    assert.deepEqual(
      list.tools.map(({ name }: Json) => name),
      ['sandbox__order', 'sandbox__time', 'sandbox__weather'],
    );
    assert.equal(call.name, 'sandbox__weather');
    assert.equal(call.server_label, 'town');
    assert.deepEqual(JSON.parse(call.arguments), { city: 'Oslo' });
    assert.equal(JSON.parse(call.output).city, 'Oslo');
    assert.match(message.content[0].text, /The tool sandbox__weather answered: .*Oslo/);
    assert.deepEqual(answer.tools, [tool]);
    assert.equal(answer.status, 'completed');

    const charges = await world.charges(id, 3);
    assert.equal(charges.length, 3);
    const run = response.headers.get('x-request-id')!;
    const bill: Json = await (
      await fetch(`${world.gateway.origin}/v1/usage/runs/${run}`, { headers: { authorization: `Bearer ${key}` } })
    ).json();
    assert.deepEqual(
      bill.steps.map(({ kind }: Json) => kind),
      ['turn', 'turn', 'tool'],
    );
    assert.deepEqual(
      bill.steps.map(({ request_id, cost }: Json) => `${request_id} -${cost}`).sort(),
      charges.map(({ request, change }) => `${request} ${change}`).sort(),
    );
    const stranger = await world.account();
    const other = await fetch(`${world.gateway.origin}/v1/usage/runs/${run}`, {
      headers: { authorization: `Bearer ${stranger.key}` },
    });
    assert.equal(other.status, 404);
  });

  test(`a stream of a model of ${family} has the run's items in the protocol's order and one numbering`, async () => {
    const { id, key } = await world.account();
    const body = {
      model: `of-${family}`,
      input: `${weather} And what is the time in Europe/Oslo?`,
      tools: [tool],
      stream: true,
    };
    const events = await eventsOf(await world.post('/v1/responses', key, body));
    assert.deepEqual(
      events.map(({ sequence_number }) => sequence_number),
      events.map((_, index) => index),
    );
    const added = events.filter(({ type }) => type === 'response.output_item.added');
    assert.deepEqual(types(added.map(({ item }) => item)), ['mcp_list_tools', 'mcp_call', 'mcp_call', 'message']);
    assert.deepEqual(
      added.map(({ output_index }) => output_index),
      [0, 1, 2, 3],
    );
    const ends = events.filter(({ type }) => /^response\.(created|completed|incomplete|failed)$/.test(type));
    assert.deepEqual(types(ends), ['response.created', 'response.completed']);
    assert.equal(ends[0].response.id, ends[1].response.id);
    const done = events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item);
    assert.deepEqual(ends[1].response.output, done);
    assert.equal(events.filter(({ type }) => type === 'response.mcp_call.completed').length, 2);
    assert.equal((await world.charges(id, 4)).length, 4);
  });
}

test('the model and the client read why a tool has failed, which is not charged', async () => {
  const { id, key } = await world.account();
  const body = { model: 'of-chat', input: 'What is the weather in Atlantis?', tools: [tool] };
  const answer: Json = await (await world.post('/v1/responses', key, body)).json();
  const [, call, message] = answer.output;
  assert.equal(call.status, 'failed');
  assert.equal(call.error, 'There is no weather in Atlantis.');
  assert.match(message.content[0].text, /There is no weather in Atlantis/);
  assert.equal((await world.charges(id, 2)).length, 2);
});

test('an answer of a run is continued by its id, with its calls and their results', async () => {
  const { key } = await world.account();
  const first: Json = await (
    await world.post('/v1/responses', key, { model: 'of-messages', input: weather, tools: [tool] })
  ).json();
  const kept: Json = await (
    await fetch(`${world.gateway.origin}/v1/responses/${first.id}`, { headers: { authorization: `Bearer ${key}` } })
  ).json();
  assert.deepEqual(types(kept.output), ['mcp_list_tools', 'mcp_call', 'message']);
  const body = { model: 'of-messages', previous_response_id: first.id, input: 'And in Bergen?', tools: [tool] };
  const second: Json = await (await world.post('/v1/responses', key, body)).json();
  assert.deepEqual(types(second.output), ['message']);
  assert.equal(second.previous_response_id, first.id);
});

test('a call that needs approval waits for it, and runs when the client approves it', async () => {
  const { id, key } = await world.account();
  const asking = { ...tool, require_approval: undefined };
  const ask = async (body: object) =>
    (await (await world.post('/v1/responses', key, { model: 'of-gemini', tools: [asking], ...body })).json()) as Json;
  const first = await ask({ input: weather });
  assert.deepEqual(types(first.output), ['mcp_list_tools', 'mcp_approval_request']);
  const { id: request } = first.output[1];
  const verdict = (approve: boolean) => [{ type: 'mcp_approval_response', approval_request_id: request, approve }];
  const refused = await ask({ previous_response_id: first.id, input: verdict(false) });
  assert.deepEqual(types(refused.output), ['message']);
  assert.match(refused.output[0].content[0].text, /has not approved/);
  const approved = await ask({ previous_response_id: first.id, input: verdict(true) });
  assert.deepEqual(types(approved.output), ['mcp_call', 'message']);
  assert.equal(approved.output[0].approval_request_id, request);
  assert.match(approved.output[1].content[0].text, /Oslo/);
  const unknown = await ask({ input: verdict(true) });
  assert.equal(unknown.error.param, 'input[0].approval_request_id');
  // Three turns and one tool.
  assert.equal((await world.charges(id, 4)).length, 4);
});

test('a request for tools that it cannot have is refused with the field at fault', async () => {
  const { key } = await world.account();
  const cases: [object, string][] = [
    [{ server_url: 'gateway://nothing' }, 'tools[0].server_url'],
    [{ server_url: 'gateway://a/b' }, 'tools[0].server_url'],
    [{ allowed_tools: ['none'] }, 'tools[0].server_url'],
    [{ allowed_tools: 3 }, 'tools[0].allowed_tools'],
    [{ server_label: '' }, 'tools[0].server_label'],
    [{ headers: { a: 'b' } }, 'tools[0].headers'],
    [{ authorization: 'x' }, 'tools[0].authorization'],
    [{ require_approval: 'often' }, 'tools[0].require_approval'],
  ];
  for (const [change, field] of cases) {
    const body = { model: 'of-chat', input: weather, tools: [{ ...tool, ...change }] };
    const response = await world.post('/v1/responses', key, body);
    const { error }: Json = await response.json();
    assert.deepEqual([response.status, error.param], [400, field]);
  }
});

test("a turn that calls the client's own search for tools ends for the client, one that the vendor has searched goes on", () => {
  const offered = { all: [], servers: [], has: (name: unknown) => name === 'own', hasLabel: () => false };
  const opening = { json: { input: 'Hi' }, clientJson: {}, offered, id: 'x', streams: false } as unknown as Opening;
  const taken = (execution: string) =>
    new ResponsesTalk(opening).take({
      status: 'completed',
      output: [
        { type: 'function_call', call_id: 'a', name: 'own', arguments: '{}' },
        { type: 'tool_search_call', call_id: 'b', execution, arguments: {} },
      ],
    }).hasOthers;
  assert.equal(taken('client'), true);
  assert.equal(taken('server'), false);
});
