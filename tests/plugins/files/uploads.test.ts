/** Limits of uploads: bytes of a file, of an account, their number, and that a gateway without room keeps nothing. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { uploadedFiles } from '../../../plugins/common/domain/stored-files.ts';
import { startGateway } from '../../helpers/gateway.ts';

const yaml = `
gateway: uploads
listen: 127.0.0.1:0
plugins: [storage, files, auth, plans, uploads]
plans: { default: free, offers: { free: { price: 0 } } }
files: { origin: "http://127.0.0.1", account_limit: 250KB, disk_reserve: 1MB, uploads: { file_limit: 100KB, files: 3, parallel: 2 } }
`;

test('a file that is too large, an account that is full, and one file too many are refused', async (context) => {
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

test('more uploads at once than an account may have wait for nobody, and a file expires', async (context) => {
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
