/** Money for work that is done later: set aside and ended with what else is written, once, by the terms of its beginning. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/errors.ts';
import { PriceVersion } from '../../../core/prices.ts';
import {
  type Deposit,
  type DepositCharge,
  type DepositEnd,
  deposit,
  deposits,
  model as modelFact,
} from '../../../core/vocabulary.ts';
import { decodeTerms, encodeTerms } from '../../../plugins/billing/deposit-terms.ts';
import { type fakeExchange, okAnswer } from '../../helpers/fakes.ts';
import { attemptOf, closeEngine, newCall, newWorld, report, usd, type World } from './world.ts';

after(closeEngine);

/** The call of `newCall` on an endpoint whose work is done later: 0.003 USD at most. */
async function offered(world: World): Promise<Deposit> {
  const call = newCall();
  const later = { ...call, endpoint: { ...call.endpoint, later: true } } as ReturnType<typeof fakeExchange>;
  await world.part.handle!(later, async () => okAnswer);
  return later.get(deposit);
}

const nothing = async () => {};
const charged: DepositEnd = {
  report: report({ input: 500, output: 50 }),
  reason: 'answered',
  attempts: [attemptOf('answered')],
};
const given: DepositEnd = { report: undefined, reason: 'cancelled', attempts: [] };

test('a deposit is taken off the balance, outlives a crash, and is charged once by what was used', async () => {
  const world = await newWorld();
  await world.credit('0.01');
  const placed = await offered(world);
  await placed.place(nothing);
  assert.equal(await world.balance(), usd('0.007'));
  const next = await world.crash();
  assert.equal(await next.balance(), usd('0.007'));
  assert.equal((await next.audit()).ok, true);
  const ends = await Promise.all(
    [charged, given, charged].map((end) => next.host.need(deposits).end('alice', placed.id, async () => end)),
  );
  assert.equal(ends.filter(Boolean).length, 1);
  // Whoever was first: connections overtake one another.
  assert.equal(await next.balance(), usd(ends[1] === true ? '0.01' : '0.0085'));
  assert.deepEqual((await next.audit()).violations, []);
});

test('a deposit that is given back costs nothing, and another account cannot end it', async () => {
  const world = await newWorld();
  await world.credit('0.01');
  const placed = await offered(world);
  await placed.place(nothing);
  const book = world.host.need(deposits);
  assert.equal(await book.end('bob', placed.id, async () => given), false);
  assert.equal(await book.end('alice', placed.id, async () => undefined), false);
  assert.equal(await book.end('alice', placed.id, async () => given), true);
  assert.equal(await world.balance(), usd('0.01'));
  assert.deepEqual((await world.audit()).violations, []);
});

test('who listens hears of each charge once, with its model, upstream and own cost, and of nothing that is given back', async () => {
  const world = await newWorld();
  await world.credit('0.01');
  const book = world.host.need(deposits);
  const heard: DepositCharge[] = [];
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

test('money that is not there refuses with 402, and what was to be written with it is not', async () => {
  const world = await newWorld();
  await world.credit('0.005');
  await (await offered(world)).place(nothing);
  let ran = false;
  const refused = (await offered(world)).place(async () => {
    ran = true;
  });
  await assert.rejects(refused, (error: GatewayError) => error.kind === 'insufficient_balance');
  assert.equal(ran, false);
  assert.equal(await world.balance(), usd('0.002'));
});

test('a deposit takes nothing that another process has leased, to the last unit', async () => {
  const world = await newWorld();
  await world.credit('0.01');
  const leases = world.table('leases');
  // Of 0.01 USD all but one nano-USD less than the deposit of 0.003.
  await world.rows(sql`insert into ${leases} (account_id, node, epoch, amount, expires_at)
    values ('alice', 'another', 'run', 7000001, now() + interval '1 minute')`);
  const refused = (await offered(world)).place(nothing);
  await assert.rejects(refused, (error: GatewayError) => error.kind === 'insufficient_balance');
  await world.rows(sql`update ${leases} set amount = 7000000`);
  await (await offered(world)).place(nothing);
  assert.equal(await world.balance(), usd('0.007'));
});

test('work that fails takes its deposit, or its end, back with it', async () => {
  const world = await newWorld();
  await world.credit('0.01');
  const fails = async () => {
    throw new Error('no');
  };
  await assert.rejects((await offered(world)).place(fails), /no/);
  assert.equal(await world.balance(), usd('0.01'));
  const placed = await offered(world);
  await placed.place(nothing);
  await assert.rejects(world.host.need(deposits).end('alice', placed.id, fails), /no/);
  assert.equal(await world.balance(), usd('0.007'));
  assert.deepEqual((await world.audit()).violations, []);
});

test('parallel deposits never exceed the balance', async () => {
  const world = await newWorld();
  await world.credit('0.010');
  const offers = await Promise.all(Array.from({ length: 8 }, () => offered(world)));
  const outcomes = await Promise.allSettled(offers.map((offer) => offer.place(nothing)));
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 3);
  assert.equal(await world.balance(), usd('0.001'));
  assert.deepEqual((await world.audit()).violations, []);
});

test('terms come back from their text with every tier and table of the price', () => {
  const prices = new PriceVersion({
    name: 'v2',
    base: { input: 2n, image: 3n },
    tiers: [{ name: '>10', above: 10, price: { input: 5n } }],
    image: { entries: [{ words: ['1k'], amount: 7n }], otherwise: 9n },
  });
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
    }),
  );
  const priced = terms.prices.priced(5, { input: 20, image: 1 }, terms.context);
  assert.deepEqual(priced.price, prices.priced(5, { input: 20, image: 1 }, { media: ['1k'] }).price);
  assert.deepEqual(terms.ratio, { numerator: 8n, denominator: 5n });
  assert.deepEqual(terms.allowance, { tools: 0, images: 2, seconds: 0 });
});
