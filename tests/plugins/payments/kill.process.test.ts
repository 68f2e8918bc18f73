/** The webhook on a gateway's own port, without a key; and the gateway killed while it hears of a payment. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { boot, type Gateway } from '../../../core/gateway/boot.ts';
import { createLog } from '../../../core/gateway/log.ts';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { payments } from '../../../plugins/common/domain/admin/ledger.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { parseUsd as usd } from '../../../plugins/common/domain/money.ts';
import { databaseUrl, ownSchema } from '../../helpers/database.ts';
import { type SignedEvent, secretKey, startFakeStripe, webhookSecret } from '../../helpers/fake-stripe.ts';
import { freePort } from '../../helpers/free-port.ts';
import { fillMigrated } from '../../helpers/migrated.ts';

test('a gateway that is killed between event and credit credits once when it is back', {
  timeout: 600_000,
}, async (t) => {
  const stripe = await startFakeStripe(() => Date.now());
  t.after(() => stripe.close());
  const directory = await mkdtemp(join(tmpdir(), 'payments-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const origin = `http://127.0.0.1:${await freePort()}`;
  const file = join(directory, 'gateway.yaml');
  const schema = ownSchema('payments');
  await writeFile(
    file,
    `gateway: example
schema: ${schema}
listen: ${new URL(origin).host}
plugins: [storage, auth, plans, billing, payments]
plans: { default: open, offers: { open: { price: 0 } } }
storage: { database: "${databaseUrl ?? 'embedded'}" }
payments: { secret_key: ${secretKey}, webhook_secret: ${webhookSecret}, api_base: "${stripe.origin}" }
`,
  );
  const environment = { DATA_DIR: directory };
  if (databaseUrl === undefined) await fillMigrated(directory, schema);
  const children: ChildProcess[] = [];
  t.after(() => children.map((child) => child.kill('SIGKILL')));

  /** Does something beside the gateway, while no process serves. */
  async function aside<T>(work: (gateway: Gateway) => Promise<T>): Promise<T> {
    const gateway = await boot(file, { mode: 'command', environment, log: createLog('silent') });
    try {
      return await work(gateway);
    } finally {
      await gateway.stop(0);
    }
  }
  async function serve(): Promise<ChildProcess> {
    const child = spawn(process.execPath, ['core/process/main.ts', 'serve', file], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    children.push(child);
    for (;;) {
      assert.equal(child.exitCode, null, 'the gateway ended at its start');
      if ((await fetch(`${origin}/readyz`).catch(() => undefined))?.status === 200) return child;
      await pause(100);
    }
  }
  async function end(child: ChildProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    child.kill(signal);
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
  const deliver = ({ body, headers }: SignedEvent) =>
    fetch(`${origin}/payments/webhook`, { method: 'POST', body, headers });

  const { accountId, session } = await aside(async (gateway) => {
    const { id } = await gateway.find(accounts)!.create('alice', 'open');
    const urls = { paidUrl: 'https://gateway.example/paid', leftUrl: 'https://gateway.example/left' };
    const { url } = await gateway.find(payments)!.checkout(id, usd('5'), { reference: 'first', ...urls });
    return { accountId: id, session: url.split('/').at(-1)! };
  });
  const event = stripe.pay(session, { success_url: 'https://gateway.example/p\u00e9ng/\u2713' });

  const first = await serve();
  const forged = await deliver({ ...event, body: `${event.body} ` });
  assert.equal(forged.status, 400);
  assert.equal(((await forged.json()) as { error: { code: string } }).error.code, 'bad_signature');
  let isKilled = false;
  stripe.gate = async () => {
    if (isKilled) return;
    isKilled = true;
    await end(first, 'SIGKILL');
  };
  await assert.rejects(deliver(event), 'the gateway does not answer');
  assert.equal(isKilled, true);

  const second = await serve();
  assert.deepEqual(
    (await Promise.all([deliver(event), deliver(event)])).map(({ status }) => status),
    [200, 200],
  );
  // In good order, so that its database is free when it is gone.
  await end(second, 'SIGTERM');
  await aside(async (gateway) => {
    assert.equal(await gateway.find(ledger)!.balance(accountId), usd('5'));
    const { rows } = await gateway.find(payments)!.list(accountId, { limit: 5 });
    assert.deepEqual(
      rows.map(({ state }) => state),
      ['paid'],
    );
    const { orm, schema } = gateway.find(database)!;
    if (databaseUrl !== undefined) await orm.execute(sql`drop schema ${sql.identifier(schema)} cascade`);
  });
});
