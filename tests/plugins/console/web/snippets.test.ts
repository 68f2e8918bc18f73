/** Set-up of clients: each template has what its client needs, and nothing is left unfilled. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { allTools, fill, toPowerShell } from '../../../../plugins/console/web/src/snippets/index.ts';

const folder = new URL('../../../../plugins/console/web/src/snippets/', import.meta.url);
const filling = { base: 'https://gate.example', key: 'sk-secret', model: 'some/model-1', name: 'The & gate' };
const textOf = (template: string, language?: string) =>
  fill(readFileSync(new URL(`${template}.txt`, folder), 'utf8'), filling, language);

test('every template is named by one client, and every client has its templates', () => {
  const named = allTools
    .flatMap(({ files }) =>
      files.flatMap(({ template, powershell }) => [template, powershell].filter((name) => name !== undefined)),
    )
    .map((name) => `${name}.txt`)
    .sort();
  assert.deepEqual(
    named,
    readdirSync(folder)
      .filter((name) => name.endsWith('.txt'))
      .sort(),
  );
});

test('filled templates have no placeholder left, and contain key and model', () => {
  for (const { id, files } of allTools) {
    const text = files.map(({ template }) => textOf(template)).join('\n');
    assert.doesNotMatch(text, /\{\{|\}\}(?!\s*[,}\n])|undefined/, id);
    for (const value of [filling.key, filling.model, filling.base]) assert.ok(text.includes(value), `${id}: ${value}`);
  }
});

test('each client gets the form of base address that it needs', () => {
  const bases: Record<string, string> = {
    curl: 'https://gate.example/v1/chat/completions',
    openai: "'https://gate.example/v1'",
    anthropic: "'https://gate.example'",
    google: "baseUrl: 'https://gate.example'",
    'openai-python': 'base_url="https://gate.example/v1"',
    'anthropic-python': 'base_url="https://gate.example"',
    'google-python': '"base_url": "https://gate.example"',
    'claude-code': 'ANTHROPIC_BASE_URL=https://gate.example\n',
    'codex-config': 'base_url = "https://gate.example/v1"',
    'qwen-code': 'OPENAI_BASE_URL=https://gate.example/v1\n',
    aider: 'OPENAI_API_BASE=https://gate.example/v1\n',
    cline: 'https://gate.example/v1\n',
    'roo-code': 'https://gate.example/v1\n',
    continue: 'apiBase: https://gate.example/v1\n',
    'zed-settings': '"api_url": "https://gate.example/v1"',
    'vs-code': '"url": "https://gate.example/v1/chat/completions"',
    'gemini-cli': 'GOOGLE_GEMINI_BASE_URL=https://gate.example\n',
    'opencode-config': '"baseURL": "https://gate.example/v1"',
    cursor: 'https://gate.example/v1\n',
    lobechat: 'OPENAI_PROXY_URL=https://gate.example/v1 ',
    'open-webui': 'OPENAI_API_BASE_URL=https://gate.example/v1 ',
    n8n: 'https://gate.example/v1\n',
    langchain: 'base_url="https://gate.example/v1"',
    'cherry-studio': /API host\s+https:\/\/gate\.example\n/.source,
  };
  for (const [template, wanted] of Object.entries(bases)) {
    const text = `${textOf(template)}\n`;
    assert.ok(text.includes(wanted) || new RegExp(wanted).test(text), template);
  }
});

test('links for CC Switch contain address, key, model and name, each whole', () => {
  const links = allTools.flatMap(({ files }) => files).filter(({ language }) => language === 'link');
  assert.equal(links.length, 3);
  for (const { template, language } of links) {
    const { protocol, host, pathname, searchParams } = new URL(textOf(template, language));
    assert.deepEqual([protocol, host, pathname], ['ccswitch:', 'v1', '/import']);
    const { resource, app, name, homepage, endpoint, apiKey, model } = Object.fromEntries(searchParams);
    assert.deepEqual([resource, name, apiKey, model], ['provider', filling.name, filling.key, filling.model]);
    assert.equal(homepage, filling.base);
    assert.equal(endpoint, app === 'codex' ? `${filling.base}/v1` : filling.base);
  }
});

test('configuration files parse in their format', () => {
  const parsed = JSON.parse(textOf('opencode-config')) as { provider: { gateway: { models: object } } };
  assert.deepEqual(Object.keys(parsed.provider.gateway.models), ['some/model-1']);
  for (const template of ['gemini-cli-settings', 'zed-settings', 'vs-code']) JSON.parse(textOf(template));
  const [model] = (parse(textOf('continue')) as { models: { apiBase: string }[] }).models;
  assert.equal(model?.apiBase, 'https://gate.example/v1');
  const lines = textOf('codex-config').split('\n');
  for (const line of lines) assert.match(line, /^(|\[[\w.]+\]|\w+ = ".*")$/);
});

test('Google-style clients send the key in a carrier that a gateway without x-goog-api-key reads as well', () => {
  assert.match(textOf('google'), /headers: \{ 'x-api-key': 'sk-secret' \}/);
  assert.match(textOf('gemini-cli'), /^export GEMINI_API_KEY_AUTH_MECHANISM=bearer$/m);
});

test('Claude Code gets the small model and the context window of a model that it does not know; without a window no line', () => {
  const template = readFileSync(new URL('claude-code.txt', folder), 'utf8');
  const known = fill(template, { ...filling, small: 'some/small-1', context: 400_000 });
  assert.match(known, /^export ANTHROPIC_DEFAULT_HAIKU_MODEL=some\/small-1$/m);
  assert.match(known, /^export CLAUDE_CODE_MAX_CONTEXT_TOKENS=400000$/m);
  const unknown = fill(template, filling);
  assert.match(unknown, /^export ANTHROPIC_DEFAULT_HAIKU_MODEL=some\/model-1$/m);
  assert.doesNotMatch(unknown, /CONTEXT/);
});

test('a program in a container reaches a gateway of its own machine by the name of the host, any other by its address', () => {
  const template = readFileSync(new URL('open-webui.txt', folder), 'utf8');
  for (const base of ['http://localhost:8080', 'http://127.0.0.1:8080', 'http://[::1]:8080']) {
    const local = fill(template, { ...filling, base });
    assert.match(local, /OPENAI_API_BASE_URL=http:\/\/host\.docker\.internal:8080\/v1 /, base);
    assert.match(local, /--add-host host\.docker\.internal:host-gateway \\\n/, base);
  }
  assert.doesNotMatch(fill(template, filling), /host\.docker|--add-host/);
  assert.match(fill(template, { ...filling, base: 'https://localhost.example' }), /=https:\/\/localhost\.example\/v1 /);
});

test('commands for PowerShell set variables of its environment and go on over its line ends', () => {
  for (const { id, files } of allTools)
    for (const { template, language, powershell } of files) {
      if (language !== 'sh') continue;
      const text = powershell === undefined ? toPowerShell(textOf(template)) : textOf(powershell);
      assert.doesNotMatch(text, /^export | \\$/m, id);
    }
  assert.equal(toPowerShell('export A=b/c\ntool'), '$env:A = "b/c"\ntool');
  assert.equal(toPowerShell('docker run \\\n  -e A=b \\\n  image'), 'docker run `\n  -e A=b `\n  image');
});
