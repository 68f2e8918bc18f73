/** Vertex AI: two publishers, tokens of every kind of credential, Google's errors; for all clients, and what they pay. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { dialectNames, dialects } from '../../end-to-end/dialects.ts';
import { modelAt, readReply, startTestbed, type Testbed } from '../../end-to-end/testbed.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { clients } from '../../matrix/clients/index.ts';
import { geminiVendor } from '../../matrix/vendors/gemini.ts';
import { messagesVendor } from '../../matrix/vendors/messages.ts';
import { type GoogleStandIn, project, refreshToken, startGoogle, subjectToken } from './google-stand-in.ts';
import { assertAnswered, cases, send } from './questions.ts';

let google: GoogleStandIn;
let testbed: Testbed;

const gemini = 'their-gemini';
const claude = 'their-claude@20260101';
const plugins = [
  ...['storage', 'request-log', 'auth', 'plans', 'providers', 'models', 'billing', 'route', 'protocol-convert'],
  ...['google', 'vertex'],
];
const sources = ['file', 'inline', 'base64', 'user', 'federated', 'impersonated', 'metadata'];

before(async () => {
  google = await startGoogle(cases[0]!.play);
  const directory = temporaryDirectory('google-');
  const file = join(directory, 'account.json');
  writeFileSync(file, JSON.stringify(google.serviceAccount(), null, 2));
  const subject = join(directory, 'subject.json');
  writeFileSync(subject, JSON.stringify({ access_token: subjectToken }));
  const auth = { scheme: 'google', metadata: google.origin };
  const inGemini = { speaks: { 'vertex-gemini': google.base }, auth };
  const inClaude = { speaks: { 'vertex-claude': google.base }, auth };
  const { private_key: _, ...keyless } = google.serviceAccount();
  const fresh = ['locked', 'revoked', 'absent', ...dialectNames.map((name) => `locked-${name}`)];
  testbed = await startTestbed({
    providers: () => ({
      publishers: { keys: file, auth, speaks: { ...inGemini.speaks, ...inClaude.speaks } },
      file: { keys: file, ...inClaude },
      inline: { keys: JSON.stringify(google.serviceAccount(), null, 2), ...inClaude },
      base64: { keys: Buffer.from(JSON.stringify(google.serviceAccount())).toString('base64'), ...inClaude },
      user: { keys: JSON.stringify(google.user()), ...inClaude },
      federated: { keys: JSON.stringify(google.federated(subject, false)), ...inGemini },
      impersonated: { keys: JSON.stringify(google.federated(subject, true)), ...inClaude },
      metadata: inClaude,
      keyless: { keys: JSON.stringify(keyless), ...inClaude },
      ...Object.fromEntries(fresh.map((name) => [name, { keys: JSON.stringify(google.user()), ...inClaude }])),
      ...Object.fromEntries(dialectNames.map((name) => [`busy-${name}`, { keys: file, ...inGemini }])),
      absent: { keys: join(directory, 'absent.json'), ...inClaude },
      short: { keys: file, ...inClaude },
    }),
    models: {
      gemini: modelAt({ provider: 'publishers', model: gemini, speaks: 'vertex-gemini' }),
      claude: modelAt({ provider: 'publishers', model: claude, speaks: ['vertex-claude'] }),
      federated: modelAt(`federated/${gemini}`),
      ...Object.fromEntries(
        [...sources.filter((name) => name !== 'federated'), ...fresh, 'keyless', 'short'].map((name) => [
          name,
          modelAt(`${name}/${claude}`),
        ]),
      ),
      ...Object.fromEntries(dialectNames.map((name) => [`busy-${name}`, modelAt(`busy-${name}/${gemini}`)])),
      missing: modelAt({ provider: 'publishers', model: 'no-such-model', speaks: 'vertex-claude' }),
    },
    more: { plugins },
  });
});
after(async () => {
  await testbed.stop();
  google.close();
});
beforeEach(() => {
  google.fault = undefined;
  google.problems.length = 0;
  Object.assign(google.tokens, { refuses: false, revoked: false, livesSeconds: 3_599 });
});

for (const one of cases)
  for (const [model, path] of [
    [
      'gemini',
      (isStream: boolean) =>
        `google/models/${gemini}:${isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    ],
    [
      'claude',
      (isStream: boolean) =>
        `anthropic/models/${encodeURIComponent(claude)}:${isStream ? 'streamRawPredict' : 'rawPredict'}`,
    ],
  ] as const)
    test(`${one.name} is answered by ${model}, and charged to the token`, async () => {
      google.play = one.play;
      await assertAnswered(testbed, one, model);
      assert.deepEqual(google.problems, []);
      assert.equal(google.requests.at(-1)!.path, `/v1/${project}/publishers/${path(one.isStream)}`);
      const { tools, system } = google.arrived.at(-1)!;
      assert.deepEqual([tools, system], [one.request.tools ?? [], one.request.system ?? '']);
    });

for (const isStream of [false, true])
  test(`clients of the publisher's own protocol are relayed byte for byte, ${isStream ? 'streamed' : 'whole'}`, async () => {
    const customer = await testbed.customer();
    for (const [client, model, vendor, name] of [
      ['gemini', 'gemini', geminiVendor, gemini],
      ['messages', 'claude', messagesVendor, claude],
    ] as const) {
      const { request: requested, play } = cases[0]!;
      google.play = play;
      const answer = await send(testbed, customer, { client, isStream, request: requested }, model);
      assert.equal(answer.text, isStream ? vendor.stream(play, name).join('') : vendor.whole(play, name));
      const { body } = clients[client].word(requested, { model, isStream });
      const sent = google.requests.at(-1)!.body;
      if (client === 'gemini') assert.equal(sent, body);
      else {
        const { model: _, ...others } = JSON.parse(body as string) as Record<string, unknown>;
        assert.equal(sent, JSON.stringify({ ...others, anthropic_version: 'vertex-2023-10-16' }));
      }
    }
    assert.deepEqual(google.problems, []);
  });

test("a client that names a version in the query is relayed with the vendor's own version and address", async () => {
  const body = { anthropic_version: 'x', model: 'claude', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] };
  google.play = cases[0]!.play;
  const answer = await post('/v1/messages?beta=true', body, 'messages');
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(google.problems, []);
  assert.match(google.requests.at(-1)!.body, /^\{"anthropic_version":"vertex-2023-10-16","max_tokens":5/);
});

test('tokens are counted at the addresses of both publishers', async () => {
  const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
  const whole = {
    generateContentRequest: { model: 'models/gemini', contents, systemInstruction: { parts: [{ text: 'S' }] } },
  };
  for (const body of [{ contents }, whole]) {
    const answer = await post('/v1beta/models/gemini:countTokens', body, 'gemini');
    assert.equal((JSON.parse(answer.text) as { totalTokens: number }).totalTokens, 77, answer.text);
  }
  const request = { model: 'claude', messages: [{ role: 'user', content: 'Hi' }] };
  const counted = await post('/v1/messages/count_tokens', request, 'messages');
  assert.equal((JSON.parse(counted.text) as { input_tokens: number }).input_tokens, 88, counted.text);
  assert.deepEqual(google.problems, []);
});

async function post(path: string, body: object, client: (typeof dialectNames)[number]) {
  const { key } = await testbed.customer();
  const headers = { 'content-type': 'application/json', ...dialects[client].key(key) };
  return readReply(await fetch(testbed.origin + path, { method: 'POST', headers, body: JSON.stringify(body) }));
}

const hello = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] } as const;
const once = (client: (typeof dialectNames)[number]) => ({ client, isStream: false, request: hello });

for (const source of sources)
  test(`a token by ${source} is fetched once for all that wait`, async () => {
    google.play = cases[0]!.play;
    const issued = google.tokens.issued.length;
    const customer = await testbed.customer();
    const answers = await Promise.all(Array.from({ length: 5 }, () => send(testbed, customer, once('chat'), source)));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]), answers[0]!.text);
    assert.equal(google.tokens.issued.length - issued, source === 'impersonated' ? 2 : 1);
    assert.deepEqual(google.problems, []);
  });

test('a token that ends soon is used while the next one is fetched', async () => {
  google.play = cases[0]!.play;
  google.tokens.livesSeconds = 200;
  const customer = await testbed.customer();
  const issued = google.tokens.issued.length;
  await send(testbed, customer, once('chat'), 'short');
  google.tokens.livesSeconds = 3_599;
  for (let calls = 0; calls < 3; calls++) {
    assert.equal((await send(testbed, customer, once('chat'), 'short')).status, 200);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal(google.tokens.issued.length - issued, 2);
});

const secrets = new RegExp(`${refreshToken}|ya29|secret-of-the-client|PRIVATE KEY|${subjectToken}`);
const noticesOf = (model: string) => testbed.gateway.lines.filter((line) => line.includes(`"${model}#1"`)).join('\n');

for (const client of dialectNames)
  test(`without a token ${client} gets an unavailable model; the credential is put into cooldown with a notice without secrets`, async () => {
    google.tokens.refuses = true;
    const customer = await testbed.customer();
    const requestCount = google.requests.length;
    const answer = await send(testbed, customer, once(client), `locked-${client}`);
    assert.ok(answer.status === 502 || answer.status === 503, answer.text);
    assert.equal(google.requests.length, requestCount, 'nothing is sent without a token');
    assert.equal((await testbed.records(customer)).charges.length, 0);
    assert.match(noticesOf(`locked-${client}`), /the token server gave no token: status 400, invalid_grant/);
    assert.doesNotMatch(testbed.gateway.lines.join('\n') + answer.text, secrets);
    assert.doesNotMatch(answer.text, /127\.0\.0\.1|google|vertex/i);
  });

for (const [model, notice] of [
  ['keyless', /lacks members: look at private_key/],
  ['absent', /the credential file cannot be read: ENOENT/],
] as const)
  test(`a credential file that is ${model} is named in the notice`, async () => {
    const answer = await send(testbed, await testbed.customer(), once('chat'), model);
    assert.ok(answer.status === 502 || answer.status === 503, answer.text);
    assert.match(noticesOf(model), notice);
  });

test('a revoked token that the vendor refuses puts the credential into cooldown, and nothing is charged', async () => {
  google.tokens.revoked = true;
  const customer = await testbed.customer();
  const answer = await send(testbed, customer, once('messages'), 'revoked');
  assert.ok(answer.status === 502 || answer.status === 503, answer.text);
  const requestCount = google.requests.length;
  await send(testbed, customer, once('chat'), 'revoked');
  assert.equal(google.requests.length, requestCount, 'the key rests');
  assert.equal((await testbed.records(customer, 2)).charges.length, 0);
  assert.match(noticesOf('revoked'), /an upstream key cools down for all models/);
  assert.doesNotMatch(testbed.gateway.lines.join('\n') + answer.text, secrets);
});

for (const client of dialectNames)
  test(`an error instead of a stream names no project to ${client} either`, async () => {
    const message = 'Project `1234` is not allowed to use Publisher Model.';
    google.fault = { status: 200, body: { error: { code: 400, message, status: 'FAILED_PRECONDITION' } } };
    const streamed = cases.find((one) => one.client === client && one.isStream)!;
    const answer = await send(testbed, await testbed.customer(), streamed, 'gemini');
    assert.equal(answer.status, 400, answer.text);
    assert.equal(clients[client].readError(answer.text).message, 'The model refused the request.');
  });

for (const client of dialectNames)
  test(`Google's errors are reported to ${client} in its form, without the project; nothing is charged`, async () => {
    const customer = await testbed.customer();
    const missing = await send(testbed, customer, once(client), 'missing');
    assert.ok([404, 502].includes(missing.status), missing.text);
    const word = (status: number, name: string, message: string) => ({
      status,
      body: { error: { code: status, message, status: name } },
    });
    google.fault = word(400, 'INVALID_ARGUMENT', 'Unable to submit request because the tool is odd.');
    const odd = await send(testbed, customer, once(client), 'claude');
    assert.equal(odd.status, 400);
    assert.equal(clients[client].readError(odd.text).message, 'Unable to submit request because the tool is odd.');
    google.fault = word(400, 'FAILED_PRECONDITION', 'Project `1234` is not allowed to use Publisher Model.');
    const closed = await send(testbed, customer, once(client), 'gemini');
    assert.equal(clients[client].readError(closed.text).message, 'The model refused the request.');
    google.fault = word(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded for aiplatform.googleapis.com/requests.');
    const limited = await send(testbed, customer, once(client), `busy-${client}`);
    assert.equal(limited.status, 429, limited.text);
    google.fault = word(403, 'PERMISSION_DENIED', 'Permission aiplatform.endpoints.predict denied on project-1.');
    const denied = await send(testbed, customer, once(client), `locked-${client}`);
    assert.ok(denied.status === 502 || denied.status === 503, denied.text);
    const all = [missing, odd, closed, limited, denied].map(({ text }) => text).join('\n');
    assert.doesNotMatch(all, /127\.0\.0\.1|project|aiplatform|ya29/i);
    assert.equal((await testbed.records(customer, 5)).charges.length, 0);
  });
