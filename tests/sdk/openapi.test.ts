/** The description of the interface, of both demo gateways: valid, complete, and of nothing that a gateway does not offer. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import type { EmbedContentParameters, GenerateContentParameters } from '@google/genai';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type OpenAI from 'openai';
import { formExamples, jsonExamples } from '../../plugins/common/kit/pages/call-examples.ts';
import { type Demo, shaped, startDemo } from './demo.ts';
import { documentAt, headersOf, sendExamples } from './example-calls.ts';

let demo: Demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo.stop());

const read = () => documentAt(demo.origin);

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

/** Ids that the examples have from elsewhere. */
const given = { bundle: 'harbour', user_id: 'a-member' };

test('each example of the document is answered, with a model that the gateway sells and ids that it has given', async () => {
  const sent = await sendExamples(demo, await read(), { ...given });
  const list = sent.map(({ path, type }) => `${path} ${type}`);
  assert.ok(list.length >= (shaped ? 29 : 42), `${list.length}: ${list.join(', ')}`);
});

test('a resumable upload goes as the document says: its first request, then one piece at the address that it is given', async () => {
  const { paths } = await read();
  const [begin, piece] = ['/upload/v1beta/files', '/upload/v1beta/files/{upload}'].map((path) => paths[path]!['post']!);
  const begun = await fetch(`${demo.origin}/upload/v1beta/files`, {
    method: 'POST',
    headers: { ...headersOf(begin!), authorization: `Bearer ${demo.keys.good}`, 'content-type': 'application/json' },
    body: JSON.stringify(begin!.requestBody!.content['application/json']!.example),
  });
  assert.equal(begun.status, 200, await begun.text());
  const address = new URL(begun.headers.get('x-goog-upload-url')!);
  const sent = await fetch(demo.origin + address.pathname, {
    method: 'POST',
    headers: { ...headersOf(piece!), 'content-type': 'application/octet-stream' },
    body: 'Ships pass at night.',
  });
  const { file } = (await sent.json()) as { file: { sizeBytes: string; displayName: string } };
  assert.deepEqual([sent.status, file.sizeBytes, file.displayName], [200, '20', 'note.txt']);
});

type Mutable<T> = { -readonly [Key in keyof T]: Mutable<T[Key]> };

test('examples have the shapes that the official clients declare', () => {
  // What this test shows is that it compiles.
  const of = jsonExamples as unknown as Mutable<typeof jsonExamples>;
  const form = formExamples as unknown as Mutable<typeof formExamples>;
  const model = 'm';
  const file = new File([], 'f');
  const chat: OpenAI.ChatCompletionCreateParams = { model, ...of['/v1/chat/completions'].body };
  const response: OpenAI.Responses.ResponseCreateParams = { model, ...of['/v1/responses'].body };
  const compaction: OpenAI.Responses.ResponseCompactParams = { model, ...of['/v1/responses/compact'].body };
  const conversation: OpenAI.Conversations.ConversationCreateParams = of['/v1/conversations'].body;
  const metadata: OpenAI.Conversations.ConversationUpdateParams = of['/v1/conversations/{conversation_id}'].body;
  const items: OpenAI.Conversations.ItemCreateParams = of['/v1/conversations/{conversation_id}/items'].body;
  const batch: OpenAI.BatchCreateParams = of['/v1/batches'].body;
  const upload: OpenAI.UploadCreateParams = of['/v1/uploads'].body;
  const whole: OpenAI.UploadCompleteParams = of['/v1/uploads/{upload_id}/complete'].body;
  const part: OpenAI.Uploads.PartCreateParams = { ...form['/v1/uploads/{upload_id}/parts'].body, data: file };
  const uploaded: OpenAI.FileCreateParams = { ...form['/v1/files'].body, file };
  const speech: OpenAI.Audio.SpeechCreateParams = { model, ...of['/v1/audio/speech'].body };
  const heard: OpenAI.Audio.TranscriptionCreateParams = { model, ...form['/v1/audio/transcriptions'].body, file };
  const moderated: OpenAI.ModerationCreateParams = { model, ...of['/v1/moderations'].body };
  const video: OpenAI.VideoCreateParams = { ...of['/v1/videos'].body, ...of['/v1/videos'].withImage };
  const secret = of['/v1/realtime/client_secrets'].body satisfies OpenAI.Realtime.ClientSecretCreateParams;
  const edit: OpenAI.ImageEditParams = { model, ...form['/v1/images/edits'].body, image: file };
  const message: Anthropic.MessageCreateParams = { model, ...of['/v1/messages'].body };
  const messages: Anthropic.Messages.BatchCreateParams = of['/v1/messages/batches'].body;
  const content: GenerateContentParameters = { model, contents: of[':generateContent'].body.contents };
  const embedded: EmbedContentParameters = { model, contents: of[':embedContent'].body.content };
  const all = [chat, response, compaction, conversation, metadata, items, batch, upload, whole, part, uploaded, speech];
  assert.ok(
    [...all, heard, moderated, video, secret, edit, message, messages, content, embedded].every(
      (body) => body !== null,
    ),
  );
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
