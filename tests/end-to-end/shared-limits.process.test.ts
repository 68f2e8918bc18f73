/** Two gateway processes with one Redis: one limit and one cache for both, and no error while the Redis is away. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { LiveProcesses } from '../../plugins/rate-limit/live-processes.ts';
import { type RunningVendor, startVendor } from '../../plugins/sandbox/vendor.ts';
import { databaseUrl } from '../helpers/database.ts';
import { hasRedis, startRedis, type TestRedis } from '../helpers/redis.ts';
import { type Fleet, gather } from './fleet.ts';
import { type Customer, modelAt, speaks, until } from './testbed.ts';

const rpm = 12;
const concurrency = 4;

// Two processes need a database of their own, and counters.
if (databaseUrl !== undefined && hasRedis) {
  describe('two processes with a Redis', () => {
    let sandbox: RunningVendor;
    let redis: TestRedis;
    let fleet: Fleet;

    before(async () => {
      [sandbox, redis] = await Promise.all([startVendor({ key: 'key' }), startRedis()]);
      fleet = await gather(
        {
          // Patient, so that a busy machine is not taken for a Redis that is away.
          storage: { counters_within: '500ms' },
          plans: {
            default: 'open',
            offers: {
              open: { price: 0 },
              limited: { price: 0, limits: { rpm } },
              narrow: { price: 0, limits: { concurrency } },
            },
          },
          providers: { sandbox: { keys: 'key', speaks: speaks(sandbox.origin) } },
          models: { sandbox: modelAt('sandbox'), cached: modelAt('sandbox') },
          cache: { store: 'redis', of: [{ models: ['cached'], keep: '1h', price: 0.1 }] },
        },
        2,
        { environment: { REDIS_URL: redis.url } },
      );
      await Promise.all(fleet.nodes.map((node) => node.start()));
      await until('both processes are counted', () => redis.command('zcard', countKey()) === '2', 10_000);
      // The one that came first hears of the other with its next word.
      await pause(LiveProcesses.intervalMs + 500);
    });
    after(async () => {
      await fleet.close();
      await redis.stop();
      await sandbox.close();
    });

    const countKey = () => redis.command('keys', '*:limits:processes');
    const customerOn = (plan: string) => fleet.runAsCommand((gateway) => gateway.customer({ plan }));

    async function send(index: number, { key }: Customer, prompt = 'Hello', model = 'sandbox'): Promise<number> {
      const answer = await fetch(`${fleet.nodes[index % 2]!.origin}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: prompt }], max_tokens: 20 }),
      });
      await answer.text();
      return answer.status;
    }

    const count = (statuses: readonly number[], status: number) => statuses.filter((each) => each === status).length;

    test('a limit of requests is shared by both', async () => {
      const customer = await customerOn('limited');
      const statuses = await Promise.all(Array.from({ length: 60 }, (_, index) => send(index, customer)));
      assert.equal(count(statuses, 200), rpm);
      assert.equal(count(statuses, 429), 60 - rpm);
    });

    test('slots are shared and released', async () => {
      const customer = await customerOn('narrow');
      for (let round = 0; round < 3; round++) {
        const slow = '[[sandbox: delay=400ms]] Hello';
        const statuses = await Promise.all(Array.from({ length: 20 }, (_, index) => send(index, customer, slow)));
        assert.equal(count(statuses, 200), concurrency, `round ${round}: ${statuses}`);
        assert.equal(count(statuses, 429), 20 - concurrency);
        await until('the slots are back', () => slotsTaken() === 0);
      }
    });

    function slotsTaken(): number {
      const keys = redis.command('keys', '*:concurrency').split('\n').filter(Boolean);
      return keys.reduce((sum, key) => sum + Number(redis.command('zcard', key)), 0);
    }

    test('equal calls at both: one reaches the vendor, and the others pay a tenth of its price', async () => {
      const customer = await customerOn('open');
      const slow = '[[sandbox: delay=400ms]] Hello';
      const statuses = await Promise.all(
        Array.from({ length: 40 }, (_, index) => send(index, customer, slow, 'cached')),
      );
      assert.equal(count(statuses, 200), 40);
      const charges = await until('all are in the ledger', async () => {
        const rows = await fleet.rows<{ cost: bigint; attempts: number; count: number }>(sql`
          select cost, json_array_length(attempts) as attempts, count(*)::int as count
          from ${fleet.table('calls')} where account_id = ${customer.accountId} group by 1, 2 order by 1`);
        return rows.reduce((sum, row) => sum + row.count, 0) === 40 ? rows : undefined;
      });
      const [hit, made] = charges;
      assert.deepEqual([hit!.count, hit!.attempts, made!.count, made!.attempts], [39, 0, 1, 1]);
      assert.equal(BigInt(hit!.cost), (2n * BigInt(made!.cost) + 10n) / 20n);
    });

    test('while Redis hangs each process admits its share without errors, then they count together again', async () => {
      const customer = await customerOn('limited');
      await send(0, customer);
      await send(1, customer);
      redis.pause();
      const statuses: number[] = [];
      for (let index = 0; index < 40; index++) statuses.push(await send(index, customer));
      redis.resume();
      assert.equal(count(statuses, 200) + count(statuses, 429), 40, `${statuses}`);
      // Half of the limit each, from a count of its own.
      assert.ok(count(statuses, 200) <= rpm, `${count(statuses, 200)} admitted`);
      await until(
        'they count together again',
        async () => {
          const fresh = await customerOn('limited');
          const seen = await Promise.all(Array.from({ length: 40 }, (_, index) => send(index, fresh)));
          return count(seen, 200) === rpm && count(seen, 429) === 40 - rpm;
        },
        30_000,
      );
    });

    test('a Redis that dies and returns empty costs no error', async () => {
      const customer = await customerOn('open');
      const calls: Promise<number>[] = [];
      const under = setInterval(() => void calls.push(send(calls.length, customer)), 10);
      await redis.kill();
      await pause(500);
      await redis.restart();
      redis.command('flushall');
      await pause(500);
      clearInterval(under);
      const statuses = await Promise.all(calls);
      assert.ok(statuses.length > 20);
      assert.deepEqual(new Set(statuses), new Set([200]));
    });
  });
}
