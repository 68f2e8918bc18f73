/** The rules of the repository that a reviewer would otherwise have to remember: who imports whom, how long rooms are, no vendor in code. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { circlesIn, filesIn, type Import, importsOf } from './runner/imports.ts';

const files = filesIn('core', 'plugins').filter((file) => /\.tsx?$/.test(file));
const source = (file: string) => readFileSync(file, 'utf8');

const corePackages = new Set([
  'http-proxy-3',
  'socks',
  'undici',
  'ws',
  'yaml',
  'find-my-way',
  'pino',
  'commander',
  'zod',
]);
const drivers = new Set(['postgres', '@electric-sql/pglite', 'ioredis']);

const imports = files.flatMap((file) => importsOf(file));
const refused = (list: readonly Import[]) => list.map(({ from, to }) => `${from} imports ${to}`);

/** Rooms in order, each importing itself and the ones before it. */
const rooms: readonly (readonly [folder: string, rooms: readonly string[]])[] = [
  ['core/', ['contract/', 'json/', 'tools/', 'http/', 'gateway/', 'process/']],
  [
    'plugins/billing/',
    [
      ...['model/', 'grants/', 'ledger/', 'journal/', 'leases/', 'budgets/', 'reservations/', 'estimates/'],
      ...[
        'archive/',
        'audit/',
        'restores/',
        'store.ts',
        'runtime.ts',
        'scopes.ts',
        'accounts/',
        'authorizations/',
        'reports/',
        'statements/',
        'alone.ts',
        'commands/',
      ],
      ...['config.ts', 'timeline.ts', 'calls.ts', 'index.ts'],
    ],
  ],
];

for (const [folder, order] of rooms)
  test(`rooms of ${folder} import themselves and the ones before them`, () => {
    const roomOf = (file: string) => order.findIndex((room) => file.startsWith(folder + room));
    const wrong = imports.filter(({ from, to, relative }) => {
      if (!relative || !from.startsWith(folder)) return false;
      return roomOf(from) === -1 || (to.startsWith(folder) && (roomOf(to) === -1 || roomOf(to) > roomOf(from)));
    });
    assert.deepEqual(refused(wrong), []);
  });

/** Files that are read as they are, and name vendors and programs. */
const isData = (file: string) => file === 'package.json' || file === 'config/clients.json';

test('the core knows no plugin and only its own packages', () => {
  const wrong = imports.filter(
    ({ from, to, relative }) =>
      from.startsWith('core/') && !(relative ? to.startsWith('core/') || isData(to) : corePackages.has(to)),
  );
  assert.deepEqual(refused(wrong), []);
});

test('http-proxy-3 has one importer', () => {
  assert.deepEqual(
    imports.filter(({ to }) => to === 'http-proxy-3').map(({ from }) => from),
    ['core/http/forward.ts'],
  );
});

test("a plugin imports the core's contract, JSON and tools, plugins/common, its own folder and packages", () => {
  const wrong = imports.filter(({ from, to, relative }) => {
    if (!from.startsWith('plugins/') || !relative || to === 'package.json') return false;
    // What authors' tests boot gateways with.
    if (from === 'plugins/common/author/testing.ts') return false;
    const own = `${from.split('/').slice(0, 2).join('/')}/`;
    return ![own, 'core/contract/', 'core/json/', 'core/tools/', 'plugins/common/'].some((room) => to.startsWith(room));
  });
  assert.deepEqual(refused(wrong), []);
});

test('only the index of protocol-convert imports its protocols', () => {
  const wrong = imports.filter(
    ({ from, to }) =>
      to.startsWith('plugins/protocol-convert/protocols/') &&
      from !== 'plugins/protocol-convert/index.ts' &&
      !from.startsWith('plugins/protocol-convert/protocols/'),
  );
  assert.deepEqual(refused(wrong), []);
});

test('a file of plugins/common has two plugins as importers, or is given to authors', () => {
  const importers = Map.groupBy(imports, ({ to }) => to);
  const usersOf = (file: string, seen = new Set<string>()): Set<string> => {
    for (const { from } of importers.get(file) ?? []) {
      const user = /^plugins\/common\/(?!author\/)/.test(from) ? from : from.split('/').slice(0, 3).join('/');
      if (seen.has(user)) continue;
      seen.add(user.startsWith('plugins/common/') ? user : user.split('/').slice(0, 2).join('/'));
      if (user === from) usersOf(from, seen);
    }
    return seen;
  };
  const isShared = (file: string) => {
    const users = [...usersOf(file)].filter(
      (user) => !user.startsWith('plugins/common/') || user === 'plugins/common/author',
    );
    return users.length > 1 || users[0] === 'plugins/common/author';
  };
  const common = files.filter((file) => /^plugins\/common\/(?!author\/)/.test(file));
  assert.deepEqual(
    common.filter((file) => !isShared(file)),
    [],
  );
});

test('no files import one another in a circle, by types either', () => {
  // Files of the simulation still do: node, world and errands hold one another.
  const ofTests = filesIn('tests').filter((file) => /\.tsx?$/.test(file) && !file.startsWith('tests/simulation/'));
  const all = [...imports, ...ofTests.flatMap((file) => importsOf(file))];
  assert.deepEqual(circlesIn(all), []);
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

test('a folder has at most twenty files', () => {
  const counts = new Map<string, number>();
  for (const file of files.filter((name) => !name.startsWith('plugins/console/web/'))) {
    const folder = dirname(file);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  assert.deepEqual(
    [...counts].filter(([, count]) => count > 20),
    [],
  );
});

test('no vendor is named in code', () => {
  const vendors =
    /\b(openai|anthropic|claude|gpt-?\d|deepseek|moonshot|kimi|minimax|zhipu|qwen|alibaba|openrouter|mistral|groq|xai|grok|vertex|azure|bedrock|perplexity|ollama|volcengine|doubao)\b/i;
  /** Names that are the wire's own: header names of a protocol, and the names of protocols under `speaks`. */
  const wire =
    /\b(openai|xai)-(images|videos|embeddings|decisions|moderations|speech|transcriptions|realtime)\b|anthropic-(version|beta|ratelimit|dangerous)[a-z-]*|openai-(beta|poll|processing|version|organization|safety|insecure)[a-z-]*|anthropic-version/gi;
  const wrong: string[] = [];
  for (const file of files) {
    if (file === 'plugins/welcome/index.ts') continue; // Its default names a model of the catalogue: data with a description.
    if (/^plugins\/(?:ollama|cohere|azure|bedrock|vertex|guardrails\/services)\//.test(file)) continue; // The protocol or credentials of one vendor, called like it.
    if (/^plugins\/console\/web\/src\/calls\/(?:code|sdk)\.ts$/.test(file)) continue; // Code for the official clients, which are called like their makers.
    withoutComments(source(file))
      .split('\n')
      .forEach((line, index) => {
        if (vendors.test(line.replace(wire, ''))) wrong.push(`${file}:${index + 1}: ${line.trim()}`);
      });
  }
  assert.deepEqual(wrong, []);
});

test('files have at most 350 lines; biome.json limits functions', () => {
  const wrong = files.filter((file) => lineCount(file) > 350);
  assert.deepEqual(wrong, []);
});

/** Files of under 30 lines with one importer, and why each stands alone. */
const smallFiles = new Map([
  ['plugins/console/web/build.ts', 'a program'],
  ['plugins/billing/alone.ts', 'loaded by its name'],
  ['plugins/common/author/kit.ts', 'a name that authors import'],
  ['plugins/common/author/media.ts', 'a namespace of it'],
  ['core/process/main.ts', 'what it gets ready to load may not be a part of it'],
]);

test('a file of under 30 lines with one importer is part of it, except an index and a file that is loaded later', () => {
  const loadedLater = new Set(
    files.flatMap((file) =>
      [...source(file).matchAll(/\bimport\(\s*['"](\.[^'"]+)['"]\s*\)/g)].map(([, to]) =>
        normalize(join(dirname(file), to!)),
      ),
    ),
  );
  const small = files.filter((file) => {
    if (lineCount(file) >= 30 || /\/index\.ts$/.test(file) || loadedLater.has(file)) return false;
    return new Set(imports.filter(({ to }) => to === file).map(({ from }) => from)).size <= 1;
  });
  assert.deepEqual(small.sort(), [...smallFiles.keys()].sort());
});

function lineCount(file: string): number {
  return source(file).split('\n').length - 1;
}

test('files use Temporal behind an import that brings it where Node has none, and not RegExp.escape, which only tests may', () => {
  const temporal = 'core/tools/temporal.ts';
  const having = new Set([temporal, ...imports.filter(({ to }) => to === temporal).map(({ from }) => from)]);
  const isWrong = (file: string) =>
    /\bRegExp\.escape\(/.test(source(file)) || (/\bTemporal\.\w+\.\w+\(/.test(source(file)) && !having.has(file));
  assert.deepEqual(
    files.filter((file) => !file.startsWith('plugins/console/web/') && isWrong(file)),
    [],
  );
});

test('each file says its one job in its first line', () => {
  assert.deepEqual(
    files.filter((file) => !source(file).startsWith('/**')),
    [],
  );
});

test('money is never a float: no parseFloat, toFixed or Number of an amount near it', () => {
  const wrong = files
    .filter((file) => file === 'plugins/common/domain/money.ts' || file.startsWith('plugins/billing/'))
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

test('tables that are read by any name have no prototype', () => {
  const plain = /^(?:export )?const (\w+): (?:Partial<)?(?:Readonly<)?Record<string, [^\n]*> = \{/gm;
  const wrong = files
    .filter((file) => !file.startsWith('plugins/console/web/'))
    .flatMap((file) => [...source(file).matchAll(plain)].map(([, name]) => `${file}: ${name}`));
  assert.deepEqual(wrong, []);
});

/** The old private language, which neither names, comments, messages nor documents use: AGENTS.md has the terms. */
const words = [
  ...['house', 'houses', 'told', 'nobody', 'desk', 'desks', 'hall', 'pot', 'purse', 'purses', 'till', 'seat', 'seats'],
  ...['racer', 'racers', 'lessor', 'lessors', 'worded', 'whoever', 'anew', 'books', 'onLanded', 'goOn', 'factsOf'],
];
const phrases = ['in place of', 'kept sums'];

/** Names of columns, which migrations gave. */
const columns: Readonly<Record<string, readonly string[]>> = { 'plugins/idempotency/rows.ts': ['told'] };

/** Whole words, also as parts of names. */
const found = new RegExp(
  [
    ...words.map((word) => `(?<![A-Za-z])${word}(?![a-z])`),
    ...words.map((word) => `(?<![A-Z])${word[0]!.toUpperCase()}${word.slice(1)}(?![a-z])`),
    ...phrases.map((phrase) => `\\b[${phrase[0]!.toUpperCase()}${phrase[0]}]${phrase.slice(1)}\\b`),
  ].join('|'),
  'g',
);

test('names, comments, messages and documents contain none of the old private words', () => {
  const texts = ['AGENTS.md', 'README.md', 'SECURITY.md', ...filesIn('core', 'plugins', 'tests', 'config', 'docker')];
  const wrong = texts
    .filter((file) => /\.(tsx?|mjs|md|yaml)$/.test(file) && !/^tests\/(fixtures\/|architecture)/.test(file))
    .flatMap((file) => Array.from(source(file).matchAll(found), ([word]) => ({ file, word: word.toLowerCase() })))
    .filter(({ file, word }) => columns[file]?.includes(word) !== true);
  assert.deepEqual(wrong, []);
});

test('titles of tests name their subject: none begins with a genitive or a question word', () => {
  const title = /\b(?:test|testOnServer|testHistory)\(\s*(['"`])((?:\\.|(?!\1).)*)\1/g;
  const riddle = /^(?:of|what|who|whose|those)\b|\bwhat (?:is|was|are|were|has|had)\b|\bthose who\b/i;
  const wrong = filesIn('tests')
    .filter((file) => file.endsWith('.test.ts') && !file.startsWith('tests/runner/'))
    .flatMap((file) => Array.from(source(file).matchAll(title), ([, , text]) => ({ file, text: text! })))
    .filter(({ text }) => riddle.test(text));
  assert.deepEqual(wrong, []);
});

test('no comment begins with a bare genitive', () => {
  const wrong = filesIn('core', 'plugins', 'tests')
    .filter((file) => /\.tsx?$/.test(file))
    .flatMap((file) =>
      Array.from(source(file).matchAll(/(?:\/\*\*|\/\/|^ *\*) Of .*/gm), ([text]) => `${file}: ${text}`),
    );
  assert.deepEqual(wrong, []);
});
