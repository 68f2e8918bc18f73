/** `connect`: settings of client programs are written after they were shown, one call is made, and all of it is taken back. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { parse } from 'yaml';
import { type ConnectOptions, connect } from '../../core/process/connect/connect.ts';
import { difference, withMembers } from '../../core/process/connect/settings-files.ts';
import { clientPrograms, isConnectable } from '../../core/tools/client-programs.ts';
import { fc } from '../helpers/properties.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const key = 'gw-0123456789abcdef';
const calls: string[] = [];
/** Answers of the gateway by path; else those of one that sells four models. */
const answers = new Map<string, readonly [status: number, body: unknown]>();
let server: Server;
let base: string;

const sold = [
  { id: 'gpt-mini', context: 400_000, output: 64_000 },
  { id: 'tiny', context: 128_000, output: 4_096 },
  { id: 'big', context: 1_000_000, output: 32_000 },
  { id: 'claude-opus', context: 200_000, output: 32_000 },
  { id: 'claude-haiku', context: 200_000, output: 8_192 },
];
const lists: Readonly<Record<string, unknown>> = {
  '/v1/models': { data: [...sold, { id: 'painter' }].map(({ id }) => ({ id })) },
  '/v1/models/best': { id: 'big' },
  '/v1beta/models?pageSize=1000': {
    models: [
      ...sold.map(({ id, context, output }) => ({
        name: `models/${id}`,
        inputTokenLimit: context,
        outputTokenLimit: output,
        supportedGenerationMethods: ['generateContent', 'countTokens'],
      })),
      { name: 'models/painter', supportedGenerationMethods: ['generateContent'] },
    ],
  },
};

function answerTo(url: string, authorization: string | undefined): readonly [number, unknown] {
  const fixed = answers.get(url.replace(/\?.*/, ''));
  if (fixed !== undefined) return fixed;
  if (authorization !== `Bearer ${key}`) return [401, { error: { message: `Bad key ${authorization}` } }];
  if (url.startsWith('/v1/models/') && lists[url] === undefined) return [404, { error: { message: 'none' } }];
  return [200, lists[url] ?? { choices: [] }];
}

before(async () => {
  server = createServer((request, response) => {
    request.setEncoding('utf8');
    let text = '';
    request.on('data', (piece: string) => (text += piece));
    request.on('end', () => {
      if (request.method === 'POST') calls.push(`${request.url} ${text}`);
      const [status, body] = answerTo(request.url!, request.headers.authorization);
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => new Promise((done) => server.close(done)));
beforeEach(() => {
  calls.length = 0;
  answers.clear();
});

function world(environment: Record<string, string> = { GATEWAY_KEY: key }, platform = 'linux') {
  const home = temporaryDirectory('connect-');
  const shown: string[] = [];
  const waits: number[] = [];
  const run = (client: string, options: ConnectOptions = {}, confirm?: () => Promise<boolean>) =>
    connect(client, options, {
      command: () => 'connect',
      home,
      platform,
      environment: { GATEWAY_URL: `${base}/v1/`, ...environment },
      ...(confirm === undefined ? {} : { confirm }),
      show: (text) => void shown.push(text),
      wait: async (ms) => void waits.push(ms),
    });
  return { home, shown, waits, run };
}

/** Settings that people have, by the file's end: members of their own, comments, odd indents and a missing line end. */
const own: Readonly<Record<string, string>> = {
  json: '{\n    "theme": "dark",\n    "env": { "EDITOR": "vi" },\n    "security": {"auth": {"old": true}}\n}',
  yml: '# mine\ndark-mode: true   # always\nmodel: gpt-old\n',
  toml: '# mine\nmodel = "old"\napproval_policy = "never"\n\n[tools]\nweb = true\n[model_providers.gateway]\nname = "old"\n',
  env: '# mine\nexport GEMINI_MODEL=old\nOTHER="a b"',
  sh: '# mine\nexport OPENAI_API_KEY=old\n',
  fish: '# mine\nset -gx OPENAI_API_KEY old\n',
  ps1: "# mine\n$env:OPENAI_API_KEY = 'old'\n",
};
const ending = (path: string) => /\.(\w+)$/.exec(path)![1]!;

/** One call, as the program asks. */
const ways = {
  chat: /^\/v1\/chat\/completions .*"model":"big"/,
  responses: /^\/v1\/responses .*"model":"big"/,
  messages: /^\/v1\/messages .*"model":"big"/,
  gemini: /^\/v1beta\/models\/big:generateContent /,
};

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
    const { text: said } = await run(name, { model: 'big', small: 'tiny', yes: true });
    assert.equal(/\nIn a script: (.*)/.exec(said)?.[1], program.unattended);
    assert.equal(calls.length, 1);
    assert.match(calls[0]!, ways[program.speaks!]);
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
  await assert.rejects(run(client, { model: 'bog', yes: true }), /does not sell "bog"; did you mean "big"/);
  await assert.rejects(run(client, { model: 'big', yes: true, key: 'gw-wrong-key' }), (error: Error) => {
    assert.match(error.message, /does not take this key.*\/console\/keys/);
    return !error.message.includes('gw-wrong-key');
  });
  await assert.rejects(run(client, { model: 'big', yes: true, gateway: 'gateway.example' }), /--gateway must be/);
  await assert.rejects(run(client, { model: 'big', yes: true, gateway: 'http://127.0.0.1:9' }), /does not answer/);
  assert.deepEqual(readdirSync(home), []);
  const path = join(home, '.claude/settings.json');
  mkdirSync(dirname(path));
  for (const text of ['{ "a": }', '[]', '{"a":1} x']) {
    writeFileSync(path, text);
    await assert.rejects(run(client, { model: 'big', yes: true }), /settings\.json cannot be changed: it is no /);
    assert.equal(readFileSync(path, 'utf8'), text);
  }
  writeFileSync(path, Buffer.from([0xff, 0xfe, 0x7b, 0, 0x7d, 0]));
  await assert.rejects(run(client, { model: 'big', yes: true }), /it is no text in UTF-8/);
  assert.deepEqual(readdirSync(dirname(path)), ['settings.json']);
});

test('a link to settings kept elsewhere stays a link', async () => {
  const { home, run } = world();
  const kept = join(temporaryDirectory('dotfiles-'), 'settings.json');
  writeFileSync(kept, '{"theme":"dark"}');
  mkdirSync(join(home, '.claude'));
  symlinkSync(kept, join(home, '.claude/settings.json'));
  await run('claude-code', { model: 'big', yes: true });
  assert.match(readFileSync(kept, 'utf8'), /"theme":"dark"[\s\S]*ANTHROPIC_MODEL/);
  await run('claude-code', { undo: true });
  assert.equal(readFileSync(kept, 'utf8'), '{"theme":"dark"}');
});

test('the gateway says in a sentence why a program is not connected, and nothing is written', async () => {
  const { home, run } = world();
  const refusal = (message: RegExp) => assert.rejects(run('codex', { model: 'big', yes: true }), message);
  answers.set('/v1/responses', [402, { error: { message: 'The balance is used up.' } }]);
  await refusal(/not enough money for one call: http:.*\/console\/wallet\. The balance is used up\./);
  answers.set('/v1/responses', [429, { code: 7, message: `Too fast with ${key}` }]);
  await refusal(/answers 429: Too fast with gw-012…/);
  answers.set('/v1/responses', [502, '<html>']);
  await refusal(/answers 502 without JSON/);
  for (const other of [
    [404, { error: { message: 'x' } }],
    [200, '<html>'],
    [200, {}],
  ] as const) {
    answers.set('/v1/models', other);
    await refusal(/has no list of models: is it the gateway's address/);
  }
  assert.deepEqual(readdirSync(home), []);
});

test('a model that suits the program is chosen, the next one where a key has no right to it, with a small one and windows', async () => {
  const chosen = async (client: string, options: ConnectOptions = {}) => {
    const { run, home } = world();
    const { json } = await run(client, { ...options, yes: true });
    const { model, small } = json as { model: string; small: string };
    return { model, small, home };
  };
  const claude = await chosen('claude-code');
  assert.deepEqual([claude.model, claude.small], ['claude-opus', 'claude-haiku']);
  const { env } = JSON.parse(readFileSync(join(claude.home, '.claude/settings.json'), 'utf8'));
  assert.equal(env.CLAUDE_CODE_MAX_CONTEXT_TOKENS, '200000');
  assert.equal(env.ANTHROPIC_DEFAULT_HAIKU_MODEL, 'claude-haiku');
  const codex = await chosen('codex');
  // Made for it, if small.
  assert.deepEqual([codex.model, codex.small], ['gpt-mini', 'gpt-mini']);
  assert.match(readFileSync(join(codex.home, '.codex/config.toml'), 'utf8'), /^model_context_window = 400000$/m);
  assert.equal((await chosen('opencode')).model, 'big');
  assert.deepEqual((({ model, small }) => [model, small])(await chosen('opencode', { model: 'best' })), [
    'best',
    'best',
  ]);
  // A gateway that says of its models nothing but names.
  answers.set('/v1beta/models', [404, {}]);
  assert.equal((await chosen('claude-code')).model, 'claude-opus');
  answers.delete('/v1beta/models');
  answers.set('/v1beta/models/claude-opus:generateContent', [200, {}]);
  answers.set('/v1/messages', [403, { error: { message: 'This key may not use the model.' } }]);
  await assert.rejects(chosen('claude-code'), /may not use the model/);
  assert.deepEqual(
    calls.slice(-5).map((call) => JSON.parse(call.slice(call.indexOf(' '))).model),
    ['claude-opus', 'claude-haiku', 'big', 'gpt-mini', 'tiny'],
  );
});

test('without a key a person allows one in the console: address and code are shown, and the command waits as it is asked to', async () => {
  const code = {
    device_code: 'device',
    user_code: 'WDJB-MJHT',
    verification_uri_complete: `${base}/console/connect?code=WDJB-MJHT`,
    expires_in: 60,
    interval: 5,
  };
  answers.set('/console/api/connect/code', [200, code]);
  const replies: (readonly [number, object])[] = [];
  const connected = async (...given: readonly (readonly [number, object])[]) => {
    const { run, shown, waits, home } = world({});
    replies.splice(0, replies.length, ...given);
    const ended = connect(
      'codex',
      { model: 'big', yes: true },
      {
        command: () => 'connect',
        home,
        environment: { GATEWAY_URL: base },
        show: (text) => void shown.push(text),
        async wait(ms) {
          waits.push(ms);
          answers.set('/console/api/connect/token', replies.shift() ?? [400, { error: 'authorization_pending' }]);
        },
      },
    );
    return { ended, shown, waits, home, run };
  };
  const pending = [400, { error: 'authorization_pending' }] as const;
  const good = await connected(pending, [400, { error: 'slow_down' }], pending, [200, { access_token: key }]);
  await good.ended;
  assert.deepEqual(good.waits, [5_000, 5_000, 10_000, 10_000]);
  assert.match(good.shown[0]!, /http\S+\/console\/connect\?code=WDJB-MJHT[\s\S]*the code WDJB-MJHT/);
  assert.ok(!good.shown.join().includes(key));
  assert.match(readFileSync(join(good.home, '.codex/config.toml'), 'utf8'), new RegExp(key));
  assert.match(calls[0]!, /connect\/code client_id=codex&machine=\S+/);
  assert.match(calls[1]!, /grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=device/);
  for (const [given, message] of [
    [[[400, { error: 'access_denied' }]], /denied in the console/],
    [[[400, { error: 'expired_token' }]], /code has expired/],
    [[], /code has expired/],
  ] as const) {
    const bad = await connected(...given);
    await assert.rejects(bad.ended, message);
    assert.deepEqual(readdirSync(bad.home), []);
  }
  answers.set('/console/api/connect/code', [404, { error: { message: 'nothing' } }]);
  await assert.rejects((await connected()).ended, /gives no keys by a code: --key KEY/);
  // Files that cannot be changed end it before a person is asked.
  const { run, home } = world({});
  writeFileSync(join(home, '.codex'), 'a file');
  await assert.rejects(run('codex'), /config\.toml cannot be changed: a part of its path is no folder/);
});

test('several files of a program are all written or none, and a failure leaves the earlier texts', async () => {
  const { home, run } = world();
  mkdirSync(join(home, '.qwen'));
  writeFileSync(join(home, '.qwen/.env'), 'A=b\n', { mode: 0o640 });
  // The second file's copy cannot be made.
  mkdirSync(join(home, '.qwen/settings.json.gateway-new'));
  await assert.rejects(
    run('qwen-code', { model: 'big', yes: true }),
    /settings\.json cannot be written: it is a folder\. Nothing is changed/,
  );
  assert.equal(readFileSync(join(home, '.qwen/.env'), 'utf8'), 'A=b\n');
  assert.equal(statSync(join(home, '.qwen/.env')).mode & 0o777, 0o640);
  assert.deepEqual(readdirSync(join(home, '.qwen')).sort(), ['.env', 'settings.json.gateway-new']);
  const loop = world();
  mkdirSync(join(loop.home, '.codex'));
  symlinkSync('config.toml', join(loop.home, '.codex/config.toml'));
  await assert.rejects(loop.run('codex', { model: 'big', yes: true }), /its link leads to itself/);
});

test('files are where the program looks for them: moved by a variable, as .jsonc, behind a link to a file that is to come', async () => {
  const elsewhere = temporaryDirectory('moved-');
  const moved = world({ GATEWAY_KEY: key, CODEX_HOME: join(elsewhere, 'codex'), XDG_CONFIG_HOME: elsewhere });
  await moved.run('codex', { model: 'big', yes: true });
  await moved.run('opencode', { model: 'big', yes: true });
  assert.ok(existsSync(join(elsewhere, 'codex/config.toml')) && existsSync(join(elsewhere, 'opencode/opencode.json')));
  await moved.run('codex', { undo: true });
  assert.deepEqual(readdirSync(join(elsewhere, 'codex')), []);

  const local = temporaryDirectory('local-');
  const windows = { GATEWAY_KEY: key, LOCALAPPDATA: local };
  await world(windows, 'win32').run('crush', { model: 'big', yes: true });
  assert.ok(existsSync(join(local, 'crush/crush.json')));
  const linux = world(windows);
  await linux.run('crush', { model: 'big', yes: true });
  assert.ok(existsSync(join(linux.home, '.config/crush/crush.json')));

  const { home, run } = world();
  const folder = join(home, '.config/opencode');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'opencode.jsonc'), '{\n  // mine\n  "theme": "x",\n}\n');
  await run('opencode', { model: 'big', yes: true });
  assert.match(
    readFileSync(join(folder, 'opencode.jsonc'), 'utf8'),
    /\/\/ mine\n {2}"theme": "x",\n[\s\S]*"model": "gateway\/big"/,
  );
  mkdirSync(join(home, '.claude'));
  symlinkSync(join(elsewhere, 'later.json'), join(home, '.claude/settings.json'));
  await run('claude-code', { model: 'big', yes: true });
  assert.ok(existsSync(join(elsewhere, 'later.json')));
});

test('variables are written for each shell, with the line that takes them up', async () => {
  for (const [shell, line] of [
    ['/bin/bash', /\. "\S+\/env\.sh"/],
    ['/usr/bin/fish', /source "\S+\/env\.fish"/],
  ] as const) {
    const { run, home } = world({ GATEWAY_KEY: key, SHELL: shell });
    const { text } = await run('env', { model: 'big', yes: true });
    assert.match(text, line);
    const folder = join(home, '.config/model-gateway');
    const read = (name: string) => readFileSync(join(folder, name), 'utf8');
    assert.match(read('env.sh'), new RegExp(`^export OPENAI_API_KEY=${key}$`, 'm'));
    assert.match(read('env.fish'), new RegExp(`^set -gx OPENAI_API_KEY ${key}$`, 'm'));
    assert.match(read('env.ps1'), new RegExp(`^\\$env:OPENAI_API_KEY = '${key}'$`, 'm'));
  }
  assert.match((await world(undefined, 'win32').run('env', { yes: true })).text, /\. "\S+env\.ps1"/);
});

test('members set in JSON with comments leave every other byte, and are what a plain reader would set', () => {
  const text = '// top\n{\n\t"a": 1, // one\n\t/* two */ "b": { "c": [1, {"x": "}"}], },\n\t"last": "y" // end\n}\n';
  assert.equal(
    withMembers(text, 'json', { b: { d: true }, a: 2, e: { f: 'g' } }),
    '// top\n{\n\t"a": 2, // one\n\t/* two */ "b": { "c": [1, {"x": "}"}],\n\t\t"d": true,\n\t},\n\t"last": "y", // end\n\t"e": {\n\t\t"f": "g"\n\t}\n}\n',
  );
  assert.equal(withMembers('{}', 'json', { a: 1 }), '{\n  "a": 1\n}');
  assert.equal(withMembers('{ /* none */ }\r\n', 'json', { a: 1 }), '{\r\n  "a": 1 /* none */ }\r\n');
  const merged = (old: unknown, fresh: unknown): unknown =>
    isObject(old) && isObject(fresh)
      ? Object.fromEntries(
          [...new Set([...Object.keys(old), ...Object.keys(fresh)])].map((name) => [
            name,
            Object.hasOwn(fresh, name)
              ? Object.hasOwn(old, name)
                ? merged(old[name], fresh[name])
                : fresh[name]
              : old[name],
          ]),
        )
      : fresh;
  const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const object = fc.dictionary(fc.constantFrom('a', 'b', '__proto__', 'c d'), fc.jsonValue({ maxDepth: 3 }), {
    maxKeys: 4,
  });
  fc.assert(
    fc.property(object, object, fc.constantFrom(0, 2, '\t'), (old, fresh, indent) => {
      const written = JSON.parse(withMembers(JSON.stringify(old, undefined, indent), 'json', fresh));
      assert.deepEqual(written, JSON.parse(JSON.stringify(merged(old, fresh))));
    }),
    { numRuns: 200 },
  );
});

test('tables, lists of several lines and comments of TOML stay, whatever stands in them', () => {
  const text =
    'notify = [\n  ["model = 1"],\n]\nmodel = "old" # mine\nwords = """\n[model_providers.gateway]\n"""\n\n[ model_providers . "gateway" ] # here\nname = "old"\nrequest_max_retries = 2\n\n[tools]\nmodel = "x"\n';
  assert.equal(
    withMembers(text, 'toml', { model: 'big', more: 1, 'model_providers.gateway': { name: 'gateway', key: 'k' } }),
    'notify = [\n  ["model = 1"],\n]\nmodel = "big" # mine\nwords = """\n[model_providers.gateway]\n"""\nmore = 1\n\n[ model_providers . "gateway" ] # here\nname = "gateway"\nrequest_max_retries = 2\nkey = "k"\n\n[tools]\nmodel = "x"\n',
  );
  assert.throws(
    () => withMembers('model_providers = { a = {} }\n', 'toml', { 'model_providers.gateway': { name: 'x' } }),
    /as a table/,
  );
  assert.equal(withMembers('a = [\r\n 1,\r\n]\r\n', 'toml', { a: 2 }), 'a = 2\r\n');
});

test('members are set where each format has them, and everything else stays', () => {
  const toml = withMembers(own['toml']!, 'toml', { model: 'big', 'model_providers.gateway': { name: 'gateway' } });
  assert.equal(
    toml,
    '# mine\nmodel = "big"\napproval_policy = "never"\n\n[tools]\nweb = true\n[model_providers.gateway]\nname = "gateway"\n',
  );
  assert.equal(withMembers('', 'toml', { model: 'big', a: { b: 'c' } }), 'model = "big"\n\n[a]\nb = "c"\n');
  assert.equal(
    withMembers('[a]\nmodel = "of a"\n', 'toml', { model: 'big' }),
    'model = "big"\n\n[a]\nmodel = "of a"\n',
  );
  assert.equal(withMembers('model = """\nx"""\n', 'toml', { model: 'big' }), 'model = "big"\n');
  assert.equal(withMembers(own['env']!, 'env', { GEMINI_MODEL: 'big' }), '# mine\nGEMINI_MODEL=big\nOTHER="a b"\n');
  const yaml = withMembers(own['yml']!, 'yaml', { model: 'big' });
  assert.match(yaml, /# mine[\s\S]*# always/);
  assert.deepEqual(parse(yaml), { 'dark-mode': true, model: 'big' });
  assert.throws(() => withMembers('a: [', 'yaml', { model: 'big' }), /no valid YAML/);
  assert.deepEqual(JSON.parse(withMembers(own['json']!, 'json', { env: { A: '1' } })).env, { EDITOR: 'vi', A: '1' });
  assert.throws(() => withMembers('[]', 'json', {}), /no JSON object/);
  assert.deepEqual(difference('a\nb\nc\n', 'a\nx\nc\n'), ['  a', '- b', '+ x', '  c']);
});
