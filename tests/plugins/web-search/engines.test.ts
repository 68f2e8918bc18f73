/** What each known search engine is asked, and what its answer becomes: the shapes of the engines' documentation. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requestFor, resultsIn } from '../../../plugins/web-search/api.ts';
import { type AskedSearch, isOf, readSearch } from '../../../plugins/web-search/asked.ts';
import { type SearchApi, searchSchema } from '../../../plugins/web-search/config.ts';
import { engines } from '../../../plugins/web-search/engines.ts';

const whole: AskedSearch = {
  query: 'boats & ships',
  count: 3,
  ...{ allowed: ['a.example', 'b.example/c'], blocked: ['d.example'], country: 'NO', place: 'Oslo, Norway' },
};
const plain: AskedSearch = {
  query: 'boats',
  count: 500,
  allowed: [],
  blocked: [],
  country: undefined,
  place: undefined,
};
const apiOf = (engine: string, api?: object): SearchApi =>
  searchSchema.parse({ engine, key: 'k1', ...(api === undefined ? {} : { api }) }).api!;
const asked = (engine: string, search: AskedSearch, api?: object) => {
  const of = apiOf(engine, api);
  const { url, method, headers, body } = requestFor(of, of.url!, 'k1', search);
  const { origin, pathname, searchParams } = new URL(url);
  return {
    at: origin + pathname,
    query: Object.fromEntries(searchParams),
    method,
    headers,
    body: body && JSON.parse(body),
  };
};

test('Brave is asked by parameters with the key in its header, and by words for the domains', () => {
  const request = asked('brave', whole);
  assert.equal(request.at, 'https://api.search.brave.com/res/v1/web/search');
  assert.deepEqual(request.query, {
    q: 'boats & ships (site:a.example OR site:b.example/c) -site:d.example',
    ...{ count: '3', country: 'NO', text_decorations: 'false' },
  });
  assert.equal(request.headers['x-subscription-token'], 'k1');
  assert.equal(request.method, 'GET');
  assert.deepEqual(asked('brave', plain).query, { q: 'boats', count: '20', text_decorations: 'false' });
});

test('Tavily is asked by JSON with lists of domains, which are left out where none are asked for', () => {
  const request = asked('tavily', whole);
  assert.deepEqual(request.body, {
    ...{ query: 'boats & ships', max_results: 3 },
    ...{ include_domains: ['a.example', 'b.example/c'], exclude_domains: ['d.example'] },
  });
  assert.equal(request.headers['authorization'], 'Bearer k1');
  assert.equal(request.method, 'POST');
  assert.deepEqual(asked('tavily', plain).body, { query: 'boats', max_results: 20 });
});

test('Exa is asked for texts and the country, Serper for the place in its own words', () => {
  const exa = asked('exa', whole);
  assert.deepEqual(exa.body.userLocation, 'NO');
  assert.deepEqual(exa.body.contents, { text: { maxCharacters: 2000 } });
  assert.deepEqual(exa.body.includeDomains, ['a.example', 'b.example/c']);
  const serper = asked('serper', whole);
  assert.deepEqual([serper.body.gl, serper.body.location, serper.body.num], ['no', 'Oslo, Norway', 3]);
  assert.match(serper.body.q, /^boats & ships \(site:a\.example OR /);
});

test('an address of an engine of ones own keeps the parameters that the settings add', () => {
  const google = asked('google', plain, { query: { cx: 'mine' } });
  assert.deepEqual(google.query, { key: 'k1', q: 'boats', num: '10', cx: 'mine' });
  const own = asked('searxng', plain, { url: 'https://searx.example/search?language=no' });
  assert.deepEqual(own.query, { language: 'no', q: 'boats', format: 'json' });
});

const answers: Readonly<Record<string, object>> = {
  brave: {
    web: {
      results: [
        {
          title: 'T',
          url: 'https://a.example/1',
          description: 'one',
          extra_snippets: ['two', 3],
          page_age: '2026-01-02',
        },
      ],
    },
  },
  tavily: { results: [{ title: 'T', url: 'https://a.example/1', content: 'one\ntwo', published_date: '2026-01-02' }] },
  exa: { results: [{ title: 'T', url: 'https://a.example/1', text: 'one\ntwo', publishedDate: '2026-01-02' }] },
  serper: { organic: [{ title: 'T', link: 'https://a.example/1', snippet: 'one\ntwo', date: '2026-01-02' }] },
  searxng: { results: [{ title: 'T', url: 'https://a.example/1', content: 'one\ntwo', publishedDate: '2026-01-02' }] },
  google: { items: [{ title: 'T', link: 'https://a.example/1', snippet: 'one\ntwo' }] },
};

test('the answers of all known engines become the same results', () => {
  assert.deepEqual([...engines().keys()].sort(), Object.keys(answers).sort());
  for (const [engine, answer] of Object.entries(answers)) {
    const api = apiOf(engine, engine === 'searxng' ? { url: 'https://searx.example/search' } : undefined);
    const date = engine === 'google' ? null : '2026-01-02';
    const result = { title: 'T', url: 'https://a.example/1', snippet: 'one\ntwo', date };
    assert.deepEqual(resultsIn(JSON.stringify(answer), api, plain, 1_000), [result], engine);
  }
});

test('results of other domains, without an address of the web or beyond the number are left out, and texts are cut', () => {
  const api = apiOf('tavily');
  const one = (url: unknown) => ({ url, title: '', content: 'x'.repeat(50) });
  const urls = [
    'ftp://a.example/',
    7,
    'https://b.example/other',
    'https://d.example/',
    'https://www.a.example/1',
    'https://b.example/c/2',
  ];
  const found = resultsIn(JSON.stringify({ results: urls.map(one) }), api, { ...whole, count: 9 }, 20)!;
  assert.deepEqual(
    found.map(({ url, title, snippet }) => [url, title, snippet.length]),
    [
      ['https://www.a.example/1', 'www.a.example', 20],
      ['https://b.example/c/2', 'b.example', 20],
    ],
  );
  assert.equal(resultsIn(JSON.stringify({ results: urls.map(one) }), api, { ...plain, count: 2 }, 20)!.length, 2);
  for (const text of ['no JSON', '[]', '{"results":7}', '{"error":"x"}'])
    assert.equal(resultsIn(text, api, plain, 20), undefined, text);
  assert.deepEqual(resultsIn('{}', api, plain, 20), [], 'an engine that has found nothing may leave its list out');
});

test('a domain has the ones below it and no other, and a path what lies below it', () => {
  assert.ok(isOf('https://www.a.example/x', ['a.example']));
  assert.ok(!isOf('https://ba.example/', ['a.example']));
  assert.ok(!isOf('https://a.example.org/', ['a.example']));
  assert.ok(isOf('https://a.example/c', ['a.example/c/']) && !isOf('https://a.example/cd', ['a.example/c']));
});

test('a search with a wrong member is refused by the name of the field', () => {
  const fields: [object, string][] = [
    [{}, 'query'],
    [{ query: ' ' }, 'query'],
    [{ query: 'x'.repeat(401) }, 'query'],
    [{ query: 'x', max_results: 0 }, 'max_results'],
    [{ query: 'x', max_results: 51 }, 'max_results'],
    [{ query: 'x', country: 'Norway' }, 'country'],
    [{ query: 'x', place: 7 }, 'place'],
    [{ query: 'x', search_domain_filter: 'a.example' }, 'search_domain_filter'],
    [{ query: 'x', search_domain_filter: ['a.example', 'https://b.example'] }, 'search_domain_filter[1]'],
    [{ query: 'x', search_domain_filter: ['a.example) OR (b'] }, 'search_domain_filter[0]'],
    [{ query: 'x', recency: 'day' }, 'recency'],
  ];
  for (const [body, field] of fields)
    assert.throws(() => readSearch(body as never, 6), { kind: 'invalid_request', field }, JSON.stringify(body));
  assert.deepEqual(
    readSearch({ query: ' x ', search_domain_filter: ['A.example', '-b.example'], country: 'no' } as never, 6),
    {
      ...{ query: 'x', count: 6, allowed: ['a.example'], blocked: ['b.example'], country: 'NO', place: undefined },
    },
  );
});

test('an engine that is not known and one without its address are refused in the settings', () => {
  const problems = (section: object) =>
    searchSchema.safeParse(section).error?.issues.map(({ path, message }) => [path.join('.'), message]);
  assert.match(problems({ engine: 'brav' })![0]![1]!, /no search engine "brav".*brave/);
  assert.equal(problems({ engine: 'searxng' })![0]![0], 'api.url');
  assert.equal(problems({ api: {} })![0]![0], 'api.url');
  assert.equal(problems({}), undefined);
});
