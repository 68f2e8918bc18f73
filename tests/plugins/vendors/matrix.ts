/** Every client protocol at a vendor whose protocol a plugin brings: whole and streamed, tools, images, errors, and the bill. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dialects } from '../../end-to-end/dialects.ts';
import { type Customer, modelAt, startTestbed, type Testbed } from '../../end-to-end/testbed.ts';
import { clients } from '../../matrix/clients/index.ts';
import { post } from '../../matrix/post.ts';
import { type ClientRequest, type Play, type ProtocolName, protocolNames, type Seen } from '../../matrix/scenario.ts';
import { type StandIn, startStandIn, type Words } from './stand-in.ts';

export interface Stage {
  readonly testbed: Testbed;
  readonly vendor: StandIn;
  send(request: ClientRequest, from: From): Promise<{ seen: Seen; customer: Customer; dropped: string | undefined }>;
  /** The error of a refused request. */
  refused(request: ClientRequest, from: From): Promise<{ status: number; body: string; customer: Customer }>;
}
interface From {
  readonly client: ProtocolName;
  readonly isStream: boolean;
}

/** The tool of the second play, as vendors with functions have it. */
export const tool = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Tells the weather.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
export const image = { kind: 'image', mediaType: 'image/png', base64: pixel } as const;

const weather = {
  name: 'get_weather',
  description: 'Tells the weather.',
  schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
const usage = { input: 120, cacheRead: 0, cacheWrite: 0, output: 30, reasoning: 0 };
const called: Play = {
  reasoning: { text: 'They want the weather of two towns.', signature: '' },
  text: 'I look it up – naïvely.',
  calls: [
    { id: 'call_one', name: 'get_weather', input: { city: 'Zürich' } },
    { id: 'call_two', name: 'get_weather', input: { city: 'Bern' } },
  ],
  meaning: 'tool-calls',
  usage,
};
const said: Play = { text: 'Sunny in Zürich, "rain" in Bern.\nThat is all.', meaning: 'stop', usage };
/** 120 tokens at 1 dollar a million and 30 at 2, in nano-USD. */
const cost = 180_000n;

const first: ClientRequest = {
  system: 'Be brief.',
  turns: [{ by: 'user', parts: [{ kind: 'text', text: 'The weather in both towns?' }, image] }],
  tools: [weather],
  maxOutputTokens: 500,
};
const second: ClientRequest = {
  ...first,
  turns: [
    ...first.turns,
    { by: 'assistant', text: called.text!, calls: called.calls! },
    {
      by: 'tools',
      results: called.calls!.map(({ id, name }, index) => ({ callId: id, name, text: index === 0 ? 'sunny' : 'rain' })),
    },
  ],
};
const plain: ClientRequest = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello' }] }] };

export interface Expected {
  /** The second request, as it must reach the vendor. */
  readonly second: (from: From) => object;
  /** An answer that begins and then breaks, in a stream. */
  readonly broken: string;
}

/** `name`: of the plugin and the protocol. */
export function testVendor(name: string, words: Words, expected: Expected): () => Stage {
  let stage: Stage;
  before(async () => {
    const vendor = await startStandIn(words);
    const testbed = await startTestbed({
      providers: () => ({ own: { keys: words.key, speaks: { [name]: vendor.origin } } }),
      models: { own: modelAt('own/their-model') },
      // The plugin may stand anywhere.
      more: {
        plugins: [
          ...['storage', 'request-log', 'auth', 'plans', 'providers', 'models', 'billing', 'route'],
          ...['protocol-convert', name],
        ],
      },
    });
    stage = stageOf(testbed, vendor);
  });
  after(async () => {
    await stage.testbed.stop();
    stage.vendor.stop();
  });
  for (const client of protocolNames)
    for (const isStream of [false, true]) {
      const from = { client, isStream };
      const how = `${client}, ${isStream ? 'streamed' : 'whole'}`;
      test(`${how}: tool calls reach the client, with the model's thoughts and texts`, () => callsTools(stage, from));
      test(`${how}: tool results reach the vendor, and its answer the client`, async () => {
        await answers(stage, from);
        assert.deepEqual(stage.vendor.bodies.at(-1), expected.second(from));
      });
      test(`${how}: an answer that its bound cuts ends with that reason`, () => isCut(stage, from));
      test(`${how}: refusals are errors of the client's protocol, and cost nothing`, () =>
        refusals(stage, from, words));
    }
  for (const client of protocolNames)
    test(`${client}: a stream that fails ends in the client's protocol`, () =>
      breaks(stage, client, words, expected.broken));
  return () => stage;
}

function stageOf(testbed: Testbed, vendor: StandIn): Stage {
  const send = async (request: ClientRequest, { client, isStream }: From) => {
    const customer = await testbed.customer();
    const wording = clients[client].word(request, { model: 'own', isStream });
    const headers = { ...wording.headers, ...dialects[client].key(customer.key) };
    return { customer, reported: await post(testbed.origin, { ...wording, headers }) };
  };
  return {
    testbed,
    vendor,
    async send(request, from) {
      const { customer, reported } = await send(request, from);
      assert.equal(reported.status, 200, reported.body);
      const client = clients[from.client];
      const seen = from.isStream ? client.readStream(reported.body) : client.readWhole(reported.body);
      return { seen, customer, dropped: reported.dropped };
    },
    async refused(request, from) {
      const { customer, reported } = await send(request, from);
      return { customer, status: reported.status, body: reported.body };
    },
  };
}

async function callsTools({ testbed, vendor, send }: Stage, from: From): Promise<void> {
  vendor.says = called;
  const { seen, customer } = await send(first, from);
  assert.equal(seen.text, called.text);
  assert.deepEqual(
    seen.calls.map(({ name, input }) => ({ name, input })),
    called.calls!.map(({ name, input }) => ({ name, input })),
  );
  assert.equal(new Set(seen.calls.map(({ id }) => id)).size, 2);
  assert.ok(seen.meanings.includes('tool-calls'), seen.meanings.join());
  assert.equal(seen.reasoning.includes('weather of two towns') || from.client === 'gemini', true, seen.reasoning);
  await assertBill(testbed, customer, seen);
}

async function answers({ testbed, vendor, send }: Stage, from: From): Promise<void> {
  vendor.says = said;
  const { seen, customer } = await send(second, from);
  assert.equal(seen.text, said.text);
  assert.deepEqual(seen.calls, []);
  assert.ok(seen.meanings.includes('stop'));
  await assertBill(testbed, customer, seen);
}

async function assertBill(testbed: Testbed, customer: Customer, { usage: reported }: Seen): Promise<void> {
  assert.deepEqual([reported?.input, reported?.output], [usage.input, usage.output], 'the client receives the usage');
  const { charges } = await testbed.records(customer);
  assert.equal(charges.length, 1);
  const [charge] = charges;
  assert.deepEqual([charge!.cost, charge!.estimated, charge!.terminal], [cost, false, true]);
  assert.deepEqual(charge!.classes, { input: usage.input, output: usage.output });
}

async function isCut({ vendor, send }: Stage, from: From): Promise<void> {
  vendor.says = { text: 'The first half', meaning: 'length', usage };
  const { seen } = await send(plain, from);
  assert.equal(seen.text, 'The first half');
  assert.ok(seen.meanings.includes('length'), seen.meanings.join());
}

async function refusals({ testbed, vendor, refused }: Stage, from: From, words: Words): Promise<void> {
  const expectations = [
    [400, 400],
    [404, 404],
    [500, 502],
  ] as const;
  for (const [status, expected] of expectations) {
    vendor.says = { status, body: words.error('the model "their-model" says no') };
    const reply = await refused(plain, from);
    assert.equal(reply.status, expected, reply.body);
    const error = clients[from.client].readError(reply.body);
    if (status < 500) assert.match(error.message, /says no/);
    else assert.doesNotMatch(reply.body, /says no/);
    const { charges } = await testbed.records(reply.customer);
    assert.equal(charges.length, 0);
  }
}

async function breaks(stage: Stage, client: ProtocolName, words: Words, body: string): Promise<void> {
  stage.vendor.says = { status: 200, type: words.streamType, body };
  const { seen, customer } = await stage.send(plain, { client, isStream: true });
  assert.equal(seen.text, 'It begins');
  assert.ok(seen.error !== undefined);
  assert.doesNotMatch(seen.error.message, /127\.0\.0\.1|their-model/);
  const { calls } = await stage.testbed.records(customer);
  assert.equal(calls[0]!.terminal, false);
}
