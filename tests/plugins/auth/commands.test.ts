/** What an operator does with accounts and keys. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { priceFloor } from '../../../plugins/common/domain/models.ts';
import { isLess, type Money, parseRatio, parseUsd } from '../../../plugins/common/domain/money.ts';
import { plans } from '../../../plugins/common/domain/plans.ts';
import { closeEmbedded } from './embedded.ts';
import { type Gate, openGate } from './setup.ts';

after(closeEmbedded);

interface Credit {
  accountId: string;
  amount: Money;
  kind: string;
  reason: string;
  reference: string;
}

function provideLedger(gate: Gate): Credit[] {
  const credits: Credit[] = [];
  gate.host.provide(ledger, {
    async credit(accountId, amount, options) {
      credits.push({ accountId, amount, ...options });
      return amount;
    },
    balance: async () => parseUsd('0'),
    endOf: async () => undefined,
    safe: async () => {},
  });
  return credits;
}

function providePlans(gate: Gate): void {
  const terms = (name: string) => ({ name, limits: {}, models: undefined, multiplier: undefined });
  gate.host.provide(plans, {
    default: 'free',
    terms,
    has: (name) => ['free', 'pro'].includes(name),
    list: () => [],
    offer: () => undefined,
  });
}

test('an account is opened on the default plan, with credit', async () => {
  const gate = await openGate();
  providePlans(gate);
  const credits = provideLedger(gate);
  const { json, text } = await gate.command('accounts create', { name: ' Shop 1 ', credit: '12.5' });
  const account = json as { id: string; name: string; plan: string; balance: string };
  assert.equal(account.name, 'Shop 1');
  assert.equal(account.plan, 'free');
  assert.equal(account.balance, '12.50');
  assert.match(text, /"Shop 1" .* on plan free with 12\.50 USD/);
  assert.deepEqual(credits, [
    {
      accountId: account.id,
      amount: 12_500_000_000n,
      kind: 'top-up',
      reason: 'opening credit',
      reference: `opening:${account.id}`,
    },
  ]);
  const listed = (await gate.command('accounts list')).json as { name: string }[];
  assert.deepEqual(
    listed.map(({ name }) => name),
    ['Shop 1', 'acme'],
  );
});

test('accounts are listed with the end of their plan, also a past one, and their ratio', async () => {
  const gate = await openGate();
  providePlans(gate);
  const put = async (name: string, endsAt: number | undefined) => {
    const { id } = (await gate.command('accounts create', { name })).json as { id: string };
    await gate.db.orm.transaction((orm) => gate.book.setPlan(orm, id, 'pro', endsAt));
  };
  const now = gate.host.clock.now();
  await put('over', now - 1_000);
  await put('paid', now + 1_000);
  await gate.command('accounts multiplier', { name: 'paid', ratio: '0.9' });
  const { text } = await gate.command('accounts list');
  const time = (at: number) => new Date(at).toISOString();
  assert.match(text, new RegExp(`^over +pro +ended ${time(now - 1_000)} +1 +active`, 'm'));
  assert.match(text, new RegExp(`^paid +pro +${time(now + 1_000)} +0\\.9 +active`, 'm'));
  assert.match(text, /^acme +\w+ +never +1 +active/m);
});

test('an account is renamed by its name or id, and found by the new name alone', async () => {
  const gate = await openGate();
  const renamed = await gate.command('accounts rename', { name: 'acme', newName: ' Acme Ltd ' });
  assert.deepEqual(
    [(renamed.json as { id: string; name: string }).id, (renamed.json as { name: string }).name],
    [gate.accountId, 'Acme Ltd'],
  );
  assert.match(renamed.text, /^Account "acme" \(.*\) is now "Acme Ltd"\.$/);
  await assert.rejects(gate.command('accounts disable', { name: 'acme' }), { kind: 'not_found' });
  await gate.command('accounts rename', { name: gate.accountId, newName: 'acme' });
  assert.equal((await gate.book.find('acme'))?.id, gate.accountId);
  await assert.rejects(gate.command('accounts rename', { name: 'acme' }), /1 to 100 characters/);
});

test('faults of a new account are reported before anything is made', async () => {
  const gate = await openGate();
  providePlans(gate);
  const create = (values: Record<string, string>) => gate.command('accounts create', values);
  await assert.rejects(create({ name: 'new', credit: '5' }), /keeps no ledger/);
  provideLedger(gate);
  await assert.rejects(create({ name: 'new', plan: 'gold' }), /no plan "gold"/);
  for (const credit of ['0', '-1', '1e3', '0.0000000001', 'ten'])
    await assert.rejects(create({ name: 'new', credit }), /is not an amount of USD above zero/);
  for (const name of ['', '  ', 'a\u001b[2Jb', 'x'.repeat(101)])
    await assert.rejects(create({ name }), /1 to 100 characters/);
  await assert.rejects(create({ name: gate.accountId }), /named like an id/);
  await assert.rejects(create({ name: 'acme' }), /exists already/);
  assert.equal(((await gate.command('accounts list')).json as unknown[]).length, 1);
});

test('a gateway without plans and ledger opens accounts too', async () => {
  const gate = await openGate();
  const { json } = await gate.command('accounts create', { name: 'plain' });
  assert.equal((json as { plan: string }).plan, 'default');
  assert.equal(
    (await gate.command('accounts create', { name: 'gold', plan: 'gold' })).text.includes('on plan gold'),
    true,
  );
});

test('a new key works, is shown once, and carries its models and its end', async () => {
  const gate = await openGate();
  const values = { account: 'acme', name: 'laptop', models: 'one, two', expires: '30d' };
  const { json, text } = await gate.command('keys create', values);
  const created = json as {
    key: string;
    id: string;
    account: string;
    prefix: string;
    models: string[];
    expiresAt: Date;
  };
  assert.match(created.key, /^sk-gw-[0-9A-Za-z]{49}$/);
  assert.equal(created.prefix, created.key.slice(0, 14));
  assert.equal(created.account, 'acme');
  assert.deepEqual(created.models, ['one', 'two']);
  assert.equal(created.expiresAt.getTime(), gate.host.clock.now() + 30 * 86_400_000);
  assert.ok(text.startsWith(created.key));
  const who = await gate.send(created.key);
  assert.equal(who.keyId, created.id);
  assert.deepEqual(who.models, new Set(['one', 'two']));
  const list = await gate.command('keys list', { account: 'acme' });
  assert.equal(JSON.stringify(list).includes(created.key), false);
  assert.match(
    list.text,
    /^KEY +ACCOUNT +NAME +PROJECT +MODELS +BOUNDS +EXPIRES +LAST USED +ID\nsk-gw-\w{8}… +acme +laptop +one,two/,
  );
});

test('a key that waits for images is listed with that, and another word is refused by name', async () => {
  const gate = await openGate();
  const create = (images: string) => gate.command('keys create', { account: 'acme', images });
  const { json } = await create('wait');
  assert.equal((await gate.send((json as { key: string }).key)).waitsForImages, true);
  assert.match((await gate.command('keys list')).text, /images wait/);
  assert.equal((await gate.send(((await create('task')).json as { key: string }).key)).waitsForImages, undefined);
  await assert.rejects(create('soon'), { field: 'images' });
});

test('a key may expire on a date, in UTC unless it names a zone', async () => {
  const gate = await openGate();
  const cases: [string, string][] = [
    ['2030-01-31', '2030-01-31T00:00:00.000Z'],
    ['2030-01-31T12:00:00', '2030-01-31T12:00:00.000Z'],
    ['2030-01-31T12:00:00Z', '2030-01-31T12:00:00.000Z'],
    ['2030-01-31T12:00:00+02:00', '2030-01-31T10:00:00.000Z'],
  ];
  for (const [expires, expected] of cases) {
    const { json } = await gate.command('keys create', { account: 'acme', expires });
    assert.equal((json as { expiresAt: Date }).expiresAt.toISOString(), expected);
  }
});

test('faults of a new key are reported', async () => {
  const gate = await openGate();
  const create = (values: Record<string, string>) => gate.command('keys create', values);
  await assert.rejects(create({}), /--account NAME/);
  await assert.rejects(create({ account: 'missing' }), /no account "missing"/);
  await assert.rejects(create({ account: 'acme', expires: 'soon' }), /neither a date/);
  await assert.rejects(create({ account: 'acme', expires: '2020-01-01' }), /in the past/);
  await assert.rejects(create({ account: 'acme', expires: '2030-13-45' }), /neither a date/);
  await assert.rejects(create({ account: 'acme', models: 'one,,two' }), /characters/);
});

test('an account is named by its name or its id', async () => {
  const gate = await openGate();
  assert.equal((await gate.book.find(gate.accountId))?.name, 'acme');
  assert.equal((await gate.book.find('acme'))?.id, gate.accountId);
  assert.equal(await gate.book.find('00000000-0000-4000-8000-000000000000'), undefined);
  await gate.command('keys create', { account: gate.accountId });
});

test('a key is revoked once, by its prefix or its id', async () => {
  const gate = await openGate();
  const create = async () =>
    (await gate.command('keys create', { account: 'acme' })).json as { key: string; id: string; prefix: string };
  const [first, second] = [await create(), await create()];
  const revoked = (await gate.command('keys revoke', { key: first.prefix })).json as { id: string; revokedAt: Date };
  assert.equal(revoked.id, first.id);
  gate.host.advance(1_000);
  const again = (await gate.command('keys revoke', { key: first.id })).json as { revokedAt: Date };
  assert.deepEqual(again.revokedAt, revoked.revokedAt, 'the first revocation stands');
  assert.equal((await gate.refusal(first.key)).status, 401);
  await gate.send(second.key);
  await assert.rejects(gate.command('keys revoke', { key: 'sk-gw-nothing0' }), /There is no key/);
  assert.match((await gate.command('keys list')).text, /revoked 2027-/);
});

test('a prefix that matches several keys revokes none of them', async () => {
  const gate = await openGate();
  const { id, key, prefix } = await gate.book.createKey(gate.accountId, { name: 'one' });
  await gate.book.createKey(gate.accountId, { name: 'two' });
  await gate.db.orm.execute(`update "${gate.db.schema}".keys set prefix = '${prefix}'`);
  await assert.rejects(gate.command('keys revoke', { key: prefix }), /Several keys/);
  await gate.send(key);
  await gate.command('keys revoke', { key: id });
  assert.equal((await gate.refusal(key)).status, 401);
});

test('an account of which nothing is kept is known with the next call, until the command takes it back', async () => {
  const gate = await openGate();
  const key = await gate.newKey();
  assert.equal((await gate.send(key)).retention, undefined);
  await gate.command('accounts retention', { name: 'acme', retention: 'none' });
  assert.equal((await gate.send(key)).retention, 'none');
  await assert.rejects(gate.command('accounts retention', { name: 'acme', retention: 'some' }), { field: 'retention' });
  assert.equal((await gate.send(key)).retention, 'none');
  await gate.command('accounts retention', { name: 'acme', retention: 'default' });
  assert.equal((await gate.send(key)).retention, undefined);
});

test("an account's own ratio applies to its calls, and is refused where it would sell below cost", async () => {
  const gate = await openGate();
  const key = await gate.newKey();
  assert.equal((await gate.send(key)).multiplier, undefined);
  await gate.command('accounts multiplier', { name: 'acme', ratio: '0.9' });
  assert.deepEqual((await gate.send(key)).multiplier, { numerator: 9n, denominator: 10n });
  gate.host.provide(priceFloor, {
    losses: (multiplier) => (isLess(multiplier, parseRatio('0.8')) ? ['large is sold below its cost'] : []),
  });
  await assert.rejects(
    gate.command('accounts multiplier', { name: 'acme', ratio: '0.5' }),
    /large is sold below its cost/,
  );
  await assert.rejects(gate.command('accounts multiplier', { name: 'acme', ratio: '-1' }), /not a positive ratio/);
  assert.deepEqual((await gate.send(key)).multiplier, { numerator: 9n, denominator: 10n });
  await gate.command('accounts multiplier', { name: 'acme', ratio: '0.5', belowCost: true as never });
  assert.deepEqual((await gate.send(key)).multiplier, { numerator: 5n, denominator: 10n });
  await gate.command('accounts multiplier', { name: 'acme', ratio: '1' });
  assert.equal((await gate.send(key)).multiplier, undefined);
});
