/** Money for work that is done later: set aside and ended with what else is written, once, by the terms of its beginning. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { decodeTerms, encodeTerms } from '../../../plugins/billing/authorizations/terms.ts';
import {
  type Authorization,
  type AuthorizationCharge,
  type AuthorizationEnd,
  authorization,
  authorizations,
  ledger,
  pool,
} from '../../../plugins/common/domain/ledger.ts';
import { model as modelFact } from '../../../plugins/common/domain/models.ts';
import { PriceVersion } from '../../../plugins/common/domain/prices.ts';
import { type fakeExchange, okAnswer } from '../../helpers/fakes.ts';
import { checkStatement } from './statement.ts';
import { attemptOf, leaveWorlds, newCall, newWorld, report, usd, type World } from './world.ts';

after(leaveWorlds);

/** The call of `newCall` on an endpoint with deferred work: 0.003 USD at most. */
async function offered(world: World): Promise<Authorization> {
  const call = newCall();
  const later = { ...call, endpoint: { ...call.endpoint, deferred: true } } as ReturnType<typeof fakeExchange>;
  await world.part.handle!(later, async () => okAnswer);
  return later.get(authorization);
}

const nothing = async () => {};
const charged: AuthorizationEnd = {
  report: report({ input: 500, output: 50 }),
  reason: 'answered',
  attempts: [attemptOf('answered')],
};
const given: AuthorizationEnd = { report: undefined, reason: 'cancelled', attempts: [] };

test('an authorization is taken from the balance, survives a crash, and is charged once for its usage', async () => {
  const world = await newWorld({ credit: '0.01' });
  const placed = await offered(world);
  await placed.place(nothing);
  assert.equal(await world.balance(), usd('0.007'));
  const next = await world.crash();
  assert.equal(await next.balance(), usd('0.007'));
  assert.equal((await next.audit()).ok, true);
  const ends = await Promise.all(
    [charged, given, charged].map((end) => next.host.get(authorizations).end('alice', placed.id, async () => end)),
  );
  assert.equal(ends.filter(Boolean).length, 1);
  // Any of them may be first: connections overtake one another.
  assert.equal(await next.balance(), usd(ends[1] === true ? '0.01' : '0.0085'));
  assert.deepEqual((await next.audit()).violations, []);
});

test('authorized money is no movement: the statement has the charge alone, followed by all money of the account', async () => {
  const world = await newWorld({ credit: '0.01' });
  const [first, second] = [await offered(world), await offered(world)];
  for (const placed of [first, second]) await placed.place(nothing);
  await checkStatement(world, 'alice', usd('0.01'), 1);
  assert.equal(await world.host.get(ledger).endOf(first.id), 'open');
  assert.equal(await world.host.get(authorizations).end('alice', first.id, async () => charged), true);
  assert.equal(await world.host.get(ledger).endOf(first.id), 'charged');
  await checkStatement(world, 'alice', usd('0.0085'), 1);
  const { balance, held } = await world.host.get(pool).view('alice');
  assert.deepEqual([balance, held], [usd('0.0055'), usd('0.003')]);
  assert.equal(await world.host.get(authorizations).end('alice', second.id, async () => given), true);
  assert.equal(await world.host.get(ledger).endOf(second.id), 'free');
  await checkStatement(world, 'alice', usd('0.0085'), 1);
  assert.equal(await world.balance(), usd('0.0085'));
  assert.deepEqual((await world.audit()).violations, []);
});

test('a released authorization costs nothing, and another account cannot end it', async () => {
  const world = await newWorld({ credit: '0.01' });
  const placed = await offered(world);
  await placed.place(nothing);
  const book = world.host.get(authorizations);
  assert.equal(await book.end('bob', placed.id, async () => given), false);
  assert.equal(await book.end('alice', placed.id, async () => undefined), false);
  assert.equal(await book.end('alice', placed.id, async () => given), true);
  assert.equal(await world.balance(), usd('0.01'));
  assert.deepEqual((await world.audit()).violations, []);
});

test('listeners get each charge once, with its model, upstream and own cost, and nothing for released money', async () => {
  const world = await newWorld({ credit: '0.01' });
  const book = world.host.get(authorizations);
  const heard: AuthorizationCharge[] = [];
  book.onCharge((charge) => heard.push(charge));
  for (const end of [charged, given]) {
    const placed = await offered(world);
    await placed.place(nothing);
    const failed = book.end('alice', placed.id, async () => {
      throw new Error('cannot be written');
    });
    await assert.rejects(failed);
    assert.equal(await book.end('alice', placed.id, async () => end), true);
    assert.equal(await book.end('alice', placed.id, async () => end), false);
  }
  const { model, provider } = heard[0]!;
  assert.deepEqual(heard, [{ model, provider, cost: usd('0.0015'), own: undefined }]);
  assert.deepEqual([model, provider], [newCall().get(modelFact).id, attemptOf('answered').provider]);
});

test('missing money is refused with 402, and nothing of the transaction is written', async () => {
  const world = await newWorld({ credit: '0.005' });
  await (await offered(world)).place(nothing);
  let ran = false;
  const refused = (await offered(world)).place(async () => {
    ran = true;
  });
  await assert.rejects(refused, (error: GatewayError) => error.kind === 'insufficient_balance');
  assert.equal(ran, false);
  assert.equal(await world.balance(), usd('0.002'));
});

test('an authorization takes nothing that another process has leased, to the last unit', async () => {
  const world = await newWorld({ credit: '0.01' });
  const leases = world.table('leases');
  // Another process has leased all of 0.01 USD except one nano-USD less than the authorization of 0.003.
  await world.rows(sql`insert into ${leases} (account_id, node, epoch, amount, expires_at)
    values ('alice', 'another', 'run', 7000001, now() + interval '1 minute')`);
  const refused = (await offered(world)).place(nothing);
  await assert.rejects(refused, (error: GatewayError) => error.kind === 'insufficient_balance');
  await world.rows(sql`update ${leases} set amount = 7000000`);
  await (await offered(world)).place(nothing);
  assert.equal(await world.balance(), usd('0.007'));
});

test('failed work rolls back its authorization, or the end of it', async () => {
  const world = await newWorld({ credit: '0.01' });
  const fails = async () => {
    throw new Error('no');
  };
  await assert.rejects((await offered(world)).place(fails), /no/);
  assert.equal(await world.balance(), usd('0.01'));
  const placed = await offered(world);
  await placed.place(nothing);
  await assert.rejects(world.host.get(authorizations).end('alice', placed.id, fails), /no/);
  assert.equal(await world.balance(), usd('0.007'));
  assert.deepEqual((await world.audit()).violations, []);
});

test('parallel authorizations never exceed the balance', async () => {
  const world = await newWorld({ credit: '0.010' });
  const offers = await Promise.all(Array.from({ length: 8 }, () => offered(world)));
  const outcomes = await Promise.allSettled(offers.map((offer) => offer.place(nothing)));
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 3);
  assert.equal(await world.balance(), usd('0.001'));
  assert.deepEqual((await world.audit()).violations, []);
});

test('terms are restored from their text with every tier and table of the price', () => {
  const prices = new PriceVersion({
    name: 'v2',
    base: { input: 2n, image: 3n },
    tiers: [{ name: '>10', above: 10, price: { input: 5n } }],
    image: { entries: [{ words: ['1k'], amount: 7n }], otherwise: 9n },
  });
  const written = { attribution: { person: 'ann', project: 'p' }, tags: 'team=a' };
  const terms = decodeTerms(
    encodeTerms({
      id: 'i',
      accountId: 'a',
      keyId: 'k',
      model: 'm',
      prices,
      at: 5,
      context: { media: ['1k'] },
      ratio: { numerator: 8n, denominator: 5n },
      inputTokens: 3,
      outputTokens: 4,
      allowance: { tools: 0, images: 2, seconds: 0 },
      entry: undefined,
      ...written,
    }),
  );
  assert.deepEqual({ attribution: terms.attribution, tags: terms.tags }, written);
  const priced = terms.prices.priced(5, { input: 20, image: 1 }, terms.context);
  assert.deepEqual(priced.price, prices.priced(5, { input: 20, image: 1 }, { media: ['1k'] }).price);
  assert.deepEqual(terms.ratio, { numerator: 8n, denominator: 5n });
  assert.deepEqual(terms.allowance, { tools: 0, images: 2, seconds: 0 });
});
