/** The WebSocket transport of Open Responses: a vendor, and the gateway before each family of vendors. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Message, type Talk, talk } from '../end-to-end/sockets.ts';
import { checkEvents, compacted, families, type Json, type Stage, startStage, streamed } from './requests.ts';

let stage: Stage;
before(async () => {
  stage = await startStage();
});
after(() => stage.stop());

/** The vendor itself; each family of upstreams; and a vendor that the gateway calls over WebSocket. */
const places = ['vendor', ...families, 'socket'] as const;
type Place = (typeof places)[number];

const originOf = (place: Place) => (place === 'vendor' ? stage.vendor : stage.origin);
const open = (place: Place) => talk(originOf(place), 'sk-test');
const user = (text: string): Json => ({ type: 'message', role: 'user', content: text });
const textOf = (response: Json): string => response['output'].at(-1).content[0].text;

/** The response at the end of a turn, each message of which is a valid event; fails for an error. */
async function answered(client: Talk, body: Json): Promise<Json> {
  const messages: Message[] = await client.turn(body);
  checkEvents(messages);
  assert.equal(messages[0].type, 'response.created');
  const last = messages.at(-1);
  assert.equal(last.type, 'response.completed', JSON.stringify(last));
  return last.response;
}

/** The error at the end of a turn, in the envelope of this transport. */
async function refused(client: Talk, body: Json): Promise<Json> {
  const [first, ...more] = await client.turn(body);
  assert.deepEqual(more, []);
  assert.equal(first.type, 'error', JSON.stringify(first));
  assert.ok(first.status >= 400 && first.status < 600);
  assert.equal(typeof first.error.message, 'string');
  assert.equal(typeof first.error.type, 'string');
  return first;
}

function checkNotFound({ status, error }: Json, id: string): void {
  assert.deepEqual(
    [status, error.code, error.type, error.param],
    [400, 'previous_response_not_found', 'invalid_request_error', 'previous_response_id'],
  );
  assert.match(error.message, new RegExp(id));
}

for (const place of places) {
  const base = { model: `model-${place}`, store: false };

  test(`${place}: a turn is answered by the events of the HTTP stream, one message each`, async () => {
    const client = await open(place);
    const body = { ...base, input: [user('Say hello.')] };
    const messages = await client.turn(body);
    checkEvents(messages);
    const events = await streamed(originOf(place), body);
    assert.deepEqual(
      messages.map(({ type }) => type),
      events.map(({ type }) => type),
    );
    assert.equal(textOf(messages.at(-1).response), textOf(events.at(-1)?.['response']));
    assert.ok(client.messages.every((message) => typeof message.type === 'string'));
    await client.close();
  });

  test(`${place}: consecutive turns on a connection are separate responses`, async () => {
    const client = await open(place);
    const first = await answered(client, { ...base, input: [user('One.')] });
    const second = await answered(client, { ...base, input: [user('Two.')] });
    assert.notEqual(first['id'], second['id']);
    assert.equal(second['previous_response_id'], null);
    assert.match(textOf(second), /Two/);
    await client.close();
  });

  test(`${place}: a response that is not stored is continued with new items alone`, async () => {
    const client = await open(place);
    const first = await answered(client, { ...base, input: [user('One.')] });
    const second = await answered(client, { ...base, input: [user('Two.')], previous_response_id: first['id'] });
    const third = await answered(client, { ...base, input: [user('Three.')], previous_response_id: second['id'] });
    assert.equal(second['previous_response_id'], first['id']);
    assert.equal(third['previous_response_id'], second['id']);
    const tokens = [first, second, third].map(({ usage }) => usage.input_tokens);
    assert.ok(tokens[0] < tokens[1] && tokens[1] < tokens[2], String(tokens));
    await client.close();
  });

  test(`${place}: a tool's result continues the call`, async () => {
    const client = await open(place);
    const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const tools = [{ type: 'function', name: 'get_weather', parameters }];
    const requested = await answered(client, {
      ...base,
      tools,
      input: [user('Weather? [[sandbox: tool=get_weather]]')],
    });
    const call = requested['output'].find(({ type }: Json) => type === 'function_call');
    const output = { type: 'function_call_output', call_id: call.call_id, output: 'Sunny.' };
    const reported = await answered(client, { ...base, tools, input: [output], previous_response_id: requested['id'] });
    assert.match(textOf(reported), /Sunny/);
    const stray = { ...output, call_id: 'call_unknown' };
    const { status, error } = await refused(client, {
      ...base,
      tools,
      input: [stray],
      previous_response_id: reported['id'],
    });
    assert.deepEqual([status, error.type], [400, 'invalid_request_error']);
    assert.match(error.param, /^input/);
    await client.close();
  });

  test(`${place}: after a reconnect an unstored response is unknown, and the whole conversation begins a new chain`, async () => {
    const client = await open(place);
    const first = await answered(client, { ...base, input: [user('One.')] });
    await client.close();
    const again = await open(place);
    const lost = await refused(again, { ...base, input: [user('Two.')], previous_response_id: first['id'] });
    checkNotFound(lost, first['id']);
    const history = [user('One.'), ...first['output'], user('Two.')];
    const second = await answered(again, { ...base, input: history });
    assert.equal(second['previous_response_id'], null);
    assert.ok(second['usage'].input_tokens > first['usage'].input_tokens);
    await again.close();
  });

  test(`${place}: an unknown response is refused by name, and the connection stays open`, async () => {
    const client = await open(place);
    const id = 'resp_00000000000000000000000000000000';
    checkNotFound(await refused(client, { ...base, input: [user('x')], previous_response_id: id }), id);
    await answered(client, { ...base, input: [user('One.')] });
    await client.close();
  });

  test(`${place}: a continuation that fails evicts the response that it continues`, async () => {
    const client = await open(place);
    const first = await answered(client, { ...base, input: [user('One.')] });
    const input = [user('Fail. [[sandbox: status=400]]')];
    const failed = await refused(client, { ...base, input, previous_response_id: first['id'] });
    assert.equal(failed['status'], 400);
    const gone = await refused(client, { ...base, input: [user('x')], previous_response_id: first['id'] });
    checkNotFound(gone, first['id']);
    await client.close();
  });

  test(`${place}: a compacted conversation begins a new chain`, async () => {
    const client = await open(place);
    const first = await answered(client, { ...base, input: [user('My name is Alice.')] });
    const history = [user('My name is Alice.'), ...first['output']];
    const { output } = await compacted(originOf(place), { model: base.model, input: history });
    const next = await answered(client, { ...base, input: [...output, user('What is my name?')] });
    assert.equal(next['previous_response_id'], null);
    const more = await answered(client, { ...base, input: [user('And?')], previous_response_id: next['id'] });
    assert.equal(more['previous_response_id'], next['id']);
    await client.close();
  });

  test(`${place}: members that only HTTP has are refused`, async () => {
    const client = await open(place);
    for (const members of [{ stream: false }, { background: true }, { stream_options: {} }]) {
      const { status, error } = await refused(client, { ...base, input: [user('x')], ...members });
      assert.deepEqual([status, error.param], [400, Object.keys(members)[0]]);
    }
    await answered(client, { ...base, input: [user('One.')] });
    await client.close();
  });

  if (place !== 'vendor')
    test(`${place}: turns that are sent at once are answered in order, never mixed`, async () => {
      const client = await open(place);
      for (const name of ['One.', 'Two.', 'Three.'])
        client.send({
          type: 'response.create',
          ...base,
          input: [user(`${name} [[sandbox: tokens=12 chunk_delay=1ms]]`)],
        });
      const turns = [await client.next(), await client.next(), await client.next()];
      for (const messages of turns) checkEvents(messages);
      assert.equal(new Set(turns.map((messages) => messages.at(-1).response.id)).size, 3);
      await client.close();
    });
}
