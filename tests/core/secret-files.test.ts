/** Secrets from files: how they are read, what is refused by which sentence, and how changed ones are taken up. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { secretText } from '../../core/contract/schema.ts';
import { ConfigError, readGatewayFile } from '../../core/gateway/config.ts';
import { entriesOf } from '../../core/gateway/secrets/path-entries.ts';
import { loadYaml } from '../../core/gateway/yaml.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { until } from '../helpers/until.ts';

const folder = temporaryDirectory('secrets-');
after(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const put = (name: string, content: string | Buffer) => {
  writeFileSync(at(name), content);
  return at(name);
};

function read(value: string, environment: Record<string, string> = {}) {
  const { values, problems, hide } = loadYaml(put('gateway.yaml', `acme: { keys: ["${value}"] }\n`), environment);
  const acme = values['acme'] as { keys: unknown[] } | undefined;
  return { value: acme?.keys[0], problems: problems.map(({ message }) => message), hide };
}

test("a file reference is replaced by the file's content without the final line break, by whole or relative path and inside a text", () => {
  put('key', '\ufeffhush-hush-hush\r\n');
  assert.equal(read(`\${file:${at('key')}}`).value, 'hush-hush-hush');
  assert.equal(read('${file:./key}').value, 'hush-hush-hush');
  assert.equal(read('postgres://me:${file:key}@host/x').value, 'postgres://me:hush-hush-hush@host/x');
  put('account.json', '{\n  "a": 1\n}\n');
  assert.equal(read('${file:account.json}').value, '{\n  "a": 1\n}');
  assert.equal(read('${file:key}').hide('it is hush-hush-hush'), 'it is ***');
});

test('a variable is read from the file named by NAME_FILE, and setting both is refused', () => {
  put('key', 'hush-hush-hush\n');
  assert.equal(read('${KEY}', { KEY_FILE: at('key') }).value, 'hush-hush-hush');
  assert.equal(read('${KEY:-other}', { KEY_FILE: at('key'), KEY: '' }).value, 'hush-hush-hush');
  assert.equal(read('${KEY:-other}', { KEY_FILE: '' }).value, 'other');
  assert.deepEqual(read('${KEY}', { KEY_FILE: at('key'), KEY: 'own' }).problems, [
    'both KEY and KEY_FILE are set in the environment: remove one of them',
  ]);
  assert.deepEqual(read('${KEY:-other}', { KEY_FILE: at('none') }).problems, [
    `acme.keys.0: the file ${at('none')} of KEY_FILE cannot be read (there is no such file)`,
  ]);
});

test("a missing or empty file needs a default; any other unusable secret is refused with the setting's name", () => {
  put('empty', '\n\n');
  put('large', 'x'.repeat(64 * 2 ** 10 + 1));
  put('binary', Buffer.from([0xff, 0xfe, 0x41, 0x42]));
  put('zeros', 'a\0b');
  mkdirSync(at('directory'));
  execFileSync('/usr/bin/env', ['mkfifo', at('pipe')]);
  assert.deepEqual([read('${file:none:-other}').value, read('${file:empty:-other}').value], ['other', 'other']);
  for (const [name, why] of [
    ['none', 'cannot be read (there is no such file)'],
    ['empty', 'is empty'],
    ['large', 'cannot be read (it has more than 64 KB)'],
    ['binary', 'cannot be read (it is no text in UTF-8)'],
    ['zeros', 'cannot be read (it is no text)'],
    ['directory', 'cannot be read (it is no file)'],
    ['pipe', 'cannot be read (it is no file)'],
    ['gateway.yaml/below', 'cannot be read (there is no such file)'],
  ] as const) {
    assert.deepEqual(read(`\${file:${name}}`).problems, [`acme.keys.0: the file ${name} ${why}`]);
    const isAbsent = name === 'none' || name === 'empty' || name === 'gateway.yaml/below';
    assert.equal(read(`\${file:${name}:-other}`).problems.length, isAbsent ? 0 : 1, name);
  }
  assert.equal(read('a ${file:} b').problems.length, 1);
});

test('a draft in the console may name secrets only where some are in use already', () => {
  put('key', 'hush-hush-hush\n');
  const file = put('gateway.yaml', 'gateway: x\nplugins: [passthrough]\n');
  const drafted = (path: string) =>
    readGatewayFile(
      file,
      {},
      {
        texts: new Map([[file, `gateway: x\nplugins: [passthrough]\npassthrough: { upstream: "\${file:${path}}" }\n`]]),
        mayRead: () => true,
        mayTakeSecret: (wanted) => wanted.startsWith(folder),
      },
    );
  assert.deepEqual(drafted('key').sections['passthrough'], { upstream: 'hush-hush-hush' });
  assert.throws(
    () => drafted('/etc/hostname'),
    (error: unknown) =>
      error instanceof ConfigError &&
      error.message.includes(
        'passthrough.upstream: the file /etc/hostname lies elsewhere: it can only be named by hand',
      ),
  );
});

test('the watch of a path covers the file and each link to it', () => {
  mkdirSync(at('real/..1'), { recursive: true });
  writeFileSync(at('real/..1/key'), 'x');
  symlinkSync('..1', at('real/..data'));
  symlinkSync('..data/key', at('real/key'));
  symlinkSync('real', at('linked'));
  const names = entriesOf(at('linked/key')).map(({ directory, name }) => join(directory, name));
  const own = names.filter((name) => name.startsWith(folder)).map((name) => name.slice(folder.length + 1));
  assert.deepEqual(own, ['linked', 'real/key', 'real/..data', 'real/..1/key']);
  assert.deepEqual(entriesOf(at('not/there/yet')).at(-1), { directory: folder, name: 'not' });
  symlinkSync('circle', at('circle'));
  assert.ok(entriesOf(at('circle')).length > 0, 'a circle has an end');
});

// ------------------------------------------------------------------------------------------------------- while serving

const held: ServerResponse[] = [];
const vendor = createServer((request, response) => {
  request.resume();
  response.setHeader('content-type', 'application/json');
  const isHeld = request.url!.startsWith('/held');
  if (isHeld) held.push(response);
  else response.end(answer(request.headers.authorization));
});
const answer = (content: string | undefined) =>
  JSON.stringify({
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  });
let gateway: TestGateway;
const mounted = at('mounted');
const version = (name: string, key: string) => {
  mkdirSync(join(mounted, name), { recursive: true });
  writeFileSync(join(mounted, name, 'key'), key);
};

before(async () => {
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
  version('..one', 'key-of-mount-1\n');
  symlinkSync('..one', join(mounted, '..data'));
  symlinkSync('..data/key', join(mounted, 'key'));
  put('plain', 'key-of-file-1\n');
  gateway = await startGateway(
    `gateway: test
listen: 127.0.0.1:0
plugins: [providers, models, route, protocol-convert]
providers:
  mounted: { keys: "\${file:${mounted}/key}", speaks: { chat: "${origin}/v1" } }
  plain: { keys: ["\${PLAIN}"], speaks: { chat: "${origin}/v1" } }
  held: { keys: "\${PLAIN}", speaks: { chat: "${origin}/held" } }
models:
  mounted: { owned_by: x, targets: [mounted/m], price: free }
  plain: { owned_by: x, targets: [plain/m], price: free }
  held: { owned_by: x, targets: [held/m], price: free }
`,
    { environment: { PLAIN_FILE: at('plain') } },
  );
});
after(async () => {
  await gateway?.stop();
  vendor.closeAllConnections();
  vendor.close();
});

const send = (model: string) =>
  fetch(`${gateway.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'x' }] }),
  });
async function keyOf(model: string): Promise<string> {
  const { choices } = (await (await send(model)).json()) as { choices: { message: { content: string } }[] };
  return choices[0]!.message.content.replace('Bearer ', '');
}
const becomes = (model: string, key: string) => until(key, async () => (await keyOf(model)) === key);

test('a key that is rewritten or replaced is used from the next call on, and a running call ends with its own', async () => {
  assert.equal(await keyOf('plain'), 'key-of-file-1');
  const running = send('held');
  await until('the held call', () => held.length === 1);
  put('plain', 'key-of-file-2\n');
  await becomes('plain', 'key-of-file-2');
  renameSync(put('plain.new', 'key-of-file-3'), at('plain'));
  await becomes('plain', 'key-of-file-3');
  held.pop()!.end(answer('in its own time'));
  assert.equal((await running).status, 200);
});

test('a mount swapped as by Kubernetes is applied, and the configuration files still wait for their signal', async () => {
  assert.equal(await keyOf('mounted'), 'key-of-mount-1');
  const file = join(gateway.directory, 'gateway.yaml');
  const { readFileSync } = await import('node:fs');
  writeFileSync(file, readFileSync(file, 'utf8').replace('plain/m', 'mounted/m'));
  for (const step of ['2', '3']) {
    version(`..${step}`, `key-of-mount-${step}\n`);
    symlinkSync(`..${step}`, join(mounted, '..data_tmp'));
    renameSync(join(mounted, '..data_tmp'), join(mounted, '..data'));
    await becomes('mounted', `key-of-mount-${step}`);
  }
  assert.match(await keyOf('plain'), /file/, 'the changed YAML is not taken up by itself');
});

test('an unusable secret is named once and never shown, and the running one stays', async () => {
  const refused = () => gateway.lines.filter((line) => line.includes('the changed files are refused'));
  put('plain', 'not a key, hush-hush\n');
  await until('the refusal', () => refused().length > 0);
  assert.match(refused()[0]!, /providers\.plain\.keys/);
  assert.equal(await keyOf('plain'), 'key-of-file-3');
  rmSync(at('plain'));
  await until('the second refusal', () => refused().length > 1);
  assert.match(refused().at(-1)!, /PLAIN_FILE cannot be read \(there is no such file\)/);
  assert.equal(await keyOf('plain'), 'key-of-file-3');
  put('plain', 'key-of-file-4\n');
  await becomes('plain', 'key-of-file-4');
  assert.doesNotMatch(gateway.lines.join('\n'), /hush|key-of-(?:file|mount)/);
});

test('a path, or the name of a stored secret, as the value of a secret is refused with the syntax that reads it', async () => {
  const refused = async (more: string) => {
    const failed = await startGateway(`gateway: test\nlisten: 127.0.0.1:0\n${more}`).then(
      (started) => started.stop().then(() => undefined),
      (error: Error) => error,
    );
    return failed?.message ?? '';
  };
  const provider = (keys: string) =>
    refused(`plugins: [providers]\nproviders: { acme: { keys: ${keys}, speaks: { chat: "https://x.example" } } }\n`);
  for (const path of ['file:/run/secrets/acme', 'file:///run/secrets/acme'])
    for (const keys of [`"${path}"`, `[k1, "${path}"]`, `[{ key: "${path}" }]`])
      assert.match(
        await provider(keys),
        /providers\.acme\.keys.*: is the path of a file, not what stands in it: write "\$\{file:\/run\/secrets\/acme\}"/,
      );
  for (const path of ['/run/secrets/acme', './acme.key', '~/acme.key', '/etc/gateway/key', 'file:acme'])
    assert.match(
      await provider(`"${path}"`),
      /is the path of a file, not what stands in it: write "\$\{file:\/path\}"/,
    );
  const bare = secretText().safeParse('secret:card-key');
  assert.match(
    bare.error?.issues[0]?.message ?? '',
    /^is the name of a stored secret, not the secret: write "\$\{secret:card-key\}" here$/,
  );
  assert.equal(secretText().safeParse('secret:s and a colon').success, true, 'no name');
  assert.equal(await provider('"secret:acme"'), '', 'a vendor reads it');
  for (const key of ['sk-1', '/9j4AAQSk/ZJRg==', '..', 'AKIA:/run']) assert.equal(await provider(`"${key}"`), '', key);
});
