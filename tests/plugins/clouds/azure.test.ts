/** Azure: its addresses, keys and tokens, the results of its content filter, its errors; for all clients, and what they pay. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { dialectNames } from '../../end-to-end/dialects.ts';
import { modelAt, startTestbed, type Testbed } from '../../end-to-end/testbed.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { clients } from '../../matrix/clients/index.ts';
import {
  type AzureStandIn,
  clientSecret,
  federatedToken,
  filteredStream,
  filteredWhole,
  resourceKey,
  startAzure,
} from './azure-stand-in.ts';
import { assertAnswered, cases, send } from './questions.ts';

let azure: AzureStandIn;
let testbed: Testbed;

const plugins = [
  ...[
    'storage',
    'request-log',
    'auth',
    'plans',
    'azure',
    'providers',
    'models',
    'billing',
    'route',
    'protocol-convert',
  ],
];
const query = '?api-version=2024-10-21';
const target = (provider: string) => modelAt(`${provider}/gpt own`);
const spoken = (provider: string, speaks: string) => modelAt({ provider, model: 'gpt own', speaks });
/** A limit rests the key of its provider. */
const limited = ['chat', 'responses'].flatMap((speaks) => dialectNames.map((client) => `${speaks}-${client}`));

before(async () => {
  azure = await startAzure(cases[0]!.play);
  const file = join(temporaryDirectory('azure-'), 'token');
  writeFileSync(file, `${federatedToken}\n`);
  const classic = { chat: `${azure.origin}/openai/deployments/{model}${query}` };
  const newer = { responses: `${azure.origin}/openai/v1`, chat: `${azure.origin}/openai/v1` };
  const entra = (more: object = {}) => ({ scheme: 'azure', entra: { ...azure.authority, ...more } });
  const machine = (more: object = {}) => ({
    scheme: 'azure',
    managed_identity: { metadata: azure.origin, ...more },
  });
  testbed = await startTestbed({
    providers: () => ({
      classic: { preset: 'azure', keys: resourceKey, speaks: classic },
      newer: {
        preset: 'azure',
        keys: resourceKey,
        speaks: newer,
      },
      entra: { keys: clientSecret, speaks: classic, auth: entra() },
      workload: { speaks: classic, auth: entra({ token_file: file }) },
      system: { speaks: classic, auth: machine() },
      assigned: { speaks: classic, auth: machine({ client_id: azure.authority.client_id }) },
      unassigned: { speaks: classic, auth: machine({ client_id: 'another-identity' }) },
      refused: { keys: 'secret-that-was-refused', speaks: classic, auth: entra() },
      revoked: { keys: clientSecret, speaks: classic, auth: entra() },
      ...Object.fromEntries(
        limited.map((name) => [`for-${name}`, { preset: 'azure', keys: resourceKey, speaks: newer }]),
      ),
      wrong: { preset: 'azure', keys: 'key-that-is-wrong', speaks: classic },
    }),
    models: {
      ...Object.fromEntries(
        ['classic', 'entra', 'workload', 'system', 'assigned', 'unassigned', 'refused', 'revoked', 'wrong'].map(
          (name) => [name, target(name)],
        ),
      ),
      ...Object.fromEntries(limited.map((name) => [`for-${name}`, spoken(`for-${name}`, name.split('-')[0]!)])),
      newer: spoken('newer', 'chat'),
      responses: spoken('newer', 'responses'),
      missing: modelAt('classic/no-such-deployment'),
      elsewhere: modelAt('classic/no-such-deployment', 'newer/gpt own'),
    },
    more: { plugins },
  });
});
after(async () => {
  await testbed.stop();
  azure.close();
});
beforeEach(() => {
  azure.fault = undefined;
  azure.tokens.refuses = false;
  azure.tokens.revoked = false;
});

for (const one of cases)
  for (const [model, path] of [
    ['classic', `/openai/deployments/gpt%20own/chat/completions${query}`],
    ['newer', '/openai/v1/chat/completions'],
    ['responses', '/openai/v1/responses'],
  ] as const)
    test(`${one.name} is answered by ${model} addresses, and charged to the token`, async () => {
      azure.play = one.play;
      await assertAnswered(testbed, one, model);
      assert.deepEqual(azure.problems, []);
      assert.equal(azure.paths.at(-1), path);
      assert.equal(azure.authorizedBy.at(-1), 'key');
      const { tools, system, maxOutputTokens } = azure.arrived.at(-1)!;
      assert.deepEqual(
        [tools, system, maxOutputTokens],
        [one.request.tools ?? [], one.request.system ?? '', one.request.maxOutputTokens],
      );
    });

for (const isStream of [false, true])
  test(`the results of the content filter are relayed byte for byte, ${isStream ? 'streamed' : 'whole'}`, async () => {
    const [{ request: requested, play }] = cases as [(typeof cases)[0]];
    azure.play = play;
    const reply = await send(
      testbed,
      await testbed.customer(),
      { client: 'chat', isStream, request: requested },
      'classic',
    );
    assert.equal(reply.text, isStream ? filteredStream(play) : filteredWhole(play));
    assert.match(reply.text, /prompt_filter_results/);
  });

const hello = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] } as const;
const once = (client: (typeof dialectNames)[number]) => ({ client, isStream: false, request: hello });

const filtered = {
  message: 'The response was filtered due to the prompt triggering the content management policy.',
  param: 'prompt',
  code: 'content_filter',
  status: 400,
  innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: { hate: { filtered: true } } },
};

for (const client of dialectNames)
  for (const [model, speaks] of [
    ['newer', 'chat'],
    ['responses', 'responses'],
  ] as const)
    test(`errors at ${model} addresses are reported to ${client}: a filtered prompt, a missing deployment, a limit; nothing is charged`, async () => {
      const customer = await testbed.customer();
      azure.fault = { status: 400, body: { error: filtered } };
      const blocked = await send(testbed, customer, once(client), model);
      assert.equal(blocked.status, 400);
      if (client === speaks)
        assert.equal(blocked.text, JSON.stringify({ error: filtered }), 'with what the filter found');
      else assert.equal(clients[client].readError(blocked.text).message, filtered.message);
      azure.fault = undefined;
      const missing = await send(testbed, customer, once(client), 'missing');
      assert.equal(missing.status, 404, missing.text);
      assert.match(missing.text, /The API deployment for this resource/);
      azure.fault = {
        status: 429,
        headers: { 'retry-after': '7' },
        body: { error: { code: '429', message: 'Requests have exceeded the token rate limit.' } },
      };
      const limited = await send(testbed, customer, once(client), `for-${speaks}-${client}`);
      assert.equal(limited.status, 429, limited.text);
      assert.equal(limited.headers.get('retry-after'), '7');
      assert.doesNotMatch(blocked.text + missing.text + limited.text, /127\.0\.0\.1|key-of|azure/i);
      assert.equal((await testbed.records(customer, 3)).charges.length, 0);
    });

test('where a deployment is missing the next target answers', async () => {
  azure.play = cases[0]!.play;
  await assertAnswered(testbed, cases[0]!, 'elsewhere');
  assert.match(azure.paths.at(-2)!, /no-such-deployment/);
});

test('a token of Entra is fetched once for all, by secret, by federated token or by managed identity', async () => {
  azure.play = cases[0]!.play;
  for (const model of ['entra', 'workload', 'system', 'assigned']) {
    const { issued } = azure.tokens;
    const customer = await testbed.customer();
    const reply = await Promise.all(Array.from({ length: 5 }, () => send(testbed, customer, once('chat'), model)));
    assert.deepEqual(
      reply.map(({ status }) => status),
      Array(5).fill(200),
      reply[0]!.text,
    );
    assert.equal(azure.tokens.issued - issued, 1, model);
    assert.equal(azure.authorizedBy.at(-1), 'token');
  }
  assert.deepEqual(azure.problems, []);
});

for (const client of dialectNames)
  test(`without a token ${client} gets an unavailable model; the credential is put into cooldown with a notice without secrets`, async () => {
    const customer = await testbed.customer();
    const requestCount = azure.paths.length;
    const reply = await send(testbed, customer, once(client), 'refused');
    assert.ok(reply.status === 502 || reply.status === 503, reply.text);
    assert.equal(azure.paths.length, requestCount, 'nothing is sent without a token');
    assert.equal((await testbed.records(customer)).charges.length, 0);
    const lines = testbed.gateway.lines.filter((line) => line.includes('"refused#1"'));
    assert.match(lines.join('\n'), /gave no token, status 401: invalid_client \(7000215\)/);
    assert.doesNotMatch(testbed.gateway.lines.join('\n') + reply.text, /secret-that|token-of-entra|Trace ID/);
  });

test('an identity that the machine does not have is put into cooldown with a notice', async () => {
  const customer = await testbed.customer();
  const refused = await send(testbed, customer, once('chat'), 'unassigned');
  assert.ok(refused.status === 502 || refused.status === 503, refused.text);
  const lines = testbed.gateway.lines.filter((line) => line.includes('"unassigned#1"'));
  assert.match(lines.join('\n'), /the metadata service gave no token, status 400: invalid_request/);
  assert.equal((await testbed.records(customer)).charges.length, 0);
});

for (const model of ['wrong', 'revoked'])
  test(`a ${model} credential that the vendor refuses is put into cooldown, and nothing is charged`, async () => {
    azure.tokens.revoked = true;
    const customer = await testbed.customer();
    const reply = await send(testbed, customer, once('messages'), model);
    assert.ok(reply.status === 502 || reply.status === 503, reply.text);
    const requestCount = azure.paths.length;
    await send(testbed, customer, once('chat'), model);
    assert.equal(azure.paths.length, requestCount, 'the key rests');
    assert.equal((await testbed.records(customer, 2)).charges.length, 0);
    const lines = testbed.gateway.lines.filter((line) => line.includes(`"${model}#1"`) && line.includes('"warn"'));
    assert.match(lines.join(), /an upstream key cools down for all models/);
    assert.doesNotMatch(testbed.gateway.lines.join('\n') + reply.text, /key-that|token-of-entra|secret-of/);
  });
