/** Bedrock by signed requests: Converse for all clients, whole and streamed, its reasoning, its caches, its errors, and the bill. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { dialectNames } from '../../end-to-end/dialects.ts';
import { modelAt, startTestbed, type Testbed } from '../../end-to-end/testbed.ts';
import { clients } from '../../matrix/clients/index.ts';
import type { ClientRequest, Play } from '../../matrix/scenario.ts';
import { png } from '../../matrix/scenarios.ts';
import { type BedrockStandIn, identity, model, plugins, region, startBedrock } from './bedrock-stand-in.ts';
import { assertAnswered, type CloudCase, cases, send, usage } from './questions.ts';

let bedrock: BedrockStandIn;
let testbed: Testbed;
const key = `${identity.id}:${identity.secret}:${identity.session}`;
const environment = {
  AWS_ACCESS_KEY_ID: identity.id,
  AWS_SECRET_ACCESS_KEY: identity.secret,
  AWS_SESSION_TOKEN: identity.session,
};

before(async () => {
  bedrock = await startBedrock(cases[0]!.play);
  Object.assign(process.env, environment);
  const auth = { scheme: 'aws', service: 'bedrock', region };
  const speaks = { bedrock: bedrock.origin };
  const marks = { bedrock: { cache_marks: true, reasoning: 'budget' } };
  const limited = Object.fromEntries(dialectNames.map((name) => [`for-${name}`, { keys: key, speaks, auth }]));
  testbed = await startTestbed({
    providers: () => ({
      written: { keys: key, speaks, auth, dialect: marks },
      found: { speaks, auth },
      unknown: { keys: `AKIDUNKNOWN999:${identity.secret}:${identity.session}`, speaks, auth },
      forged: { keys: `${identity.id}:forged-secret:${identity.session}`, speaks, auth },
      expired: { keys: key, speaks, auth },
      malformed: { keys: 'no-key-of-this-form', speaks, auth },
      ...limited,
    }),
    models: Object.fromEntries(
      ['written', 'found', 'unknown', 'forged', 'expired', 'malformed', ...Object.keys(limited)].map((name) => [
        name,
        modelAt(`${name}/${model}`),
      ]),
    ),
    more: { plugins },
  });
});
after(async () => {
  await testbed.stop();
  bedrock.close();
  for (const name of Object.keys(environment)) delete process.env[name];
});
beforeEach(() => {
  Object.assign(bedrock, { usage: undefined, fault: undefined, breaksBy: undefined, expired: false });
});

for (const one of cases)
  test(`${one.name} is answered by a signed request, and charged to the token`, async () => {
    bedrock.play = one.play;
    await assertAnswered(testbed, one, one.isStream ? 'written' : 'found');
    assert.deepEqual(bedrock.problems, []);
    assert.equal(bedrock.paths.at(-1), `/model/eu.maker.model-v2%3A0/converse${one.isStream ? '-stream' : ''}`);
    const { system, inferenceConfig, toolConfig } = bedrock.bodies.at(-1)! as Record<string, { tools?: unknown[] }>;
    assert.deepEqual(system, one.request.system === undefined ? undefined : [{ text: one.request.system }]);
    assert.deepEqual(inferenceConfig, { maxTokens: 300 });
    const [tool] = one.request.tools ?? [];
    const spec = tool && { name: tool.name, description: tool.description, inputSchema: { json: tool.schema } };
    assert.deepEqual(toolConfig, spec && { tools: [{ toolSpec: spec }] });
  });

const signature = Buffer.from('a signature of the maker').toString('base64');
const thinking: Play = { reasoning: { text: 'Let me think.', signature }, text: 'Hi.', meaning: 'stop', usage };
const thinks: ClientRequest = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }], reasons: true };

for (const client of dialectNames)
  for (const isStream of [false, true])
    test(`reasoning reaches ${client}, ${isStream ? 'streamed' : 'whole'}, and goes back with its signature`, async () => {
      bedrock.play = thinking;
      const customer = await testbed.customer();
      const first = await send(testbed, customer, { client, isStream, request: thinks }, 'written');
      assert.equal(first.status, 200, first.text);
      const fields = bedrock.bodies.at(-1)!['additionalModelRequestFields'] as { thinking: { type: string } };
      assert.equal(fields.thinking.type, 'enabled');
      const seen = isStream ? clients[client].readStream(first.text) : clients[client].readWhole(first.text);
      assert.equal(seen.text, 'Hi.');
      assert.equal(seen.reasoning, 'Let me think.');
      assert.ok(!first.text.includes(signature), 'only sealed');
      const next: ClientRequest = {
        ...thinks,
        turns: [
          ...thinks.turns,
          { by: 'echo', native: seen.echo },
          { by: 'user', parts: [{ kind: 'text', text: 'More.' }] },
        ],
      };
      const second = await send(testbed, customer, { client, isStream: false, request: next }, 'written');
      assert.equal(second.status, 200, second.text);
      const messages = bedrock.bodies.at(-1)!['messages'] as { content: object[] }[];
      assert.deepEqual(messages[1]!.content[0], {
        reasoningContent: { reasoningText: { text: 'Let me think.', signature } },
      });
      assert.deepEqual(bedrock.problems, []);
    });

test('images and marks of a prompt cache reach the vendor', async () => {
  bedrock.play = cases[0]!.play;
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } };
  const reply = await testbed.call(await testbed.customer(), 'messages', {
    model: 'written',
    prompt: '',
    more: {
      system: [{ type: 'text', text: 'Long rules.', cache_control: { type: 'ephemeral', ttl: '1h' } }],
      messages: [{ role: 'user', content: [image, { type: 'text', text: 'What is this?' }] }],
    },
  });
  assert.equal(reply.status, 200, reply.text);
  const { system, messages } = bedrock.bodies.at(-1)!;
  assert.deepEqual(system, [{ text: 'Long rules.' }, { cachePoint: { type: 'default', ttl: '1h' } }]);
  const content = [{ image: { format: 'png', source: { bytes: png } } }, { text: 'What is this?' }];
  assert.deepEqual(messages, [{ role: 'user', content }]);
});

for (const isStream of [false, true])
  test(`tokens written to a cache are counted by their lifetime, ${isStream ? 'streamed' : 'whole'}`, async () => {
    bedrock.play = cases[0]!.play;
    bedrock.usage = {
      ...{
        inputTokens: 10,
        outputTokens: 5,
        totalTokens: 1_315,
        cacheReadInputTokens: 200,
        cacheWriteInputTokens: 1_100,
      },
      cacheDetails: [
        { ttl: '1h', inputTokens: 1_000 },
        { ttl: '5m', inputTokens: 100 },
      ],
    };
    const customer = await testbed.customer();
    await send(testbed, customer, { ...cases[0]!, isStream }, 'written');
    const { charges } = await testbed.records(customer);
    const classes = { input: 10, output: 5, cache_read: 200, cache_write_5m: 100, cache_write_1h: 1_000 };
    assert.deepEqual(charges[0]!.classes, classes);
    assert.equal(charges[0]!.cost, 10_000n + 10_000n + 20_000n + 1_100_000n);
  });

const hello: ClientRequest = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] };
const plain = (client: CloudCase['client'], isStream = false) => ({ client, isStream, request: hello });

for (const client of dialectNames) {
  test(`errors before an answer are reported to ${client}, and cost nothing`, async () => {
    const customer = await testbed.customer();
    const rows = [
      [400, 'ValidationException', 'The value at maxTokens is too large.', 400],
      [404, 'ResourceNotFoundException', 'Could not resolve the foundation model from arn:aws:secret.', 502],
      [424, 'ModelErrorException', 'The maker failed.', 502],
      [503, 'ServiceUnavailableException', 'Try again.', 503],
      [429, 'ThrottlingException', 'Too many requests.', 429],
    ] as const;
    for (const [status, type, message, expected] of rows) {
      bedrock.fault = { status, type, message };
      const reply = await send(testbed, customer, plain(client), `for-${client}`);
      assert.equal(reply.status, expected, reply.text);
      const error = clients[client].readError(reply.text);
      if (status === 400) assert.equal(error.message, message);
      assert.doesNotMatch(reply.text, /arn:|amazon|127\.0\.0\.1/);
    }
    assert.equal((await testbed.records(customer, rows.length)).charges.length, 0);
  });

  for (const breaksBy of ['modelStreamErrorException', 'damage'])
    test(`a stream that breaks by ${breaksBy} after the first words ends in the protocol of ${client}`, async () => {
      bedrock.play = { ...cases[0]!.play, text: 'Once upon a time.' };
      bedrock.breaksBy = breaksBy;
      const reply = await send(testbed, await testbed.customer(), plain(client, true), 'written');
      assert.equal(reply.status, 200, reply.text);
      const seen = clients[client].readStream(reply.text);
      assert.ok(seen.error !== undefined && seen.text !== '' && 'Once upon a time.'.startsWith(seen.text), reply.text);
      assert.doesNotMatch(reply.text, /It broke|stream is damaged/);
    });
}

test('an exception instead of the first message is an answer with its status, and costs nothing', async () => {
  bedrock.breaksBy = 'first serviceUnavailableException';
  const customer = await testbed.customer();
  const reply = await send(testbed, customer, plain('chat', true), 'written');
  assert.equal(reply.status, 503, reply.text);
  assert.equal((await testbed.records(customer)).charges.length, 0);
});

for (const [name, expired] of [
  ['unknown', false],
  ['forged', false],
  ['expired', true],
] as const)
  test(`a credential that is ${name} is put into cooldown with a notice, costs nothing, and shows no secret`, async () => {
    bedrock.expired = expired;
    const customer = await testbed.customer();
    const reply = await send(testbed, customer, plain('messages'), name);
    assert.ok(reply.status === 502 || reply.status === 503, reply.text);
    const count = bedrock.paths.length;
    await send(testbed, customer, plain('chat'), name);
    assert.equal(bedrock.paths.length, count, 'it rests');
    assert.equal((await testbed.records(customer, 2)).charges.length, 0);
    const lines = testbed.gateway.lines.join('\n');
    assert.match(lines, new RegExp(`"${name}#1".*an upstream key cools down`));
    for (const secret of [identity.secret, identity.session, 'forged-secret', 'Canonical String'])
      assert.ok(!lines.includes(secret) && !reply.text.includes(secret), secret);
  });

test('a key of another form is an error of the credential: nothing is sent', async () => {
  const count = bedrock.paths.length;
  const reply = await send(testbed, await testbed.customer(), plain('chat'), 'malformed');
  assert.ok(reply.status === 502 || reply.status === 503, reply.text);
  assert.equal(bedrock.paths.length, count);
  const lines = testbed.gateway.lines.join('\n');
  assert.match(lines, /could not be obtained: its key is not ACCESS_KEY_ID:SECRET_ACCESS_KEY/);
  assert.doesNotMatch(lines, /no-key-of-this-form/);
});
