/** `POST /v1/search`: what it costs, what is never charged, who may use it, and the sandbox as the engine. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { formatUsd, money, parseUsd } from '../../../plugins/common/domain/money.ts';
import { ownSearch } from '../../../plugins/common/wire/hosted-tools.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { fc } from '../../helpers/properties.ts';
import { until } from '../../helpers/until.ts';
import { type StandInEngine, startEngine } from './engine.ts';

const file = (section: string) => `
gateway: test
listen: 127.0.0.1:0
plugins: [storage, telemetry, request-log, auth, plans, rate-limit, sandbox, billing, web-search]
plans: { default: free, offers: { free: { price: 0 } } }
web-search: ${section}
`;

let engine: StandInEngine;
let gateway: TestGateway;
let accountsMade = 0;
before(async () => {
  engine = await startEngine();
  gateway = await startGateway(
    file(
      `{ engine: tavily, key: secret-key, price: 0.25, within: 2s, answer: 1KB, allow_private: true, api: { url: "${engine.origin}/search" } }`,
    ),
  );
});
after(async () => {
  await gateway.stop();
  await engine.stop();
});

async function open(usd: string, of = gateway, models?: readonly string[]) {
  const find = of.gateway.find.bind(of.gateway);
  const name = `account ${++accountsMade}`;
  const { id } = await find(accounts)!.create(name, 'free');
  await find(ledger)!.credit(id, parseUsd(usd), { kind: 'manual', reason: 'test', reference: name });
  const { key } = await find(accounts)!.createKey(id, { name, ...(models === undefined ? {} : { models }) });
  return {
    key,
    balance: async () => formatUsd(await find(ledger)!.balance(id)),
    search: async (body: object, signal: AbortSignal | null = null) => {
      const answer = await fetch(`${of.origin}/v1/search`, {
        ...{ signal, method: 'POST', body: JSON.stringify(body) },
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      });
      return {
        status: answer.status,
        json: (await answer.json()) as { results: { url: string }[]; error: { code: string } },
      };
    },
  };
}

const page = {
  title: 'Boats',
  url: 'https://a.example/boats',
  content: 'All about boats.',
  published_date: '2026-02-03',
};
const answered = { status: 200, body: JSON.stringify({ results: [page] }) };

test('a search gives the results of the engine, costs its price and shows the engine the key alone', async () => {
  engine.answer = answered;
  const { search, balance } = await open('1');
  const { status, json } = await search({ query: 'boats', max_results: 2, search_domain_filter: ['a.example'] });
  assert.equal(status, 200);
  assert.deepEqual(json.results, [
    { title: 'Boats', url: 'https://a.example/boats', snippet: 'All about boats.', date: '2026-02-03' },
  ]);
  const { body, headers } = engine.seen.at(-1)!;
  assert.deepEqual(body, { query: 'boats', max_results: 2, include_domains: ['a.example'] });
  assert.equal(headers['authorization'], 'Bearer secret-key');
  await until('the charge', async () => (await balance()) === '0.75');
});

test('a search that the engine refuses, garbles, overfills or does not answer costs nothing and shows nothing of the engine', async () => {
  const { search, balance } = await open('0.25');
  const failures: [StandInEngine['answer'], number, string][] = [
    [{ status: 401, body: '{"detail":"secret-key is wrong"}' }, 502, 'search_failed'],
    [{ status: 200, body: 'no JSON' }, 502, 'search_failed'],
    [
      { status: 200, body: JSON.stringify({ results: [{ ...page, content: 'x'.repeat(2_000) }] }) },
      502,
      'search_failed',
    ],
    ['hang', 504, 'search_timeout'],
  ];
  for (const [answer, status, code] of failures) {
    engine.answer = answer;
    const given = await search({ query: 'boats' });
    assert.deepEqual([given.status, given.json.error.code], [status, code]);
    assert.doesNotMatch(JSON.stringify(given.json), /secret|127\.0\.0\.1|tavily/i);
  }
  engine.answer = answered;
  assert.equal((await search({ query: 'boats' })).status, 200, 'all of the money is still there');
  await until('the charge', async () => (await balance()) === '0.00');
  const asked = engine.seen.length;
  assert.equal((await search({ query: 'boats' })).status, 402);
  assert.equal(engine.seen.length, asked, 'nothing is sent that cannot be paid');
});

test('a search that its client leaves, and that the engine does not answer, costs nothing', async () => {
  const { search, balance } = await open('0.25');
  engine.answer = 'hang';
  const asked = engine.seen.length;
  const gone = new AbortController();
  const left = search({ query: 'boats' }, gone.signal).catch(() => 'left');
  await until('the engine to be asked', async () => engine.seen.length > asked);
  gone.abort();
  assert.equal(await left, 'left');
  engine.answer = answered;
  await until('the money to be free again', async () => (await search({ query: 'boats' })).status === 200);
  await until('the charge', async () => (await balance()) === '0.00');
});

test('a search that its client leaves is charged if the engine has answered, and not if it has failed', async () => {
  for (const [status, left, rest] of [
    [200, '0.75', '0.50'],
    [500, '1.00', '0.75'],
  ] as const) {
    const { key, balance, search } = await open('1');
    const release = Promise.withResolvers<void>();
    engine.answer = { ...answered, status, after: release.promise };
    const asked = engine.seen.length;
    const client = new AbortController();
    const request = fetch(`${gateway.origin}/v1/search`, {
      ...{ method: 'POST', body: '{"query":"boats"}', signal: client.signal },
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    });
    await until('the engine is asked', async () => engine.seen.length > asked);
    client.abort();
    await assert.rejects(request);
    release.resolve();
    engine.answer = answered;
    await until('what the search has cost', async () => (await balance()) === left);
    assert.equal((await search({ query: 'boats' })).status, 200);
    await until('what both have cost', async () => (await balance()) === rest);
  }
});

test('a key that is bound to models searches if web-search is among them', async () => {
  engine.answer = answered;
  const bound = await open('1', gateway, ['of-chat']);
  assert.deepEqual((await bound.search({ query: 'boats' })).json.error.code, 'model_not_allowed');
  const free = await open('1', gateway, ['of-chat', 'web-search']);
  assert.equal((await free.search({ query: 'boats' })).status, 200);
});

test('any run of searches that succeed and fail, some at once, costs the price of those that were answered', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: 6 }),
      async (rounds) => {
        const { search, balance } = await open('3');
        let left = parseUsd('3');
        for (const [succeeds, atOnce] of rounds) {
          engine.answer = succeeds ? answered : { status: 500, body: '{}' };
          const given = await Promise.all(Array.from({ length: atOnce }, () => search({ query: 'boats' })));
          const served = given.filter(({ status }) => status === 200).length;
          const covered = Number(left / parseUsd('0.25'));
          assert.equal(served, succeeds ? Math.min(atOnce, covered) : 0);
          left = money(left - BigInt(served) * parseUsd('0.25'));
          await until('the charges', async () => (await balance()) === formatUsd(left));
        }
      },
    ),
    { numRuns: 8 },
  );
});

test('the sandbox is a search engine, and a gateway without one has no searches', async () => {
  await using demo = await startGateway(file('{ engine: tavily, price: 0.005, api: { url: "sandbox:/search" } }'));
  const { search, balance } = await open('1', demo);
  const { json } = await search({
    query: 'boats of Oslo',
    search_domain_filter: ['example.com', '-forum.example.com'],
  });
  assert.deepEqual(
    json.results.map(({ url }) => url),
    ['https://news.example.com/boats-of-oslo'],
  );
  await until('the charge', async () => (await balance()) === '0.995');
  await using none = await startGateway(file('{}'));
  assert.equal((await (await open('1', none)).search({ query: 'boats' })).json.error.code, 'no_search_engine');
});

test('guardrails read and mask the query before it leaves, and refuse a search that costs nothing then', async () => {
  await using guarded = await startGateway(`
gateway: test
listen: 127.0.0.1:0
plugins: [storage, telemetry, request-log, auth, plans, rate-limit, providers, models, guardrails, prompts, billing, web-search, route, protocol-convert]
plans: { default: free, offers: { free: { price: 0 } } }
providers: { vendor: { keys: k, speaks: { chat: "http://127.0.0.1:9/v1" } } }
models: { m: { owned_by: x, targets: [vendor], price: free } }
guardrails:
  checks: { secret: { type: words, list: [tulip] }, mail: { type: patterns, find: [email], on: [prompt], do: mask } }
  policies: { base: { checks: [secret, mail], uncovered: allow } }
  apply: [{ policy: base }]
web-search: { engine: tavily, price: 0.25, allow_private: true, api: { url: "${engine.origin}/search" } }
`);
  engine.answer = answered;
  const { search, balance } = await open('1', guarded);
  const asked = engine.seen.length;
  assert.equal((await search({ query: 'a tulip' })).status, 400);
  assert.equal(engine.seen.length, asked);
  assert.equal((await search({ query: 'who is ann@example.com' })).status, 200);
  assert.doesNotMatch(JSON.stringify(engine.seen.at(-1)!.body), /ann@/);
  await until('one charge', async () => (await balance()) === '0.75');
});

test('searches and failures of the engine are counted for operators, refusals before it is asked are not', async () => {
  const health = () => ({ ...gateway.gateway.find(ownSearch)!.health()! });
  const { search } = await open('10');
  const before = health();
  assert.equal(before.name, 'tavily');
  engine.answer = answered;
  await search({ query: 'boats' });
  assert.equal((await search({})).status, 400);
  assert.deepEqual(health(), { ...before, calls: before.calls + 1 });
  engine.answer = { status: 500, body: 'out of order' };
  assert.equal((await search({ query: 'boats' })).status, 502);
  const { lastFailureAt, ...after } = health();
  assert.deepEqual(after, { name: 'tavily', calls: before.calls + 2, failed: before.failed + 1 });
  assert.ok(lastFailureAt !== undefined && lastFailureAt >= (before.lastFailureAt ?? 0));
});
