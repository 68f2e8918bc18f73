/** M10: of all attempts of a request its client bears one at most; what the others may have cost is the operator's. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import type { Outcome } from '../../../core/contract.ts';
import { cost, parseRatio, parseUsd } from '../../../core/money.ts';
import { flatBook, PriceVersion, versionAt } from '../../../core/prices.ts';
import { type Attempt, usageReport } from '../../../core/vocabulary.ts';
import { share } from '../../../plugins/billing/absorbed.ts';
import { attemptNotes, judge } from '../../../plugins/billing/outcome.ts';
import { attemptOf, closeEngine, enter, newCall, newWorld, price, report, send } from './world.ts';

after(closeEngine);

const terms = { inputTokens: 1_000, prices: versionAt(flatBook(price, 'v1'), 0)!, at: 0, context: {} };
const results: Attempt['result'][] = ['running', 'not_sent', 'refused', 'unknown', 'answered'];

const attemptsOf = fc
  .array(
    fc.record({
      result: fc.constantFrom(...results),
      left: fc.boolean(),
      consumed: fc.option(
        fc.record({
          usage: fc.record({ input: fc.nat(5_000), output: fc.oneof(fc.nat(5_000), fc.constant(Number.NaN)) }),
          estimated: fc.boolean(),
        }),
        { nil: undefined },
      ),
    }),
    { maxLength: 6 },
  )
  .map((drawn) =>
    drawn.map(({ result, left, consumed }, index) => ({
      left,
      attempt: { ...attemptOf(result, index + 1), ...(consumed === undefined ? {} : { consumed }) } as Attempt,
    })),
  );

test('whatever the attempts came to, the client bears one at most, and the operator the sum of the others', () => {
  const outcome = fc.constantFrom<Outcome['kind']>('complete', 'client_left', 'failed');
  const last = fc.option(fc.record({ input: fc.nat(5_000), output: fc.nat(5_000) }), { nil: undefined });
  fc.assert(
    fc.property(attemptsOf, outcome, last, (drawn, kind, usage) => {
      const attempts = drawn.map(({ attempt }) => attempt);
      const sent = drawn.flatMap(({ attempt, left }) => (left ? [{ at: 0, ...attempt }] : []));
      const verdict = judge({
        attempts,
        sent,
        report: usage === undefined ? undefined : report(usage),
        outcome: kind,
        inputTokens: 1_000,
        seenOutput: 0,
      });
      const { notes, absorbed } = share(attemptNotes(attempts, sent), attempts, verdict, terms);
      const clients = notes.filter(({ bearer }) => bearer === 'client');
      const operators = notes.filter(({ bearer }) => bearer === 'operator');
      assert.ok(clients.length <= 1);
      if (verdict.kind === 'VOID') assert.equal(clients.length, 0);
      const sum = operators.reduce((total, note) => total + BigInt(note.absorbed ?? '0'), 0n);
      assert.equal(absorbed, sum);
      assert.ok(absorbed >= 0n);
      for (const note of notes) {
        if (note.bearer === 'operator') assert.ok(note.usage !== undefined && note.estimated !== undefined);
        else assert.equal(note.absorbed, undefined);
        if (note.bearer === undefined) assert.ok(note.result === 'refused', note.result);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('of attempts that ran at the same time the client bears the one that counts, whichever left last', () => {
  const [first, second] = [attemptOf('answered', 1), { ...attemptOf('unknown', 2), provider: 'other' }];
  const sent = [first, second].map((attempt) => ({ at: 0, ...attempt }));
  const attempts = [second, first];
  const ending = { attempts, sent, report: report({ input: 7, output: 3 }), inputTokens: 1_000, seenOutput: 0 };
  const verdict = judge({ ...ending, outcome: 'complete' });
  assert.deepEqual([verdict.kind, verdict.reason], ['SETTLE', 'answered']);
  const { notes, absorbed } = share(attemptNotes(attempts, sent), attempts, verdict, terms);
  assert.deepEqual(
    notes.map(({ number, bearer, estimated }) => [number, bearer, estimated]),
    [
      [2, 'operator', true],
      [1, 'client', undefined],
    ],
  );
  assert.equal(absorbed, cost({ input: 1_000 }, price));
});

test('what an attempt was seen to consume counts; else, where it may have run, the prompt; a plain refusal is free', () => {
  const seen = { ...attemptOf('unknown', 1), consumed: { usage: { input: 7, output: 3 }, estimated: false } };
  const attempts = [seen, attemptOf('unknown', 2), attemptOf('refused', 3), attemptOf('answered', 4)];
  const sent = attempts.map((attempt) => ({ at: 0, ...attempt }));
  const settled = { kind: 'SETTLE', reason: 'answered', usage: {}, estimated: false, terminal: true } as const;
  const { notes, absorbed } = share(attemptNotes(attempts, sent), attempts, settled, terms);
  assert.deepEqual(
    notes.map(({ bearer, absorbed: own, estimated }) => [bearer, own, estimated]),
    [
      ['operator', String(cost({ input: 7, output: 3 }, price)), false],
      ['operator', String(cost({ input: 1_000 }, price)), true],
      [undefined, undefined, undefined],
      ['client', undefined, undefined],
    ],
  );
  assert.equal(absorbed, cost({ input: 1_007, output: 3 }, price));
});

test('an attempt is absorbed at the price of its own length and of the service that was asked for, with the request and without ratio', () => {
  const usd = (input: string) => ({ input: parseUsd(input), request: parseUsd('0.5') });
  const prices = new PriceVersion({
    name: 'v1',
    base: usd('1'),
    tiers: [
      { name: '>2k', above: 2_000, price: { input: parseUsd('4') } },
      { name: 'flex', service: 'flex', times: parseRatio('0.5') },
    ],
  });
  const long = { ...attemptOf('unknown', 1), consumed: { usage: { input: 3_000 }, estimated: false } };
  const attempts = [long, attemptOf('unknown', 2)];
  const sent = attempts.map((attempt) => ({ at: 0, ...attempt }));
  const asked = { inputTokens: 1_000, prices, at: 0, context: { services: { tier: 'flex' } } };
  const { notes } = share(attemptNotes(attempts, sent), attempts, { kind: 'VOID', reason: 'unknown' }, asked);
  assert.deepEqual(
    notes.map(({ absorbed }) => absorbed),
    [String(parseUsd('0.506')), String(parseUsd('0.5005'))],
  );
});

test('the ledger books it beside the charge, its attempts say which, and the audit finds what does not fit', async () => {
  const world = await newWorld();
  await world.credit('1');
  const exchange = newCall();
  await enter(world, exchange);
  const first = await send(exchange);
  Object.assign(first, { result: 'unknown', consumed: { usage: { input: 900, output: 5 }, estimated: false } });
  Object.assign(await send(exchange), { result: 'answered', status: 200 });
  exchange.set(usageReport, report({ input: 900, output: 50 }));
  await exchange.end();
  await world.tick('write the ledger');
  const own = cost({ input: 900, output: 5 }, price);
  const rows = await world.rows(
    sql`select kind, revenue::text as revenue, funding::text as funding, absorbed::text as absorbed
        from ${world.table('ledger')} where kind = 'SETTLE'`,
  );
  const charge = cost({ input: 900, output: 50 }, price);
  assert.deepEqual(rows, [{ kind: 'SETTLE', revenue: `${charge}`, funding: `${-own}`, absorbed: `${own}` }]);
  const tried = await world.rows(
    sql`select number, borne_by, absorbed::text as absorbed, consumed, estimated
        from ${world.table('attempts')} order by number`,
  );
  assert.deepEqual(tried, [
    { number: 1, borne_by: 'operator', absorbed: `${own}`, consumed: { input: 900, output: 5 }, estimated: false },
    { number: 2, borne_by: 'client', absorbed: '0', consumed: null, estimated: false },
  ]);
  assert.deepEqual((await world.audit()).violations, []);
  await world.stop();
  // Repeated after a crash, nothing of it is booked twice.
  const again = await world.crash();
  assert.deepEqual((await again.audit()).violations, []);
  await again.database.orm.execute(sql`update ${world.table('attempts')} set absorbed = absorbed + 1 where number = 1`);
  assert.deepEqual(
    (await again.audit()).violations.map(({ rule }) => rule),
    ['M10'],
  );
  await again.database.orm.execute(
    sql`update ${world.table('attempts')} set absorbed = 0, borne_by = 'client' where number = 1`,
  );
  assert.deepEqual(new Set((await again.audit()).violations.map(({ rule }) => rule)), new Set(['M10']));
  assert.equal((await again.audit()).violations.length, 2);
  await again.stop();
});

test('what nobody told of is absorbed at the dearest price that it can have; what was told, at its own', () => {
  const image = { entries: [{ words: ['2k'], amount: parseUsd('0.05') }], otherwise: parseUsd('0.01') };
  const prices = new PriceVersion({ name: 'v1', base: {}, image });
  const absorbedOf = (estimated: boolean) => {
    const attempts = [{ ...attemptOf('unknown', 1), consumed: { usage: { image: 3 }, estimated } }];
    const sent = attempts.map((attempt) => ({ at: 0, ...attempt }));
    const refused = { kind: 'VOID', reason: 'unknown' } as const;
    return share(attemptNotes(attempts, sent), attempts, refused, { ...terms, prices }).absorbed;
  };
  assert.deepEqual([absorbedOf(true), absorbedOf(false)], [parseUsd('0.15'), parseUsd('0.03')]);
});
