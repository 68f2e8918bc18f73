/** Two versions of the gateway on one schema under load: the newer one's migrations, and the way back to the older one. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { sql } from 'drizzle-orm';
import { startVendor } from '../../plugins/sandbox/vendor.ts';
import { databaseUrl, openDatabase } from '../helpers/database.ts';
import { type Fleet, gather } from './fleet.ts';
import { assertBillsAgree, startLoad } from './fleet-load.ts';
import { modelAt, speaks } from './testbed.ts';

/** What the version after this one might bring: a column in each table, a table of its own, and an index. */
async function migrateToNext({ store, rows }: Fleet, directory: string): Promise<void> {
  const tables = await rows<{ name: string }>(
    sql`select tablename as name from pg_catalog.pg_tables where schemaname = ${store.schema} and tablename <> 'migrations'`,
  );
  const texts = new Map([
    [
      'billing',
      tables.map(({ name }) => `alter table {schema}.${name} add column of_next text default 'next';`).join('\n'),
    ],
    [
      'request-log',
      'create table {schema}.of_next (id int primary key); create index requests_of_next on {schema}.requests (status);',
    ],
  ]);
  for (const path of globSync('plugins/*/migrations')) {
    const plugin = basename(dirname(path));
    const folder = join(directory, plugin);
    await cp(path, folder, { recursive: true });
    const text = texts.get(plugin);
    if (text !== undefined) await writeFile(join(folder, '900-next.sql'), text);
    const isThere = await rows(sql`select 1 from ${sql.identifier(store.schema)}.migrations where plugin = ${plugin}`);
    if (isThere.length > 0) await store.migrate(plugin, pathToFileURL(folder));
  }
}

if (databaseUrl !== undefined)
  test('the next version migrates under load, while the earlier one continues and starts again on the new schema', async (context) => {
    const [vendor, directory] = await Promise.all([startVendor({ key: 'key' }), mkdtemp(join(tmpdir(), 'versions-'))]);
    const fleet = await gather(
      {
        plans: { default: 'open', offers: { open: { price: 0 } } },
        providers: { sandbox: { keys: 'key', speaks: speaks(vendor.origin) } },
        models: { sandbox: modelAt('sandbox') },
      },
      2,
    );
    context.after(async () => {
      await fleet.close();
      await Promise.all([vendor.close(), rm(directory, { recursive: true, force: true })]);
    });
    const customers = await fleet.runAsCommand((gateway) => Promise.all([gateway.customer(), gateway.customer()]));
    await Promise.all(fleet.nodes.map((node) => node.start()));
    const load = startLoad(fleet, customers);
    try {
      await load.more(60);
      await migrateToNext(fleet, directory);
      await load.more(60);
      // Back to the version before: its process knows nothing of what was added.
      await fleet.nodes[1]!.end('SIGTERM');
      await fleet.nodes[1]!.start();
      await load.more(40);
    } finally {
      await load.stop();
    }
    assert.deepEqual(load.refused(0), []);
    // While it is away no one is connected; a load balancer would ask the other.
    assert.deepEqual(new Set(load.refused(1).map(({ status }) => status)).difference(new Set([0, 503])), new Set());
    // All that anybody does by commands, on the schema with what it does not know.
    const newcomer = await fleet.runAsCommand(async (gateway) => {
      const customer = await gateway.customer();
      const migrate = gateway.gateway.gateway.commands.find(({ name }) => name === 'migrate')!;
      assert.match((await migrate.run({})).text, /billing +900-next\.sql/);
      return customer;
    });
    const afterwards = startLoad(fleet, [newcomer]);
    await afterwards.more(20);
    await afterwards.stop();
    assert.deepEqual(afterwards.refused(), []);
    const both = { ...load, answers: [...load.answers, ...afterwards.answers] };
    await assertBillsAgree(fleet, [...customers, newcomer], vendor, both);
  });

if (databaseUrl !== undefined)
  test('processes that start at once on an empty database make the schema once', async (context) => {
    const first = await openDatabase();
    context.after(() => first.close());
    await first.orm.execute(sql`drop schema ${sql.identifier(first.schema)} cascade`);
    const others = await Promise.all([1, 2, 3].map(() => openDatabase({ schema: first.schema, pool: 2 })));
    const billing = pathToFileURL('plugins/billing/migrations');
    await Promise.all(others.map((other) => other.migrate('billing', billing)));
    const known = await first.orm.execute(
      sql`select count(*)::int as count from ${sql.identifier(first.schema)}.migrations where plugin = 'billing'`,
    );
    assert.equal(
      (known as unknown as { count: number }[])[0]!.count,
      globSync('plugins/billing/migrations/*.sql').length,
    );
    await Promise.all(others.map((other) => other.close()));
  });
