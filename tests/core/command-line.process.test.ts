/** The command line as operators use it: while the gateway runs and while it does not. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { listenFailure } from '../../core/contract/schema.ts';
import { makeDirectory } from '../../core/tools/unwritable.ts';
import packageFile from '../../package.json' with { type: 'json' };
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { until } from '../helpers/until.ts';

const run = promisify(execFile);
const directory = temporaryDirectory('command-line-');
const environment = { ...process.env, DATA_DIR: directory, PORT: '0' };
const words = (...command: string[]) => ['core/process/main.ts', ...command];

async function gateway<T>(...command: string[]): Promise<T> {
  const { stdout } = await run(process.execPath, words(...command, '--json'), { env: environment });
  return JSON.parse(stdout) as T;
}

test('the version is that of the package', async () => {
  const { stdout } = await run(process.execPath, words('--version'), { env: environment });
  assert.equal(stdout, `${packageFile.version}\n`);
});

test('check accepts the shipped files, and exits 1 with sentences for a file with problems', async () => {
  const files = ['demo', 'main', 'alt', 'demo-alt', 'company'].map((name) => `config/${name}.yaml`);
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
  const rows = await gateway<object[]>('ledger', '--account', 'alice');
  assert.match(JSON.stringify(rows), /"balance_after":"5\.00"/);
  assert.equal((await gateway<{ ok: boolean }>('audit')).ok, true);
});

test('a command that needs no gateway runs without its file: a statement is checked where there is nothing but it', async () => {
  const empty = temporaryDirectory('command-line-');
  const file = join(empty, 'statement.jsonl');
  writeFileSync(file, '{"format":"another"}\n');
  const main = join(import.meta.dirname, '../../core/process/main.ts');
  await assert.rejects(
    run(process.execPath, [main, 'statements', 'verify', file], { cwd: empty, env: { PATH: process.env['PATH'] } }),
    (error: { code: number; stdout: string; stderr: string }) => {
      assert.deepEqual([error.code, error.stdout], [1, 'Line 1 is no head of a statement.\n']);
      assert.doesNotMatch(error.stderr, /config/);
      return true;
    },
  );
  assert.deepEqual(readdirSync(empty), ['statement.jsonl']);
});

test('a failed command prints one sentence without a stack, and exits 1', async () => {
  await assert.rejects(
    run(process.execPath, words('keys', 'create', '--account', 'missing'), { env: environment }),
    (error: { code: number; stderr: string }) => {
      assert.equal(error.code, 1);
      assert.match(error.stderr, /missing/);
      assert.doesNotMatch(error.stderr, /\bat /);
      return true;
    },
  );
});

test('the first start of both gateways of the demo prints a key of each, commands work beside it, and SIGTERM ends it in order', async (context) => {
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
    (name) => new RegExp(`"key":"(sk-[\\w-]+)"[^\\n]*Bearer \\$${name}`).exec(output)![1]!,
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
  const keys = await run(process.execPath, words('keys', 'list', '--json'), { env });
  const [listed] = JSON.parse(keys.stdout) as { id: string }[];
  await run(process.execPath, words('keys', 'revoke', listed!.id), { env });
  await until('the revoked key is refused', async () => (await status('demo', mainKey)) === 401);
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
      assert.match(error.stderr, /have the same schema \\"demo\\": give each its own/);
      assert.doesNotMatch(error.stdout, /listening/);
      return true;
    },
  );
});

test('--config names the gateway file in both spellings', async () => {
  const file = join(directory, 'other.yaml');
  writeFileSync(file, `include: ${process.cwd()}/config/demo.yaml\ngateway: other\nschema: other\n`);
  await gateway('accounts', 'create', 'bob', `--config=${file}`);
  // That of an earlier test is in the database of the usual file.
  const names = (await gateway<{ name: string }[]>('accounts', 'list', '--config', file)).map(({ name }) => name);
  assert.ok(names.includes('bob') && !names.includes('alice'), names.join());
});

/** Why a process that is to serve has ended, as the log says it. */
async function endOf(
  name: string,
  yaml: string,
  variables: object = {},
): Promise<{ msg: string; problems?: object[] }> {
  const file = join(directory, `${name}.yaml`);
  writeFileSync(file, yaml);
  const error = await run(process.execPath, words('serve', file), {
    env: { ...environment, ...variables },
    timeout: 30_000,
  }).then(
    () => assert.fail('it serves'),
    (error: { code: number; stderr: string }) => error,
  );
  assert.equal(error.code, 1, error.stderr);
  assert.doesNotMatch(error.stderr, /stack|\n\s+at /);
  const { level, time, ...line } = JSON.parse(error.stderr);
  assert.deepEqual([level, typeof time], ['fatal', 'string']);
  return line;
}

test('a failed start ends with one log line that names the setting', async (context) => {
  const taken = createServer();
  context.after(() => taken.close());
  await once(taken.listen(0, '127.0.0.1'), 'listening');
  const { port } = taken.address() as { port: number };
  const passthrough = 'passthrough: { upstream: "http://127.0.0.1:1" }';
  const file = (listen: string, plugins = 'passthrough', section = '') =>
    `gateway: taken\nlisten: ${listen}\nplugins: [${plugins}]\n${passthrough}\n${section}`;
  const setting = '"listen" (in the shipped files PORT, of the second gateway ALT_PORT)';
  const ends = await Promise.all([
    endOf('port', file(`127.0.0.1:${port}`)),
    endOf('metrics', file('127.0.0.1:0', 'telemetry, passthrough', `telemetry: { listen: ${port} }`)),
    endOf('twice', file('127.0.0.1:0', 'passthrough, passthrough')),
    endOf('proc', file('127.0.0.1:0', 'storage, passthrough'), { DATA_DIR: '/proc/gateway' }),
  ]);
  assert.deepEqual(
    ends.map(({ msg }) => msg),
    [
      `127.0.0.1:${port} is in use: set ${setting} to another one.`,
      `127.0.0.1:${port} is in use: set telemetry.listen to another one.`,
      'the configuration cannot be served',
      'The embedded database failed: /proc/gateway cannot be made: its file system takes no directories. Set "data" in the file (DATA_DIR) to another directory.',
    ],
  );
  assert.deepEqual(ends[2].problems, [
    { where: `${join(directory, 'twice.yaml')}:3`, message: '"passthrough" stands twice in the list: remove one.' },
  ]);
});

test('each failure to listen is a sentence that names the setting; other errors are unchanged', () => {
  const failed = (code: string, host: string | undefined) =>
    (listenFailure(Object.assign(new Error('raw'), { code }), 'telemetry.listen', { host, port: 80 }) as Error).message;
  assert.equal(failed('EADDRINUSE', undefined), 'Port 80 is in use: set telemetry.listen to another one.');
  assert.equal(
    failed('EADDRNOTAVAIL', '::1'),
    '[::1]:80 is no address of this machine: set telemetry.listen to another one.',
  );
  assert.match(failed('EACCES', '127.0.0.1'), /^127\.0\.0\.1:80 needs rights/);
  assert.match(failed('ENOTFOUND', 'here.invalid'), /^here\.invalid:80 has a host name that is not known/);
  assert.equal(failed('EMFILE', undefined), 'raw');
});

test('a directory that cannot be made is reported with the reason, and existing files stay', () => {
  const file = join(directory, 'a-file');
  writeFileSync(file, '');
  const loop = join(directory, 'loop');
  symlinkSync(loop, loop);
  for (const [path, reason] of [
    ['/proc/gateway/data', 'its file system takes no directories'],
    [join(file, 'data'), 'a part of its path is a file'],
    [file, 'a file has this name'],
    [join(directory, 'x'.repeat(300)), 'its name is too long'],
    [join(loop, 'data'), 'its links lead back to themselves'],
  ] as const)
    assert.throws(() => makeDirectory(path), {
      message: `${path} cannot be made: ${reason}. Set "data" in the file (DATA_DIR) to another directory.`,
    });
  for (let time = 0; time < 2; time++) makeDirectory(join(directory, 'one', 'two', 'three'), 0o700);
  assert.equal(statSync(join(directory, 'one', 'two', 'three')).mode & 0o777, 0o700);
});
