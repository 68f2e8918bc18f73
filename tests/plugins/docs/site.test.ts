/** The pages for clients, as the demo gateway serves them: links, code, forms, search, size, escaping, readers, reloads. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { addressOf, openRenderer } from '../../../plugins/docs/site/markdown.ts';
import { type Entry, find } from '../../../plugins/docs/site/search.ts';
import { startGateway } from '../../helpers/gateway.ts';
import type { Browser } from '../console/browser.ts';
import { clientOf, operatorOf, startDemo, type TestConsole } from '../console/start-console.ts';

const run = promisify(execFile);
const oddModel = '"><script>alert(1)</script>|`x`[y](javascript:z)';
const oddBrand = '<img src=x onerror=alert(1)> & "Co" [a](javascript:b)';
const support = [
  '# Help <script>alert(2)</script>',
  '',
  'Write to [us](https://example.test/help) or [do not](javascript:alert(3)), at `{{address}}` about `{{model}}` of {{gateway}}; {{unknown}} stays.',
  '',
  '| a | b |',
  '| :-: | --: |',
  '| 1 | <b onclick="x">2</b> |',
].join('\n');

let testbed: TestConsole;
let boss: Browser;
let ada: Browser;
before(async () => {
  testbed = await startDemo(
    'demo',
    `
console: { name: ${JSON.stringify(oddBrand)}, brand: { accent: "#0a7d55", terms: "https://example.test/terms" } }
models:
  ${JSON.stringify(oddModel)}: { display_name: ${JSON.stringify(oddModel)}, owned_by: "<b>", targets: [openai/gpt-5.4], price: { input: 1.25, output: 2 } }
docs:
  pages:
    support: { text: ${JSON.stringify(support)} }
    headers: { text: { de: "# Kopfzeilen, wie wir sie brauchen\\n\\n{{gatewayheaders}}" } }
`,
  );
  boss = await operatorOf(testbed);
  ada = await clientOf(testbed);
  await readAll();
});
after(() => testbed.stop());

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(testbed.origin + path, { headers: { accept: 'text/html', ...headers }, redirect: 'manual' });
const textOf = async (path: string, headers: Record<string, string> = {}) => (await get(path, headers)).text();
const signedIn = (browser: Browser) => ({ cookie: browser.cookieHeader() });

const hrefs = (html: string) =>
  Array.from(html.matchAll(/<(?:a|link|script|img|form)\b[^>]*? (?:href|src|action)="([^"]*)"/g), ([, link]) =>
    unescaped(link!),
  );
const unescaped = (html: string) => html.replace(/&#(\d+);/g, (_, sign) => String.fromCharCode(sign));
const mainOf = (html: string) => /<main[^>]*>([\s\S]*?)(?:<p class="foot"[\s\S]*?)?<\/main>/.exec(html)![1]!;
const wordsOf = (html: string) =>
  unescaped(html.replace(/<[^>]*>/g, ' '))
    .replace(/&(lt|gt|quot|amp);/g, (_, name) => ({ lt: '<', gt: '>', quot: '"', amp: '&' })[name as 'lt'])
    .replace(/\s+/g, ' ')
    .trim();

/** Every page that a link of another page leads to, by its address. */
const pages = new Map<string, string>();
const links: { readonly from: string; readonly to: string }[] = [];
async function readAll() {
  const open = ['/docs/'];
  for (let path = open.shift(); path !== undefined; path = open.shift()) {
    if (pages.has(path)) continue;
    const answer = await get(path);
    assert.equal(answer.status, 200, path);
    const html = await answer.text();
    pages.set(path, html);
    for (const link of hrefs(html)) {
      const { origin, pathname, search, hash } = new URL(link, testbed.origin + path);
      if (origin !== testbed.origin) continue;
      links.push({ from: path, to: pathname + search + hash });
      if ((/^\/docs\/[^.]*$/.test(pathname) && pathname !== '/docs/search') || pathname.startsWith('/docs/models/'))
        if (!pathname.endsWith('.md') && search === '') open.push(pathname);
    }
  }
}

test('every page is reached by links, and each link and anchor leads to something', async () => {
  for (const path of ['models', 'clients/claude-code', 'clients/openai', 'errors', 'limits', 'never-stored', 'support'])
    assert.ok(pages.has(`/docs/${path}`), path);
  assert.ok([...pages.keys()].filter((path) => path.startsWith('/docs/models/')).length > 50);
  const wrong: string[] = [];
  const seen = new Map<string, number>();
  for (const { from, to } of links) {
    const [path, anchor] = to.split('#') as [string, string?];
    const html = pages.get(path);
    if (html === undefined && !seen.has(path)) {
      const answer = await fetch(testbed.origin + path, { headers: { accept: 'text/html' } });
      await answer.arrayBuffer();
      seen.set(path, answer.status);
    }
    if (html === undefined && seen.get(path) !== 200) wrong.push(`${from}: ${path} (${seen.get(path)})`);
    if (anchor !== undefined && html?.includes(` id="${decodeURIComponent(anchor)}"`) === false)
      wrong.push(`${from}: ${to}`);
  }
  assert.deepEqual([...new Set(wrong)], []);
});

test('no page has a script, a style or a handler of its own, and the policy allows none', async () => {
  for (const [path, html] of pages) {
    const scripts = Array.from(html.matchAll(/<script\b[^>]*>/gi), ([tag]) => tag);
    assert.equal(scripts.length, 2, path);
    for (const tag of scripts) assert.match(tag, / src="\/docs\/assets\//);
    assert.doesNotMatch(
      html,
      /<style|<[^>]* style="|<[^>"]* on\w+=|="\s*javascript:|<img src="?x|<b>|<b onclick/i,
      path,
    );
  }
  const policy = (await get('/docs/')).headers.get('content-security-policy')!;
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self';.* frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|\*/);
});

test('odd names of models and of the brand are words, in lists, on their own pages and in calls', async () => {
  const model = `/docs/models/${addressOf(oddModel)}`;
  assert.ok(wordsOf(pages.get('/docs/models')!).includes(oddModel));
  assert.ok(wordsOf(mainOf(pages.get(model)!)).includes(`name in requests ${oddModel}`), model);
  assert.ok(wordsOf(pages.get('/docs/')!).includes(`${oddBrand}: how to call it`));
  const own = mainOf(pages.get('/docs/support')!);
  assert.ok(wordsOf(own).includes('Help <script>alert(2)</script>'));
  assert.ok(wordsOf(own).includes(`about gpt-5.5 of ${oddBrand}; {{unknown}} stays.`));
  assert.match(own, /<a href="https:\/\/example\.test\/help" rel="noreferrer noopener">/);
  assert.match(own, /<td class="to-center">1<\/td>/);
  const searched = await textOf(`/docs/search?q=${encodeURIComponent('"><script>alert(9)</script>')}`);
  assert.doesNotMatch(searched, /<script>/);
});

test('the text in Markdown and the page say the same', async () => {
  const render = await openRenderer();
  for (const [path, html] of pages) {
    if (path.startsWith('/docs/models/') && !path.includes('gpt-5.5') && !path.includes('script')) continue;
    const answer = await get(path === '/docs/' ? '/docs/index.md' : `${path}.md`);
    assert.match(answer.headers.get('content-type')!, /^text\/markdown/, path);
    const markdown = await answer.text();
    assert.equal(wordsOf(render(markdown).html), wordsOf(mainOf(html)), path);
    assert.doesNotMatch(markdown, /\]\(\/docs/, path);
  }
});

test('llms.txt lists every page in Markdown with its whole address', async () => {
  const answer = await get('/llms.txt');
  const text = await answer.text();
  assert.match(text, /^# .+\n\n> /);
  const listed = Array.from(text.matchAll(/\]\((\S+\.md)\)/g), ([, address]) => address!);
  assert.equal(listed.length, pages.size);
  for (const address of listed.slice(0, 12)) assert.equal((await fetch(address)).status, 200, address);
});

// ------------------------------------------------------------------------------------------------------------------- code

const codeOf = (html: string) =>
  Array.from(html.matchAll(/<code data-language="(\w*)">([\s\S]*?)<\/code>/g), ([, language, text]) => ({
    language: language!,
    text: unescaped(text!),
  }));

test('each call by curl is answered as it is written', { timeout: 60_000 }, async () => {
  const key = (await ada.send('/keys', { body: { name: 'laptop' } })).json.key as string;
  const account = (await ada.send('/me')).json.account.id as string;
  const headers = { 'idempotency-key': crypto.randomUUID() };
  await boss.send(`/admin/accounts/${account}/credit`, { body: { amount: '50', reason: 'a test' }, headers });
  const programs = ['curl', 'openai', 'anthropic', 'google'].map((id) => `/docs/clients/${id}`);
  const kinds = ['gpt-image-2', 'tts-1', 'text-embedding-3-small', 'grok-imagine-video'].map(
    (id) => `/docs/models/${id}`,
  );
  const calls = ['/docs/', '/docs/protocols', ...programs, ...kinds].flatMap((path) => {
    const found = codeOf(pages.get(path)!).filter(({ text }) => text.startsWith('curl '));
    assert.ok(found.length > 0, path);
    return found.map(({ text }) =>
      text.replace(/^curl /, 'curl -sS --fail-with-body -o /dev/null ').replaceAll('YOUR_KEY', key),
    );
  });
  assert.ok(calls.length > 12);
  await run('/bin/sh', ['-ec', calls.join('\n')]);
});

test('each block in JSON or YAML can be read', () => {
  let count = 0;
  for (const html of pages.values())
    for (const { language, text } of codeOf(html))
      if (language === 'json' || language === 'yaml') {
        count += 1;
        if (language === 'json') JSON.parse(text);
        else parse(text);
      }
  assert.ok(count > 8);
});

// ----------------------------------------------------------------------------------------------------------------- search

test('the search finds codes, models, programs, headers and own pages, in the browser and without scripts', async () => {
  const entries = (await (await get('/docs/search.json')).json()) as Entry[];
  const first = (text: string) => find(entries, text)[0]?.[0];
  assert.equal(first('model_not_found'), '/docs/errors#model_not_found');
  assert.equal(first('x-gateway-dropped'), '/docs/headers#x-gateway-dropped');
  assert.equal(first('claude code'), '/docs/clients/claude-code');
  assert.equal(first('gpt-5.4-mini'), '/docs/models/gpt-5.4-mini');
  assert.equal(first('help'), '/docs/support');
  assert.deepEqual(find(entries, 'no-such-word-anywhere'), []);
  assert.deepEqual(find(entries, '  '), []);
  assert.match(await textOf('/docs/search?q=model_not_found'), /href="\/docs\/errors#model_not_found"/);
  const script = await textOf('/docs/assets/search.js');
  assert.match(script, /export function find\(entries\s*, text\s*\)/);
});

test('the first page, and the whole search, are small on the wire', async () => {
  const sizeOf = async (path: string) => {
    const { stdout } = await run('curl', [
      '-s',
      '-o',
      '/dev/null',
      '-w',
      '%{size_download}',
      '-H',
      'accept-encoding: br',
      testbed.origin + path,
    ]);
    return Number(stdout);
  };
  const parts = hrefs(pages.get('/docs/')!).filter((link) => link.startsWith('/docs/assets/'));
  assert.ok(parts.length >= 5);
  const sizes = await Promise.all(['/docs/', '/docs/assets/search.js', ...new Set(parts)].map(sizeOf));
  const all = sizes.reduce((sum, size) => sum + size, 0);
  assert.ok(all < 24_000, `${all} bytes`);
  const index = await sizeOf('/docs/search.json');
  assert.ok(index < 30_000, `${index} bytes of the index`);
});

// ------------------------------------------------------------------------------------------------------ forms and caching

test('a page is kept by its tag, per language and coding, and a person’s by themselves', async () => {
  const answer = await get('/docs/models');
  const tag = answer.headers.get('etag')!;
  assert.equal((await get('/docs/models', { 'if-none-match': tag })).status, 304);
  assert.equal((await get('/docs/models', { 'if-none-match': tag, 'accept-language': 'de' })).status, 200);
  assert.match(answer.headers.get('vary')!, /accept-language.*accept-encoding/);
  assert.equal(answer.headers.get('cache-control'), 'no-cache');
  assert.equal((await get('/docs/models', signedIn(ada))).headers.get('cache-control'), 'private, no-cache');
  const asset = hrefs(await answer.text()).find((link) => link.includes('docs.css'))!;
  assert.match((await get(asset)).headers.get('cache-control')!, /immutable/);
  const head = await fetch(`${testbed.origin}/docs/errors`, { method: 'HEAD' });
  assert.deepEqual([head.status, await head.text()], [200, '']);
});

test('the frame speaks the reader’s language, and texts that the operator gave in it', async () => {
  const german = await textOf('/docs/', { 'accept-language': 'de-AT,de;q=0.9' });
  assert.match(german, /<html lang="de">[\s\S]*Modelle und Preise[\s\S]*<main[^>]* lang="en">/);
  const chosen = await get('/docs/headers?lang=de');
  assert.match(chosen.headers.get('set-cookie')!, /^docs-language=de; Path=\/docs;/);
  assert.match(await chosen.text(), /<main[^>]* lang="de">\s*<h1>Kopfzeilen, wie wir sie brauchen/);
  assert.match(await textOf('/docs/headers', { cookie: 'docs-language=ja' }), /<html lang="ja">[\s\S]*<h1>Headers/);
  assert.match(await textOf('/docs/', { 'accept-language': 'xx' }), /<html lang="en">/);
});

test('an unknown page is a page for people and an error for programs, and no path leaves the pages', async () => {
  const page = await get('/docs/nothing-here');
  assert.equal(page.status, 404);
  assert.match(await page.text(), /There is no such page/);
  for (const path of [
    '/docs/nothing.md',
    '/docs/assets/nothing.js',
    '/docs/assets/..%2findex.ts',
    '/docs/..%2f..%2fpackage.json',
  ])
    assert.equal((await get(path, { accept: '*/*' })).status, 404, path);
  assert.equal((await get('/docs')).headers.get('location'), '/docs/');
});

// ---------------------------------------------------------------------------------------------------------------- readers

test('a person sees name, balance, their key and the prices of their plan', async () => {
  const account = (await ada.send('/me')).json.account.id as string;
  const dearer = await boss.send(`/admin/accounts/${account}/multiplier`, {
    body: { multiplier: '1.5', reason: 'a test' },
  });
  assert.equal(dearer.status, 200, dearer.text);
  const html = await textOf('/docs/models', signedIn(ada));
  const bar = wordsOf(/<p class="reader">.*?<\/p>/.exec(html)![0]);
  assert.match(bar, /^Signed in as Ada Balance: \$[\d.]+ Your key: laptop \S+…$/);
  const priceIn = (text: string) => /gpt-5\.5<\/code>[\s\S]*?\$([\d.]+)/.exec(text)![1];
  assert.deepEqual([priceIn(pages.get('/docs/models')!), priceIn(html)], ['5.00', '7.50']);
  assert.doesNotMatch(await textOf('/docs/models'), /class="reader"/);
});

async function reload(change: (yaml: string) => string): Promise<void> {
  const file = join(testbed.directory, 'gateway.yaml');
  await writeFile(file, change(await readFile(file, 'utf8')));
  const reply = await boss.send('/admin/config/reload', { method: 'POST' });
  assert.deepEqual([reply.status, reply.json.problems], [200, []], reply.text);
}

/** Statuses of the pages that `/llms.txt` lists. */
async function listedStatuses(origin: string): Promise<Record<string, number>> {
  const list = await (await fetch(`${origin}/llms.txt`)).text();
  const paths = Array.from(list.matchAll(/\]\(https?:\/\/[^/]+(\/docs\/[^)]+)\)/g), ([, path]) => path!);
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [path, (await fetch(origin + path)).status] as const)),
  );
}

test('where strangers are shown no models, pages of programs have a place for one, and each listed page is there', async () => {
  await reload((yaml) => yaml.replace('console: {', 'console: { public: { models: false },'));
  const statuses = await listedStatuses(testbed.origin);
  assert.ok('/docs/clients/claude-code.md' in statuses && !Object.keys(statuses).some((path) => path.includes('gpt-')));
  assert.deepEqual([...new Set(Object.values(statuses))], [200]);
  const page = await textOf('/docs/clients/codex.md');
  assert.match(page, /instead of `MODEL` a model of `GET \/v1\/models`/);
  assert.match(page, /connect\.cjs \| node - codex --gateway \S+\n/);
  assert.match(await textOf('/docs/clients/codex.md', signedIn(ada)), /With `gpt-5\.5`;/);
  await reload((yaml) => yaml.replace(' public: { models: false },', ''));
});

test('a changed price, page and reader shows with the reload', async () => {
  await reload((yaml) => yaml.replace('input: 1.25', 'input: 1.75').replace('# Help', '# Assistance'));
  assert.match(await textOf('/docs/models'), /\$1\.75/);
  assert.match(await textOf('/docs/support'), /Assistance/);
  await reload((yaml) => yaml.replace('docs:', 'docs:\n  prices: signed_in'));
  assert.doesNotMatch(await textOf('/docs/models'), /\$\d/);
  assert.match(await textOf('/docs/models', signedIn(ada)), /\$\d/);
  await reload((yaml) => yaml.replace('docs:', 'docs:\n  access: signed_in'));
  const linked = async () => (await boss.send('/info')).json.brand.docs;
  assert.equal(await linked(), '/docs/');
  const stranger = await get('/docs/');
  assert.deepEqual([stranger.status, stranger.headers.get('location')], [302, '/console/sign-in']);
  assert.equal((await get('/docs/index.md', { accept: '*/*' })).status, 401);
  assert.equal((await get('/docs/', signedIn(ada))).status, 200);
  const key = (await ada.send('/keys', { body: { name: 'reader' } })).json.key as string;
  assert.equal((await get('/docs/index.md', { accept: '*/*', authorization: `Bearer ${key}` })).status, 200);
  await reload((yaml) => yaml.replace('access: signed_in', 'access: "off"'));
  for (const path of ['/docs/', '/llms.txt', '/docs/search.json'])
    assert.equal((await get(path, signedIn(ada))).status, 404);
  assert.equal(await linked(), null);
});

test('a gateway without a console has pages too, with its own error shape and its prices by the multiplier', async () => {
  const yaml = `
gateway: bare
listen: \${PORT}
plugins: [error-shape, sandbox, providers, models, multiplier, route, protocol-convert, docs]
error-shape: { body: { fault: "{CODE}", words: "{message}" } }
providers: { any: { keys: sandbox, speaks: { chat: "sandbox:/v1" } } }
models: { only-one: { owned_by: us, targets: [any], price: { input: 3, output: 4 } } }
multiplier: { default: 2 }
protocol-convert: { expose: [chat] }
docs: { name: Bare, origin: "https://gate.example" }
`;
  await using bare = await startGateway(yaml);
  const page = async (path: string) => (await fetch(bare.origin + path)).text();
  assert.match(await page('/docs/models.md'), /`only-one` \|.* \$6\.00 .* \$8\.00 \|/);
  const errors = await page('/docs/errors.md');
  assert.match(errors, /"fault": "MODEL_NOT_FOUND",\n {2}"words": "/);
  assert.match(errors, /### MODEL\\_NOT\\_FOUND \(404\)/);
  assert.doesNotMatch(errors, /`model_not_found`/);
  assert.match(await page('/docs/index.md'), /curl https:\/\/gate\.example\/v1\/chat\/completions/);
  assert.doesNotMatch(await page('/docs/protocols.md'), /\/v1\/messages/);
  // It sells no images.
  const statuses = await listedStatuses(bare.origin);
  assert.ok('/docs/clients/ai-sdk.md' in statuses && !('/docs/clients/ai-sdk-images.md' in statuses));
  assert.deepEqual([...new Set(Object.values(statuses))], [200]);
  assert.match(await page('/docs/index.md'), /You get a key from the people who run this gateway/);
  const start = await page('/docs/');
  assert.match(start, /<title>Bare<\/title>/);
  assert.doesNotMatch(start, /\/console\//);
});
