/** Requests by what guardrails have found in them: lists, CSV and pages of operators and of clients, and the indexes that are read. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { chatAnswer, startVendor, type Vendor } from '../../../plugins/common/author/testing.ts';
import { rowsOf, tableOf } from '../../../plugins/common/kit/sql.ts';
import { VerdictRows } from '../../../plugins/guardrails/rows.ts';
import { openDatabase, testOnServer } from '../../helpers/database.ts';
import { until } from '../../helpers/until.ts';
import type { Browser } from '../console/browser.ts';
import { clientOf, operatorOf, startConsole, type TestConsole } from '../console/start-console.ts';

let vendor: Vendor;
let testbed: TestConsole;
let boss: Browser;
let ada: Browser;
let eve: Browser;
/** By what was said in it. */
const ids: Record<string, string> = {};

before(async () => {
  vendor = await startVendor();
  vendor.play(chatAnswer('Noted.'));
  testbed = await startConsole(
    'sign_up: open',
    `
providers: { vendor: { keys: k, speaks: { chat: '${vendor.origin}/v1' } } }
models: { m: { owned_by: x, targets: [vendor], price: free } }
guardrails:
  checks:
    mail: { type: patterns, find: [email], do: mask }
    words: { type: words, list: [banana], do: refuse }
    seen: { type: words, list: [cherry, banana], on: [prompt], do: log }
    gone: { type: litellm, url: 'http://127.0.0.1:9', allow_private: true, on: [prompt], within: 2s, broken: allow }
  policies: { base: [mail, seen, words], lost: [gone] }
  apply: [{ policy: base }, { policy: lost, projects: [lost] }]`,
    ['providers', 'models', 'guardrails', 'prompts', 'billing', 'route', 'protocol-convert', 'endpoints'],
  );
  boss = await operatorOf(testbed);
  ada = await clientOf(testbed);
  eve = await clientOf(testbed, 'eve@example.test');
  const keyOf = async (browser: Browser, project: string) =>
    (await browser.send('/keys', { body: { name: project, project } })).json.key as string;
  const keys = { ada: await keyOf(ada, 'web'), lost: await keyOf(ada, 'lost'), eve: await keyOf(eve, 'web') };
  const said: readonly [name: string, key: string, text: string][] = [
    ['plain', keys.ada, 'Hello'],
    ['masked', keys.ada, 'Write to ada@example.com'],
    ['refused', keys.ada, 'A banana'],
    ['logged', keys.ada, 'A cherry'],
    ['broken', keys.lost, 'Hello'],
    ['others', keys.eve, 'A banana of eve@example.com'],
  ];
  for (const [name, key, content] of said) {
    const answer = await fetch(`${testbed.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }),
    });
    await answer.text();
    ids[name] = answer.headers.get('x-request-id')!;
  }
  await until('all rows are there', async () => {
    const { rows } = (await boss.send('/admin/requests')).json;
    const all = rows as { id: string; guardrails: string | null }[];
    return Object.values(ids).every((id) => all.some((row) => row.id === id && row.guardrails !== null));
  });
});
after(async () => {
  await testbed?.stop();
  await vendor?.stop();
});

const nameOf = (id: string) => Object.entries(ids).find(([, one]) => one === id)?.[0] ?? id;
async function listed(browser: Browser, path: string): Promise<string> {
  const reply = await browser.send(path);
  assert.equal(reply.status, 200, reply.text);
  return reply.json.rows.map((row: { id: string }) => nameOf(row.id)).join(' ');
}

const wanted: readonly [query: string, operators: string, clients: string][] = [
  ['verdict=refused', 'others refused', 'refused'],
  ['verdict=masked', 'others masked', 'masked'],
  ['verdict=logged', 'others logged refused', 'logged refused'],
  ['verdict=broken', 'broken', 'broken'],
  ['check=words', 'others refused', 'refused'],
  ['check=seen&verdict=refused', '', ''],
  ['check=seen&verdict=logged', 'others logged refused', 'logged refused'],
  ['check=mail', 'others masked', 'masked'],
  ['check=none', '', ''],
  ['verdict=logged&result=ok', 'logged', 'logged'],
  ['verdict=logged&model=none', '', ''],
  ['verdict=logged&sort=duration&order=asc', '', ''],
  ['verdict=refused&until=2020-01-02T00:00:00Z&from=2020-01-01T00:00:00Z', '', ''],
];

test('a check, a verdict or both name the requests that a list and its file have, for operators and for the own account', async () => {
  for (const [query, operators, clients] of wanted) {
    if (query.includes('sort=')) {
      const sorted = (await listed(boss, `/admin/requests?${query}`)).split(' ').sort().join(' ');
      assert.equal(sorted, 'logged others refused', query);
      continue;
    }
    assert.equal(await listed(boss, `/admin/requests?${query}`), operators, query);
    assert.equal(await listed(ada, `/usage?${query}`), clients, query);
    for (const [browser, path, names] of [
      [boss, '/admin/requests.csv', operators],
      [ada, '/usage.csv', clients],
    ] as const) {
      const { text } = await browser.send(`${path}?${query}`);
      const found = Object.keys(ids).filter((name) => text.includes(ids[name]!));
      assert.deepEqual(found.sort(), names.split(' ').filter(Boolean).sort(), `${path} ${query}`);
    }
  }
  const page = (await boss.send('/admin/requests?verdict=logged&limit=2')).json;
  assert.equal(page.rows.length, 2);
  assert.equal(await listed(boss, `/admin/requests?verdict=logged&limit=2&after=${page.next}`), 'refused');
});

test('clients read what checks have said of their own requests, and a verdict that there is not is refused by its name', async () => {
  const { rows } = (await ada.send('/usage?verdict=masked')).json;
  assert.match(rows[0].guardrails, /^mail=masked\(1\)/);
  assert.match((await ada.send(`/usage/${ids['refused']}`)).json.request.guardrails, /words=refused\(1\)/);
  assert.match((await ada.send('/usage.csv?verdict=masked')).text, /mail=masked\(1\)/);
  for (const path of ['/usage', '/admin/requests']) {
    const refused = await (path === '/usage' ? ada : boss).send(`${path}?verdict=passed`);
    assert.deepEqual([refused.status, refused.json.error.field], [400, 'verdict']);
  }
});

// An embedded database takes ten seconds for so many rows.
testOnServer(
  'many findings: each verdict is read from an index, and no more than the newest 50,000 of it',
  async () => {
    await using store = await openDatabase({ plugins: ['guardrails'] });
    const table = tableOf(store, 'guardrail_verdicts');
    await store.orm.execute(sql`insert into ${table} (account_id, request_id, check_name, stage, verdict, findings, milliseconds, digest, at)
    select 'many', gen_random_uuid()::text, 'c' || (n % 7), 'prompt', case when n % 2 = 0 then 'logged' else 'passed' end, 1, 0, '',
      timestamptz '2001-01-01' + n * interval '1 second' from generate_series(1, 120000) as n`);
    await store.orm.execute(sql`analyze ${table}`);
    const rows = new VerdictRows(store);
    const span = { from: Date.UTC(2001, 0, 1), until: Date.UTC(2001, 0, 3) };
    const count = async (query: ReturnType<VerdictRows['found']>) =>
      Number((await rowsOf<{ n: number }>(store.orm, sql`select count(*)::int as n from (${query}) as f`))[0]!.n);
    assert.equal(await count(rows.found({ verdict: 'logged' }, span, undefined)), 50_000);
    const narrow = { from: span.from, until: span.from + 600_000 };
    for (const query of [
      rows.found({ verdict: 'logged' }, narrow, undefined),
      rows.found({ check: 'c2' }, narrow, undefined),
      rows.found({ check: 'c2', verdict: 'logged' }, narrow, 'many'),
    ]) {
      const plan = JSON.stringify(await store.orm.execute(sql`explain ${query}`));
      assert.doesNotMatch(plan, /Seq Scan/);
      assert.match(plan, /guardrail_verdicts_(by_|findings|at)/);
    }
  },
);
