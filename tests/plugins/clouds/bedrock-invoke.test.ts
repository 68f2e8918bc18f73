/** Bedrock by InvokeModel: models in their own formats for all clients, whole and streamed, their errors, and the bill. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { dialectNames, dialects } from '../../end-to-end/dialects.ts';
import { modelAt, readReply, startTestbed, type Testbed } from '../../end-to-end/testbed.ts';
import { clients } from '../../matrix/clients/index.ts';
import type { ClientRequest } from '../../matrix/scenario.ts';
import { messagesVendor } from '../../matrix/vendors/messages.ts';
import { type BedrockStandIn, identity, plugins, region, startBedrock } from './bedrock-stand-in.ts';
import { models } from './invoke-formats.ts';
import { assertAnswered, type CloudCase, cases, send } from './questions.ts';

let bedrock: BedrockStandIn;
let testbed: Testbed;
const families = Object.keys(models) as (keyof typeof models)[];
/** One text, without a place for tools. */
const texts: readonly string[] = ['llama', 'llama4', 'mistral-text'];
const cached: readonly string[] = ['claude', 'nova'];

before(async () => {
  bedrock = await startBedrock(cases[0]!.play);
  const auth = { scheme: 'aws', service: 'bedrock', region };
  const keys = `${identity.id}:${identity.secret}:${identity.session}`;
  // A key that was refused rests: errors have providers of their own.
  const places = families.flatMap((family) =>
    [
      family,
      ...dialectNames.map((client) => `${family}-for-${client}`),
      ...dialectNames.map((client) => `${family}-broken-${client}`),
    ].map((name) => ({ family, name })),
  );
  testbed = await startTestbed({
    providers: () =>
      Object.fromEntries(
        places.map(({ family, name }) => [name, { keys, auth, speaks: { [`bedrock-${family}`]: bedrock.origin } }]),
      ),
    models: {
      ...Object.fromEntries(places.map(({ family, name }) => [name, modelAt(`${name}/${models[family]}`)])),
      'nova-that-reasons': { ...modelAt(`nova/${models.nova}`), traits: { reasoning: 'effort' } },
      'claude-of-few-betas': {
        ...modelAt(`claude/${models.claude}`),
        traits: { betas: ['interleaved-thinking-2025-05-14'] },
      },
    },
    more: { plugins },
  });
});
after(async () => {
  await testbed.stop();
  bedrock.close();
});
beforeEach(() => {
  Object.assign(bedrock, { fault: undefined, breaksBy: undefined });
  bedrock.problems.length = 0;
});

for (const family of families)
  for (const one of cases.filter(({ request }) => request.tools === undefined || !texts.includes(family)))
    test(`${one.name} is answered by ${family} to a signed request, and charged to the token`, async () => {
      const { usage } = one.play;
      const play = cached.includes(family) ? one.play : { ...one.play, usage: { ...usage, cacheRead: 0 } };
      bedrock.play = play;
      await assertAnswered(testbed, { ...one, play }, family);
      assert.deepEqual(bedrock.problems, []);
      const verb = one.isStream ? 'invoke-with-response-stream' : 'invoke';
      assert.equal(bedrock.paths.at(-1), `/model/${encodeURIComponent(models[family])}/${verb}`);
    });

const marked = { type: 'text', text: 'Long rules.', cache_control: { type: 'ephemeral', ttl: '1h' } };
const thought = { type: 'thinking', thinking: 'Hm.', signature: 'c2lnbmF0dXJl' };
const document = {
  type: 'document',
  source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0xLjQK' },
  citations: { enabled: true },
};
const own = {
  model: 'claude',
  max_tokens: 300,
  system: [marked],
  messages: [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: [thought, { type: 'text', text: 'Hello.' }] },
    { role: 'user', content: [document, { type: 'text', text: 'Why?' }] },
  ],
};

async function post(body: object, headers: Record<string, string> = {}) {
  const { key } = await testbed.customer();
  const sent = { 'content-type': 'application/json; charset=utf-8', ...dialects['messages'].key(key), ...headers };
  const answer = await fetch(`${testbed.origin}/v1/messages?beta=true`, {
    method: 'POST',
    headers: sent,
    body: JSON.stringify(body),
  });
  return { ...(await readReply(answer)), dropped: answer.headers.get('x-gateway-dropped') };
}

for (const stream of [false, true])
  test(`a client of its own protocol is relayed to Claude with marks, signatures and documents, ${stream ? 'streamed' : 'whole'}`, async () => {
    const play = { ...cases[0]!.play, reasoning: { text: 'Let me think.', signature: 'c2lnbmVk' } };
    bedrock.play = play;
    const answer = await post({ ...own, stream });
    assert.equal(answer.status, 200, answer.text);
    const { model: _, ...others } = own;
    assert.deepEqual(bedrock.bodies.at(-1), { ...others, anthropic_version: 'bedrock-2023-05-31' });
    const vendor = messagesVendor.stream(play, models.claude);
    const last = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';
    const expected = stream
      ? [...vendor.slice(0, -1).map(unpadded), last].join('')
      : messagesVendor.whole(play, models.claude);
    assert.equal(stream ? unpadded(answer.text) : answer.text, expected);
    assert.doesNotMatch(answer.text, /amazon|invocation/i);
    assert.equal(answer.dropped, null);
  });

/** Spaces at the end of a frame's data. */
function unpadded(text: string): string {
  return text.replaceAll(/ +\}\n/g, '}\n');
}

test('beta features are sent in the body; those that the vendor would refuse are left out and reported', async () => {
  bedrock.play = cases[0]!.play;
  const interleaved = 'interleaved-thinking-2025-05-14';
  const betas = { 'anthropic-beta': `claude-code-20250219, ${interleaved},context-1m-2025-08-07` };
  const reply = await post({ ...own, anthropic_beta: [interleaved, 'context-management-2025-06-27'] }, betas);
  assert.equal(reply.status, 200, reply.text);
  const taken = [interleaved, 'context-1m-2025-08-07', 'context-management-2025-06-27'];
  assert.deepEqual(bedrock.bodies.at(-1)!['anthropic_beta'], taken);
  assert.equal(reply.dropped, 'anthropic-beta');
  const few = await post({ ...own, model: 'claude-of-few-betas' }, betas);
  assert.deepEqual([few.status, bedrock.bodies.at(-1)!['anthropic_beta']], [200, [interleaved]]);
  const none = await post({ ...own, anthropic_beta: ['unknown-2030-01-01'] });
  assert.deepEqual([none.status, none.dropped], [200, 'anthropic-beta']);
  assert.ok(!('anthropic_beta' in bedrock.bodies.at(-1)!));
});

test('Nova reasons where its traits say so, and a schema becomes an instruction', async () => {
  bedrock.play = { ...cases[0]!.play, text: '{"sky":"blue"}' };
  const turns: ClientRequest['turns'] = [{ by: 'user', parts: [{ kind: 'text', text: 'Why?' }] }];
  const requested: ClientRequest = {
    turns,
    maxOutputTokens: 300,
    reasons: true,
    schema: { type: 'object', properties: {} },
  };
  const customer = await testbed.customer();
  for (const [model, reasons] of [
    ['nova-that-reasons', true],
    ['nova', false],
  ] as const) {
    const answer = await send(testbed, customer, { client: 'chat', isStream: false, request: requested }, model);
    assert.equal(answer.status, 200, answer.text);
    const { inferenceConfig, system } = bedrock.bodies.at(-1)!;
    const reasoningConfig = { type: 'enabled', maxReasoningEffort: 'medium' };
    assert.deepEqual(inferenceConfig, { maxTokens: 300, ...(reasons ? { reasoningConfig } : {}) });
    assert.match(JSON.stringify(system), /must follow this JSON schema/);
  }
  assert.deepEqual(bedrock.problems, []);
});

const hello: ClientRequest = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] };
const plain = (client: CloudCase['client'], isStream = false) => ({ client, isStream, request: hello });
const secrets = /arn:|amazon|123456789012|127\.0\.0\.1|bedrock|InvokeModel/i;

for (const family of families)
  for (const client of dialectNames) {
    test(`errors of ${family} before an answer are reported to ${client} without the account, and cost nothing`, async () => {
      const customer = await testbed.customer();
      const arn = 'User arn:aws:sts::123456789012:role is not allowed to call InvokeModel.';
      const rows = [
        [400, 'ValidationException', 'The model returned the following errors: max_tokens: too large', 400],
        [400, 'ValidationException', `Invocation with on-demand throughput is not supported. ${arn}`, 400],
        [404, 'ResourceNotFoundException', arn, 502],
        [424, 'ModelErrorException', 'The maker failed.', 502],
        [503, 'ServiceUnavailableException', 'Try again.', 503],
        [429, 'ThrottlingException', 'Too many requests for account 123456789012.', 429],
      ] as const;
      for (const [index, [status, type, message, expected]] of rows.entries()) {
        bedrock.fault = { status, type, message };
        const reply = await send(testbed, customer, plain(client, index % 2 === 1), `${family}-for-${client}`);
        assert.equal(reply.status, expected, reply.text);
        const error = clients[client].readError(reply.text);
        if (index === 0) assert.equal(error.message, 'max_tokens: too large');
        if (index === 1) assert.equal(error.message, 'The model refused the request.');
        assert.doesNotMatch(reply.text, secrets);
      }
      assert.equal((await testbed.records(customer, rows.length)).charges.length, 0);
    });

    for (const breaksBy of ['modelStreamErrorException', 'damage'])
      test(`a stream of ${family} that breaks by ${breaksBy} ends in the protocol of ${client}`, async () => {
        bedrock.play = { ...cases[0]!.play, text: 'Once upon a time.' };
        bedrock.breaksBy = breaksBy;
        const customer = await testbed.customer();
        const reply = await send(testbed, customer, plain(client, true), family);
        assert.equal(reply.status, 200, reply.text);
        const seen = clients[client].readStream(reply.text);
        assert.ok(
          seen.error !== undefined && seen.text !== '' && 'Once upon a time.'.startsWith(seen.text),
          reply.text,
        );
        assert.doesNotMatch(reply.text, /It broke|stream is damaged/);
        assert.equal((await testbed.records(customer)).charges.length, 1);
      });

    test(`an exception instead of the first chunk of ${family} is an answer with its status for ${client}`, async () => {
      bedrock.breaksBy = 'first serviceUnavailableException';
      const customer = await testbed.customer();
      const reply = await send(testbed, customer, plain(client, true), `${family}-broken-${client}`);
      assert.equal(reply.status, 503, reply.text);
      assert.match(bedrock.paths.at(-1)!, /invoke-with-response-stream$/);
      assert.equal((await testbed.records(customer)).charges.length, 0);
    });
  }
