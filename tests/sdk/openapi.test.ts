/** The description of the interface, of both demo gateways: valid, complete, and of nothing that a gateway does not offer. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type Demo, shaped, startDemo } from './demo.ts';

let demo: Demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo.stop());

interface Operation {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly example?: string }[];
  readonly requestBody?: { readonly content: Record<string, { readonly example?: object }> };
}
interface Document {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: {
    readonly securitySchemes: Record<string, object>;
    readonly schemas: { readonly Error: { readonly required?: readonly string[] }; readonly ChatRequest: object };
  };
}

const read = async () => (await (await fetch(`${demo.origin}/openapi.json`)).json()) as Document;

test('the document is valid OpenAPI, without a key and with operation ids of its own', async () => {
  const document = await read();
  const result = await new Validator().validate(document as never);
  assert.ok(result.valid, JSON.stringify(result.errors));
  const ids = Object.values(document.paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  );
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(ids.length > 30);
});

test('every path of the document is served, and requires a key where it says so', async () => {
  const { paths, components } = await read();
  for (const [path, methods] of Object.entries(paths))
    for (const [method, { security }] of Object.entries(methods)) {
      const filled = path.replaceAll(/\{\w+\}/g, 'something');
      const answer = await fetch(`${demo.origin}${filled}`, { method: method.toUpperCase() });
      await answer.arrayBuffer();
      // After many requests without a key, further ones get 429.
      const needsKey = answer.status === 401 || answer.status === 429;
      assert.equal(needsKey, security.length > 0, `${method} ${path}: ${answer.status}`);
      assert.notEqual(answer.status, 405, path);
    }
  const carried = Object.keys(components.securitySchemes).sort();
  assert.deepEqual(
    carried,
    shaped
      ? ['key_in_bearer', 'key_in_x-api-key', 'key_in_x-goog-api-key']
      : ['key_in_bearer', 'key_in_query', 'key_in_x-api-key', 'key_in_x-goog-api-key'],
  );
});

test("the document has only this gateway's offers, with its own errors", async () => {
  const { paths, components } = await read();
  for (const path of [
    '/v1/chat/completions',
    '/v1/messages',
    '/v1/responses/{response_id}',
    '/v1beta/models/{model}:streamGenerateContent',
    '/v1beta/models/{model}:batchEmbedContents',
    '/v1/audio/transcriptions',
    '/v1/images/generations',
    '/v1/organization/costs',
  ])
    assert.ok(path in paths, path);
  // The second gateway makes no videos.
  assert.equal('/v1/videos' in paths, !shaped);
  assert.ok(!Object.keys(paths).some((path) => path.includes('console')));
  assert.deepEqual(components.schemas.Error.required, shaped ? ['code', 'message'] : undefined);
});

test('each example of the document is answered as it stands, with a model that the gateway sells', async () => {
  const { paths } = await read();
  const sent: string[] = [];
  for (const [path, { post }] of Object.entries(paths)) {
    const example = post?.requestBody?.content['application/json']?.example;
    // One version of generate-content stands for the others.
    if (example === undefined || /^\/v1(?:alpha)?\/models\//.test(path)) continue;
    const model = post!.parameters?.find(({ name }) => name === 'model')?.example;
    const answer = await fetch(`${demo.origin}${path.replace('{model}', model ?? '')}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${demo.keys.good}`, 'content-type': 'application/json' },
      body: JSON.stringify(example),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${path}: ${answer.status} ${text.slice(0, 300)}`);
    sent.push(path);
  }
  assert.ok(sent.length >= 14, sent.join(' '));
});

test('the schema of chat requests takes what real clients have sent, and refuses what no client means', async () => {
  const { components } = await read();
  const takes = new Ajv2020({ allowUnionTypes: true }).compile(components.schemas.ChatRequest);
  const folder = 'tests/fixtures/chat';
  const refused = readdirSync(folder)
    .filter((name) => existsSync(`${folder}/${name}/request.json`))
    .flatMap((name) => {
      const { status } = JSON.parse(readFileSync(`${folder}/${name}/meta.json`, 'utf8')) as { status: number };
      const body: unknown = JSON.parse(readFileSync(`${folder}/${name}/request.json`, 'utf8'));
      // The address of some vendors names the model.
      return status >= 300 || takes({ model: 'm', ...(body as object) })
        ? []
        : [`${name}: ${JSON.stringify(takes.errors)}`];
    });
  assert.deepEqual(refused, []);
  const messages = [{ role: 'user', content: 'Hello' }];
  assert.ok(takes({ model: 'm', messages }));
  for (const wrong of [
    { messages },
    { model: 'm', messages: [] },
    { model: 'm', messages: [{ content: 'Hello' }] },
    { model: 'm', messages: [{ role: 'user', content: [{ type: 'text' }] }] },
    { model: 'm', messages, temperature: 3 },
    { model: 'm', messages, tools: [{ type: 'function', function: {} }] },
    { model: 'm', messages, max_tokens: '5' },
  ])
    assert.equal(takes(wrong), false, JSON.stringify(wrong));
});
