/** Redeem codes: what they give, how often, and that no race gives more. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { pool } from '../../../plugins/common/domain/ledger.ts';
import { hashCode, makeCode, prefixOf, readCode } from '../../../plugins/shop/code.ts';
import { testOnServer } from '../../helpers/database.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import { codeOf, makeCodes, openStall, redeem, statuses, usd } from './stall.ts';

test('redeem race: 100 parallel redemptions of a single-use code on two processes credit once', async () => {
  const first = await openStall();
  const second = await openStall(first);
  const people = await Promise.all(['one', 'two', 'three', 'four'].map((name) => first.account(name)));
  const [code] = await makeCodes(first, { usd: '5' });
  const reported = await statuses(
    Array.from({ length: 100 }, (_, index) => redeem(index % 2 === 0 ? first : second, people[index % 4]!, code!)),
  );
  assert.deepEqual(
    [reported.filter((status) => status === 200).length, reported.filter((status) => status === 409).length],
    [1, 99],
  );
  const balances = await Promise.all(people.map((account) => second.balance(account)));
  assert.deepEqual(
    balances.filter((balance) => balance !== 0n),
    [usd('5')],
  );
  await second.audit();
});

// Two processes of the operating system need a server between them.
for (const uses of [1, 7]) {
  testOnServer(
    `redeem race: 100 parallel redemptions on two processes of the operating system credit a code of ${uses} uses ${uses} times`,
    async () => {
      const stall = await openStall();
      const people = await Promise.all(Array.from({ length: 10 }, (_, index) => stall.account(`person ${index}`)));
      const [code] = await makeCodes(stall, { usd: '5', uses: String(uses) });
      const ids = people.map(({ id }) => id);
      const script = ['tests/plugins/shop/redeemer.ts', stall.database.schema, code!, '50', ...ids];
      const children = [1, 2].map(() => spawn(process.execPath, script, { stdio: ['pipe', 'pipe', 'inherit'] }));
      const lines = children.map((child) => createInterface(child.stdout)[Symbol.asyncIterator]());
      for (const line of lines) assert.equal((await line.next()).value, 'ready');
      for (const child of children) child.stdin.write('go\n');
      const reply = await Promise.all(lines.map(async (line) => JSON.parse((await line.next()).value!) as number[]));
      assert.equal(reply.flat().length, 100);
      assert.equal(reply.flat().filter((status) => status === 200).length, uses);
      assert.deepEqual(new Set(reply.flat()), new Set([200, 409]));
      const balances = await Promise.all(people.map((account) => stall.balance(account)));
      assert.equal(
        balances.reduce((sum, balance) => sum + balance, 0n),
        usd('5') * BigInt(uses),
      );
      await stall.audit();
    },
  );
}

test('a code of several uses is redeemed that often, once by each account, in any order', async () => {
  const first = await openStall();
  const second = await openStall(first);
  const people = await Promise.all(Array.from({ length: 8 }, (_, index) => first.account(`person ${index}`)));
  const [code] = await makeCodes(first, { usd: '1', uses: '5' });
  const reported = await statuses(
    people.flatMap((account) => [
      redeem(first, account, code!),
      redeem(second, account, code!),
      redeem(second, account, code!),
    ]),
  );
  assert.equal(reported.filter((status) => status === 200).length, 5);
  const balances = await Promise.all(people.map((account) => first.balance(account)));
  assert.deepEqual(new Set(balances), new Set([0n, usd('1')]));
  const [repeatable] = await makeCodes(first, { usd: '1', uses: '3', repeatable: true });
  const again = await statuses(
    Array.from({ length: 6 }, (_, index) => redeem(index % 2 ? first : second, people[0]!, repeatable!)),
  );
  assert.equal(again.filter((status) => status === 200).length, 3);
  await first.audit();
});

test('codes give money that does not expire, a plan, or days of a plan', async () => {
  const stall = await openStall();
  const account = await stall.account('alice');
  const [money, forever, plan, days] = await Promise.all([
    makeCodes(stall, { usd: '5', lasts: '30d' }),
    makeCodes(stall, { usd: '2' }),
    makeCodes(stall, { plan: 'saver' }),
    makeCodes(stall, { plan: 'saver', days: '3' }),
  ]);
  await redeem(stall, account, money[0]!.toLowerCase().replaceAll('-', ' '));
  await redeem(stall, account, forever[0]!);
  const { grants } = await stall.host.get(pool).view(account.id);
  const now = stall.host.clock.now();
  const day = 24 * 3_600_000;
  assert.deepEqual(
    grants.map(({ kind, remaining, expiresAt }) => [kind, remaining, expiresAt]),
    [
      ['code', usd('5'), now + 30 * day],
      ['code', usd('2'), undefined],
    ],
  );
  assert.equal((await redeem(stall, account, plan[0]!)).endsAt, now + 30 * day);
  assert.equal(await stall.planOf(account), 'saver');
  assert.equal((await redeem(stall, account, days[0]!)).endsAt, now + 33 * day);
  stall.host.advance(33 * day - 1);
  assert.equal(await stall.planOf(account), 'saver');
  stall.host.advance(1);
  assert.equal(await stall.planOf(account), 'free');
  await stall.audit();
});

test('used, expired, revoked and unknown codes are refused, also those of a revoked batch', async () => {
  const stall = await openStall();
  const account = await stall.account('alice');
  const batch = await makeCodes(stall, { usd: '1', count: '4', batch: 'spring', expires: '10d' });
  await redeem(stall, account, batch[0]!);
  assert.equal(await codeOf(redeem(stall, account, batch[0]!)), 'code_used');
  assert.deepEqual((await stall.command('codes revoke', { code: batch[1]! })).json, { revoked: 1 });
  assert.equal(await codeOf(redeem(stall, account, batch[1]!)), 'code_revoked');
  stall.host.advance(10 * 24 * 3_600_000);
  assert.equal(await codeOf(redeem(stall, account, batch[2]!)), 'code_expired');
  await stall.command('codes revoke', { code: 'spring' });
  assert.equal(await codeOf(redeem(stall, account, batch[2]!)), 'code_revoked');
  assert.equal(await codeOf(redeem(stall, account, makeCode(stall.host.random))), 'code_unknown');
  for (const odd of ['', 'short', `${batch[2]}0`, '????-????-????-????-????']) {
    assert.equal(await codeOf(redeem(stall, account, odd)), 'code_unknown');
  }
  assert.equal(await stall.balance(account), usd('1'));
  await assert.rejects(stall.command('codes revoke', { code: 'nothing' }), /no open code/);
});

test('a code is kept only as a hash: lists and exports show its beginning, state and uses', async () => {
  const stall = await openStall();
  const account = await stall.account('alice');
  const codes = await makeCodes(stall, { plan: 'pro', count: '3', batch: 'a-batch', uses: '2' });
  await redeem(stall, account, codes[0]!);
  const { orm, schema } = stall.database;
  const kept = JSON.stringify(await orm.execute(sql`select * from ${sql.identifier(schema)}.codes`));
  for (const code of codes) assert.ok(!kept.includes(code) && !kept.includes(readCode(code)!));
  const listing = await stall.command('codes list', { batch: 'a-batch' });
  assert.match(listing.text, new RegExp(`${prefixOf(codes[0]!)}… +a-batch +plan pro +open +1/2 +never`));
  const [heading, ...lines] = (await stall.command('codes export', { batch: 'a-batch' })).text.split('\n');
  assert.match(heading!, /^id,prefix,batch,gift,state,uses,max_uses/);
  assert.equal(lines.length, 3);
  assert.equal(lines.filter((line) => line.includes(',plan pro,open,1,2,true,')).length, 1);
  for (const name of ['codes list', 'codes export'])
    await assert.rejects(stall.command(name, { batch: 'a-bach' }), { field: 'batch', kind: 'not_found' });
});

test('a code without an effect is not made', async () => {
  const stall = await openStall();
  const wrong: [Record<string, string>, string][] = [
    [{}, 'usd'],
    [{ usd: '0' }, 'usd'],
    [{ usd: '1', plan: 'pro' }, 'usd'],
    [{ usd: '1', days: '3' }, 'days'],
    [{ plan: 'pro', lasts: '3d' }, 'lasts'],
    [{ plan: 'pro', days: '0' }, 'days'],
    [{ plan: 'gone' }, 'plan'],
    [{ usd: '1', uses: '0' }, 'uses'],
    [{ usd: '1', count: '10001' }, 'count'],
    [{ usd: '1', expires: 'soon' }, 'expires'],
    [{ usd: '1', batch: 'a, b' }, 'batch'],
  ];
  for (const [values, field] of wrong) {
    await assert.rejects(stall.command('codes create', values), (error: { field?: string }) => error.field === field);
  }
  assert.deepEqual((await stall.command('codes list')).json, []);
});

test('a code is accepted in any typed form, and no other text is', () => {
  const { random } = fakeHost();
  fc.assert(
    fc.property(fc.nat(1_000), (skipped) => {
      random.bytes(skipped % 7);
      const code = makeCode(random);
      const typed = code.toLowerCase().replaceAll('1', 'l').replaceAll('0', 'o').replaceAll('-', ' ');
      assert.match(code, /^([0-9A-HJKMNP-TV-Z]{4}-){4}[0-9A-HJKMNP-TV-Z]{4}$/);
      assert.equal(readCode(typed), code.replaceAll('-', ''));
      assert.equal(hashCode(typed), hashCode(code));
      assert.equal(readCode(`${code}2`), undefined);
    }),
  );
});
