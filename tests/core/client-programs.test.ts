/** Set-up of client programs: each has what its program needs, in each format and shell, and nothing is left unfilled. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import {
  blocksOf,
  type ClientProgram,
  clientPrograms,
  type Filling,
  formatOf,
  linksOf,
  newText,
  type Shell,
  setVariable,
} from '../../core/tools/client-programs.ts';

const filling = { base: 'https://gate.example', key: 'sk-secret', model: 'some/model-1', name: 'The & gate' };
const blocks = (id: string, more: Partial<Filling> = {}, shell?: Shell) =>
  blocksOf(clientPrograms.get(id)!, { ...filling, ...more }, shell);
const textOf = (id: string, more?: Partial<Filling>, shell?: Shell) =>
  blocks(id, more, shell)
    .map(({ text }) => `${text}\n`)
    .join('');

test('every entry is a program as the types say, with something to set up', () => {
  const known = [
    ...[
      'name',
      'makes',
      'speaks',
      'prefers',
      'run',
      'unattended',
      'variables',
      'files',
      'enter',
      'code',
      'links',
      'by_hand',
    ],
  ] as const satisfies readonly (keyof ClientProgram)[];
  for (const [id, program] of clientPrograms) {
    for (const name of Object.keys(program)) assert.ok(known.includes(name as keyof ClientProgram), `${id}: ${name}`);
    const { files = [], code = [] } = program;
    for (const { path, set, variables_in } of files) {
      assert.match(path, /^~\/\S+\.(json|toml|ya?ml|env|sh|fish|ps1)$/);
      assert.equal([set, variables_in].filter((one) => one !== undefined).length, 1, path);
      if (variables_in !== undefined) assert.ok(program.variables, path);
    }
    for (const { text, language } of code) assert.ok(text.length > 0 && language !== '', id);
    assert.ok(blocks(id).length + linksOf(program, filling).length > 0, id);
  }
});

test('filled set-ups have no gap left, and contain key and address, and the model where one is named', () => {
  for (const [id, program] of clientPrograms) {
    const links = linksOf(program, filling).map(([, link]) => decodeURIComponent(link));
    const text = textOf(id) + links.join();
    assert.doesNotMatch(text, /\{\{|\}\}(?!\s*[,}\n])|undefined/, id);
    const named = JSON.stringify(program).includes('{{model}}') ? [filling.model] : [];
    for (const value of [filling.key, 'gate.example', ...named]) assert.ok(text.includes(value), `${id}: ${value}`);
  }
});

test('each program gets the form of base address that it needs', () => {
  const bases: Record<string, string> = {
    curl: 'https://gate.example/v1/chat/completions',
    openai: "'https://gate.example/v1'",
    anthropic: "'https://gate.example'",
    google: "baseUrl: 'https://gate.example'",
    'claude-code': 'ANTHROPIC_BASE_URL=https://gate.example\n',
    codex: 'base_url = "https://gate.example/v1"',
    'qwen-code': 'OPENAI_BASE_URL=https://gate.example/v1\n',
    aider: 'openai-api-base: https://gate.example/v1\n',
    cline: 'https://gate.example/v1\n',
    'roo-code': 'https://gate.example/v1\n',
    continue: 'apiBase: https://gate.example/v1\n',
    zed: '"api_url": "https://gate.example/v1"',
    'vs-code': '"url": "https://gate.example/v1/chat/completions"',
    'gemini-cli': 'GOOGLE_GEMINI_BASE_URL=https://gate.example\n',
    opencode: '"baseURL": "https://gate.example/v1"',
    crush: '"base_url": "https://gate.example/v1"',
    cursor: 'https://gate.example/v1\n',
    lobechat: 'OPENAI_PROXY_URL=https://gate.example/v1 ',
    'open-webui': 'OPENAI_API_BASE_URL=https://gate.example/v1 ',
    n8n: 'https://gate.example/v1\n',
    langchain: 'base_url="https://gate.example/v1"',
    'cherry-studio': 'https://gate.example\n',
    env: 'OPENAI_BASE_URL=https://gate.example/v1\n',
  };
  for (const [id, wanted] of Object.entries(bases)) assert.ok(textOf(id).includes(wanted), id);
  const python = ['openai', 'anthropic', 'google'].map((id) => blocks(id)[1]!.text).join('\n');
  assert.match(python, /base_url="https:\/\/gate\.example\/v1"[\s\S]*base_url="https:\/\/gate\.example"/);
});

test('links for CC Switch contain address, key, model and name, each whole', () => {
  const links = linksOf(clientPrograms.get('cc-switch')!, filling);
  assert.equal(links.length, 3);
  for (const [, link] of links) {
    const { protocol, host, pathname, searchParams } = new URL(link);
    assert.deepEqual([protocol, host, pathname], ['ccswitch:', 'v1', '/import']);
    const { resource, app, name, homepage, endpoint, apiKey, model } = Object.fromEntries(searchParams);
    assert.deepEqual([resource, name, apiKey, model], ['provider', filling.name, filling.key, filling.model]);
    assert.equal(homepage, filling.base);
    assert.equal(endpoint, app === 'codex' ? `${filling.base}/v1` : filling.base);
  }
});

test('settings files parse in their format, whatever a name holds', () => {
  for (const model of ['some/model-1', 'say "no": # {x}', 'yes'])
    for (const [id, program] of clientPrograms)
      for (const { text, saveAs } of blocks(id, { model })) {
        if (program.files === undefined || saveAs === undefined) continue;
        if (formatOf(saveAs) === 'json') JSON.parse(text);
        else if (formatOf(saveAs) === 'yaml')
          assert.ok(JSON.stringify(parse(text)).includes(JSON.stringify(model).slice(1, -1)), id);
        else for (const line of text.split('\n')) assert.match(line, /^(|\[[\w.]+\]|\w+ = ("(\\.|[^"\\])*"|\d+))$/, id);
      }
  const [file] = blocks('continue');
  assert.deepEqual((parse(file!.text) as { models: object[] }).models[0], {
    name: 'some/model-1',
    provider: 'openai',
    model: 'some/model-1',
    apiBase: 'https://gate.example/v1',
    apiKey: 'sk-secret',
    roles: ['chat', 'edit', 'apply'],
  });
  assert.equal(newText('env', { A: 'b/c', B: 'x y' }), 'A=b/c\nB="x y"\n');
});

test('Google-style clients send the key in a carrier that a gateway without x-goog-api-key reads as well', () => {
  assert.match(textOf('google'), /headers: \{ 'x-api-key': 'sk-secret' \}/);
  assert.match(textOf('gemini-cli'), /^export GEMINI_API_KEY_AUTH_MECHANISM=bearer$/m);
});

test('a small model and context windows are set where they are known; without a window there is no line', () => {
  const known = { small: 'some/small-1', context: 400_000, output: 32_000, smallContext: 200_000 };
  assert.match(textOf('claude-code', known), /^export ANTHROPIC_DEFAULT_HAIKU_MODEL=some\/small-1$/m);
  assert.match(textOf('claude-code', known), /^export CLAUDE_CODE_MAX_CONTEXT_TOKENS=400000$/m);
  assert.match(textOf('claude-code'), /^export ANTHROPIC_DEFAULT_HAIKU_MODEL=some\/model-1$/m);
  assert.match(textOf('codex', known), /^model_context_window = 400000$/m);
  for (const id of ['claude-code', 'codex', 'cline']) assert.doesNotMatch(textOf(id), /context/i, id);
  const modelsOf = (more: Partial<Filling>) =>
    JSON.parse(textOf('crush', more).split('\ncrush')[0]!).providers.gateway.models;
  const of = (id: string, context_window: number, default_max_tokens: number) => ({
    id,
    name: id,
    context_window,
    default_max_tokens,
  });
  assert.deepEqual(modelsOf(known), [of('some/model-1', 400_000, 32_000), of('some/small-1', 200_000, 16_000)]);
  assert.deepEqual(modelsOf({ context: 5 }), [of('some/model-1', 5, 16_000)]);
});

test('a program in a container reaches a gateway of its own machine by the name of the host, any other by its address', () => {
  for (const base of ['http://localhost:8080', 'http://127.0.0.1:8080', 'http://[::1]:8080']) {
    const local = textOf('open-webui', { base });
    assert.match(local, /OPENAI_API_BASE_URL=http:\/\/host\.docker\.internal:8080\/v1 /, base);
    assert.match(local, /--add-host host\.docker\.internal:host-gateway \\\n/, base);
  }
  assert.doesNotMatch(textOf('open-webui'), /host\.docker|--add-host/);
  assert.match(textOf('open-webui', { base: 'https://localhost.example' }), /=https:\/\/localhost\.example\/v1 /);
});

test('commands for each shell set variables in its own way and go on over its line ends', () => {
  for (const [id] of clientPrograms) {
    for (const { language, text } of blocks(id, {}, 'powershell'))
      if (language === 'sh') assert.doesNotMatch(text, /^export | \\$/m, id);
    for (const { language, text } of blocks(id, {}, 'fish'))
      if (language === 'sh') assert.doesNotMatch(text, /^export |\$env/m, id);
  }
  assert.match(textOf('open-webui', {}, 'powershell'), /^docker run -d -p 3000:8080 `\n/);
  assert.match(textOf('curl', {}, 'powershell'), /^Invoke-RestMethod/);
  const odd = `a'b\\$c`;
  assert.equal(setVariable('A', odd, 'sh'), `export A='a'\\''b\\$c'`);
  assert.equal(setVariable('A', odd, 'fish'), `set -gx A 'a\\'b\\\\$c'`);
  assert.equal(setVariable('A', odd, 'powershell'), `$env:A = 'a''b\\$c'`);
  assert.equal(setVariable('A', 'https://b/c', 'sh'), 'export A=https://b/c');
});
