/**
 * `npm run bench:pages -- [--calls 1000000] [--rounds 9] [--database URL] [--only TEXT]`: how long each call of the console's API takes on a
 * PostgreSQL of this run's own with so many calls in a month, or on that one of this machine, which keeps them for the next run.
 * Prints a table of warm calls: median and worst in milliseconds, and the processor time of gateway and database, which other work
 * on the machine does not change much.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { sql } from 'drizzle-orm';
import { callSums } from '../../plugins/billing/ledger/call-sums.ts';
import { database } from '../../plugins/common/domain/database.ts';
import { foldSums, usualRich } from '../../plugins/common/rollups/fold.ts';
import { rebuildSums } from '../../plugins/common/rollups/rebuild.ts';
import { type SpanName, startOf } from '../../plugins/console/web/src/parts/named-span.ts';
import { requestSumsWith } from '../../plugins/request-log/request-sums.ts';
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import type { Browser } from '../plugins/console/browser.ts';
import {
  clientOf,
  operator,
  operatorOf,
  signIn,
  startDemo,
  type TestConsole,
} from '../plugins/console/start-console.ts';
import { accountCount, makeRows, repeatRows } from './pages-rows.ts';

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '9' },
    database: { type: 'string' },
    only: { type: 'string', default: '' },
  },
});
type Server = Pick<TestPostgres, 'url' | 'sql' | 'close'>;

const client = { email: 'ada@example.test', password: 'another long password' };
const calls = Number(values.calls);
const rounds = Number(values.rounds);
const schema = 'pages';
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const goalMs = 150;
/** The viewer's, too: its days begin in the middle of an hour of UTC. */
const zoneName = 'Asia/Kolkata';
const zone = `tz=${zoneName}`;
process.env['TZ'] = zoneName;

const server =
  values.database === undefined
    ? await startPostgres(
        ['shared_buffers=1GB', 'max_wal_size=8GB', 'jit=off', 'max_parallel_workers_per_gather=0'],
        true,
      )
    : serverAt(values.database);
/** A server's processes report what they have read when they have been idle for so long. */
const statisticsMs = 11_000;

/** What no page reads may go, unless it keeps rows unique. */
const indexesRead = `select format('| %s | %s |', indexrelname, idx_scan) from pg_stat_user_indexes
  where schemaname = '${schema}' and relname in ('calls', 'requests', 'ledger') order by relname, idx_scan desc`;

const testbed = await startDemo('demo', `schema: ${schema}\nstorage: { database: "${server.url}" }`);
try {
  await measure(testbed, server);
} finally {
  await testbed.stop();
  await server.close();
}

async function measure(gateway: TestConsole, store: Server): Promise<void> {
  const isFilled = store.sql(`select count(*) from (select from ${schema}.calls limit 1) as found`) === '1';
  const boss = isFilled ? await signedIn(gateway, operator) : await operatorOf(gateway);
  const ada = isFilled ? await signedIn(gateway, client) : await clientOf(gateway, client.email);
  const accountId = (await ada.send('/me')).json.account.id as string;
  // Rows go on while questions are asked, as they do where traffic is.
  const until = () => Date.now() + 10 * 60_000;
  if (!isFilled) {
    makeRows(store, schema, { accountId, until: until(), calls });
    await fold(gateway, store);
  }
  await fold(gateway, store, repeatRows(store, schema, until()));
  for (const table of [
    'calls',
    'requests',
    'ledger',
    'call_sums',
    'call_sums_groups',
    'request_sums',
    'request_sums_groups',
  ])
    console.log(
      `${table}: ${store.sql(`select count(*) || ' rows, ' || pg_size_pretty(pg_total_relation_size('${schema}.${table}')) from ${schema}.${table}`)}`,
    );
  console.log(`\n${calls} calls in 30 days, ${accountCount} accounts; the client has a tenth of them\n`);
  console.log('| | processor ms | median ms | worst ms |\n|---|---|---|---|');
  store.sql('select pg_stat_reset()');
  let slow = 0;
  for (const [browser, paths] of [
    [ada, await clientPaths(ada)],
    [boss, await operatorPaths(boss, accountId)],
  ] as const)
    for (const path of paths.filter((each) => each.includes(values.only)))
      if ((await time(store, browser, path)) > goalMs) slow += 1;
  console.log(`\n${slow} take above ${goalMs} ms of processor time`);
  await pause(statisticsMs);
  console.log(`\nindexes of rows, and how often these pages read each:\n${store.sql(indexesRead)}`);
}

async function signedIn(gateway: TestConsole, who: { email: string; password: string }): Promise<Browser> {
  const browser = gateway.browser();
  await signIn(browser, who);
  return browser;
}

/** A server that runs already. */
function serverAt(url: string): Server {
  const sql = (text: string) => execFileSync('psql', [url, '-AtqX', '-c', text], { encoding: 'utf8' }).trim();
  return { url, sql, close: async () => undefined };
}

/** Goes on where an earlier run was ended. */
async function fold(gateway: TestConsole, store: Server, repeatedFrom = Number.POSITIVE_INFINITY): Promise<void> {
  const { orm } = gateway.gateway.find(database)!;
  store.sql(
    `analyze ${schema}.call_sums, ${schema}.request_sums, ${schema}.call_sums_groups, ${schema}.request_sums_groups`,
  );
  const today = Math.ceil(Date.now() / dayMs);
  const lastDays = new Map(Array.from({ length: 32 }, (_, ago) => [today - ago - 1, calls / 30] as const));
  const ofRequests = requestSumsWith(() => sql`${sql.identifier(schema)}.call_requests`);
  let isNew = false;
  for (const sums of [callSums, ofRequests]) {
    const begun = Date.now();
    const isSummed = store.sql(
      `select count(*) from (select from ${schema}.${sums.name} where part = 0 limit 1) as found`,
    );
    if (isSummed === '0') {
      isNew = true;
      // As if these hours had been folded one by one. With few calls a day there are not all parts.
      const rich = calls / 30 < usualRich ? `'infinity'` : `date_trunc('day', now() - interval '31 days')`;
      store.sql(`update ${schema}.${sums.name}_state
        set folded = date_trunc('hour', now() - interval '5 minutes'), rich_from = ${rich}`);
      await rebuildSums(orm, schema, sums, { days: lastDays });
    } else {
      const days = [...lastDays].filter(([day]) => (day + 1) * dayMs > repeatedFrom);
      await rebuildSums(orm, schema, sums, { days: new Map(days) });
    }
    await foldSums(orm, schema, sums, Date.now());
    console.log(`${sums.name}: ${((Date.now() - begun) / 1_000).toFixed(0)} s`);
  }
  if (isNew) store.sql('vacuum analyze', 800_000);
}

/** The processor time of this process and of the database's, in milliseconds. */
function processorMs(backends: readonly string[]): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000 + backends.map(backendMs).reduce((sum, each) => sum + each, 0);
}

/** 0 for one that has ended, such as the database's own work in the background. */
function backendMs(id: string): number {
  try {
    return Number(readFileSync(`/proc/${id}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  } catch {
    return 0;
  }
}

/** Without those of this question itself. */
function backendsOf(store: Server): string[] {
  const others = 'select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()';
  return store.sql(others).split('\n');
}

/** Resolves with the least processor time. */
async function time(store: Server, browser: Browser, path: string): Promise<number> {
  const times: number[] = [];
  let least = Number.POSITIVE_INFINITY;
  for (let round = -2; round < rounds; round++) {
    const backends = backendsOf(store);
    const used = processorMs(backends);
    const begun = performance.now();
    const reply = await browser.send(path);
    if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${reply.text.slice(0, 300)}`);
    if (round < 0) continue;
    times.push(performance.now() - begun);
    least = Math.min(least, processorMs(backends) - used);
  }
  times.sort((one, other) => one - other);
  const [median, worst] = [times[times.length >> 1]!, times.at(-1)!];
  console.log(
    `| \`${path.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '…').replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, '…')}\` ${least > goalMs ? '**slow**' : ''}| ${least.toFixed(0)} | ${median.toFixed(0)} | ${worst.toFixed(0)} |`,
  );
  return least;
}

/** As the pages ask for it. */
function since(name: SpanName): string {
  return `from=${startOf(name, new Date()).toISOString()}`;
}

async function clientPaths(ada: Browser): Promise<string[]> {
  const reply = await ada.send('/usage');
  if (reply.status !== 200) throw new Error(reply.text);
  const { rows, next } = reply.json;
  const [row] = rows;
  return [
    '/me',
    '/home',
    `/home?${zone}`,
    '/usage',
    `/usage?after=${next}`,
    `/usage?model=${row.model}`,
    '/usage?model=none',
    `/usage?keyId=${row.keyId}`,
    '/usage?result=upstream_error',
    '/usage?result=left',
    `/usage/${row.id}`,
    '/usage/sums',
    `/usage/sums?model=${row.model}`,
    `/usage/sums?keyId=${row.keyId}&result=ok`,
    `/usage/series?bucketMinutes=1440&${zone}`,
    `/usage/series?bucketMinutes=1440&model=${row.model}&${zone}`,
    `/usage/series?${since('7d')}&bucketMinutes=180`,
    `/usage/series?${since('24h')}`,
    '/wallet',
    '/wallet/ledger',
    '/keys',
    '/models',
    '/tasks',
  ];
}

async function operatorPaths(boss: Browser, accountId: string): Promise<string[]> {
  const { rows } = (await boss.send('/admin/requests')).json;
  const [row] = rows;
  const buckets: Record<string, string> = { '7d': '&bucketMinutes=180', '30d': '&bucketMinutes=1440' };
  return [
    ...(['15m', '1h', '24h', '7d', '30d'] as const).flatMap((name) => [
      `/admin/monitor?${since(name)}`,
      `/admin/monitor/durations?${since(name)}`,
      `/admin/monitor/causes?${since(name)}`,
      `/admin/monitor/series?${since(name)}${buckets[name] ?? ''}&${zone}`,
      ...['model', 'provider', 'operation', 'account', 'key'].map(
        (by) => `/admin/monitor/groups?${since(name)}&by=${by}&limit=50`,
      ),
    ]),
    `/admin/monitor/series?${since('30d')}&bucketMinutes=1440&model=${row.model}&${zone}`,
    `/admin/monitor/series?${since('30d')}&bucketMinutes=1440&provider=${row.provider}&${zone}`,
    `/admin/monitor/series?${since('6h')}`,
    `/admin/monitor?${since('30d')}&accountId=${accountId}`,
    `/admin/monitor/groups?${since('30d')}&by=model&accountId=${accountId}`,
    `/admin/monitor/groups?${since('30d')}&by=account&model=${row.model}`,
    `/admin/monitor/groups?${since('30d')}&by=account&result=upstream_error`,
    '/admin/requests',
    `/admin/requests?${since('30d')}`,
    `/admin/requests?${since('30d')}&model=${row.model}`,
    `/admin/requests?${since('30d')}&model=none`,
    `/admin/requests?${since('30d')}&provider=none`,
    `/admin/requests?${since('30d')}&result=left`,
    `/admin/requests?${since('30d')}&keyId=${row.keyId}`,
    `/admin/requests?${since('30d')}&accountId=${accountId}&result=client_error`,
    `/admin/requests/${row.id}`,
    `/admin/money?${since('24h')}`,
    `/admin/money?${since('30d')}`,
    '/admin/ledger',
    `/admin/ledger?${since('7d')}`,
    '/admin/ledger?kind=DEBIT',
    `/admin/ledger?kind=DEBIT&${since('24h')}`,
    `/admin/ledger?kind=EXPIRE`,
    '/admin/accounts',
    `/admin/accounts/${accountId}`,
    `/admin/accounts/${accountId}/ledger`,
    `/admin/accounts/${accountId}/keys`,
    `/admin/accounts/${accountId}/requests`,
    `/admin/accounts/${accountId}/tasks`,
    '/admin/upstreams',
    '/admin/nodes',
    '/admin/prices',
    '/admin/plans',
    '/admin/tasks',
    '/admin/audit',
    '/admin/tokens',
    '/admin/people',
    '/admin/codes',
  ];
}
