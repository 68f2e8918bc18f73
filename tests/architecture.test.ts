/** The house rules that a reviewer would otherwise have to remember: who imports whom, how long rooms are, no vendor in code. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', 'core', 'plugins'], {
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => /\.tsx?$/.test(file));
const source = (file: string) => readFileSync(file, 'utf8');

/** Files that do no I/O and that plugins may import. */
const leaves = new Set(
  `contract branch commands crew reloadable vocabulary pool errors money usage prices formula sse splice schema traits secret bag json refusals scrub
    retry-after error-envelope request-body body-edits media-types data-url sniff public-address kept-files desk desk-bodies desk-money desk-upstreams upstreams rendezvous story paging counters version watcher`
    .split(/\s+/)
    .map((name) => `core/${name}.ts`)
    // Data: the version.
    .concat('package.json'),
);
/** Files that do I/O and that plugins may import all the same: what several need, and what must be right in one place. */
const instruments = new Set(['core/guarded-get.ts']);
const leafPackages = new Set(['zod']);
const corePackages = new Set(['http-proxy-3', 'undici', 'ws', 'yaml', 'find-my-way', 'pino', 'commander', 'zod']);
const drivers = new Set(['postgres', '@electric-sql/pglite', 'ioredis']);

interface Import {
  readonly from: string;
  /** Repository path for files, package name for packages. */
  readonly to: string;
  readonly relative: boolean;
  readonly typeOnly: boolean;
}

function importsOf(file: string): Import[] {
  const found: Import[] = [];
  for (const [, type, target] of source(file).matchAll(
    /^\s*(?:import|export)\s+(type\s)?(?:[\s\S]*?\sfrom\s+)?['"]([^'"]+)['"]/gm,
  ))
    add(type, target!);
  for (const [, target] of source(file).matchAll(/\bimport\(\s*['"]([^'"]+)['"]\s*\)/g)) add(undefined, target!);
  return found;

  function add(type: string | undefined, target: string) {
    if (target.startsWith('node:')) return;
    const relative = target.startsWith('.');
    const name = target
      .split('/')
      .slice(0, target.startsWith('@') ? 2 : 1)
      .join('/');
    found.push({
      from: file,
      to: relative ? normalize(join(dirname(file), target)) : name,
      relative,
      typeOnly: type !== undefined,
    });
  }
}

const imports = files.flatMap(importsOf);
const refused = (list: readonly Import[]) => list.map(({ from, to }) => `${from} imports ${to}`);

test('the leaves of the core import each other and no package that does I/O', () => {
  const wrong = imports.filter(({ from, to, relative, typeOnly }) => {
    if (!leaves.has(from)) return false;
    return relative ? !leaves.has(to) : !leafPackages.has(to) && !(typeOnly && to === 'drizzle-orm');
  });
  assert.deepEqual(refused(wrong), []);
});

test('the instruments of the core import its leaves and nothing else of it', () => {
  const wrong = imports.filter(({ from, to, relative }) => instruments.has(from) && relative && !leaves.has(to));
  assert.deepEqual(refused(wrong), []);
});

test('the core knows no plugin and only its own packages', () => {
  const wrong = imports.filter(({ from, to, relative, typeOnly }) => {
    if (!from.startsWith('core/')) return false;
    return relative
      ? !to.startsWith('core/') && !leaves.has(to)
      : !corePackages.has(to) && !(typeOnly && to === 'drizzle-orm');
  });
  assert.deepEqual(refused(wrong), []);
});

test('http-proxy-3 has one importer', () => {
  assert.deepEqual(
    imports.filter(({ to }) => to === 'http-proxy-3').map(({ from }) => from),
    ['core/forward.ts'],
  );
});

test('a plugin imports the leaves, the instruments, its own folder and packages, never another plugin', () => {
  const wrong = imports.filter(({ from, to, relative }) => {
    if (!from.startsWith('plugins/') || !relative) return false;
    return !leaves.has(to) && !instruments.has(to) && !to.startsWith(`${from.split('/').slice(0, 2).join('/')}/`);
  });
  assert.deepEqual(refused(wrong), []);
});

test('only storage drives databases', () => {
  const wrong = imports.filter(({ from, to }) => drivers.has(to) && !from.startsWith('plugins/storage/'));
  assert.deepEqual(refused(wrong), []);
});

test('a protocol imports no other protocol', () => {
  const folder = /^plugins\/protocol-convert\/protocols\/([^/]+)\//;
  const wrong = imports.filter(({ from, to }) => {
    const [own, other] = [folder.exec(from)?.[1], folder.exec(to)?.[1]];
    return own !== undefined && other !== undefined && own !== other;
  });
  assert.deepEqual(refused(wrong), []);
});

test('imports inside the core make no circle, apart from types', () => {
  const edges = new Map<string, string[]>();
  for (const { from, to, relative, typeOnly } of imports)
    if (relative && !typeOnly) edges.set(from, [...(edges.get(from) ?? []), to]);
  const state = new Map<string, 'open' | 'done'>();
  const circles: string[] = [];
  const visit = (file: string, path: readonly string[]) => {
    if (state.get(file) === 'done') return;
    if (state.get(file) === 'open') return void circles.push([...path, file].join(' → '));
    state.set(file, 'open');
    for (const next of edges.get(file) ?? []) visit(next, [...path, file]);
    state.set(file, 'done');
  };
  for (const file of files) visit(file, []);
  assert.deepEqual(circles, []);
});

test('no vendor is named in code', () => {
  const vendors =
    /\b(openai|anthropic|claude|gpt-?\d|deepseek|moonshot|kimi|minimax|zhipu|qwen|alibaba|openrouter|mistral|groq|xai|grok|vertex|azure|bedrock|perplexity|ollama|volcengine|doubao)\b/i;
  /** Names that are the wire's own: header names of a protocol, and the names of task protocols under `speaks`. */
  const wire =
    /\b(openai|xai)-(images|videos)\b|anthropic-(version|beta|ratelimit|dangerous)[a-z-]*|openai-(beta|processing|version|organization)[a-z-]*|anthropic-version/gi;
  const wrong: string[] = [];
  for (const file of files) {
    if (file === 'plugins/welcome/index.ts') continue; // Its default names a model of the catalogue: data with a description.
    withoutComments(source(file))
      .split('\n')
      .forEach((line, index) => {
        if (vendors.test(line.replace(wire, ''))) wrong.push(`${file}:${index + 1}: ${line.trim()}`);
      });
  }
  assert.deepEqual(wrong, []);
});

test('rooms are small: files of at most 350 lines, functions of at most 80', () => {
  const wrong: string[] = [];
  for (const file of files) {
    const lines = source(file).split('\n');
    if (lines.length > 351) wrong.push(`${file} has ${lines.length - 1} lines`);
    let start: { line: number; indent: string } | undefined;
    lines.forEach((line, index) => {
      const opening =
        /^(\s*)(?:export )?(?:default )?(?:async )?(?:function\b|(?:static |readonly )*(?:async |get |set |\*)?#?[a-zA-Z]+\(.*\).*\{$)/.exec(
          line,
        );
      if (start === undefined && opening !== null && line.endsWith('{')) start = { line: index, indent: opening[1]! };
      else if (start !== undefined && line === `${start.indent}}`) {
        if (index - start.line > 80) wrong.push(`${file}:${start.line + 1}: a function of ${index - start.line} lines`);
        start = undefined;
      }
    });
  }
  assert.deepEqual(wrong, []);
});

test('each file says its one job in its first line', () => {
  assert.deepEqual(
    files.filter((file) => !source(file).startsWith('/**')),
    [],
  );
});

test('money is never a float: no parseFloat, toFixed or Number of an amount near it', () => {
  const wrong = files
    .filter((file) => file === 'core/money.ts' || file.startsWith('plugins/billing/'))
    .filter((file) => /parseFloat|toFixed|\bNumber\(/.test(withoutComments(source(file))));
  assert.deepEqual(wrong, []);
});

test('plugins take time and chance from their host', () => {
  const wrong = files
    // A browser has no host: pages look at its clock.
    .filter((file) => file.startsWith('plugins/') && !/^plugins\/(sandbox|storage|console\/web)\//.test(file))
    .filter((file) => /Date\.now\(|Math\.random\(|performance\.now\(|new Date\(\)/.test(withoutComments(source(file))));
  assert.deepEqual(wrong, []);
});

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, '')).replace(/(^|\s)\/\/.*$/gm, '');
}
