/** What a key may spend: never exceeded by a hold, correct after a restart, and asked of the database once for each key. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { keyOf, scopeOfKey } from '../../../plugins/billing/budgets/scope.ts';
import type { ShareRequest } from '../../../plugins/billing/budgets/shares.ts';
import { type ScopeShare, Tallies } from '../../../plugins/billing/budgets/tallies.ts';
import { caller, type KeyCap } from '../../../plugins/common/domain/accounts.ts';
import { type Authorization, authorization, authorizations } from '../../../plugins/common/domain/ledger.ts';
import { type Money, money, zero } from '../../../plugins/common/domain/money.ts';
import { type FakeExchange, type FakeHost, fakeHost, okAnswer } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import {
  answer,
  attemptOf,
  enter,
  entered,
  leaveWorlds,
  meterOf,
  newCall,
  newWorld,
  report,
  send,
  usd,
  type World,
} from './world.ts';

after(leaveWorlds);

const dayMs = 86_400_000;
const startOf: Record<KeyCap['every'], (at: number) => number> = {
  day: (at) => new Date(at).setUTCHours(0, 0, 0, 0),
  week: (at) => new Date(at).setUTCHours(0, 0, 0, 0) - ((new Date(at).getUTCDay() + 6) % 7) * dayMs,
  month: (at) => Date.UTC(new Date(at).getUTCFullYear(), new Date(at).getUTCMonth(), 1),
  ever: () => 0,
};

interface KeySpend {
  readonly settled: Money;
  readonly ordered: Money;
}

interface OpenOptions {
  readonly spentSince: (keyId: string, from: number) => Promise<KeySpend>;
  readonly limit?: number;
}

/** Caps of keys as one process has them that spends all. */
function openCaps(host: FakeHost, { spentSince, limit = 10 }: OpenOptions) {
  const read = async ({ accountId, scope, counted }: ShareRequest) => {
    const { settled, ordered } = await spentSince(counted!.spending.key!, counted!.from);
    const left = money(counted!.amount - settled - ordered);
    return [keyOf(accountId, scope), { amount: left, rest: left, elsewhere: zero, ordered }] as const;
  };
  const tallies = new Tallies({
    ...{ clock: host.clock, log: host.log, limit, times: undefined },
    drained: async () => {},
    take: async (requests) => new Map(await Promise.all(requests.map(read))),
    recall: () => assert.fail('there are no others'),
    returned: () => assert.fail('there are no others'),
  });
  return {
    enter: (keyId: string, cap: KeyCap, amount: Money) =>
      tallies.enter([scopeOfKey('alice', keyId, cap, undefined)], amount),
  };
}

/** The truth beside the caps: what ended when, and what the database would say of it. */
class Truth {
  readonly ends: { at: number; cost: bigint }[] = [];
  readonly running = new Map<ScopeShare, bigint>();
  ordered = 0n;

  settledSince(from: number): bigint {
    return this.ends.reduce((sum, { at, cost }) => (at >= from ? sum + cost : sum), 0n);
  }

  get held(): bigint {
    return [...this.running.values()].reduce((sum, held) => sum + held, 0n);
  }

  spend(from: number): KeySpend {
    return { settled: money(this.settledSince(from)), ordered: money(this.ordered) };
  }
}

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('enter' as const), amount: fc.bigInt(0n, 400n) }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat(20), cost: fc.bigInt(0n, 500n) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('grow' as const), which: fc.nat(20), amount: fc.bigInt(1n, 300n) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 7_000, dayMs / 3, 9 * dayMs) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('terms' as const),
      amount: fc.bigInt(1n, 2_000n),
      every: fc.constantFrom<KeyCap['every']>('day', 'week', 'month', 'ever'),
    }),
  },
);

test('no hold is admitted by which a key exceeds its cap, and none that fits is refused', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const host = fakeHost();
      const truth = new Truth();
      const open = () => openCaps(host, { spentSince: async (_key, from) => truth.spend(from) });
      let caps = open();
      let cap: KeyCap = { amount: money(1_000n), every: 'day' };
      for (const action of steps) {
        const share = 'which' in action ? [...truth.running.keys()][action.which] : undefined;
        if (action.do === 'wait') host.advance(action.ms);
        else if (action.do === 'terms') cap = { amount: money(action.amount), every: action.every };
        else if (action.do === 'restart') {
          // What a crash cut off is charged at the start.
          for (const held of truth.running.values()) truth.ends.push({ at: host.clock.now(), cost: held });
          truth.running.clear();
          caps = open();
        } else if (action.do === 'end' && share !== undefined) {
          truth.running.delete(share);
          truth.ends.push({ at: host.clock.now(), cost: action.cost });
          share.end(money(action.cost), host.clock.now(), 'm');
        } else if (action.do === 'grow' && share !== undefined) {
          if (!share.covers(money(action.amount))) continue;
          share.grow(money(action.amount));
          truth.running.set(share, truth.running.get(share)! + action.amount);
        } else if (action.do === 'enter') {
          const spent = truth.settledSince(startOf[cap.every](host.clock.now())) + truth.held + action.amount;
          try {
            const entered = await caps.enter('key', cap, money(action.amount));
            truth.running.set(entered, action.amount);
            assert.ok(spent <= cap.amount || action.amount === 0n, `${spent} was let in with a cap of ${cap.amount}`);
          } catch (error) {
            if ((error as GatewayError).code !== 'key_cap_reached') throw error;
            assert.ok(spent > cap.amount, `${spent} was refused with a cap of ${cap.amount}`);
          }
        }
      }
    }),
    { numRuns: 500 },
  );
});

test('a known key needs no query, and all calls before it is known share one', async () => {
  const host = fakeHost();
  let requestCount = 0;
  const spentSince = async () => {
    requestCount += 1;
    await setImmediate();
    return { settled: money(900n), ordered: zero };
  };
  const caps = openCaps(host, { spentSince });
  const cap: KeyCap = { amount: money(1_000n), every: 'day' };
  const first = await Promise.allSettled(Array.from({ length: 8 }, () => caps.enter('key', cap, money(30n))));
  assert.equal(requestCount, 1);
  assert.equal(first.filter(({ status }) => status === 'fulfilled').length, 3);
  host.advance(3_600_000);
  assert.throws(() => caps.enter('key', cap, money(30n)), { code: 'key_cap_reached' });
  assert.ok(!(caps.enter('key', cap, money(10n)) instanceof Promise));
  host.advance(dayMs);
  assert.ok(!(caps.enter('key', cap, money(900n)) instanceof Promise), 'of a new day everything is known');
  assert.equal(requestCount, 1);
});

test("while a key's spend cannot be read it gets 503, and a known key is served", async () => {
  const host = fakeHost();
  let away = true;
  const spentSince = async () => {
    if (away) throw new Error('away');
    return { settled: zero, ordered: money(1n) };
  };
  const caps = openCaps(host, { spentSince });
  const cap: KeyCap = { amount: money(1_000n), every: 'day' };
  await assert.rejects(async () => caps.enter('key', cap, money(1n)), { status: 503, code: 'key_spend_unavailable' });
  away = false;
  await caps.enter('key', cap, money(1n));
  away = true;
  // What an order holds may be free again, so it is read before long.
  host.advance(60_000);
  (await caps.enter('key', cap, money(1n))).end(zero, host.clock.now(), 'm');
  assert.match(host.lines.at(-1)!.message, /could not be refreshed/);
  assert.ok(!(caps.enter('key', cap, money(1n)) instanceof Promise), 'no one else waits for the time being');
});

test('keys in memory are bounded; those that run calls stay', async () => {
  const host = fakeHost();
  const requests: string[] = [];
  const spentSince = async (keyId: string) => {
    requests.push(keyId);
    return { settled: zero, ordered: zero };
  };
  const caps = openCaps(host, { spentSince, limit: 2 });
  const cap: KeyCap = { amount: money(1_000n), every: 'day' };
  const busy = await caps.enter('busy', cap, money(600n));
  (await caps.enter('idle', cap, money(1n))).end(zero, host.clock.now(), 'm');
  const other = await caps.enter('other', cap, money(1n));
  assert.throws(() => caps.enter('busy', cap, money(600n)), { code: 'key_cap_reached' });
  assert.throws(() => caps.enter('fourth', cap, money(1n)), { kind: 'overloaded' });
  other.end(zero, host.clock.now(), 'm');
  await caps.enter('fourth', cap, money(1n));
  busy.end(zero, host.clock.now(), 'm');
  assert.deepEqual(requests, ['busy', 'idle', 'other', 'fourth']);
});

const capOf = (text: string, every: KeyCap['every'] = 'day'): KeyCap => ({ amount: usd(text), every });

/** The call of `newCall` (a hold of 0.003 USD) by a key with a cap. */
function capped(cap: KeyCap, more: Parameters<typeof newCall>[0] = {}): FakeExchange {
  const who = { accountId: 'alice', keyId: 'key-1', plan: 'free', models: undefined, cap };
  return newCall({ ...more, facts: [[caller, who]] });
}

async function refusal(promise: Promise<unknown>): Promise<GatewayError> {
  return promise.then(
    () => assert.fail('nothing was refused'),
    (error: unknown) => error as GatewayError,
  );
}

test("a call beyond its key's cap is refused with 402 by name, and leaves no row", async () => {
  await using world = await newWorld({ credit: '1' });
  const cap = capOf('0.005');
  const first = capped(cap);
  await enter(world, first);
  const error = await refusal(enter(world, capped(cap)));
  assert.deepEqual([error.status, error.code, error.shouldRetry], [402, 'key_cap_reached', false]);
  assert.match(
    error.message,
    /^The rest of this key's spend cap, 0\.005 USD a day, .* It frees at 2027-01-16T00:00:00/,
  );
  await answer(first, { input: 500, output: 50 });
  const second = capped(cap);
  await enter(world, second);
  await answer(second, { input: 1_000, output: 100 });
  assert.equal((await refusal(enter(world, capped(cap)))).status, 402);
  await enter(world, newCall());
  assert.deepEqual((await world.audit()).violations, []);
});

test('500 parallel calls of a key with a cap for 50: exactly 50 are admitted in any order', async () => {
  await using world = await newWorld({ credit: '10' });
  const cap = capOf('0.15');
  const calls = Array.from({ length: 500 }, () => capped(cap));
  const outcomes = await Promise.allSettled(calls.map((exchange) => enter(world, exchange)));
  const admitted = calls.filter((_, index) => outcomes[index]!.status === 'fulfilled');
  assert.equal(admitted.length, 50);
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') assert.equal((outcome.reason as GatewayError).code, 'key_cap_reached');
  for (const exchange of admitted) await answer(exchange, { input: 1_000, output: 100 });
  await world.tick('write the ledger');
  const [spent] = await world.rows<{ cost: string }>(sql`select sum(cost)::text as cost from ${world.table('calls')}`);
  assert.equal(spent!.cost, cap.amount.toString());
  assert.equal((await refusal(enter(world, capped(cap)))).status, 402);
});

test("a key's spend is known after a crash, with the calls that it cut off", async () => {
  const world = await newWorld({ credit: '1' });
  const cap = capOf('0.0085', 'month');
  const first = capped(cap);
  await enter(world, first);
  await answer(first, { input: 1_000, output: 100 });
  const cut = capped(cap);
  await enter(world, cut);
  await send(cut);
  assert.equal((await refusal(enter(world, capped(cap)))).status, 402);
  await using next = await world.crash();
  // 0.003 settled, 0.002 for the prompt of the one that was cut off: 0.0035 are left.
  const third = capped(cap);
  await enter(next, third);
  assert.equal((await refusal(enter(next, capped(cap)))).status, 402);
  await answer(third, { input: 1_000, output: 100 });
  assert.equal((await refusal(enter(next, capped(cap)))).status, 402);
  await enter(next, capped(capOf('0.011', 'month')));
});

test('spend that never reached the database counts when a key is read', async () => {
  await using world = await newWorld({ credit: '1' });
  for (let count = 0; count < 3; count++) {
    const exchange = await entered(world);
    await answer(exchange, { input: 1_000, output: 100 });
  }
  // The key gets its cap now; 0.009 are spent, of which no batch has reported.
  assert.equal((await refusal(enter(world, capped(capOf('0.0119'))))).status, 402);
  await enter(world, capped(capOf('0.012')));
});

test('a call that was admitted before its key had a cap counts against it at its end', async () => {
  await using world = await newWorld({ credit: '1' });
  const [before, cap] = [newCall(), capOf('0.0059')];
  await enter(world, before);
  const first = capped(cap);
  await enter(world, first);
  await first.end();
  await answer(before, { input: 1_000, output: 100 });
  assert.equal((await refusal(enter(world, capped(cap)))).code, 'key_cap_reached');
});

test('a call whose hold is refused for another reason releases its part of the cap', async () => {
  await using world = await newWorld({ credit: '0.002' });
  const cap = capOf('0.003');
  assert.equal((await refusal(enter(world, capped(cap)))).code, 'insufficient_balance');
  await world.credit('1');
  await enter(world, capped(cap));
});

test('a running answer is extended up to the cap and no further', async () => {
  await using world = await newWorld({ credit: '1', section: { hold: { output_tokens: 100 } } });
  const cap = capOf('0.01');
  const exchange = capped(cap, { call: { stream: true, maxOutputTokens: 100_000 } });
  await enter(world, exchange);
  Object.assign(await send(exchange), { result: 'answered', status: 200 });
  let seen = 0;
  while (meterOf(exchange).observe(seen + 10)) seen += 10;
  // 0.002 for the prompt, 0.008 for 800 tokens of answer.
  assert.equal(seen, 800);
  await exchange.end();
  await world.tick('write the ledger');
  // The chunk of ten tokens by which it was noticed has been made already.
  assert.equal(await world.balance(), usd('0.9899'));
});

async function offered(world: World, cap: KeyCap): Promise<Authorization> {
  const call = capped(cap);
  const later = { ...call, endpoint: { ...call.endpoint, deferred: true } } as FakeExchange;
  await world.part.handle!(later, async () => okAnswer);
  return later.get(authorization);
}

test('orders count from their placing to their end, also those of an earlier process', async () => {
  const world = await newWorld({ credit: '1' });
  const cap = capOf('0.007', 'ever');
  const nothing = async () => {};
  const placed = await offered(world, cap);
  await placed.place(nothing);
  await (await offered(world, cap)).place(nothing);
  assert.equal((await refusal((await offered(world, cap)).place(nothing))).code, 'key_cap_reached');
  await using next = await world.crash();
  assert.equal((await refusal(enter(next, capped(cap)))).code, 'key_cap_reached');
  const given = { report: undefined, reason: 'cancelled', attempts: [] };
  await next.host.get(authorizations).end('alice', placed.id, async () => given);
  next.host.advance(1_000);
  await enter(next, capped(cap));
  const charged = { report: report({ input: 500, output: 50 }), reason: 'answered', attempts: [attemptOf('answered')] };
  assert.equal((await refusal((await offered(next, cap)).place(nothing))).code, 'key_cap_reached');
  next.host.advance(1_000);
  const failing = (await offered(next, capOf('1', 'ever'))).place(async () => {
    throw new Error('no');
  });
  await assert.rejects(failing, /no/);
  const last = await offered(next, capOf('1', 'ever'));
  await last.place(nothing);
  await next.host.get(authorizations).end('alice', last.id, async () => charged);
  next.host.advance(1_000);
  // One order and one call of 0.003 each run, 0.0015 are charged.
  assert.equal((await refusal(enter(next, capped(capOf('0.0104', 'ever'))))).code, 'key_cap_reached');
  next.host.advance(1_000);
  await enter(next, capped(capOf('0.0105', 'ever')));
});
