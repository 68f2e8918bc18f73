/** The official OpenAI client's WebSocket classes before the demo gateway. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import type { ResponsesServerEvent } from 'openai/resources/responses/responses';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { type Demo, model, shaped, startDemo } from './demo.ts';

let demo: Demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo.stop());

const connect = (key = demo.keys.good) =>
  new ResponsesWS(new OpenAI({ baseURL: `${demo.origin}/v1`, apiKey: key, maxRetries: 0 }));

/** Events of one turn. */
function turn(socket: ResponsesWS, body: object): Promise<ResponsesServerEvent[]> {
  const events: ResponsesServerEvent[] = [];
  return new Promise((resolve, reject) => {
    const stop = (end: () => void) => {
      socket.off('event', note);
      socket.off('error', fail);
      end();
    };
    const note = (event: ResponsesServerEvent) => {
      events.push(event);
      if (event.type === 'response.completed' || event.type === 'response.failed') stop(() => resolve(events));
    };
    const fail = (error: Error) => stop(() => reject(error));
    socket.on('event', note);
    socket.on('error', fail);
    socket.send({ type: 'response.create', ...body } as never);
  });
}

for (const name of [model, 'claude-opus-5'])
  test(`turns continue one another without storing, and are paid as counted (${name})`, async () => {
    const socket = connect();
    const base = { model: name, store: false };
    let last: OpenAI.Responses.Response | undefined;
    const call = await demo.settled(async () => {
      const events = await turn(socket, { ...base, input: 'My name is Ada.' });
      const end = events.at(-1)!;
      assert.equal(end.type, 'response.completed');
      last = (end as unknown as { response: OpenAI.Responses.Response }).response;
      assert.ok(events.some(({ type }) => type === 'response.output_text.delta'));
    });
    assert.deepEqual(call.usage, call.entry.usage);
    assert.equal(call.paid, call.due);
    const more = await demo.settled(async () => {
      const events = await turn(socket, { ...base, input: 'And yours?', previous_response_id: last!.id });
      assert.equal(events.at(-1)!.type, 'response.completed');
    });
    assert.equal(more.paid, more.due);
    const lost = turn(socket, { ...base, input: 'And yours?', previous_response_id: 'resp_unknown' });
    await assert.rejects(lost, (error: { error?: { status?: number; error?: { code?: string } } }) => {
      assert.equal(error.error?.status, 400);
      if (!shaped) assert.equal(error.error?.error?.code, 'previous_response_not_found');
      return true;
    });
    socket.close();
  });

test('an account without money gets an error event with its status', async () => {
  const socket = connect(demo.keys.broke);
  await assert.rejects(turn(socket, { model, input: 'Hello' }), (error: { error?: { status?: number } }) => {
    assert.equal(error.error?.status, 402);
    return true;
  });
  socket.close();
});

test('a wrong key is refused at the upgrade', async () => {
  const socket = connect('wrong');
  const error = await new Promise<Error>((resolve) => void socket.on('error', resolve));
  assert.match(error.message, /401/);
});

test('the ledger passes its audit at the end', async () => {
  assert.deepEqual((await demo.audit()).violations, []);
});
