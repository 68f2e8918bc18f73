/** Counters in a real Redis: the same decisions as in memory, in a cluster too, and a share of the limits when they are away. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Exchange } from '../../../core/contract/contract.ts';
import { CountedLimiter } from '../../../plugins/rate-limit/counted.ts';
import type { Receipt } from '../../../plugins/rate-limit/decide.ts';
import type { Demand, Verdict } from '../../../plugins/rate-limit/limiter.ts';
import { MemoryLimiter } from '../../../plugins/rate-limit/memory.ts';
import { SharedLimiter } from '../../../plugins/rate-limit/shared.ts';
import { returnAtEnd } from '../../../plugins/rate-limit/slots.ts';
import { type OpenedCounters, openCounters } from '../../../plugins/storage/counters.ts';
import { watchDelay } from '../../helpers/delay.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import { hasRedis, startRedis, startRedisCluster, type TestRedis } from '../../helpers/redis.ts';

/** Defines nothing on a machine without a server; CI installs one. */
const whereRedisIs = (name: string, define: () => void): void => {
  if (hasRedis) describe(name, define);
};

/** What is compared call by call must not depend on how busy the machine is. */
const patientMs = 10_000;

const perMinute = (group: string, limit: number, units = 1, dimension: Demand['dimension'] = 'rpm'): Demand => ({
  subject: group,
  group,
  dimension,
  limit,
  periodMs: 60_000,
  units,
});
const slot = (group: string, limit: number): Demand => ({
  subject: group,
  group,
  dimension: 'concurrency',
  limit,
  periodMs: 0,
  units: 1,
  slotLifetimeMs: 5_000,
});

/** One call of a trace: it waits, asks, and later gives back in an order of its own. */
const steps = fc.array(
  fc.record({
    waitMs: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 90_000 })),
    account: fc.constantFrom('a', 'b'),
    key: fc.boolean(),
    tokens: fc.integer({ min: 0, max: 90 }),
    limits: fc.record({
      rpm: fc.integer({ min: 0, max: 8 }),
      tpm: fc.integer({ min: 1, max: 100 }),
      concurrency: fc.integer({ min: 0, max: 3 }),
    }),
    usedTokens: fc.integer({ min: 0, max: 150 }),
    endsAfter: fc.integer({ min: 0, max: 4 }),
  }),
  { minLength: 1, maxLength: 40 },
);

whereRedisIs('a Redis with a password', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startRedis();
    redis.command('config', 'set', 'requirepass', 'right');
  });
  after(() => redis.stop());

  test('a wrong or missing password ends the start with a sentence that names the setting; the right one does not', async () => {
    const outcomes = [];
    for (const user of [':wrong@', '', ':right@']) {
      const host = fakeHost();
      const counters = openCounters(redis.url.replace('//', `//${user}`), host, patientMs);
      outcomes.push((await counters.refusal())?.replace(/ gateway: (\w+).*/, ' gateway: $1'));
      assert.deepEqual(host.lines, []);
      await counters.close();
    }
    const refused = `The counters ${redis.url} (storage.counters) refuse this gateway:`;
    assert.deepEqual(outcomes, [`${refused} WRONGPASS`, `${refused} NOAUTH`, undefined]);
  });

  test('a server that is away does not end the start, and is one log line without a stack', async () => {
    const host = fakeHost();
    const counters = openCounters('redis://:secret-word@127.0.0.1:1', host, patientMs);
    assert.equal(await counters.refusal(), undefined);
    const said = JSON.stringify(host.lines);
    assert.match(said, /redis:\/\/127\.0\.0\.1:1.*storage\.counters/);
    assert.doesNotMatch(said, /secret-word|stack/);
    await counters.close();
  });
});

whereRedisIs('counters in a Redis', () => {
  let redis: TestRedis;
  let counters: OpenedCounters;
  before(async () => {
    redis = await startRedis();
    counters = await ready(openCounters(redis.url, fakeHost(), patientMs));
  });
  after(async () => {
    await counters.close();
    await redis.stop();
  });

  test('Redis decides as memory does, call by call, on any trace', async () => {
    let trace = 0;
    await fc.assert(
      fc.asyncProperty(steps, async (calls) => {
        const host = fakeHost();
        // Both count from the same moment; a bucket that was never seen has the time of its first use.
        host.advance(1_000_000);
        const memory = new MemoryLimiter(host.clock);
        const now = () => Math.floor(host.clock.monotonic());
        trace += 1;
        const counted = new CountedLimiter(counters, `trace${trace}:`, now);
        const open: { endsAt: number; finish: () => Promise<void> }[] = [];
        for (const [index, call] of calls.entries()) {
          host.advance(call.waitMs);
          for (const ending of open.filter(({ endsAt }) => endsAt <= index)) await ending.finish();
          const demands = demandsOf(call);
          const [one, other] = [memory.take(`${index}`, demands), await counted.take(`${index}`, demands)];
          assert.deepEqual(summary(other), summary(one), `call ${index}`);
          if (!one.granted) continue;
          open.push({
            endsAt: index + call.endsAfter,
            finish: once(async () => {
              const returned = (receipts: readonly Receipt[]) =>
                demands.flatMap((demand, place) =>
                  demand.dimension === 'concurrency' || demand.dimension === 'tpm'
                    ? [
                        {
                          demand,
                          receipt: receipts[place]!,
                          usedUnits: demand.dimension === 'tpm' ? call.usedTokens : 0,
                        },
                      ]
                    : [],
                );
              memory.giveBack(`${index}`, returned(one.receipts));
              await counted.giveBack(`${index}`, returned(other.receipts));
            }),
          });
        }
      }),
      { numRuns: 600 },
    );
  });

  test('400 concurrent calls by four processes on a limit of 50: exactly 50 are granted', async () => {
    const processes = await Promise.all([0, 1, 2, 3].map(() => ready(openCounters(redis.url, fakeHost(), patientMs))));
    const limiters = processes.map((each) => new CountedLimiter(each, 'parallel:'));
    const verdicts = await Promise.all(
      Array.from({ length: 400 }, (_, id) => limiters[id % 4]!.take(`${id}`, [perMinute('a', 50), slot('a', 400)])),
    );
    assert.equal(verdicts.filter(({ granted }) => granted).length, 50);
    await Promise.all(processes.map((each) => each.close()));
  });

  test('a slot that a dead process held is free after its lifetime', async () => {
    let now = 1_000;
    const limiter = new CountedLimiter(counters, 'dead:', () => now);
    assert.equal((await limiter.take('lost', [slot('a', 1)])).granted, true);
    now += 4_999;
    assert.equal((await limiter.take('next', [slot('a', 1)])).granted, false);
    now += 1;
    assert.equal((await limiter.take('next', [slot('a', 1)])).granted, true);
  });

  test('scripts that the server has dropped are sent again', async () => {
    const limiter = new CountedLimiter(counters, 'flushed:');
    assert.equal((await limiter.take('1', [perMinute('a', 2)])).granted, true);
    redis.command('script', 'flush');
    assert.equal((await limiter.take('2', [perMinute('a', 2)])).granted, true);
    assert.equal((await limiter.take('3', [perMinute('a', 2)])).granted, false);
    // The one that empties the counters forgives what was counted, and nothing breaks.
    redis.command('flushall');
    assert.equal((await limiter.take('4', [perMinute('a', 2)])).granted, true);
  });

  test('while it is stopped each of four processes admits its quarter, without waiting; then they count together again', async (t) => {
    const own = await startRedis();
    t.after(() => own.stop());
    const shared = await ready(openCounters(own.url, fakeHost(), 50));
    t.after(() => shared.close());
    const host = fakeHost();
    const counted = new CountedLimiter(shared, 'away:');
    const { clock } = host;
    const limiter = new SharedLimiter({ counted, memory: new MemoryLimiter(clock), processes: () => 4, clock });
    assert.equal((await limiter.take('before', [perMinute('a', 40)])).granted, true);
    own.pause();
    const delay = watchDelay();
    const startedAt = performance.now();
    const verdicts: Verdict[] = [];
    for (let id = 0; id < 60; id++) verdicts.push(await limiter.take(`away ${id}`, [perMinute('a', 40)]));
    const tookMs = performance.now() - startedAt;
    assert.equal(verdicts.filter(({ granted }) => granted).length, 10);
    // Three answers are waited for, 50 ms each; the rest asks no one.
    assert.ok(tookMs < delay.allowedMs(1_500), `${tookMs} ms`);
    assert.equal(verdicts.at(-1)!.refusedBy?.limit, 40, 'the refusal names the limit as it was sold');
    own.resume();
    host.advance(1_001);
    await eventually(async () => {
      const verdict = await limiter.take('back', [perMinute('b', 40)]);
      host.advance(1_001);
      return !limiter.isOpen && verdict.granted;
    });
  });

  test('the state of Redis is shown and logged by one line at each end of an outage: killed, silent, and refusing the password', async (t) => {
    const own = await startRedis();
    t.after(() => own.stop());
    const host = fakeHost();
    const shared = openCounters(own.url, host, 100);
    t.after(() => shared.close());
    assert.equal(shared.healthy(), false, 'there is no connection yet');
    await ready(shared);
    assert.equal(shared.healthy(), true);
    const ping = () => shared.run({ name: 'gatewayPing', lua: 'return 1' }, ['{ping}'], []).catch(() => undefined);
    const wrong = { name: 'gatewayWrong', lua: 'return nothing.here' };
    for (let times = 0; times < 5; times++) await assert.rejects(shared.run(wrong, ['{ping}'], []));
    assert.equal(shared.healthy(), true, 'a script that fails is no outage');
    const goes = async (leave: () => unknown, back: () => unknown) => {
      host.lines.length = 0;
      await leave();
      await eventually(async () => (await ping()) === undefined && !shared.healthy());
      for (let times = 0; times < 10; times++) await ping();
      await back();
      await eventually(async () => (await ping()) !== undefined && shared.healthy());
      assert.deepEqual(
        host.lines.map(({ message }) => message),
        ['the counters do not answer; each process counts by itself', 'the counters answer again'],
      );
    };
    await goes(
      () => own.kill(),
      () => own.restart(),
    );
    await goes(
      () => own.pause(),
      () => own.resume(),
    );
    await goes(
      () =>
        own.command('config', 'set', 'requirepass', 'x') && own.command('-a', 'x', 'client', 'kill', 'type', 'normal'),
      () => own.command('-a', 'x', 'config', 'set', 'requirepass', ''),
    );
  });

  test('a server that is killed and returns empty causes no error', async (t) => {
    const own = await startRedis();
    t.after(() => own.stop());
    const shared = await ready(openCounters(own.url, fakeHost(), 50));
    t.after(() => shared.close());
    const host = fakeHost();
    const counted = new CountedLimiter(shared, 'killed:');
    const { clock } = host;
    const limiter = new SharedLimiter({ counted, memory: new MemoryLimiter(clock), processes: () => 1, clock });
    const first = await limiter.take('1', [perMinute('a', 5), slot('a', 2)]);
    await own.kill();
    for (let id = 0; id < 4; id++)
      assert.equal((await limiter.take(`k${id}`, [perMinute('a', 5), slot('c', 9)])).granted, true);
    await first.by.giveBack('1', [{ demand: slot('a', 2), receipt: first.receipts[1]!, usedUnits: 0 }]);
    await own.restart();
    await eventually(async () => {
      host.advance(1_001);
      await limiter.take('again', [perMinute('d', 5)]);
      return !limiter.isOpen;
    });
  });
});

test('a call queries the counters once before and once at its end, whatever it returns', async () => {
  const requests: string[] = [];
  const reply = ['-1', '0', ...Array<string>(12).fill('1')];
  const limiter = new CountedLimiter(
    {
      run: async ({ name }) => {
        requests.push(name);
        return reply;
      },
      healthy: () => true,
      awayMs: () => 0,
    },
    'counted:',
  );
  const demands = [perMinute('a', 5), perMinute('a', 5, 1, 'tpm'), slot('a', 2)];
  const ends: (() => unknown)[] = [];
  const exchange = { id: '1', find: () => undefined, defer: (work: () => unknown) => void ends.push(work) };
  returnAtEnd(await limiter.take('1', demands), exchange as unknown as Exchange, demands);
  for (const end of ends) await end();
  assert.deepEqual(requests, ['gatewayTake', 'gatewayGiveBack']);
});

whereRedisIs('a cluster of Redis', () => {
  test('the buckets of one operation are kept together', async (t) => {
    const cluster = await startRedisCluster();
    t.after(() => cluster.stop());
    const counters = await ready(openCounters(cluster.urls, fakeHost(), patientMs));
    t.after(() => counters.close());
    const limiter = new CountedLimiter(counters, 'cluster:');
    for (const account of ['a', 'b', 'c', 'd', 'e']) {
      const demands = [
        perMinute(account, 2),
        { ...perMinute(account, 2, 10, 'tpm'), subject: `key of ${account}` },
        slot(account, 9),
      ];
      const verdict = await limiter.take('1', demands);
      assert.equal(verdict.granted, true);
      const returned = [1, 2].map((at) => ({ demand: demands[at]!, receipt: verdict.receipts[at]!, usedUnits: 0 }));
      await limiter.giveBack('1', returned);
      assert.equal((await limiter.take('2', [perMinute(account, 2)])).granted, true);
      assert.equal((await limiter.take('3', [perMinute(account, 2)])).granted, false);
    }
  });
});

function demandsOf({
  account,
  key,
  tokens,
  limits,
}: {
  account: string;
  key: boolean;
  tokens: number;
  limits: { rpm: number; tpm: number; concurrency: number };
}): Demand[] {
  const demands = [
    perMinute(account, limits.rpm),
    perMinute(account, limits.tpm, tokens, 'tpm'),
    slot(account, limits.concurrency),
  ];
  return key ? [...demands, { ...perMinute(account, limits.rpm), subject: `key of ${account}` }] : demands;
}

/** What a caller sees of a verdict; the time at which a bucket was looked at is no part of it. */
function summary({ granted, refusedBy, retryAfterMs, statuses: standings, receipts }: Verdict) {
  const marks = receipts.map(({ charged, sinceMs }: Receipt) => ({ charged, sinceMs }));
  const isSlot = (index: number) => standings[index]!.dimension === 'concurrency';
  return { granted, refusedBy, retryAfterMs, standings, marks: marks.filter((_, index) => !isSlot(index)) };
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done = false;
  return async () => {
    if (done) return;
    done = true;
    await work();
  };
}

/** Counters that have answered once. */
async function ready(counters: OpenedCounters): Promise<OpenedCounters> {
  await eventually(async () => {
    try {
      await counters.run({ name: 'gatewayPing', lua: 'return 1' }, ['{ping}'], []);
      return true;
    } catch {
      return false;
    }
  });
  return counters;
}

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail('it did not come true in ten seconds');
}
