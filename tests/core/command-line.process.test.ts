/** The command line as operators use it: while the gateway runs and while it does not. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { watchDelay } from '../helpers/delay.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const run = promisify(execFile);
const directory = temporaryDirectory('command-line-');
const environment = { ...process.env, DATA_DIR: directory, PORT: '0' };
const words = (...command: string[]) => ['core/process/main.ts', ...command];

async function gateway<T>(...command: string[]): Promise<T> {
  const { stdout } = await run(process.execPath, words(...command, '--json'), { env: environment });
  return JSON.parse(stdout) as T;
}

test('check accepts the shipped files, and exits 1 with sentences for a file with problems', async () => {
  const files = ['demo', 'main', 'alt', 'demo-alt'].map((name) => `config/${name}.yaml`);
  const reports = await gateway<{ ok: boolean }[]>('check', ...files);
  assert.deepEqual(
    reports.map(({ ok }) => ok),
    files.map(() => true),
  );
  const file = join(directory, 'wrong.yaml');
  writeFileSync(file, 'gateway: wrong\nplugins: [auth, storage]\n');
  await assert.rejects(
    run(process.execPath, words('check', file), { env: environment }),
    (error: { code: number; stdout: string }) => {
      assert.equal(error.code, 1);
      assert.match(error.stdout, /move "storage" above "auth"/);
      return true;
    },
  );
});

test('accounts, keys, credits, ledger and audit work without a running gateway', async () => {
  const account = await gateway<{ name: string }>('accounts', 'create', 'alice', '--credit', '5');
  assert.equal(account.name, 'alice');
  const { key } = await gateway<{ key: string }>('keys', 'create', '--account', 'alice');
  assert.match(key, /^sk-/);
  await gateway('accounts', 'credit', 'alice', '2.5', '--reason', 'a gift');
  const rows = await gateway<object[]>('ledger', '--account', 'alice');
  assert.match(JSON.stringify(rows), /7\.5/);
  assert.equal((await gateway<{ ok: boolean }>('audit')).ok, true);
});

test('a command that cannot be carried out is one sentence and exit 1, without a stack', async () => {
  await assert.rejects(
    run(process.execPath, words('keys', 'create', '--account', 'nobody'), { env: environment }),
    (error: { code: number; stderr: string }) => {
      assert.equal(error.code, 1);
      assert.match(error.stderr, /nobody/);
      assert.doesNotMatch(error.stderr, /\bat /);
      return true;
    },
  );
});

test('the first start prints a key that works, commands work beside it, SIGTERM ends it in order', async (context) => {
  const fresh = temporaryDirectory('command-line-');
  const env = { ...environment, DATA_DIR: fresh };
  const child = spawn(process.execPath, words('serve', 'config/demo.yaml'), {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  context.after(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  while (!/"port":\d+.*listening|listening.*"port":\d+/.test(output)) await pause(50);
  const key = /sk-[\w-]+/.exec(output)![0];
  const port = /"port":(\d+)/.exec(output)![1]!;
  const ask = () =>
    fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hello' }] }),
    });
  assert.equal((await ask()).status, 200);
  const { stdout } = await run(process.execPath, words('keys', 'list', '--json'), { env });
  const [listed] = JSON.parse(stdout) as { id: string }[];
  await run(process.execPath, words('keys', 'revoke', listed!.id), { env });
  const delay = watchDelay();
  const revoked = performance.now();
  while ((await ask()).status !== 401)
    assert(performance.now() - revoked < delay.allowedMs(1_000), 'the revoked key was still admitted after a second');
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
});

test('one process serves both gateways of the demo, each with a key of its own, and stops both in order', async (context) => {
  const fresh = temporaryDirectory('command-line-');
  const env = { ...environment, DATA_DIR: fresh, ALT_PORT: '0' };
  const child = spawn(process.execPath, words('serve', 'config/demo.yaml', 'config/demo-alt.yaml'), {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  context.after(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const port = (name: string) => new RegExp(`"gateway":"${name}","port":(\\d+),"msg":"listening"`).exec(output)?.[1];
  while (port('demo') === undefined || port('demo-alt') === undefined) await pause(50);
  const [mainKey, altKey] = ['GATEWAY_KEY', 'ALT_GATEWAY_KEY'].map(
    (name) => new RegExp(`export ${name}=(sk-[\\w-]+)`).exec(output)![1]!,
  );
  const status = async (gateway: string, key: string | undefined) => {
    const answer = await fetch(`http://127.0.0.1:${port(gateway)}/v1/chat/completions`, {
      method: 'POST',
      headers: key === undefined ? {} : { 'x-api-key': key },
      body: JSON.stringify({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hello' }] }),
    });
    return answer.status;
  };
  assert.deepEqual([await status('demo', mainKey), await status('demo', altKey)], [200, 401]);
  assert.deepEqual([await status('demo-alt', altKey), await status('demo-alt', mainKey)], [200, 401]);
  const beside = ['--config', 'config/demo-alt.yaml', '--json'];
  const { stdout } = await run(process.execPath, words('ledger', '--account', 'demo', ...beside), { env });
  assert.match(stdout, /"CHARGE"/);
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
  for (const config of ['config/demo.yaml', 'config/demo-alt.yaml']) {
    const audited = await run(process.execPath, words('audit', '--config', config, '--json'), { env });
    assert.equal((JSON.parse(audited.stdout) as { ok: boolean }).ok, true);
  }
});

test('two gateways with one schema are refused before either is called', async () => {
  const fresh = temporaryDirectory('command-line-');
  const file = join(fresh, 'twin.yaml');
  writeFileSync(file, `include: ${process.cwd()}/config/demo.yaml\ngateway: twin\n`);
  await assert.rejects(
    run(process.execPath, words('serve', 'config/demo.yaml', file), { env: { ...environment, DATA_DIR: fresh } }),
    (error: { code: number; stdout: string; stderr: string }) => {
      assert.equal(error.code, 1);
      assert.match(error.stderr, /have the same schema "demo": give each its own/);
      assert.doesNotMatch(error.stdout, /listening/);
      return true;
    },
  );
});

test('--config names the gateway in both spellings', async () => {
  const file = join(directory, 'other.yaml');
  writeFileSync(file, `include: ${process.cwd()}/config/demo.yaml\ngateway: other\nschema: other\n`);
  await gateway('accounts', 'create', 'bob', `--config=${file}`);
  const names = async (...words: string[]) => JSON.stringify(await gateway('accounts', 'list', ...words));
  assert.match(await names('--config', file), /bob/);
  assert.doesNotMatch(await names(), /bob/);
});

test('a port that is taken is one sentence that says what to do', async (context) => {
  const taken = createServer();
  context.after(() => taken.close());
  await once(taken.listen(0, '127.0.0.1'), 'listening');
  const { port } = taken.address() as { port: number };
  const file = join(directory, 'taken.yaml');
  writeFileSync(
    file,
    `gateway: taken\nlisten: 127.0.0.1:${port}\nplugins: [passthrough]\npassthrough: { upstream: "http://127.0.0.1:1" }\n`,
  );
  await assert.rejects(
    run(process.execPath, words('serve', file), { env: environment }),
    (error: { code: number; stderr: string }) => {
      assert.equal(error.code, 1);
      assert.match(error.stderr, /^Port \d+ is in use: set PORT/);
      return true;
    },
  );
});
