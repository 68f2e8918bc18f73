/** Set-up of clients: each template has what its client needs, and nothing is left unfilled. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { allTools, fill } from '../../../../plugins/console/web/src/snippets/index.ts';

const folder = new URL('../../../../plugins/console/web/src/snippets/', import.meta.url);
const filling = { base: 'https://gate.example', key: 'sk-secret', model: 'some/model-1' };
const textOf = (template: string) => fill(readFileSync(new URL(`${template}.txt`, folder), 'utf8'), filling);

test('every template is named by one client, and every client has its templates', () => {
  const named = allTools.flatMap(({ files }) => files.map(({ template }) => `${template}.txt`)).sort();
  assert.deepEqual(
    named,
    readdirSync(folder)
      .filter((name) => name.endsWith('.txt'))
      .sort(),
  );
});

test('filled templates have no gap left, and know key and model', () => {
  for (const { id, files } of allTools) {
    const text = files.map(({ template }) => textOf(template)).join('\n');
    assert.doesNotMatch(text, /\{\{|\}\}(?!\s*[,}\n])|undefined/, id);
    for (const value of [filling.key, filling.model, filling.base]) assert.ok(text.includes(value), `${id}: ${value}`);
  }
});

test('each client is given the base address that it wants', () => {
  const bases: Record<string, string> = {
    curl: 'https://gate.example/v1/chat/completions',
    openai: "'https://gate.example/v1'",
    anthropic: "'https://gate.example'",
    google: "baseUrl: 'https://gate.example'",
    'claude-code': 'ANTHROPIC_BASE_URL=https://gate.example\n',
    'codex-config': 'base_url = "https://gate.example/v1"',
    'gemini-cli': 'GOOGLE_GEMINI_BASE_URL=https://gate.example\n',
    'opencode-config': '"baseURL": "https://gate.example/v1"',
    'cherry-studio': /API host\s+https:\/\/gate\.example\n/.source,
  };
  for (const [template, wanted] of Object.entries(bases)) {
    const text = `${textOf(template)}\n`;
    assert.ok(text.includes(wanted) || new RegExp(wanted).test(text), template);
  }
});

test('configuration files are what they say they are', () => {
  const parsed = JSON.parse(textOf('opencode-config')) as { provider: { gateway: { models: object } } };
  assert.deepEqual(Object.keys(parsed.provider.gateway.models), ['some/model-1']);
  const lines = textOf('codex-config').split('\n');
  for (const line of lines) assert.match(line, /^(|\[[\w.]+\]|\w+ = ".*")$/);
});

test('Google-style clients send the key where a gateway that reads no x-goog-api-key finds it as well', () => {
  assert.match(textOf('google'), /headers: \{ 'x-api-key': 'sk-secret' \}/);
  assert.match(textOf('gemini-cli'), /^export GEMINI_API_KEY_AUTH_MECHANISM=bearer$/m);
});
