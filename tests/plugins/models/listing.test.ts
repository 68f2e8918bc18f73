/** `GET …/models` in three dialects, read by hand and by the official SDKs. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { ApiError, GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import type { PluginInstance } from '../../../core/contract/contract.ts';
import { catalog } from '../../../plugins/common/domain/models.ts';
import { orderEndpoints } from '../../helpers/fakes.ts';
import { collect, json, models, send, serve, start } from './helpers.ts';

const large = 'acme/large:latest';
const offered = [large, 'small', 'painter'];
const anthropicVersion = { 'anthropic-version': '2023-06-01' };
let part: PluginInstance;
let origin: string;
let stop: () => void;

before(async () => {
  ({ part } = await start());
  ({ origin, stop } = await serve(part));
});
after(() => stop());

test('the common list has exactly the members of the interface, and only models that can be called', async () => {
  const answer = await send(part, '/v1/models');
  assert.equal(answer.headers['content-type'], 'application/json');
  assert.deepEqual(json(answer), {
    object: 'list',
    data: [
      { id: large, object: 'model', created: 1_776_902_400, owned_by: 'acme' },
      { id: 'small', object: 'model', created: 1_700_000_000, owned_by: 'acme' },
      { id: 'painter', object: 'model', created: 0, owned_by: 'acme' },
    ],
  });
});

test('models of a kind that no endpoint serves are not listed, and the operator gets a notice', async () => {
  const film = { owned_by: 'acme', kind: 'video', targets: ['acme'], price: { second: 0.1 } };
  const { host, part } = await start(
    { ...models, film },
    orderEndpoints.filter(({ modelKind: takes }) => takes !== 'video'),
  );
  const { data = [] } = json(await send(part, '/v1/models'));
  assert.deepEqual(
    data.map(({ id }) => id),
    [large, 'small', 'painter'],
  );
  assert.equal((await send(part, '/v1/models/film')).status, 404);
  assert.deepEqual(
    host.get(catalog).list(),
    [large, 'small', 'unpriced', 'painter'].map((id) => host.get(catalog).find(id)),
  );
  const reported = part.checks!.notices!().map(({ text }) => text);
  assert.ok(
    reported.includes('models that no endpoint of this gateway takes are not listed: film'),
    reported.join('\n'),
  );
});

test("the caller's headers and path decide the dialect", async () => {
  const cases: [string, Record<string, string>, string][] = [
    ['/v1/models', {}, 'object'],
    ['/v1/models', { authorization: 'Bearer k' }, 'object'],
    ['/v1/models', anthropicVersion, 'has_more'],
    ['/v1/models', { ...anthropicVersion, authorization: 'Bearer k' }, 'has_more'],
    ['/v1/models', { 'x-goog-api-key': 'k' }, 'models'],
    ['/v1/models?key=k', {}, 'models'],
    ['/v1/models', { 'x-goog-api-key': 'k', authorization: 'Bearer k' }, 'object'],
    ['/v1beta/models', { authorization: 'Bearer k' }, 'models'],
    ['/v1alpha/models', {}, 'models'],
  ];
  for (const [path, headers, member] of cases) {
    assert.ok(member in json(await send(part, path, headers)), `${path} ${JSON.stringify(headers)}`);
  }
});

test('a model is found by its id, also with slashes, and by its alias', async () => {
  for (const name of [large, encodeURIComponent(large), 'best']) {
    assert.deepEqual(json(await send(part, `/v1/models/${name}`)), {
      id: large,
      object: 'model',
      created: 1_776_902_400,
      owned_by: 'acme',
    });
  }
});

test("an unknown, an unpriced and an unserved model get the same 404, in the caller's dialect", async () => {
  for (const name of ['nothing', 'unpriced', 'orphan']) {
    const common = await send(part, `/v1/models/${name}`);
    assert.equal(common.status, 404);
    assert.deepEqual(json(common), {
      error: {
        message: `The model \`${name}\` does not exist or is not offered here.`,
        type: 'invalid_request_error',
        param: 'model',
        code: 'model_not_found',
      },
    });
  }
  const anthropic = await send(part, '/v1/models/nothing', anthropicVersion);
  assert.deepEqual([anthropic.status, json(anthropic).error.type], [404, 'not_found_error']);
  assert.equal(json(anthropic).request_id, 'exchange-1');
  const gemini = await send(part, '/v1beta/models/nothing');
  assert.deepEqual([gemini.status, json(gemini).error.status], [404, 'NOT_FOUND']);
});

test('the messages dialect has sizes, dates and pages in both directions', async () => {
  const list = json(await send(part, '/v1/models', anthropicVersion));
  assert.deepEqual(list.data[0], {
    type: 'model',
    id: large,
    display_name: 'Acme Large',
    created_at: '2026-04-23T00:00:00Z',
    max_input_tokens: 1_000_000,
    max_tokens: 64_000,
    capabilities: null,
    lifecycle: 'active',
    line: null,
    deprecated_at: null,
    retires_at: null,
  });
  assert.deepEqual([list.has_more, list.first_id, list.last_id], [false, large, 'painter']);
  const page = async (query: string) => {
    const { data, has_more, first_id, last_id } = json(await send(part, `/v1/models?${query}`, anthropicVersion));
    return [data.map((entry) => entry['id']), has_more, first_id, last_id];
  };
  assert.deepEqual(await page('limit=2'), [[large, 'small'], true, large, 'small']);
  assert.deepEqual(await page('limit=2&after_id=small'), [['painter'], false, 'painter', 'painter']);
  assert.deepEqual(await page('after_id=painter'), [[], false, null, null]);
  assert.deepEqual(await page('limit=1&before_id=painter'), [['small'], true, 'small', 'small']);
  assert.deepEqual(await page(`limit=5&before_id=small`), [[large], false, large, large]);
  assert.deepEqual(await page('limit=1000'), [offered, false, large, 'painter']);
});

test('impossible paging values are a 400 that names the field', async () => {
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'after_id=nothing', 'after_id=small&before_id=small']) {
    const answer = await send(part, `/v1/models?${query}`, anthropicVersion);
    assert.deepEqual([answer.status, json(answer).error.type], [400, 'invalid_request_error'], query);
  }
  for (const query of ['pageSize=-1', 'pageSize=0', 'pageToken=%20', 'pageToken=bm90aGluZw']) {
    const answer = await send(part, `/v1beta/models?${query}`);
    assert.deepEqual([answer.status, json(answer).error.status], [400, 'INVALID_ARGUMENT'], query);
  }
});

test('the generate-content dialect has resource names, limits, methods and page tokens', async () => {
  const first = json(await send(part, '/v1beta/models?pageSize=2'));
  assert.deepEqual(first.models, [
    {
      name: `models/${large}`,
      displayName: 'Acme Large',
      inputTokenLimit: 1_000_000,
      outputTokenLimit: 64_000,
      supportedGenerationMethods: ['generateContent', 'countTokens'],
    },
    { name: 'models/small', displayName: 'small', supportedGenerationMethods: ['generateContent', 'countTokens'] },
  ]);
  const second = json(await send(part, `/v1beta/models?pageSize=5000&pageToken=${first.nextPageToken}`));
  assert.deepEqual(second, {
    models: [{ name: 'models/painter', displayName: 'painter', supportedGenerationMethods: ['generateContent'] }],
  });
});

test('the openai SDK lists and retrieves', async () => {
  const client = new OpenAI({ apiKey: 'k', baseURL: `${origin}/v1`, maxRetries: 0 });
  assert.deepEqual(
    (await collect(client.models.list())).map((model) => model.id),
    offered,
  );
  assert.equal((await client.models.retrieve(large)).owned_by, 'acme');
  await assert.rejects(client.models.retrieve('nothing'), OpenAI.NotFoundError);
});

test('the Anthropic SDK lists page by page and retrieves', async () => {
  const client = new Anthropic({ apiKey: 'k', baseURL: origin, maxRetries: 0 });
  assert.deepEqual(
    (await collect(client.models.list({ limit: 1 }))).map((model) => model.id),
    offered,
  );
  assert.equal((await client.models.retrieve(large)).max_tokens, 64_000);
  await assert.rejects(client.models.retrieve('nothing'), Anthropic.NotFoundError);
});

for (const apiVersion of [undefined, 'v1beta', 'v1alpha']) {
  test(`the Google SDK lists page by page and retrieves (${apiVersion ?? 'its own version'})`, async () => {
    const httpOptions = { baseUrl: origin, ...(apiVersion === undefined ? {} : { apiVersion }) };
    const client = new GoogleGenAI({ apiKey: 'k', httpOptions });
    const listed = await collect(await client.models.list({ config: { pageSize: 2 } }));
    assert.deepEqual(
      listed.map((model) => model.name),
      offered.map((id) => `models/${id}`),
    );
    assert.deepEqual(listed[0]!.supportedActions, ['generateContent', 'countTokens']);
    assert.equal((await client.models.get({ model: 'small' })).displayName, 'small');
    await assert.rejects(
      client.models.get({ model: 'nothing' }),
      (error) => error instanceof ApiError && error.status === 404,
    );
  });
}
