/** A whole gateway whose database directory is destroyed: copy, log and journal together give every credit and charge back. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../plugins/common/domain/money.ts';
import { useEmbedded } from '../../plugins/storage/embedded/keeper.ts';
import { fakeHost } from '../helpers/fakes.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';

const yaml = `gateway: restored
schema: restored
log: warn
plugins: [storage, auth, plans, providers, models, billing, route, protocol-convert, sandbox]
storage: { database: embedded }
plans: { default: free, offers: { free: { price: 0, limits: {} } } }
providers: { vendor: { keys: key, speaks: { chat: "sandbox:/v1" } } }
models: { m: { owned_by: vendor, targets: [vendor], context: 100k, max_output: 4k, price: { input: 1, output: 2 } } }
`;
const grant = (reference: string) => ({ kind: 'top-up', reason: 'test', reference });

async function call(origin: string, key: string): Promise<void> {
  const answer = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: '[[sandbox: tokens=10]] Hello' }] }),
  });
  assert.equal(answer.status, 200, await answer.text());
}

/** The balance once all holds have ended. */
async function settledBalance({ gateway }: TestGateway, accountId: string): Promise<bigint> {
  for (let before: bigint | undefined; ; ) {
    const now = await gateway.find(ledger)!.balance(accountId);
    if (now === before) return now;
    before = now;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
}

test('a directory destroyed after its copy keeps all later credits and charges, and the audit is clean', {
  timeout: 300_000,
}, async (context) => {
  const [directory, left] = [mkdtempSync(join(tmpdir(), 'restored-')), mkdtempSync(join(tmpdir(), 'restored-'))];
  context.after(() => {
    for (const path of [directory, left]) rmSync(path, { recursive: true, force: true });
  });
  const first = await startGateway(yaml, { directory });
  const embedded = await useEmbedded(directory, 'serve', fakeHost().log);
  const account = await first.gateway.find(accounts)!.create('alice', 'free');
  const { key } = await first.gateway.find(accounts)!.createKey(account.id, { name: 'test' });
  await first.gateway.find(ledger)!.credit(account.id, parseUsd('1'), grant('before the copy'));
  await call(first.origin, key);
  await embedded.copy();
  await first.gateway.find(ledger)!.credit(account.id, parseUsd('2'), grant('behind the copy'));
  for (let index = 0; index < 5; index += 1) await call(first.origin, key);
  const expected = await settledBalance(first, account.id);
  assert.ok(expected < parseUsd('3') && expected > parseUsd('2.9'));
  // What a kill or a power cut would leave, as everything acknowledged is on disk.
  cpSync(directory, left, { recursive: true, filter: (path) => !/\.sock$/.test(path) });
  await embedded.release();
  await first.stop();
  rmSync(join(left, 'postgres', 'base'), { recursive: true });
  rmSync(join(left, 'postgres', 'global', 'pg_control'));
  await using second = await startGateway(yaml, { directory: left });
  assert.equal(await settledBalance(second, account.id), expected);
  const audit = second.gateway.commands.find(({ name }) => name === 'audit')!;
  assert.deepEqual(((await audit.run({})).json as { violations: unknown[] }).violations, []);
  assert.match(second.lines.join('\n'), /has been restored from the last copy and the log since then/);
  await call(second.origin, key);
});
