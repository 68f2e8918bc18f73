/** Backups as docker/README.md says they are made, and what is there when they are put back. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startVendor } from '../../plugins/sandbox/vendor.ts';
import { readOwner } from '../../plugins/storage/embedded/lock.ts';
import { databaseUrl } from '../helpers/database.ts';
import { hasPostgres, startPostgres } from '../helpers/postgres.ts';
import { acceptRestore, gather } from './fleet.ts';
import { assertBillsAgree, startLoad } from './fleet-load.ts';
import { establish } from './process.ts';
import { type Customer, type faces, modelAt, speaks, until } from './testbed.ts';

const sections = (origin: string) => ({
  plans: { default: 'open', offers: { open: { price: 0 } } },
  providers: { sandbox: { keys: 'key', speaks: speaks(origin) } },
  models: { sandbox: modelAt('sandbox') },
});

type CommandGateway = ReturnType<typeof faces>;

async function chargesOf(gateway: CommandGateway, customers: readonly Customer[]): Promise<number> {
  const calls = await gateway.calls();
  return calls.filter((call) => call.settled && customers.some(({ accountId }) => accountId === call.account_id))
    .length;
}

if (databaseUrl === undefined)
  test('a data directory that was copied while all processes stood still, or none ran, has every answer so far', async (context) => {
    const testbed = await establish({}, 2);
    context.after(() => testbed.close());
    const away = await mkdtemp(join(tmpdir(), 'backup-'));
    context.after(() => rm(away, { recursive: true, force: true }));
    const { directory, customers } = testbed;
    const workers = 8;
    const copyTo = (name: string) => execFileSync('cp', ['-a', directory, join(away, name)]);
    const putBack = async (name: string) => {
      await rename(directory, join(away, `before-${name}`));
      await rename(join(away, name), directory);
    };

    const serving = await testbed.start();
    const load = startLoad({ nodes: [{ origin: testbed.origin }] as never }, customers, { workers, pauseMs: 0 });
    await load.more(100);
    const processes = [serving.pid!, readOwner(directory)!.pid];
    for (const pid of processes) process.kill(pid, 'SIGSTOP');
    const acknowledged = load.answers.length;
    copyTo('standing still');
    for (const pid of processes) process.kill(pid, 'SIGCONT');
    await load.more(50);
    await load.stop();
    serving.kill('SIGTERM');
    await until('it has ended', () => serving.exitCode !== null, 20_000);
    copyTo('stopped');
    const all = await testbed.runAsCommand((gateway) => chargesOf(gateway, customers));
    assert.equal(all, load.answers.length);

    await putBack('standing still');
    const again = await testbed.start();
    again.kill('SIGTERM');
    await until('it has ended', () => again.exitCode !== null, 20_000);
    await testbed.runAsCommand(async (gateway) => {
      await gateway.audit();
      const charged = await chargesOf(gateway, customers);
      // Those that were under way are settled by estimate: no one can know any more what became of them.
      const bounds = `${acknowledged} answered, ${charged} charged`;
      assert.ok(charged >= acknowledged && charged <= acknowledged + workers, bounds);
    });
    await putBack('stopped');
    await testbed.runAsCommand(async (gateway) => {
      await gateway.audit();
      assert.equal(await chargesOf(gateway, customers), all);
    });
  });

if (hasPostgres)
  test('a dump that is restored under continuing journals: every later charge is there once, and later credits are made again by their references', async (context) => {
    const [vendor, postgres] = await Promise.all([startVendor({ key: 'key' }), startPostgres()]);
    const fleet = await gather(sections(vendor.origin), 2, { database: postgres.url });
    const away = await mkdtemp(join(tmpdir(), 'backup-'));
    context.after(async () => {
      await fleet.close();
      await Promise.all([postgres.close(), vendor.close(), rm(away, { recursive: true, force: true })]);
    });
    const customers = await fleet.runAsCommand((gateway) => Promise.all([gateway.customer(), gateway.customer()]));
    await Promise.all(fleet.nodes.map((node) => node.start()));
    const load = startLoad(fleet, customers);
    await load.more(100);
    const file = join(away, 'gateway.dump');
    postgres.run('pg_dump', '--dbname=postgres', '--format=custom', `--file=${file}`);
    await load.more(100);
    await load.stop();
    assert.deepEqual(load.refused(), []);
    const [customer] = customers;
    const later = { kind: 'top-up', reason: 'test', reference: 'behind the dump' };
    const credit = () =>
      fleet.runAsCommand(async ({ gateway }) => {
        const { ledger } = await import('../../plugins/common/domain/ledger.ts');
        return gateway.gateway.find(ledger)!.credit(customer!.accountId, 7_000_000_000n as never, later);
      });
    await credit();
    await assertBillsAgree(fleet, customers, vendor, load);
    const before = await fleet.runAsCommand((gateway) => gateway.balance(customer!));

    for (const node of fleet.nodes) await node.end('SIGTERM');
    postgres.run('pg_restore', '--clean', '--if-exists', '--dbname=postgres', file);
    await Promise.all(fleet.nodes.map((node) => node.start()));
    await assert.rejects(credit(), /was put back to an earlier time/);
    await acceptRestore(fleet);
    await assertBillsAgree(fleet, customers, vendor, load);
    assert.equal(await fleet.runAsCommand((gateway) => gateway.balance(customer!)), before - 7_000_000_000n);
    await credit();
    await credit();
    assert.equal(await fleet.runAsCommand((gateway) => gateway.balance(customer!)), before);
    const last = startLoad(fleet, customers);
    await last.more(20);
    await last.stop();
    assert.deepEqual(last.refused(), []);
  });
