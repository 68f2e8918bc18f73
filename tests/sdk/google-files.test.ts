/** The official Google client uploads, lists, reads and deletes files, and names them in requests, before the demo gateway. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ApiError, createPartFromUri, createUserContent, type File, GoogleGenAI } from '@google/genai';
import { until } from '../helpers/until.ts';
import { type Demo, startDemo } from './demo.ts';

let demo: Demo;
let directory: string;
before(async () => {
  demo = await startDemo();
  directory = await mkdtemp(join(tmpdir(), 'google-files-'));
});
after(async () => {
  await demo.stop();
  await rm(directory, { recursive: true });
});

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

const keyHeaders = (key: string): Record<string, string> => ({ 'x-goog-api-key': key });

function client(apiVersion = 'v1beta', key = demo.keys.good): GoogleGenAI {
  return new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: demo.origin, apiVersion } });
}

async function download(file: File): Promise<Buffer> {
  const downloadPath = join(directory, 'downloaded');
  await client().files.download({ file: file.name!, downloadPath });
  return readFile(downloadPath);
}

for (const version of ['v1beta', 'v1', 'v1alpha']) {
  test(`a file is uploaded, described, downloaded and deleted (${version})`, async () => {
    const { files } = client(version);
    const text = Buffer.from('Grüße an alle');
    const file = await files.upload({
      file: new Blob([text], { type: 'text/plain' }),
      config: { displayName: 'a/grüße.txt' },
    });
    assert.match(file.name!, /^files\/[0-9a-f]{32}$/);
    assert.deepEqual(
      [file.displayName, file.mimeType, file.sizeBytes, file.state, file.source],
      ['a/grüße.txt', 'text/plain', String(text.length), 'ACTIVE', 'UPLOADED'],
    );
    assert.equal(Buffer.from(file.sha256Hash!, 'base64').toString(), hash('sha256', text));
    assert.equal(file.uri, `${demo.origin}/v1beta/${file.name}`);
    assert.deepEqual(await files.get({ name: file.name! }), file);
    assert.deepEqual(await download(file), text);
    const other = client(version, demo.keys.narrow).files;
    const missing = (error: unknown) => error instanceof ApiError && error.status === 404;
    await assert.rejects(other.get({ name: file.name! }), missing);
    await assert.rejects(other.delete({ name: file.name! }), missing);
    await files.delete({ name: file.name! });
    await assert.rejects(files.get({ name: file.name! }), missing);
  });
}

test('a file of 20 MB is sent in several pieces, from a path', async () => {
  const content = Buffer.alloc(20_000_000);
  for (let at = 0; at < content.length; at += 4) content.writeUInt32LE(at, at);
  const path = join(directory, 'large.bin');
  await writeFile(path, content);
  const file = await client().files.upload({ file: path, config: { mimeType: 'application/octet-stream' } });
  assert.equal(file.displayName, 'large.bin');
  assert.ok((await download(file)).equals(content));
  await client().files.delete({ name: file.name! });
});

test('a name that the client has chosen finds the file, for its account alone and once at a time', async () => {
  const { files, models } = client();
  const has = (status: number, words: RegExp) => (error: unknown) =>
    error instanceof ApiError && error.status === status && words.test(error.message);
  const file = new Blob(['# One'], { type: 'text/markdown' });
  const made = await files.upload({ file, config: { name: 'my-notes-1', displayName: 'notes.md' } });
  assert.deepEqual([made.name, made.uri], ['files/my-notes-1', `${demo.origin}/v1beta/files/my-notes-1`]);
  assert.deepEqual(await files.get({ name: 'my-notes-1' }), made);
  assert.equal((await download(made)).toString(), '# One');
  await assert.rejects(files.upload({ file, config: { name: 'files/my-notes-1' } }), has(409, /my-notes-1/));
  const others = client('v1beta', demo.keys.narrow);
  await assert.rejects(others.files.get({ name: 'my-notes-1' }), has(404, /no such file/));
  const own = await others.files.upload({
    file: new Blob(['# Two']),
    config: { name: 'my-notes-1', mimeType: 'text/plain' },
  });
  assert.equal(own.name, made.name);
  await others.files.delete({ name: own.name! });
  const contents = createUserContent([createPartFromUri(made.uri!, 'text/markdown'), 'What is in it?']);
  assert.ok((await models.generateContent({ model: 'gpt-5.4-mini', contents })).text);
  for (const name of ['Notes', '-notes', 'notes-', 'a'.repeat(41), 'a_b', '0'.repeat(32)])
    await assert.rejects(files.upload({ file, config: { name } }), has(400, /file\.name/));
  await files.delete({ name: made.name! });
  await assert.rejects(files.get({ name: made.name! }), has(404, /no such file/));
  const again = await files.upload({ file, config: { name: 'my-notes-1' } });
  await files.delete({ name: again.name! });
});

test('lists have pages, which the client follows', async () => {
  const { files } = client();
  const names: string[] = [];
  for (const name of ['one', 'two', 'three'])
    names.push((await files.upload({ file: new Blob([name], { type: 'text/plain' }) })).name!);
  const listed: string[] = [];
  for await (const { name } of await files.list({ config: { pageSize: 2 } })) listed.push(name!);
  assert.deepEqual(listed, names.toReversed());
  for (const name of names) await files.delete({ name });
  await assert.rejects(files.list({ config: { pageSize: 0 } }), (error: ApiError) => error.status === 400);
});

for (const model of ['gpt-5.4-mini', 'claude-opus-5']) {
  test(`generateContent reads the named files (${model})`, async () => {
    const { files, models } = client();
    const picture = await files.upload({ file: new Blob([png], { type: 'image/png' }) });
    const notes = await files.upload({ file: new Blob(['Notes'], { type: 'text/plain' }) });
    const parts = [picture, notes].map(({ uri, mimeType }) => createPartFromUri(uri!, mimeType!));
    const answer = await models.generateContent({ model, contents: createUserContent(['What is it?', ...parts]) });
    assert.match(answer.text!, /1 image and 1 file/);
    for (const { name } of [picture, notes]) await files.delete({ name: name! });
  });
}

interface Sent {
  readonly status: number;
  readonly state: string | null;
  readonly received: string | null;
  readonly json: { readonly file?: File };
  readonly address: string;
}

async function send(address: string, headers: Record<string, string>, body: string | Uint8Array = ''): Promise<Sent> {
  const answer = await fetch(address, { method: 'POST', headers, body });
  const text = await answer.text();
  return {
    status: answer.status,
    state: answer.headers.get('x-goog-upload-status'),
    received: answer.headers.get('x-goog-upload-size-received'),
    json: text === '' ? {} : (JSON.parse(text) as Sent['json']),
    address: answer.headers.get('x-goog-upload-url') ?? '',
  };
}

const begin = (headers: Record<string, string> = {}) =>
  send(`${demo.origin}/upload/v1beta/files`, {
    ...keyHeaders(demo.keys.good),
    'x-goog-upload-protocol': 'resumable',
    'x-goog-upload-command': 'start',
    ...headers,
  });
const unit = 262_144;
const piece = (command: string, offset: number) => ({
  'x-goog-upload-command': command,
  'x-goog-upload-offset': String(offset),
});

test('an upload is resumed, needs no key, and ends once', async () => {
  const content = Buffer.alloc(2 * unit + 5, 'abcdefg');
  const { address } = await begin({ 'x-goog-upload-header-content-length': String(content.length) });
  assert.deepEqual((await send(address, piece('upload', 0), content.subarray(0, unit))).received, String(unit));
  assert.deepEqual((await send(address, { 'x-goog-upload-command': 'query' })).received, String(unit));
  // At the wrong place, too much, and no whole unit.
  assert.equal((await send(address, piece('upload', 0), content.subarray(0, unit))).status, 400);
  assert.equal((await send(address, piece('upload', unit), content)).status, 400);
  assert.equal((await send(address, piece('upload', unit), content.subarray(unit, unit + 7))).status, 400);
  const early = await send(address, piece('finalize', unit));
  assert.deepEqual([early.status, early.state], [400, 'active']);
  const rest = piece('upload, finalize', unit);
  const made = await send(address, rest, content.subarray(unit));
  assert.deepEqual([made.status, made.state, made.json.file!.sizeBytes], [200, 'final', String(content.length)]);
  const again = await send(address, rest, content.subarray(unit));
  assert.deepEqual([again.state, again.json.file!.name], ['final', made.json.file!.name]);
  assert.ok((await download(made.json.file!)).equals(content));
  await client().files.delete({ name: made.json.file!.name! });
});

test('a broken connection loses one piece at most', async () => {
  const content = Buffer.alloc(80 * unit, 'xyz');
  const { address } = await begin();
  const half = new ReadableStream({
    start(controller) {
      controller.enqueue(content.subarray(0, 70 * unit));
    },
    pull(controller) {
      setTimeout(() => controller.error(new Error('broken')), 500);
    },
  });
  const options = { method: 'POST', headers: piece('upload, finalize', 0), body: half, duplex: 'half' as const };
  await assert.rejects(fetch(address, options));
  // What had arrived when the connection broke may still be on its way to the store: a client then asks again where to go on.
  const made = await until('the rest is taken', async () => {
    const received = (await send(address, { 'x-goog-upload-command': 'query' })).received!;
    if (received === '0') return false;
    const from = Number(received);
    assert.ok(from === 32 * unit || from === 64 * unit, received);
    const sent = await send(address, piece('upload, finalize', from), content.subarray(from));
    return sent.status === 200 && sent;
  });
  assert.ok((await download(made.json.file!)).equals(content));
  await client().files.delete({ name: made.json.file!.name! });
});

test('a cancelled upload is gone, and a foreign address is not found', async () => {
  const { address } = await begin();
  await send(address, piece('upload', 0), Buffer.alloc(unit));
  assert.equal((await send(address, { 'x-goog-upload-command': 'cancel' })).state, 'cancelled');
  assert.equal((await send(address, { 'x-goog-upload-command': 'query' })).status, 404);
  assert.equal((await send(`${address.slice(0, -3)}abc`, { 'x-goog-upload-command': 'query' })).status, 404);
});

test('a whole file is sent as one body, or after its metadata', async () => {
  const address = `${demo.origin}/upload/v1beta/files`;
  const raw = { ...keyHeaders(demo.keys.good), 'x-goog-upload-protocol': 'raw', 'content-type': 'text/csv' };
  const related = {
    ...keyHeaders(demo.keys.good),
    'x-goog-upload-protocol': 'multipart',
    'content-type': 'multipart/related; boundary=b',
  };
  const body = [
    '--b\r\ncontent-type: application/json\r\n\r\n{"file":{"display_name":"two.csv"}}',
    '--b\r\ncontent-type: text/csv\r\n\r\na,b\r\n',
    '--b--',
  ].join('\r\n');
  const made = [await send(address, raw, 'a,b'), await send(address, related, body)];
  assert.deepEqual(
    made.map(({ json: { file } }) => [file?.displayName, file?.mimeType, file?.sizeBytes]),
    [
      ['unnamed', 'text/csv', '3'],
      ['two.csv', 'text/csv', '5'],
    ],
  );
  for (const { json } of made) await client().files.delete({ name: json.file!.name! });
});

test('faults of an upload are reported, and nothing is kept', async () => {
  assert.equal((await begin({ 'x-goog-upload-header-content-length': '9000000000' })).status, 413);
  assert.equal((await begin({ 'x-goog-upload-header-content-type': 'nonsense' })).status, 400);
  assert.equal((await begin({ 'x-goog-upload-protocol': 'other' })).status, 400);
  assert.equal((await begin({ 'x-goog-upload-command': 'query' })).status, 400);
  assert.equal((await fetch(`${demo.origin}/upload/v1beta/files`, { method: 'POST' })).status, 401);
  for await (const _ of await client().files.list()) assert.fail('a file was kept');
});
