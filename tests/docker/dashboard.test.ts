/** The dashboard asks for what a running gateway tells, by name and label, and so does what scales the chart. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { parse } from 'yaml';
import { database } from '../../plugins/common/domain/database.ts';
import { type Customer, startTestbed, type Testbed } from '../end-to-end/testbed.ts';
import { databaseUrl } from '../helpers/database.ts';
import { freePort } from '../helpers/free-port.ts';
import { until } from '../helpers/until.ts';

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { readonly query: string } }[];
  };
}

const dashboard = JSON.parse(readFileSync('docker/grafana/dashboard.json', 'utf8')) as Dashboard;
/** What a Prometheus itself adds to each series. */
const added = ['instance', 'job'];

let testbed: Testbed;
/** Label names by metric. */
let reported: Map<string, Set<string>>;
let page: string;
let customerKey: string;

before(async () => {
  const port = await freePort();
  testbed = await startTestbed({
    providers: () => ({
      certified: {
        keys: 'k',
        speaks: { chat: 'https://127.0.0.1:1/v1' },
        tls: { ca: join(process.cwd(), 'tests/helpers/certificates/ca.pem') },
      },
    }),
    models: {
      sandbox: {
        owned_by: 'test',
        targets: ['sandbox'],
        context: '100k',
        price: { input: 1, cache_read: 0.1, output: 2 },
        cost: { input: 0.5, cache_read: 0.05, output: 1 },
      },
    },
    more: {
      telemetry: { listen: `127.0.0.1:${port}` },
      // No counters answer there.
      storage: { database: databaseUrl ?? 'embedded', counters: 'redis://127.0.0.1:1' },
      files: { s3: { bucket: 'none', endpoint: 'http://127.0.0.1:1', access_key_id: 'a', secret_access_key: 'b' } },
    },
  });
  const customer = await testbed.customer();
  customerKey = customer.key;
  const poor = await testbed.customer({ nanoUsd: 1n });
  await testbed.call(customer, 'chat', { model: 'sandbox', prompt: '[[sandbox: tokens=20]]', stream: true });
  await testbed.call(customer, 'messages', { model: 'sandbox', prompt: '[[sandbox: tokens=30]]' });
  await testbed.call(poor, 'chat', { model: 'sandbox', prompt: 'Hello' });
  testbed.replay.play({ status: 503, body: '{"error":{"message":"busy"}}' });
  await testbed.call(customer, 'chat', { model: 'replay', prompt: 'Hello' });
  await testbed.records(customer, 3);
  page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  reported = new Map();
  for (const [, name, labels] of page.matchAll(/^([a-z_][a-z0-9_]*)(?:\{(.*)\})? \S+$/gim)) {
    const known = reported.get(name!) ?? new Set(added);
    for (const [, label] of (labels ?? '').matchAll(/(?:^|,)([a-z_][a-z0-9_]*)="/gi)) known.add(label!);
    reported.set(name!, known);
  }
});
after(() => testbed.stop());

/** Metrics with the labels that are chosen by, and labels that are grouped by, of a query. */
function readQuery(query: string): { metrics: { name: string; labels: string[] }[]; grouped: string[] } {
  const grouped = Array.from(query.matchAll(/\bby\s*\(([^)]*)\)/g), ([, list]) => list!.split(',')).flat();
  const rest = query.replaceAll(/\bby\s*\([^)]*\)/g, '').replaceAll(/\[[^\]]*\]/g, '');
  const metrics = Array.from(rest.matchAll(/([a-z_][a-z0-9_]*)\s*(\{[^}]*\})?(?![a-z0-9_]*\s*\()/gi))
    .filter(([, name]) => name!.includes('_') && name !== 'histogram_quantile' && name !== 'label_values')
    .filter(({ index }) => !insideBraces(rest, index))
    .map(([, name, chosen]) => ({
      name: name!,
      labels: Array.from((chosen ?? '').matchAll(/([a-z_][a-z0-9_]*)\s*(?:=~|!~|!=|=)/gi), ([, label]) => label!),
    }));
  return { metrics, grouped: grouped.map((label) => label.trim()) };
}

const insideBraces = (text: string, at: number) => text.lastIndexOf('{', at) > text.lastIndexOf('}', at);

test('the queries of the dashboard parse', () => {
  assert.deepEqual(
    readQuery(
      'histogram_quantile(0.5, sum by (le, a_b) (rate(some_bucket{model=~"$m", status!="5.."}[$__rate_interval]))) / 1e9',
    ),
    { metrics: [{ name: 'some_bucket', labels: ['model', 'status'] }], grouped: ['le', 'a_b'] },
  );
});

const { groups } = parse(readFileSync('docker/helm/files/alerts.yaml', 'utf8')) as {
  groups: { rules: { alert: string; expr: string; annotations: { runbook_url: string } }[] }[];
};
const rules = groups.flatMap((group) => group.rules);

test('each alert rule links to its symptom in the runbook', () => {
  const headings = Array.from(readFileSync('docker/RUNBOOK.md', 'utf8').matchAll(/^## (.*)$/gm), ([, text]) =>
    text!.toLowerCase().replaceAll(' ', '-'),
  );
  for (const { alert, annotations } of rules) {
    const [, place] = /^docker\/RUNBOOK\.md#(.+)$/.exec(annotations.runbook_url) ?? [];
    assert.ok(headings.includes(place!), alert);
  }
});

const request = [
  ...dashboard.panels.map(({ title, targets }) => ({ title: `panel "${title}"`, targets })),
  ...rules.map((rule) => ({ title: `rule ${rule.alert}`, targets: [rule] })),
];
for (const { title, targets } of request)
  test(`${title}: the gateway reports each metric and label in the query`, () => {
    assert.ok(targets.length > 0);
    for (const { expr } of targets) {
      const { metrics, grouped } = readQuery(expr);
      assert.ok(metrics.length > 0, expr);
      for (const { name, labels } of metrics) {
        const known = reported.get(name);
        assert.ok(known !== undefined, `no plugin reports ${name}`);
        assert.deepEqual(
          labels.filter((label) => !known.has(label)),
          [],
          name,
        );
        assert.deepEqual(
          grouped.filter((label) => !known.has(label)),
          [],
          name,
        );
      }
    }
  });

test('counters that do not answer are reported by metrics and readiness, and do not fail readiness', async () => {
  assert.match(page, /^gateway_counters_healthy(\{.*\})? 0$/m);
  const answer = await fetch(`${testbed.origin}/readyz`);
  assert.equal(answer.status, 200);
  assert.deepEqual(await answer.json(), {
    status: 'ready',
    stores: { database: 'ok', counters: 'away', bucket: 'ok' },
  });
});

test('the selection of models queries an existing metric and label', () => {
  for (const { query } of dashboard.templating.list) {
    const [, metric, label] = /^label_values\((\w+), (\w+)\)$/.exec(typeof query === 'string' ? '' : query.query) ?? [];
    if (metric !== undefined) assert.ok(reported.get(metric)?.has(label!), `${metric} ${label}`);
  }
});

test('the dashboard shows load, errors, first bytes, money and keys in cooldown', () => {
  const requested = new Set(
    dashboard.panels
      .flatMap(({ targets }) => targets.flatMap(({ expr }) => readQuery(expr).metrics))
      .map(({ name }) => name),
  );
  for (const name of [
    'gateway_requests_in_flight',
    'gateway_requests_total',
    'gen_ai_server_time_to_first_token_bucket',
    'gateway_charged_nano_usd_total',
    'gateway_own_cost_nano_usd_total',
    'gateway_upstream_keys',
    'gateway_journal_pending',
    'gateway_database_healthy',
  ])
    assert.ok(requested.has(name), name);
});

test('charges are counted to the nano-USD, by model and upstream and never by account', async () => {
  const { charges } = await testbed.records((await spender())!, 3);
  const cost = charges.reduce((sum, row) => sum + row.cost, 0n);
  const samplesOf = (name: string) =>
    Array.from(page.matchAll(new RegExp(`^${name}\\{(.*)\\} (\\S+)$`, 'gm')), ([, labels, value]) => ({
      labels: labels!,
      value: Number(value),
    }));
  const charged = samplesOf('gateway_charged_nano_usd_total');
  assert.ok(cost > 0n);
  assert.deepEqual(
    charged.map(({ value }) => BigInt(value)),
    [cost],
  );
  assert.match(charged[0]!.labels, /gen_ai_request_model="sandbox"/);
  assert.match(charged[0]!.labels, /gen_ai_provider_name="sandbox"/);
  assert.deepEqual(
    samplesOf('gateway_own_cost_nano_usd_total').map(({ value }) => value * 2),
    [Number(cost)],
  );
  const states = samplesOf('gateway_upstream_keys').filter(({ value }) => value > 0);
  assert.ok(states.some(({ labels }) => /state="ready"/.test(labels)));
});

/** Who has made the calls that were charged. */
async function spender(): Promise<{ accountId: string; key: string } | undefined> {
  const [row] = await testbed.calls();
  return row === undefined ? undefined : { accountId: row.account_id, key: '' };
}

test('the chart scales by an existing metric', () => {
  const [, name] = /metric: \{ name: (\w+) \}/.exec(readFileSync('docker/helm/templates/availability.yaml', 'utf8'))!;
  assert.ok(reported.has(name!));
});

test('failing statements are one line for each kind of regular work, and one at its success, never for an empty round', async () => {
  const { lines } = testbed.gateway;
  const from = lines.length;
  const report = () =>
    lines
      .slice(from)
      .map((line) => JSON.parse(line) as { msg: string; work?: string; error?: { message?: string } })
      .filter(({ msg }) => /^regular work |^the ledger .*written/.test(msg));
  const orm = testbed.gateway.gateway.find(database)!.orm as unknown as Record<string, unknown>;
  const names = ['execute', 'transaction', 'select', 'insert', 'update', 'delete'];
  for (const name of names)
    orm[name] = () => {
      throw new Error('the statement is broken');
    };
  const customer = { accountId: '', key: customerKey } as Customer;
  for (let round = 0; round < 12; round++) {
    await testbed.call(customer, 'chat', { model: 'sandbox', prompt: 'Hello' });
    await pause(100);
  }
  const begun = report();
  const works = begun.map(({ work, msg }) => work ?? msg);
  assert.deepEqual(works, [...new Set(works)]);
  assert.ok(works.includes('the ledger could not be written'), `${works}`);
  assert.ok(begun.every(({ msg }) => /failed$|could not be written$/.test(msg)));
  for (const name of names) delete orm[name];
  await until('the ledger is written', () => report().some(({ msg }) => msg === 'the ledger is written again'));
  const ends = report().flatMap(({ msg, work }) => (/again$/.test(msg) ? [work ?? msg] : []));
  assert.deepEqual(ends, [...new Set(ends)]);
});
