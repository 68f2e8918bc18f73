/** The questions that every client puts to every cloud, whole and streamed, with and without tools, and what the client must receive. */
import assert from 'node:assert/strict';
import { dialects } from '../../end-to-end/dialects.ts';
import { type Customer, type Reply, readReply, type Testbed } from '../../end-to-end/testbed.ts';
import { clients } from '../../matrix/clients/index.ts';
import {
  type ClientRequest,
  type Play,
  type ProtocolName,
  protocolNames,
  type RequestTool,
  type Seen,
} from '../../matrix/scenario.ts';

export const usage = { input: 5_210, cacheRead: 4_096, cacheWrite: 0, output: 230, reasoning: 0 };

const weather: RequestTool = {
  name: 'get_weather',
  description: 'Tells the weather of a city.',
  schema: {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer' } },
    required: ['city'],
    additionalProperties: false,
  },
};

const text: { request: ClientRequest; play: Play } = {
  request: {
    system: 'You are terse.',
    turns: [
      { by: 'user', parts: [{ kind: 'text', text: 'I am Ada.' }] },
      { by: 'assistant', text: 'Hello Ada.' },
      { by: 'user', parts: [{ kind: 'text', text: 'Who am I?' }] },
    ],
    maxOutputTokens: 300,
  },
  play: { text: 'Grüß Gott, Ada 🌍! "Quoted",\nnew line.', meaning: 'stop', usage },
};

const call = { id: 'call_of_the_history', name: 'get_weather', input: { city: 'Bern' } };

const tools: { request: ClientRequest; play: Play } = {
  request: {
    turns: [
      { by: 'user', parts: [{ kind: 'text', text: 'What is the weather?' }] },
      { by: 'assistant', text: 'I look it up.', calls: [call] },
      { by: 'tools', results: [{ callId: call.id, name: call.name, text: 'sunny' }] },
      { by: 'user', parts: [{ kind: 'text', text: 'And in Zürich?' }] },
    ],
    tools: [weather],
    maxOutputTokens: 300,
  },
  play: {
    text: 'I look again.',
    calls: [{ id: 'call_new', name: 'get_weather', input: { city: 'Zürich "old town"', days: 2 } }],
    meaning: 'tool-calls',
    usage,
  },
};

export interface CloudCase {
  readonly name: string;
  readonly client: ProtocolName;
  readonly isStream: boolean;
  readonly request: ClientRequest;
  readonly play: Play;
}

export const cases: readonly CloudCase[] = protocolNames.flatMap((client) =>
  [false, true].flatMap((isStream) =>
    Object.entries({ text, tools }).map(([what, { request, play }]) => ({
      ...{ client, isStream, request, play },
      name: `${client}, ${isStream ? 'streamed' : 'whole'}, ${what}`,
    })),
  ),
);

export async function send(
  testbed: Testbed,
  customer: Customer,
  { client, isStream, request: requested }: Pick<CloudCase, 'client' | 'isStream' | 'request'>,
  model: string,
): Promise<Reply> {
  const { path, headers, body } = clients[client].word(requested, { model, isStream });
  const sent = { 'content-type': 'application/json', ...headers, ...dialects[client].key(customer.key) };
  return readReply(await fetch(testbed.origin + path, { method: 'POST', headers: sent, body }));
}

/** The client receives the play, and pays for exactly its usage. */
export async function assertAnswered(testbed: Testbed, one: CloudCase, model: string): Promise<Seen> {
  const customer = await testbed.customer();
  const { client, isStream, play } = one;
  const answer = await send(testbed, customer, one, model);
  assert.equal(answer.status, 200, answer.text);
  // A relayed stream may begin with a frame of the vendor's own, of which the tests' clients know nothing.
  const frames = answer.text.replace(/^data: \{"id":"","object":""[^\n]*\n\n/, '');
  const seen = isStream ? clients[client].readStream(frames) : clients[client].readWhole(answer.text);
  assert.equal(seen.error, undefined, answer.text);
  assert.equal(seen.text, play.text ?? '');
  const calls = (some: Play['calls'] = []) => some.map(({ name, input }) => ({ name, input }));
  assert.deepEqual(calls(seen.calls), calls(play.calls));
  assert.ok(seen.meanings.includes(play.meaning), seen.meanings.join());
  const { charges } = await testbed.records(customer);
  assert.equal(charges.length, 1);
  assert.equal(charges[0]!.estimated, false);
  assert.equal(charges[0]!.cost, costOf(play));
  return seen;
}

/** One, a tenth and two dollars a million; what is written to a cache costs what input costs. */
function costOf({ usage: { input, cacheRead, output } }: Play): bigint {
  return BigInt((input - cacheRead) * 1_000 + cacheRead * 100 + output * 2_000);
}
