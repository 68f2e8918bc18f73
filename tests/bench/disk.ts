/**
 * `npm run bench:disk -- [--calls 100000]`: the disk that calls take on the embedded store and on a PostgreSQL of this run's own, in bytes a call
 * (which are GB for a million million-th of it: 1,000 bytes a call are 1 GB a million calls). The main gateway serves them from sockets, whole answers of
 * one model; then all is written, and each part is measured as it lies on disk, less what it was before the first call.
 */
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { run } from './load.ts';
import { startSlowVendor } from './slow-vendor.ts';

const { values } = parseArgs({ options: { calls: { type: 'string', default: '100000' } } });
const wanted = Number(values.calls);
/** Ended calls are in the database long before; the store's own upkeep goes on for ever. */
const settleMs = 10_000;
const body = JSON.stringify({
  model: 'bench-chat',
  messages: [{ role: 'user', content: 'a'.repeat(900) }],
  max_tokens: 200,
});

/** Parts by name, in bytes. */
type Parts = Readonly<Record<string, number>>;

const vendor = await startSlowVendor();
await measure('embedded', embeddedParts);
const postgres = await startPostgres([], true);
try {
  await measure('PostgreSQL', () => postgresParts(postgres), postgres.url);
} finally {
  await postgres.close();
}
process.exit(0);

async function measure(store: string, partsOf: (directory: string) => Parts, database?: string): Promise<void> {
  const temporary = mkdtempSync(join(tmpdir(), 'disk-'));
  const child = fork(join(import.meta.dirname, 'gateway.ts'), [`${(vendor.address() as AddressInfo).port}`, 'full'], {
    env: { ...process.env, TMPDIR: temporary, ...(database === undefined ? {} : { BENCH_DATABASE_URL: database }) },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  try {
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('the gateway ended')));
    const begun = (await Promise.race([once(child, 'message'), ended])) as [{ port: number; key: string }];
    ended.catch(() => {});
    const [{ port, key }] = begun;
    const directory = join(temporary, readdirSync(temporary).find((name) => name.startsWith('bench-'))!);
    const load = { port, key, body, path: '/v1/chat/completions', connections: 32 };
    await run({ ...load, seconds: 2 });
    await pause(settleMs);
    const before = partsOf(directory);
    let calls = 0;
    while (calls < wanted) {
      const { requests, failures } = await run({ ...load, seconds: 5 });
      if (failures > 0) throw new Error(`${failures} calls failed`);
      calls += requests;
    }
    await pause(settleMs);
    const after = partsOf(directory);
    console.log(`${store}, ${calls} calls, bytes a call:`);
    for (const [name, bytes] of Object.entries(after))
      console.log(`  ${Math.round((bytes - (before[name] ?? 0)) / calls)} ${name} (now ${Math.round(bytes / 1e6)} MB)`);
  } finally {
    await stop(child);
    rmSync(temporary, { recursive: true, force: true });
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exit = once(child, 'exit');
  child.disconnect();
  await exit;
}

/** The blocks of a file that is linked twice count once, where it is first. */
function embeddedParts(directory: string): Parts {
  const groups = {
    'rows and indexes': ['postgres/base'],
    "the database's own log": ['postgres/pg_wal'],
    'last good copy, beyond what it shares': ['postgres.copy'],
    journal: ['journal'],
  };
  const paths = Object.values(groups).flat();
  const found = paths.filter((path) => existsSync(join(directory, path)));
  const lines = execFileSync('du', ['-s', '--block-size=1', ...found], { cwd: directory, encoding: 'utf8' });
  const bytes = new Map(Array.from(lines.matchAll(/^(\d+)\t(.+)$/gm), ([, size, path]) => [path!, Number(size)]));
  return Object.fromEntries(
    Object.entries(groups).map(([name, each]) => [name, each.reduce((sum, path) => sum + (bytes.get(path) ?? 0), 0)]),
  );
}

function postgresParts(server: TestPostgres): Parts {
  const sizes = (size: string) =>
    `select relname, ${size}(oid) from pg_class where relkind = 'r' and relnamespace = 'bench'::regnamespace`;
  const read = (query: string) =>
    server
      .sql(query)
      .split('\n')
      .map((line) => line.split('|') as [string, string]);
  const groupOf = (table: string) =>
    table === 'calls' || table === 'ledger' || table === 'call_timelines'
      ? table
      : /sums/.test(table)
        ? 'rollups'
        : 'other tables';
  const parts: Record<string, number> = {};
  for (const [kind, size] of [
    ['rows', 'pg_table_size'],
    ['indexes', 'pg_indexes_size'],
  ] as const)
    for (const [table, bytes] of read(sizes(size))) {
      const name = `${groupOf(table)}, ${kind}`;
      parts[name] = (parts[name] ?? 0) + Number(bytes);
    }
  parts['write-ahead log'] = Number(server.sql("select pg_current_wal_lsn() - '0/0'::pg_lsn"));
  return parts;
}
