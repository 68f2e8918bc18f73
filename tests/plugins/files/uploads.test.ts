/** Limits of uploads: bytes of a file, of an account, their number, and that a gateway without room, or whose disk refuses writes, keeps nothing. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { uploadedFiles } from '../../../plugins/common/domain/stored-files.ts';
import { readOwner } from '../../../plugins/storage/embedded/lock.ts';
import { databaseUrl } from '../../helpers/database.ts';
import { allowWrites, canForbidWrites } from '../../helpers/file-writes.ts';
import { startGateway } from '../../helpers/gateway.ts';

const yaml = `
gateway: test
listen: 127.0.0.1:0
plugins: [storage, files, auth, plans, uploads]
plans: { default: free, offers: { free: { price: 0 } } }
files: { origin: "http://127.0.0.1", account_limit: 250KB, disk_reserve: 1MB, uploads: { file_limit: 100KB, files: 3, parallel: 2 } }
`;

test('a too large file, a file for a full account, and one file too many are refused', async (context) => {
  const running = await startGateway(yaml);
  context.after(() => running.stop());
  const account = await running.gateway.find(accounts)!.create('one', 'free');
  const { key } = await running.gateway.find(accounts)!.createKey(account.id, { name: 'one' });
  const upload = async (bytes: number) => {
    const form = new FormData();
    form.set('purpose', 'user_data');
    form.set('file', new Blob([Buffer.alloc(bytes, 'x')]), 'x');
    const headers = { authorization: `Bearer ${key}` };
    const answer = await fetch(`${running.origin}/v1/files`, { method: 'POST', headers, body: form });
    return { status: answer.status, json: (await answer.json()) as { id: string; error?: { code: string } } };
  };
  assert.equal((await upload(100 * 1024 + 1)).status, 413);
  const first = await upload(100 * 1024);
  assert.equal(first.status, 200);
  assert.equal((await upload(100 * 1024)).status, 200);
  assert.deepEqual((await upload(100 * 1024)).json.error?.code, 'file_space_used_up');
  assert.equal((await upload(10)).status, 200);
  assert.equal((await upload(10)).json.error?.code, 'too_many_files');
  const headers = { authorization: `Bearer ${key}` };
  assert.equal((await fetch(`${running.origin}/v1/files/${first.json.id}`, { method: 'DELETE', headers })).status, 200);
  assert.equal((await upload(10)).status, 200);
  const { schema } = { schema: (await readdir(join(running.directory, 'files')))[0]! };
  assert.deepEqual(await readdir(join(running.directory, 'files', schema, 'incoming')), []);
});

test('more concurrent uploads than an account may have are refused at once, and a file expires', async (context) => {
  const running = await startGateway(yaml);
  context.after(() => running.stop());
  const files = running.gateway.find(uploadedFiles)!;
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  async function* slow() {
    yield Buffer.from('x');
    await held;
  }
  const both = [files.receive('account', slow()), files.receive('account', slow())];
  await assert.rejects(files.receive('account', slow()), { kind: 'rate_limited' });
  release();
  const [received, other] = await Promise.all(both);
  await other!.discard();
  const details = { name: 'x', purpose: 'user_data', mediaType: 'text/plain', lifetimeMs: 2_000 };
  const kept = await files.keep('account', received!, details);
  assert.equal((await files.find('account', kept.id))?.name, 'x');
  while ((await files.find('account', kept.id)) !== undefined) await new Promise((resolve) => setTimeout(resolve, 20));
});

if (canForbidWrites)
  test('on a read-only disk each form of upload answers 503 in its protocol, and works again afterwards', async (context) => {
    const running = await startGateway(yaml.replace('files: 3, parallel: 2', 'files: 50, parallel: 2'));
    context.after(() => running.stop());
    const account = await running.gateway.find(accounts)!.create('one', 'free');
    const { key } = await running.gateway.find(accounts)!.createKey(account.id, { name: 'one' });
    const send = async (path: string, body: FormData | string, headers: Record<string, string> = {}) => {
      const answer = await fetch(path.startsWith('http') ? path : running.origin + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, ...headers },
        body,
      });
      return { status: answer.status, headers: answer.headers, text: await answer.text() };
    };
    const json = { 'content-type': 'application/json' };
    const anthropic = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'files-api-2025-04-14' };
    const goog = { 'x-goog-api-key': key, 'x-goog-upload-protocol': 'resumable', 'x-goog-upload-command': 'start' };
    const form = (field: string) => {
      const made = new FormData();
      if (field === 'file') made.set('purpose', 'user_data');
      made.set(field, new Blob([Buffer.alloc(4_096, 'x')]), 'x.txt');
      return made;
    };
    const order = { bytes: 4_096, filename: 'x.txt', mime_type: 'text/plain', purpose: 'user_data' };
    const begin = () => send('/v1/uploads', JSON.stringify(order), json);
    const beginGoogle = () =>
      send('/upload/v1beta/files', '{}', { ...goog, ...json, 'x-goog-upload-header-content-length': '4096' });
    const whole = JSON.parse((await begin()).text) as { id: string };
    const part = await send(`/v1/uploads/${whole.id}/parts`, form('data'));
    const complete = JSON.stringify({ part_ids: [(JSON.parse(part.text) as { id: string }).id] });
    const other = JSON.parse((await begin()).text) as { id: string };
    const session = new URL((await beginGoogle()).headers.get('x-goog-upload-url')!);
    const toGoogle = { ...goog, 'x-goog-upload-command': 'upload, finalize', 'x-goog-upload-offset': '0' };
    const ways = {
      OpenAI: () => send('/v1/files', form('file')),
      Anthropic: () => send('/v1/files', form('file'), anthropic),
      'a part': () => send(`/v1/uploads/${other.id}/parts`, form('data')),
      'the joining of parts': () => send(`/v1/uploads/${whole.id}/complete`, complete, json),
      'Google, raw': () => send('/upload/v1beta/files', 'x', { ...goog, 'x-goog-upload-protocol': 'raw' }),
      'Google, in pieces': () => send(session.pathname, 'x'.repeat(4_096), toGoogle),
    };
    const embedded = databaseUrl === undefined ? readOwner(running.directory)?.pid : undefined;
    const pids = [process.pid, ...(embedded === undefined ? [] : [embedded])];
    for (const forbidden of [pids.slice(0, 1), pids]) {
      for (const pid of forbidden) allowWrites(pid, false);
      try {
        for (const [name, upload] of Object.entries({
          ...ways,
          ...(forbidden.length > 1 ? { begin, beginGoogle } : {}),
        })) {
          const { status, text } = await upload();
          assert.equal(status, 503, `${name}: ${text}`);
          assert.doesNotMatch(text, /EFBIG|incoming|\bat .*:\d+/, name);
          const { error } = JSON.parse(text) as { error: { status?: string; type?: string } };
          if (/oogle/.test(name)) assert.equal(error.status, 'UNAVAILABLE', name);
          else assert.ok(error.type !== undefined, name);
        }
      } finally {
        for (const pid of forbidden) if (pid === process.pid || isAlive(pid)) allowWrites(pid, true);
      }
    }
    while ((await ways.OpenAI()).status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
    for (const [name, upload] of Object.entries(ways)) {
      const { status, text } = await upload();
      assert.equal(status, 200, `${name}: ${text}`);
    }
    const [schema] = await readdir(join(running.directory, 'files'));
    assert.deepEqual(await readdir(join(running.directory, 'files', schema!, 'incoming')), []);
  });

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
