/** The first page loads fast: what a browser fetches for it, compressed, and that charts are not among it. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { test } from 'node:test';

const dist = new URL('../../../plugins/console/web/dist/', import.meta.url);
const manifestFile = new URL('.vite/manifest.json', dist);
/** Over the wire, compressed. */
const mostScript = 200 * 1024;
const mostFont = 60 * 1024;
const mostBytes = 300 * 1024;
const mostFiles = 28;

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

test('the first load of the first page is at most 200 KB of scripts, 60 KB of fonts, 300 KB in all', {
  skip: !existsSync(manifestFile) && 'not built',
}, (t) => {
  const manifest = JSON.parse(readFileSync(manifestFile, 'utf8')) as Record<string, Chunk>;
  const files = closure(manifest, ['index.html', 'src/pages/client/home.tsx']);
  const fonts = readdirSync(new URL('assets/', dist))
    .filter((name) => name.endsWith('.woff2'))
    .map((name) => `assets/${name}`);
  const all = [...files, ...fonts, 'index.html', 'scheme.js', 'mark.svg'];
  const bytesOf = (ending: string) =>
    all.filter((file) => file.endsWith(ending)).reduce((sum, file) => sum + sizeOf(file), 0);
  t.diagnostic(`${bytesOf('.js')} bytes of scripts, ${bytesOf('')} in all, ${all.length} files`);
  assert.ok(bytesOf('.js') <= mostScript, `${bytesOf('.js')} bytes: ${[...files].join(', ')}`);
  assert.ok(fonts.length === 1 && bytesOf('.woff2') <= mostFont, `${bytesOf('.woff2')} bytes of fonts`);
  assert.ok(bytesOf('') <= mostBytes, `${bytesOf('')} bytes in all`);
  assert.ok(all.length <= mostFiles, `${all.length} requests`);
  const charts = manifest['src/pages/client/usage.tsx'];
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
