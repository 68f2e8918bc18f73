/** `connect`: settings of client programs are written after they were shown, one call is made, and all of it is taken back. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { parse } from 'yaml';
import { type ConnectOptions, connect } from '../../core/process/connect/connect.ts';
import { difference, withMembers } from '../../core/process/connect/settings-files.ts';
import { clientPrograms, isConnectable } from '../../core/tools/client-programs.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const key = 'gw-0123456789abcdef';
const calls: string[] = [];
let server: Server;
let base: string;

before(async () => {
  server = createServer((request, response) => {
    const isKnown = request.headers.authorization === `Bearer ${key}`;
    response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' });
    if (!isKnown) return void response.end(`{"error":{"message":"Bad key ${request.headers.authorization}"}}`);
    if (request.url === '/v1/models') return void response.end('{"data":[{"id":"big"},{"id":"tiny"}]}');
    request.setEncoding('utf8').on('data', (text: string) => calls.push(`${request.url} ${text}`));
    request.on('end', () => response.end('{"choices":[]}'));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => new Promise((done) => server.close(done)));

function world() {
  const home = temporaryDirectory('connect-');
  const shown: string[] = [];
  const run = (client: string, options: ConnectOptions = {}, confirm?: () => Promise<boolean>) =>
    connect(client, options, {
      home,
      environment: { GATEWAY_KEY: key, GATEWAY_URL: `${base}/v1/` },
      ...(confirm === undefined ? {} : { confirm }),
      show: (text) => void shown.push(text),
    });
  return { home, shown, run };
}

/** Settings that people have, by the file's end: members of their own, comments, odd indents and a missing line end. */
const own: Readonly<Record<string, string>> = {
  json: '{\n    "theme": "dark",\n    "env": { "EDITOR": "vi" },\n    "security": {"auth": {"old": true}}\n}',
  yml: '# mine\ndark-mode: true   # always\nmodel: gpt-old\n',
  toml: '# mine\nmodel = "old"\napproval_policy = "never"\n\n[tools]\nweb = true\n[model_providers.gateway]\nname = "old"\n',
  env: '# mine\nexport GEMINI_MODEL=old\nOTHER="a b"',
};
const ending = (path: string) => /\.(\w+)$/.exec(path)![1]!;

for (const [name, program] of clientPrograms) {
  if (!isConnectable(program)) continue;
  const { files = [] } = program;
  test(`${name}: settings are written beside existing ones, and are taken back byte for byte`, async () => {
    const { home, run, shown } = world();
    const paths = files.map(({ path }) => path.replace('~', home));
    for (const path of paths) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, own[ending(path)]!, { mode: 0o644 });
    }
    calls.length = 0;
    await run(name, { model: 'big', small: 'tiny', yes: true });
    assert.equal(calls.length, 1);
    assert.match(calls[0]!, /^\/v1\/chat\/completions .*"model":"big"/);
    for (const path of paths) {
      const text = readFileSync(path, 'utf8');
      assert.notEqual(text, own[ending(path)]);
      assert.match(text, /dark|mine/);
      assert.equal(statSync(path).mode & 0o777, 0o600, path);
    }
    const all = paths.map((path) => readFileSync(path, 'utf8')).join('\n') + shown.join('\n');
    assert.ok(all.includes(base) && !all.includes('{{') && !all.includes(`${base}/v1/v1`), all);
    // Zed takes its key from the environment alone.
    if (paths.length > 0 && name !== 'zed') assert.ok(!shown.join().includes(key), 'the key is shown');
    // A second time changes nothing, and keeps what was there first.
    await run(name, { model: 'big', small: 'tiny', yes: true });
    await run(name, { undo: true });
    for (const path of paths) {
      assert.equal(readFileSync(path, 'utf8'), own[ending(path)], path);
      assert.equal(statSync(path).mode & 0o777, 0o644, path);
      assert.deepEqual(
        readdirSync(dirname(path)).filter((file) => file.includes('gateway')),
        [],
      );
    }
  });

  if (files.length > 0)
    test(`${name}: files that were not there are gone after --undo`, async () => {
      const { home, run } = world();
      const { json } = await run(name, { model: 'big', yes: true });
      const { written } = json as { written: string[] };
      assert.deepEqual(
        written,
        files.map(({ path }) => path.replace('~', home)),
      );
      assert.ok(written.every((path) => existsSync(path)));
      await run(name, { undo: true });
      for (const path of written) assert.deepEqual(readdirSync(dirname(path)), []);
      assert.match((await run(name, { undo: true })).text, /^Nothing of /);
    });
}

test('nothing is written without a yes, for an unknown client, key or model, or into a file that cannot be read', async () => {
  const { home, run, shown } = world();
  const client = 'claude-code';
  await assert.rejects(run(client, { model: 'big' }), /--yes/);
  assert.match(shown.join('\n'), /\+ +"ANTHROPIC_AUTH_TOKEN": "gw-012…"/);
  const refused = await run(client, { model: 'big' }, async () => false);
  assert.equal(refused.text, 'Nothing is written.');
  await assert.rejects(run('claude-cod', { model: 'big' }), /did you mean "claude-code"|claude-code/);
  await assert.rejects(run('constructor', { model: 'big' }), /There is no client/);
  await assert.rejects(run(client, { yes: true }), /--model says which model answers: big, tiny/);
  await assert.rejects(run(client, { model: 'bog', yes: true }), /does not sell "bog".*big/);
  await assert.rejects(run(client, { model: 'big', yes: true, key: 'gw-wrong-key' }), (error: Error) => {
    assert.match(error.message, /answers 401/);
    return !error.message.includes('gw-wrong-key');
  });
  await assert.rejects(run(client, { model: 'big', yes: true, gateway: 'gateway.example' }), /--gateway must be/);
  await assert.rejects(run(client, { model: 'big', yes: true, gateway: 'http://127.0.0.1:9' }), /does not answer/);
  assert.deepEqual(readdirSync(home), []);
  const path = join(home, '.claude/settings.json');
  mkdirSync(dirname(path));
  writeFileSync(path, '{ // mine\n}');
  await assert.rejects(
    run(client, { model: 'big', yes: true }),
    /settings\.json cannot be changed: it is no plain JSON/,
  );
  assert.equal(readFileSync(path, 'utf8'), '{ // mine\n}');
});

test('a link to settings kept elsewhere stays a link', async () => {
  const { home, run } = world();
  const kept = join(temporaryDirectory('dotfiles-'), 'settings.json');
  writeFileSync(kept, '{"theme":"dark"}');
  mkdirSync(join(home, '.claude'));
  symlinkSync(kept, join(home, '.claude/settings.json'));
  await run('claude-code', { model: 'big', yes: true });
  assert.match(readFileSync(kept, 'utf8'), /"theme": "dark"[\s\S]*ANTHROPIC_MODEL/);
  await run('claude-code', { undo: true });
  assert.equal(readFileSync(kept, 'utf8'), '{"theme":"dark"}');
});

test('members are set where each format has them, and everything else stays', () => {
  const toml = withMembers(own['toml']!, 'toml', { model: 'big', 'model_providers.gateway': { name: 'gateway' } });
  assert.equal(
    toml,
    '# mine\nmodel = "big"\napproval_policy = "never"\n\n[tools]\nweb = true\n[model_providers.gateway]\nname = "gateway"\n',
  );
  assert.equal(withMembers('', 'toml', { model: 'big', a: { b: 'c' } }), 'model = "big"\n\n[a]\nb = "c"\n');
  assert.equal(withMembers('[a]\nmodel = "of a"\n', 'toml', { model: 'big' }), 'model = "big"\n[a]\nmodel = "of a"\n');
  assert.throws(() => withMembers('model = """\nx"""\n', 'toml', { model: 'big' }), /several lines/);
  assert.equal(withMembers(own['env']!, 'env', { GEMINI_MODEL: 'big' }), '# mine\nGEMINI_MODEL=big\nOTHER="a b"\n');
  const yaml = withMembers(own['yml']!, 'yaml', { model: 'big' });
  assert.match(yaml, /# mine[\s\S]*# always/);
  assert.deepEqual(parse(yaml), { 'dark-mode': true, model: 'big' });
  assert.throws(() => withMembers('a: [', 'yaml', { model: 'big' }), /no valid YAML/);
  assert.deepEqual(JSON.parse(withMembers(own['json']!, 'json', { env: { A: '1' } })).env, { EDITOR: 'vi', A: '1' });
  assert.throws(() => withMembers('[]', 'json', {}), /no JSON object/);
  assert.deepEqual(difference('a\nb\nc\n', 'a\nx\nc\n'), ['  a', '- b', '+ x', '  c']);
});
