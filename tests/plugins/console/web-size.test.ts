/** The first page loads fast: what a browser fetches for it, compressed, and that charts are not among it. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { test } from 'node:test';

const dist = new URL('../../../plugins/console/web/dist/', import.meta.url);
const manifestFile = new URL('.vite/manifest.json', dist);
const mostBytes = 300 * 1024;

interface Chunk {
  readonly file: string;
  readonly css?: readonly string[];
  readonly imports?: readonly string[];
}

/** A chunk and everything that it imports at once. */
function closure(manifest: Record<string, Chunk>, names: readonly string[]): Set<string> {
  const files = new Set<string>();
  const visit = (name: string) => {
    const chunk = manifest[name];
    assert.ok(chunk, name);
    if (files.has(chunk.file)) return;
    files.add(chunk.file);
    for (const file of chunk.css ?? []) files.add(file);
    for (const next of chunk.imports ?? []) visit(next);
  };
  for (const name of names) visit(name);
  return files;
}

const sizeOf = (file: string) => {
  const compressed = new URL(`${file}.br`, dist);
  return statSync(existsSync(compressed) ? compressed : new URL(file, dist)).size;
};

test('the first load of the first page is at most 300 KB', { skip: !existsSync(manifestFile) && 'not built' }, (t) => {
  const manifest = JSON.parse(readFileSync(manifestFile, 'utf8')) as Record<string, Chunk>;
  const files = closure(manifest, ['index.html', 'src/pages/client/home.tsx']);
  const bytes = [...files, 'index.html', 'scheme.js', 'mark.svg'].reduce((sum, file) => sum + sizeOf(file), 0);
  t.diagnostic(`${(bytes / 1024).toFixed(1)} KB in ${files.size + 3} files`);
  assert.ok(bytes <= mostBytes, `${bytes} bytes: ${[...files].join(', ')}`);
  const charts = manifest['src/pages/client/usage-chart.tsx'];
  assert.ok(charts !== undefined && !files.has(charts.file), 'charts are fetched when they are shown');
});

test('the page has no inline script, and no style without a nonce', {
  skip: !existsSync(manifestFile) && 'not built',
}, () => {
  const page = readFileSync(new URL('index.html', dist), 'utf8');
  for (const [script, attributes, body] of page.matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g)) {
    assert.match(attributes!, /\ssrc="\/console\//, script);
    assert.equal(body!.trim(), '');
  }
  assert.doesNotMatch(page, /<style|\son\w+=|style="/);
  assert.match(page, /<meta name="csp-nonce" content="__CSP_NONCE__"/);
});
