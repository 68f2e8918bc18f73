/** M10: of all attempts of a request its client bears one at most; what the others may have cost is the operator's. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { Outcome } from '../../../core/contract/contract.ts';
import { recordOf } from '../../../plugins/billing/model/record-texts.ts';
import { chargeFor, firstHold } from '../../../plugins/billing/reservations/charge.ts';
import {
  holdOf,
  holdText,
  newHold,
  serveBy,
  servedAgain,
  servedTerms,
} from '../../../plugins/billing/reservations/hold.ts';
import { attemptNotes, judge } from '../../../plugins/billing/reservations/outcome.ts';
import { type Terms, termsOfAttempt } from '../../../plugins/billing/reservations/terms.ts';
import { share } from '../../../plugins/billing/reservations/written-off.ts';
import { type Attempt, usageReport } from '../../../plugins/common/domain/calls.ts';
import type { Model } from '../../../plugins/common/domain/models.ts';
import { cost, parseRatio, parseUsd } from '../../../plugins/common/domain/money.ts';
import { flatBook, PriceVersion, versionAt } from '../../../plugins/common/domain/prices.ts';
import { fc } from '../../helpers/properties.ts';
import { attemptOf, entered, leaveWorlds, limits, newWorld, price, report, send } from './world.ts';

after(leaveWorlds);

const allowance = { tools: 0, images: 0, seconds: 0 };
const terms = {
  inputTokens: 1_000,
  allowance,
  prices: versionAt(flatBook(price, 'v1'), 0)!,
  at: 0,
  context: {},
  entry: undefined,
};
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

test('whatever the attempts cost, the client pays one at most, and the operator the sum of the others', () => {
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
        ...limits(1_000),
      });
      const { notes, writtenOff: absorbed } = share(attemptNotes(attempts, sent), attempts, verdict, terms);
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

test('concurrent attempts: the client pays the one that answered, whichever was sent last', () => {
  const [first, second] = [attemptOf('answered', 1), { ...attemptOf('unknown', 2), provider: 'other' }];
  const sent = [first, second].map((attempt) => ({ at: 0, ...attempt }));
  const attempts = [second, first];
  const ending = { attempts, sent, report: report({ input: 7, output: 3 }), ...limits(1_000) };
  const verdict = judge({ ...ending, outcome: 'complete' });
  assert.deepEqual([verdict.kind, verdict.reason], ['SETTLE', 'answered']);
  const { notes, writtenOff: absorbed } = share(attemptNotes(attempts, sent), attempts, verdict, terms);
  assert.deepEqual(
    notes.map(({ number, bearer, estimated }) => [number, bearer, estimated]),
    [
      [2, 'operator', true],
      [1, 'client', undefined],
    ],
  );
  assert.equal(absorbed, cost({ input: 1_000 }, price));
});

test('an attempt costs its seen usage; else, where it may have run, the prompt; a plain refusal is free', () => {
  const seen = { ...attemptOf('unknown', 1), consumed: { usage: { input: 7, output: 3 }, estimated: false } };
  const attempts = [seen, attemptOf('unknown', 2), attemptOf('refused', 3), attemptOf('answered', 4)];
  const sent = attempts.map((attempt) => ({ at: 0, ...attempt }));
  const settled = { kind: 'SETTLE', reason: 'answered', usage: {}, estimated: false, terminal: true } as const;
  const { notes, writtenOff: absorbed } = share(attemptNotes(attempts, sent), attempts, settled, terms);
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

test('an attempt is written off at the price of its own length and of the requested service, with the request and without ratio', () => {
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
  const requested = { ...terms, prices, context: { services: { tier: 'flex' } } };
  const { notes } = share(attemptNotes(attempts, sent), attempts, { kind: 'VOID', reason: 'unknown' }, requested);
  assert.deepEqual(
    notes.map(({ absorbed }) => absorbed),
    [String(parseUsd('0.506')), String(parseUsd('0.5005'))],
  );
});

test("the call's row has the written-off cost beside its cost, its attempts have their parts, and the audit finds inconsistent ones", async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  const first = await send(exchange);
  Object.assign(first, { result: 'unknown', consumed: { usage: { input: 900, output: 5 }, estimated: false } });
  Object.assign(await send(exchange), { result: 'answered', status: 200 });
  exchange.set(usageReport, report({ input: 900, output: 50 }));
  await exchange.end();
  await world.tick('write the ledger');
  const own = cost({ input: 900, output: 5 }, price);
  const rows = await world.rows(
    sql`select kind, revenue::text as revenue, funding::text as funding, absorbed::text as absorbed
        from ${world.table('movements')} join ${world.table('calls')} on id = request_id`,
  );
  const charge = cost({ input: 900, output: 50 }, price);
  assert.deepEqual(rows, [{ kind: 'CHARGE', revenue: `${charge}`, funding: '0', absorbed: `${own}` }]);
  const [row] = await world.rows<{ attempts: Record<string, unknown>[] }>(
    sql`select ${world.table('attempts_of')}(attempts, provider, target_model) as attempts from ${world.table('calls')}`,
  );
  assert.deepEqual(
    row!.attempts.map(({ number, bearer, absorbed, usage, estimated }) => ({
      number,
      bearer,
      absorbed,
      usage,
      estimated,
    })),
    [
      { number: 1, bearer: 'operator', absorbed: `${own}`, usage: { input: 900, output: 5 }, estimated: false },
      { number: 2, bearer: 'client', absorbed: undefined, usage: undefined, estimated: undefined },
    ],
  );
  assert.deepEqual((await world.audit()).violations, []);
  await world.stop();
  // Repeated after a crash, nothing of it is booked twice.
  await using again = await world.crash();
  assert.deepEqual((await again.audit()).violations, []);
  const calls = world.table('calls');
  const setFirst = async (changes: object) => {
    await again.rows(sql`alter table ${calls} disable trigger immutable`);
    await again.rows(
      sql`update ${calls} set attempts = json_build_array((${again.table('attempts_of')}(attempts, provider, target_model)->0)::jsonb || ${JSON.stringify(changes)}::text::jsonb, attempts->1)`,
    );
    await again.rows(sql`alter table ${calls} enable trigger immutable`);
  };
  const rulesBroken = async () => (await again.audit()).violations.map(({ rule }) => rule);
  await setFirst({ absorbed: `${own + 1n}` });
  assert.deepEqual(await rulesBroken(), ['M10']);
  await setFirst({ absorbed: '0', bearer: 'client' });
  assert.deepEqual(await rulesBroken(), ['M10', 'M10']);
});

test('an unreported class is written off at its highest possible price; a reported one at its own', () => {
  const image = { entries: [{ words: ['2k'], amount: parseUsd('0.05') }], otherwise: parseUsd('0.01') };
  const prices = new PriceVersion({ name: 'v1', base: {}, image });
  const absorbedOf = (estimated: boolean) => {
    const attempts = [{ ...attemptOf('unknown', 1), consumed: { usage: { image: 3 }, estimated } }];
    const sent = attempts.map((attempt) => ({ at: 0, ...attempt }));
    const refused = { kind: 'VOID', reason: 'unknown' } as const;
    return share(attemptNotes(attempts, sent), attempts, refused, { ...terms, prices }).writtenOff;
  };
  assert.deepEqual([absorbedOf(true), absorbedOf(false)], [parseUsd('0.15'), parseUsd('0.03')]);
});

const drawnPrice = fc
  .record({ input: fc.nat(5_000), output: fc.nat(5_000) })
  .map(({ input, output }) => ({ input: BigInt(input), output: BigInt(output) }));
const drawnRatio = fc.constantFrom(parseRatio('1'), parseRatio('1.6'), parseRatio('0.3'));

test('whichever model serves a call, its hold covers it, its price is charged, and earlier attempts are written off by theirs', () => {
  const models = fc.array(fc.record({ price: drawnPrice, ratio: drawnRatio }), { minLength: 2, maxLength: 4 });
  const used = fc.record({ input: fc.nat(1_000), output: fc.nat(500) });
  fc.assert(
    fc.property(models, used, fc.nat(3), (drawn, usage, turns) => {
      const all = drawn.map(({ price: own, ratio }, index): Terms => {
        const prices = new PriceVersion({ name: `v${index}`, base: own });
        const entry = { id: `m${index}`, targets: [] } as unknown as Model;
        const ids = { id: 'r', accountId: 'a', keyId: 'k', model: entry.id };
        return { ...terms, ...ids, prices, ratio, outputTokens: 500, entry };
      });
      const [first, ...others] = all;
      const requested: Terms = { ...first!, others };
      const hold = newHold(requested, firstHold(requested), undefined, 0);
      const served = others.slice(0, turns);
      for (const [index, { entry }] of served.entries()) assert.ok(serveBy(hold, entry!, index + 1));
      const last = served.at(-1) ?? requested;
      assert.equal(hold.terms.model, last.model);
      const attempts = [...served, last].map((_, index): Attempt => {
        const result = index === served.length ? 'answered' : 'unknown';
        return {
          ...attemptOf(result, index + 1),
          ...(index === served.length ? {} : { consumed: { usage, estimated: false } }),
        };
      });
      const sent = attempts.map((attempt) => ({ at: 0, ...attempt }));
      const verdict = judge({ attempts, sent, report: report(usage), outcome: 'complete', ...limits(1_000) });
      assert.ok(verdict.kind === 'SETTLE');
      const { writtenOff, notes } = share(attemptNotes(attempts, sent), attempts, verdict, hold.terms);
      const charge = chargeFor(hold.terms, verdict.usage, verdict, notes);
      assert.equal(charge.cost, cost(usage, last.prices.priced(0, usage, {}).price, last.ratio));
      assert.ok(charge.cost <= hold.held);
      const before = [requested, ...served].slice(0, -1);
      const lost = before.reduce((sum, { prices }) => sum + cost(usage, prices.priced(0, usage, {}).price), 0n);
      assert.equal(writtenOff, lost);
      // After a crash the journal alone knows the price.
      const again = holdOf(recordOf(holdText(newHold(requested, firstHold(requested), undefined, 0))), 1);
      servedAgain(again, servedTerms(hold.terms));
      assert.equal(chargeFor(again.terms, usage, {}, []).cost, charge.cost);
      assert.equal(again.terms.model, last.model);
      // A model of which no target could be asked has served nothing.
      assert.equal(termsOfAttempt(hold.terms, 0).model, 'm0');
    }),
  );
});

test('a model that the hold does not cover, or of another catalogue, cannot serve the call', () => {
  const entry = { id: 'm', targets: [] } as unknown as Model;
  const ids = { id: 'r', accountId: 'a', keyId: 'k', model: 'm', ratio: parseRatio('1'), outputTokens: 10 };
  const dear = { ...terms, ...ids, prices: new PriceVersion({ name: 'dear', base: { input: 10n ** 9n } }), entry };
  const requested: Terms = { ...terms, ...ids, others: [dear] };
  const hold = newHold(requested, parseUsd('0.000001'), undefined, 0);
  assert.equal(serveBy(hold, entry, 1), false);
  assert.equal(serveBy(newHold(requested, firstHold(requested), undefined, 0), { ...entry }, 1), false);
  assert.equal(hold.terms, requested);
});
