/** The official OpenAI and Anthropic clients upload, list, read and delete files, before the demo gateway. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI, { toFile } from 'openai';
import { type Demo, shaped, startDemo } from './demo.ts';

let demo: Demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo.stop());

const openai = (key = demo.keys.good) => new OpenAI({ baseURL: `${demo.origin}/v1`, apiKey: key, maxRetries: 0 });
const anthropic = () => new Anthropic({ baseURL: demo.origin, apiKey: demo.keys.good, maxRetries: 0 });
const text = '{"custom_id":"a"}\n{"custom_id":"ü"}\n';

test('a file is returned as it was sent, to its own account alone', async () => {
  const file = await openai().files.create({
    file: await toFile(Buffer.from(text), 'übung.jsonl'),
    purpose: 'batch',
    expires_after: { anchor: 'created_at', seconds: 3600 },
  });
  assert.deepEqual(
    [file.object, file.bytes, file.filename, file.purpose, file.expires_at! - file.created_at],
    ['file', Buffer.byteLength(text), 'übung.jsonl', 'batch', 3600],
  );
  assert.equal(await (await openai().files.content(file.id)).text(), text);
  assert.deepEqual(await openai().files.retrieve(file.id), file);
  const others = openai(demo.keys.narrow).files;
  await assert.rejects(others.retrieve(file.id), { status: 404 });
  await assert.rejects(others.content(file.id), { status: 404 });
  await assert.rejects(others.delete(file.id), { status: 404 });
  assert.equal((await others.list()).data.length, 0);
  assert.equal((await fetch(`${demo.origin}/v1/files/${file.id}/content`)).status, 401);
  assert.deepEqual(await openai().files.delete(file.id), { id: file.id, object: 'file', deleted: true });
  await assert.rejects(openai().files.content(file.id), { status: 404 });
  await assert.rejects(openai().files.delete(file.id), { status: 404 });
});

test('lists have pages in either order, by purpose, and both clients follow them', async () => {
  const made: string[] = [];
  for (let index = 0; index < 5; index++) {
    const purpose = index === 2 ? ('vision' as const) : ('user_data' as const);
    made.push((await openai().files.create({ file: await toFile(Buffer.from('x'), `${index}`), purpose })).id);
  }
  const seen: string[] = [];
  for await (const { id } of openai().files.list({ order: 'asc', limit: 2 })) seen.push(id);
  assert.deepEqual(seen, made);
  const ofPurpose = await openai().files.list({ purpose: 'vision' });
  assert.deepEqual(
    ofPurpose.data.map(({ id }) => id),
    [made[2]],
  );
  const newest: string[] = [];
  for await (const { id } of anthropic().beta.files.list({ limit: 2 })) newest.push(id);
  assert.deepEqual(newest, made.toReversed());
  for (const id of made) await openai().files.delete(id);
});

test('the other client has its own form of the same files', async () => {
  const { files } = anthropic().beta;
  const sent = Buffer.alloc(3_000_000, 'three million bytes ');
  const file = await files.upload({ file: await toFile(sent, '../notes.txt', { type: 'text/plain' }) });
  assert.deepEqual(
    [file.type, file.filename, file.mime_type, file.size_bytes, file.downloadable],
    ['file', 'notes.txt', 'text/plain', sent.length, true],
  );
  const answer = await files.download(file.id);
  assert.ok(Buffer.from(await answer.arrayBuffer()).equals(sent));
  assert.match(answer.headers.get('content-disposition')!, /^attachment;/);
  assert.equal((await openai().files.retrieve(file.id)).filename, 'notes.txt');
  assert.deepEqual(await files.delete(file.id), { id: file.id, type: 'file_deleted' });
  await assert.rejects(files.retrieveMetadata(file.id), (error) => {
    assert.ok(error instanceof Anthropic.NotFoundError);
    if (!shaped) assert.equal((error.error as { error: { type: string } }).error.type, 'not_found_error');
    return true;
  });
});

test('faults of an upload are reported, and nothing is kept of it', async () => {
  const post = async (form: FormData | string, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${demo.origin}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${demo.keys.good}`, ...headers },
      body: form,
    });
    const { error } = (await answer.json()) as { error?: { param?: string } };
    return [answer.status, error?.param];
  };
  const form = (members: Record<string, string | Blob>) => {
    const made = new FormData();
    for (const [name, value] of Object.entries(members)) made.set(name, value);
    return made;
  };
  const file = new Blob(['x']);
  const expected = (field: string) => [400, shaped ? undefined : field];
  assert.deepEqual(await post(form({ purpose: 'batch' })), expected('file'));
  assert.deepEqual(await post(form({ purpose: 'batch', file: 'no file' })), expected('file'));
  assert.deepEqual(await post(form({ file })), expected('purpose'));
  assert.deepEqual(await post(form({ file, purpose: 'any' })), expected('purpose'));
  assert.deepEqual(await post(form({ file: new Blob([]), purpose: 'batch' })), expected('file'));
  assert.deepEqual(
    await post(form({ file, purpose: 'batch', 'expires_after[seconds]': '5' })),
    expected('expires_after.seconds'),
  );
  assert.deepEqual(await post('{}', { 'content-type': 'application/json' }), expected('content-type'));
  const cut = '--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nnever ends';
  assert.equal((await post(cut, { 'content-type': 'multipart/form-data; boundary=b' }))[0], 400);
  assert.equal((await openai().files.list()).data.length, 0);
});

test('a client that disconnects during its upload leaves nothing and does not break other requests', async () => {
  await new Promise<void>((resolve) => {
    const { port } = new URL(demo.origin);
    const headers = {
      authorization: `Bearer ${demo.keys.good}`,
      'content-type': 'multipart/form-data; boundary=b',
      'content-length': '1000000',
    };
    const sending = request({ port, host: '127.0.0.1', method: 'POST', path: '/v1/files', headers });
    sending.on('error', () => resolve());
    sending.write('--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nhalf');
    setTimeout(() => sending.destroy(new Error('left')), 100);
  });
  assert.equal((await openai().files.list()).data.length, 0);
});

test('a file sent in parts is joined in the stated order, once, and kept as any other', async () => {
  const { uploads, files } = openai();
  const bytes = Buffer.from(text);
  const order = { bytes: bytes.length, filename: 'parts.jsonl', mime_type: 'text/jsonl', purpose: 'batch' } as const;
  const upload = await uploads.create({ ...order, expires_after: { anchor: 'created_at', seconds: 7200 } });
  assert.deepEqual(
    [
      upload.object,
      upload.status,
      upload.bytes,
      upload.filename,
      upload.purpose,
      upload.expires_at - upload.created_at,
    ],
    ['upload', 'pending', bytes.length, 'parts.jsonl', 'batch', 3600],
  );
  const send = async (from: number, to: number) =>
    uploads.parts.create(upload.id, { data: await toFile(bytes.subarray(from, to), 'part') });
  const last = await send(10, bytes.length);
  const first = await send(0, 10);
  assert.deepEqual([first.object, first.upload_id], ['upload.part', upload.id]);
  await assert.rejects(send(0, 1), { status: 400 }, 'more bytes than were announced');
  await assert.rejects(uploads.complete(upload.id, { part_ids: [first.id] }), { status: 400 });
  await assert.rejects(uploads.complete(upload.id, { part_ids: [first.id, 'part_x'] }), { status: 400 });
  const part_ids = [first.id, last.id];
  await assert.rejects(uploads.complete(upload.id, { part_ids, md5: 'f'.repeat(32) }), { status: 400 });
  const others = openai(demo.keys.narrow).uploads;
  await assert.rejects(others.complete(upload.id, { part_ids }), { status: 404 });
  await assert.rejects(others.cancel(upload.id), { status: 404 });
  const md5 = createHash('md5').update(bytes).digest('hex');
  const done = await uploads.complete(upload.id, { part_ids, md5 });
  assert.deepEqual([done.status, done.file!.bytes, done.file!.filename], ['completed', bytes.length, 'parts.jsonl']);
  assert.equal(done.file!.expires_at! - done.file!.created_at, 7200);
  assert.equal(await (await files.content(done.file!.id)).text(), text);
  assert.equal((await uploads.complete(upload.id, { part_ids })).file!.id, done.file!.id);
  await assert.rejects(uploads.cancel(upload.id), { status: 400 });
  await files.delete(done.file!.id);
});

test('a cancelled upload accepts no part, and one beyond the limits is refused with the field', async () => {
  const { uploads } = openai();
  const order = { bytes: 3, filename: 'x', mime_type: 'text/plain', purpose: 'user_data' } as const;
  const upload = await uploads.create(order);
  const data = await toFile(Buffer.from('abc'), 'x');
  const part = await uploads.parts.create(upload.id, { data });
  assert.equal((await uploads.cancel(upload.id)).status, 'cancelled');
  await assert.rejects(uploads.parts.create(upload.id, { data }), { status: 400 });
  await assert.rejects(uploads.complete(upload.id, { part_ids: [part.id] }), { status: 400 });
  const fields = shaped ? [] : ['bytes', 'bytes', 'purpose', 'filename'];
  const wrong = [{ bytes: 0 }, { bytes: 1e15 }, { purpose: 'none' }, { filename: '' }];
  for (const [index, over] of wrong.entries())
    await assert.rejects(
      uploads.create({ ...order, ...over } as never),
      (error: { status: number; param?: string }) => {
        assert.equal(error.status, index === 1 ? 413 : 400);
        if (!shaped) assert.equal(error.param, fields[index]);
        return true;
      },
    );
});
