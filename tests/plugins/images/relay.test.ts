/** An image request's way to the vendor and back: bytes as they came, refusals sorted, nothing of the vendor's told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../../../core/contract.ts';
import { upstreamRequest } from '../../../core/contract.ts';
import { UpstreamRefusal } from '../../../core/errors.ts';
import { secret } from '../../../core/secret.ts';
import { call, type Target, target, usageReport } from '../../../core/vocabulary.ts';
import plugin from '../../../plugins/images/index.ts';
import { fakeExchange, fakeHost, setUp } from '../../helpers/fakes.ts';
import { recording } from '../../helpers/recordings.ts';

const key = 'vendor-key-1234';
const to = (changes: Partial<Target['upstream']> = {}, model = 'their-model'): Target => ({
  provider: 'vendor',
  model,
  protocol: 'their-images',
  baseUrl: 'https://vendor.example/v1',
  key: secret(key),
  credential: 'vendor#1',
  traits: {},
  upstream: {
    auth: undefined,
    headers: { 'X-Project': 'p1' },
    dropFields: {},
    streamUsageOption: true,
    connectTimeoutMs: 1_000,
    firstByteTimeoutMs: 30_000,
    idleTimeoutMs: 60_000,
    ...changes,
  },
});

async function ask(body: Uint8Array | string, answer: Answer, where = to()) {
  const part = await setUp(plugin, fakeHost(), { protocol: 'their-images' });
  const [endpoint] = part.endpoints!;
  const exchange = fakeExchange({
    endpoint: endpoint!,
    request: { body: Buffer.from(body) },
    facts: [[target, where]],
  });
  await endpoint!.open!(exchange);
  const told = part.handle!(exchange, async () => answer);
  await told.catch(() => undefined);
  return { exchange, told, sent: exchange.get(upstreamRequest) };
}

const json = (status: number, body: Uint8Array | string): Answer => ({
  status,
  headers: { 'content-type': 'application/json', 'openai-organization': 'org-secret' },
  body,
});
const plain = '{ "model" : "alias", "prompt":"A \\u0063at",\n "n":1 }';
const good = '{"created":1,"data":[{"b64_json":"aGVsbG8="}]}';

test('the request goes out byte for byte but for its model, by the vendor, with its key and time to paint', async () => {
  const { sent } = await ask(plain, json(200, good));
  assert.equal(Buffer.from(sent.body as Uint8Array).toString(), plain.replace('"alias"', '"their-model"'));
  assert.deepEqual(
    { ...sent, body: '' },
    {
      url: 'https://vendor.example/v1/images/generations',
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'x-project': 'p1',
        authorization: `Bearer ${key}`,
      },
      body: '',
      credential: 'vendor#1',
      stream: false,
      connectTimeoutMs: 1_000,
      firstByteTimeoutMs: 600_000,
      idleTimeoutMs: 60_000,
    },
  );
});

test('members that the vendor does not take are left out and told', async () => {
  const where = to({ dropFields: { 'their-images': ['user'] }, auth: { header: 'Api-Key', value: '{key}' } }, 'alias');
  const { sent, told } = await ask('{"model":"alias","prompt":"A cat","user":"u1"}', json(200, good), where);
  assert.equal(Buffer.from(sent.body as Uint8Array).toString(), '{"model":"alias","prompt":"A cat"}');
  assert.equal(sent.headers['api-key'], key);
  assert.equal((await told).headers['x-gateway-dropped'], 'user');
});

test("the answer comes back byte for byte with none of the vendor's headers, and its usage is stated", async () => {
  const { response, request } = recording('images', 'openai-gpt-image-1-mini-image-out-fd50');
  const { exchange, told } = await ask(request!, json(200, response));
  const answer = await told;
  assert.deepEqual(Buffer.from(answer.body as Uint8Array), response);
  assert.deepEqual(answer.headers, { 'content-type': 'application/json' });
  assert.equal(exchange.get(usageReport).usage.output_image, 272);
  assert.equal(exchange.get(call).images, 1);
});

async function refusal(answer: Answer): Promise<UpstreamRefusal> {
  const { told, exchange } = await ask(plain, answer);
  const error = await told.then(
    () => assert.fail('it was taken for an answer'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof UpstreamRefusal, String(error));
  assert.equal(exchange.find(usageReport), undefined);
  return error;
}

test("a vendor's words about the request are handed on as they are", async () => {
  for (const name of ['openai-gpt-image-1.5-err400-2c49', 'openai-dall-e-2-err400-12b1']) {
    const { response, status } = recording('images', name);
    const { answer, error, mayRun } = await refusal(json(status, response));
    assert.deepEqual(Buffer.from(answer!.body as Uint8Array), response);
    assert.deepEqual([error.kind, error.status, mayRun], ['invalid_request', 400, false]);
  }
});

test('what is no answer is told from what may have been painted', async () => {
  const cases: readonly [answer: Answer, status: number, mayRun: boolean, keyAtFault: boolean][] = [
    [json(500, '{"error":{"message":"x"}}'), 500, true, false],
    [json(503, '{}'), 503, false, false],
    [json(429, '{"error":{"message":"slow"}}'), 429, false, false],
    [json(401, '{"error":{"message":"x"}}'), 401, false, true],
    [json(200, '<html></html>'), 502, false, false],
    [json(200, 'half of {'), 502, true, false],
    [json(200, '{"created":1}'), 502, true, false],
    [json(200, '{"error":{"message":"x","code":"rate_limit_exceeded"}}'), 429, false, false],
  ];
  for (const [answer, status, mayRun, keyAtFault] of cases) {
    const told = await refusal(answer);
    assert.deepEqual([told.status, told.mayRun, told.keyAtFault], [status, mayRun, keyAtFault], String(answer.body));
  }
});

test("a vendor that quotes the gateway's key is not quoted", async () => {
  const { answer, error } = await refusal(json(400, `{"error":{"message":"no such project for ${key}"}}`));
  assert.doesNotMatch(`${Buffer.from(answer!.body as Uint8Array)} ${error.message}`, /vendor-key/);
});

test("errors of the gateway's own are worded as the protocol does", async () => {
  const part = await setUp(plugin, fakeHost(), { protocol: 'their-images', timeout: '3m' });
  const [endpoint] = part.endpoints!;
  assert.equal(endpoint!.timeoutMs, 180_000);
  const exchange = fakeExchange({ request: { body: Buffer.from('{}') } });
  await assert.rejects(
    async () => endpoint!.open!(exchange),
    (error: never) => {
      const answer = endpoint!.renderError!(error, exchange);
      const body = JSON.parse(answer.body as string) as { error: { type: string; param: string } };
      assert.deepEqual([answer.status, body.error.type, body.error.param], [400, 'invalid_request_error', 'model']);
      return true;
    },
  );
});

test('the name of the protocol must be configured', async () => {
  await assert.rejects(async () => setUp(plugin, fakeHost(), {}));
});
