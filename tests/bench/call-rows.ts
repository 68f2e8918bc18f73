/**
 * `npm run bench:rows -- [--batches 50] [--rounds 4] [--against DIRECTORY]`: what the rows of charged calls cost a
 * PostgreSQL of this run's own, with billing and the request log and batches of 200 calls: processor time of its server processes,
 * bytes of its write-ahead log, rows, index entries and their bytes. With another checkout the two take turns.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '../helpers/postgres.ts';

const { values } = parseArgs({
  options: {
    batches: { type: 'string', default: '50' },
    rounds: { type: 'string', default: '4' },
    against: { type: 'string' },
  },
});
const batchCalls = 200;
const accountCount = 20;
const tables = ['calls', 'call_timelines', 'ledger', 'archived_charges', 'requests'];

const postgres = await startPostgres();
process.env['TEST_DATABASE_URL'] = postgres.url;
try {
  const roots = [
    join(import.meta.dirname, '../..'),
    ...(values.against === undefined ? [] : [resolve(values.against)]),
  ];
  for (let round = 1; round <= Number(values.rounds); round += 1) for (const root of roots) await measure(root);
} finally {
  await postgres.close();
}
process.exit(0);

async function measure(root: string): Promise<void> {
  const world = await open(root);
  const warm = Math.ceil(Number(values.batches) / 5);
  for (let batch = 0; batch < warm; batch += 1) await world.batch();
  const begun = look(world.schema);
  const processors = backends();
  const spent: number[] = [];
  for (let batch = 0; batch < Number(values.batches); batch += 1) {
    const before = microsecondsOf(processors);
    await world.batch();
    spent.push((microsecondsOf(processors) - before) / batchCalls);
  }
  const ended = look(world.schema);
  // What else the machine does makes some batches dearer and none cheaper.
  const usual = spent.toSorted((one, other) => one - other)[Math.floor(spent.length / 4)]!;
  const calls = Number(values.batches) * batchCalls;
  const each = (name: keyof typeof begun) =>
    ((ended[name] - begun[name]) / calls).toFixed(name === 'rows' || name === 'entries' ? 2 : 1);
  console.log(
    `${root}: ${usual.toFixed(1)} µs, ${each('walBytes')} B of log, ${each('rows')} rows, ${each('entries')} index entries, ` +
      `${each('tableBytes')} B of rows, ${each('indexBytes')} B of indexes a call`,
  );
  await world.close();
}

/** A gateway's billing and request log on exchanges without sockets. */
async function open(root: string) {
  const from = <T = Record<string, never>>(path: string) => import(join(root, path)) as Promise<T>;
  const { openDatabase } = await from<typeof import('../helpers/database.ts')>('tests/helpers/database.ts');
  const fakes = await from<typeof import('../helpers/fakes.ts')>('tests/helpers/fakes.ts');
  const domain = await from<typeof import('../../plugins/common/domain/calls.ts')>('plugins/common/domain/calls.ts');
  const { caller } = await from<typeof import('../../plugins/common/domain/accounts.ts')>(
    'plugins/common/domain/accounts.ts',
  );
  const { database } = await from<typeof import('../../plugins/common/domain/database.ts')>(
    'plugins/common/domain/database.ts',
  );
  const { ledger } = await from<typeof import('../../plugins/common/domain/ledger.ts')>(
    'plugins/common/domain/ledger.ts',
  );
  const timelines = await from<typeof import('../../plugins/common/domain/timeline.ts')>(
    'plugins/common/domain/timeline.ts',
  );
  const billingWorld = await from<typeof import('../plugins/billing/world.ts')>('tests/plugins/billing/world.ts');
  const { default: billing } = await from<typeof import('../../plugins/billing/index.ts')>('plugins/billing/index.ts');
  const { default: log } =
    await from<typeof import('../../plugins/request-log/index.ts')>('plugins/request-log/index.ts');
  const { uuidMaker, systemRandom } =
    await from<typeof import('../../core/gateway/system.ts')>('core/gateway/system.ts');
  const directory = billingWorld.temporaryDirectory();
  const store = await openDatabase();
  const host = fakes.fakeHost({ schema: store.schema, directory });
  host.provide(database, store);
  const parts = [await fakes.setUp(log, host, { lines: false }), await fakes.setUp(billing, host)];
  for (const part of parts) await part.lifecycle?.start?.();
  const newId = uuidMaker(host.clock, systemRandom);
  const accountIds = Array.from({ length: accountCount }, () => newId());
  const keyId = newId();
  for (const [index, accountId] of accountIds.entries())
    await host
      .get(ledger)
      .credit(accountId, billingWorld.usd('1000'), { kind: 'top-up', reason: 'bench', reference: `${index}` });
  const events = eventsOf(timelines);

  async function call(index: number): Promise<void> {
    const exchange = billingWorld.newCall({
      id: newId(),
      accountId: accountIds[index % accountCount]!,
      call: { stream: index % 2 === 0 },
    });
    Object.assign(exchange, { receivedAt: host.clock.now() });
    Object.assign(exchange.request, { bodyBytes: 2_000 + index });
    exchange.set(caller, { accountId: accountIds[index % accountCount]!, keyId, plan: 'free', models: undefined });
    const through = parts.reduceRight<() => Promise<unknown>>(
      (next, part) => async () => part.handle!(exchange, next as never),
      async () => {
        for (const event of events)
          timelines.recordEvent(exchange, host.clock.now() + (index % 7), event.kind, event.valuesOf(index) as never);
        const attempt = await billingWorld.send(exchange);
        Object.assign(attempt, {
          startedAt: host.clock.now(),
          result: 'answered',
          status: 200,
          durationMs: 420 + (index % 100),
        });
        exchange.set(domain.usageReport, {
          ...billingWorld.report({ input: 700 + index, output: 40 + index }),
          upstreamId: `chatcmpl-${newId().replaceAll('-', '')}`,
        });
        return fakes.okAnswer;
      },
    );
    await through();
    await exchange.end({ bytesOut: 3_000 + index, firstByteMs: 210.5 + index / 7, totalMs: 640.25 + index / 3 });
  }

  return {
    schema: store.schema,
    async batch() {
      await Promise.all(Array.from({ length: batchCalls }, (_, index) => call(index)));
      host.advance(500);
      for (const { name, work } of host.intervals) if (/^(sync the journal|write)/.test(name)) await work();
    },
    async close() {
      for (const part of parts) await part.lifecycle?.stop?.();
      await store.close();
    },
  };
}

/** What the plugins in front of an ordinary call record, with values of the usual length. */
function eventsOf({ defineEvent }: typeof import('../../plugins/common/domain/timeline.ts')) {
  defined ??= new Map();
  let kinds = defined.get(defineEvent);
  if (kinds === undefined) {
    kinds = [
      { kind: defineEvent('plans.bench', () => ''), valuesOf: () => ['free'] },
      {
        kind: defineEvent('rate-limit.bench', () => ''),
        valuesOf: (index) => [
          ...[null, 'plan', 'rpm', 60 - (index % 60), 60, 'plan', 'tpm', 200_000 - index * 911, 200_000],
          ...['plan', 'concurrency', 10 - (index % 9), 10],
        ],
      },
      { kind: defineEvent('route.bench-targets', () => ''), valuesOf: () => ['vendor/vendor-model (chat)', 0, null] },
      {
        kind: defineEvent('route.bench-goes', () => ''),
        valuesOf: (index) => [1, 'vendor', 'vendor-model', `vendor#${1 + (index % 3)}`, null],
      },
      {
        kind: defineEvent('route.bench-attempt', () => ''),
        valuesOf: (index) => [1, 'answered', 200, 431 + (index % 100)],
      },
      { kind: defineEvent('protocol-convert.bench', () => ''), valuesOf: () => ['chat', null] },
    ];
    defined.set(defineEvent, kinds);
  }
  return kinds;
}

var defined:
  | Map<
      unknown,
      {
        kind: ReturnType<typeof import('../../plugins/common/domain/timeline.ts').defineEvent>;
        valuesOf: (index: number) => unknown[];
      }[]
    >
  | undefined;

/** The server's processes for connections. */
function backends(): string[] {
  const chosen = "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()";
  return postgres.sql(chosen).split('\n');
}

/** Processor time that they have used. */
function microsecondsOf(processes: readonly string[]): number {
  return processes.reduce(
    (sum, id) => sum + Number(readFileSync(`/proc/${id}/schedstat`, 'utf8').split(' ')[0]) / 1_000,
    0,
  );
}

function look(schema: string) {
  const one = (text: string) => Number(postgres.sql(text));
  // An earlier checkout has fewer.
  const present = tables.filter((name) => postgres.sql(`select to_regclass('"${schema}".${name}')`) !== '');
  const inTables = present.map((name) => `'"${schema}".${name}'::regclass`).join(', ');
  for (const name of present) postgres.sql(`analyze "${schema}".${name}`);
  return {
    walBytes: one("select pg_current_wal_insert_lsn() - '0/0'"),
    rows: present.reduce((sum, name) => sum + one(`select count(*) from "${schema}".${name}`), 0),
    entries: one(
      `select sum(reltuples) from pg_class join pg_am on pg_am.oid = relam join pg_index on indexrelid = pg_class.oid
        where amname = 'btree' and indrelid in (${inTables})`,
    ),
    tableBytes: one(`select sum(pg_table_size(oid)) from pg_class where oid in (${inTables})`),
    indexBytes: one(`select sum(pg_indexes_size(oid)) from pg_class where oid in (${inTables})`),
  };
}
