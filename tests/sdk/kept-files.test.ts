/** The official clients name files that they have uploaded, in requests of three protocols to vendors of four. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { createPartFromUri, createUserContent, GoogleGenAI } from '@google/genai';
import OpenAI, { toFile } from 'openai';
import { type Customer, modelAt, startTestbed, type Testbed } from '../end-to-end/testbed.ts';

const families = ['chat', 'responses', 'messages', 'gemini'] as const;
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const pdf = Buffer.from('%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n');
let testbed: Testbed;
let customer: Customer;
let other: Customer;
before(async () => {
  testbed = await startTestbed({
    providers: ({ sandbox, replay }) => ({
      ...Object.fromEntries(
        families.map((name) => [
          name,
          { keys: 'vendor-key-of-the-sandbox', speaks: { [name]: addressOf(name, sandbox) } },
        ]),
      ),
      relayed: {
        keys: 'k',
        speaks: { responses: `${replay}/v1`, chat: `${replay}/v1`, messages: replay, gemini: `${replay}/v1beta` },
      },
    }),
    models: {
      ...Object.fromEntries(families.map((name) => [`by-${name}`, modelAt(name)])),
      relayed: modelAt('relayed'),
    },
    more: { 'protocol-convert': { media: { max_bytes: '64KB', per_request: 3 } } },
  });
  [customer, other] = [await testbed.customer(), await testbed.customer()];
});
after(() => testbed.stop());

const addressOf = (name: string, origin: string) =>
  name === 'messages' ? origin : name === 'gemini' ? `${origin}/v1beta` : `${origin}/v1`;
const openai = ({ key } = customer) => new OpenAI({ baseURL: `${testbed.origin}/v1`, apiKey: key, maxRetries: 0 });
const anthropic = ({ key } = customer) => new Anthropic({ baseURL: testbed.origin, apiKey: key, maxRetries: 0 });
const google = ({ key } = customer) => new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: testbed.origin } });
const upload = async (content: Buffer, name: string, of = customer) =>
  (await openai(of).files.create({ file: await toFile(content, name), purpose: 'user_data' })).id;

for (const family of families) {
  test(`file parts of responses, of chat and of messages become content (${family})`, async () => {
    const [picture, page] = [await upload(png, 'dot.png'), await upload(pdf, 'page.pdf')];
    const model = `by-${family}`;
    const response = await openai().responses.create({
      model,
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'What is it?' },
            { type: 'input_image', file_id: picture, detail: 'auto' },
            { type: 'input_file', file_id: page },
          ],
        },
      ],
    });
    assert.match(response.output_text, /1 image and 1 file/);
    const chat = await openai().chat.completions.create({
      model,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'file', file: { file_id: page } },
          ],
        },
      ],
    });
    assert.match(chat.choices[0]!.message.content!, /1 file/);
    const message = await anthropic().beta.messages.create({
      model,
      max_tokens: 100,
      betas: ['files-api-2025-04-14'],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'image', source: { type: 'file', file_id: picture } },
            { type: 'document', title: 'A page', source: { type: 'file', file_id: page } },
          ],
        },
      ],
    });
    assert.match(message.content[0]?.type === 'text' ? message.content[0].text : '', /1 image and 1 file/);
  });
}

for (const family of families) {
  test(`file parts of generateContent become content (${family})`, async () => {
    const { files, models } = google();
    const picture = await files.upload({ file: new Blob([png], { type: 'image/png' }) });
    const page = await files.upload({ file: new Blob([pdf], { type: 'application/pdf' }) });
    const parts = [picture, page].map(({ uri, mimeType }) => createPartFromUri(uri!, mimeType!));
    const requestOf = () =>
      models.generateContent({ model: `by-${family}`, contents: createUserContent(['What is it?', ...parts]) });
    assert.match((await requestOf()).text!, /1 image and 1 file/);
    assert.equal((await models.countTokens({ model: 'by-gemini', contents: parts })).totalTokens! > 0, true);
    await files.delete({ name: picture.name! });
    await assert.rejects(requestOf(), { status: 400, message: /contents\[0\]\.parts\[1\]\.fileData\.fileUri/ });
    // The same file by a client of another protocol.
    const id = `file-${page.name!.slice('files/'.length)}`;
    const input = [{ role: 'user' as const, content: [{ type: 'input_file' as const, file_id: id }] }];
    const { output_text: text } = await openai().responses.create({ model: `by-${family}`, input });
    assert.match(text, /1 file/);
  });
}

test('a relayed request keeps all of its other bytes', async () => {
  const [picture, notes] = [await upload(png, 'dot.png'), await upload(Buffer.from('Grüße'), 'notes.txt')];
  const send = async (path: string, body: string) => {
    testbed.replay.play({ body: '{"id":"x","object":"y","error":{"message":"no"}}', status: 400 });
    const headers = { authorization: `Bearer ${customer.key}`, 'content-type': 'application/json' };
    await (await fetch(`${testbed.origin}${path}`, { method: 'POST', headers, body })).text();
    return testbed.replay.requests.at(-1)!.body.toString();
  };
  const body = (part: string) =>
    `{ "model" : "relayed", "store": false,"input":[ {"role":"user","content" : [${part} ]}],"metadata":{"n":"12345678901234567890"},\n "x_number": 12345678901234567890 }`;
  const data = `data:image/png;base64,${png.toString('base64')}`;
  assert.equal(
    await send('/v1/responses', body(`{"type":"input_image", "file_id" : "${picture}"}`)),
    body(`{"type":"input_image","image_url":"${data}"}`),
  );
  const message = (source: string) =>
    `{"model":"relayed","max_tokens":9,"messages":[{"role":"user","content":[ {"type":"document","source":${source}, "title":"T"}]}]}`;
  assert.equal(
    await send('/v1/messages', message(`{"type":"file","file_id":"${notes}"}`)),
    message('{"type":"text","media_type":"text/plain","data":"Grüße"}'),
  );
  const contents = (part: string) =>
    `{"contents" : [ {"parts":[{"text":"x"}, {${part}, "videoMetadata":{"fps":1.0}} ]}],"x_number": 12345678901234567890 }`;
  const name = picture.slice('file-'.length);
  const [camel, snake] = [`http:\\/\\/elsewhere\\/v1beta\\/files\\/${name}`, `files/${name}`];
  assert.equal(
    await send('/v1beta/models/relayed:generateContent', contents(`"fileData" : {"fileUri":"${camel}"}`)),
    contents(`"inlineData":{"mimeType":"image/png","data":"${png.toString('base64')}"}`),
  );
  assert.equal(
    await send(
      '/v1/models/relayed:generateContent',
      contents(`"file_data":{"mime_type":"x/y", "file_uri":"${snake}"}`),
    ),
    contents(`"inline_data":{"mime_type":"image/png","data":"${png.toString('base64')}"}`),
  );
});

test('a file of another account, a deleted one and an unknown one get the same error', async () => {
  const foreign = await upload(pdf, 'page.pdf', other);
  const gone = await upload(pdf, 'page.pdf');
  await openai().files.delete(gone);
  const before = testbed.sandbox.bill().requests;
  for (const id of [foreign, gone, `file-${'0'.repeat(32)}`]) {
    const pending = openai().responses.create({
      model: 'by-responses',
      input: [{ role: 'user', content: [{ type: 'input_file', file_id: id }] }],
    });
    await assert.rejects(pending, { status: 400, code: 'resource_not_found', param: 'input[0].content[0].file_id' });
  }
  assert.equal(testbed.sandbox.bill().requests, before);
});

test('a file that only a tool of the vendor could open is refused, as are too many and too large ones', async () => {
  const [page, large] = [await upload(pdf, 'page.pdf'), await upload(Buffer.alloc(70_000, 'x'), 'large.txt')];
  const tools = [{ type: 'code_interpreter' as const, container: { type: 'auto' as const, file_ids: [page] } }];
  await assert.rejects(openai().responses.create({ model: 'by-responses', input: 'x', tools }), {
    status: 400,
    code: 'resource_not_found',
  });
  const requestOf = (ids: readonly string[]) =>
    openai().responses.create({
      model: 'by-responses',
      input: [{ role: 'user', content: ids.map((id) => ({ type: 'input_file' as const, file_id: id })) }],
    });
  await assert.rejects(requestOf([page, page, page, page]), { status: 400, message: /at most 3/ });
  await assert.rejects(requestOf([page, large]), { status: 400, param: 'input[0].content[1].file_id' });
  assert.match((await requestOf([page, page, page])).output_text, /3 files/);
  await testbed.audit();
});
