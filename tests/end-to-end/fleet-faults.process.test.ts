/** The PostgreSQL of two gateways fails under a small load: who has money is served, and no bill differs. `npm run test:fleet` has the other faults. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { send } from './fleet-load.ts';
import { canBreak, Stage } from './fleet-stage.ts';
import { until } from './testbed.ts';

if (canBreak) {
  describe('two processes whose PostgreSQL fails', () => {
    let stage: Stage;
    before(async () => {
      stage = await Stage.open();
    });
    after(() => stage.close());

    test('a database that crashes and returns costs no account with money an answer', async () => {
      await stage.during(async (load) => {
        await stage.postgres.crash();
        await load.more(60);
        await stage.postgres.start();
      });
      await stage.bothReady();
    });

    test('with a read-only database calls continue, incoming money fails without effect, and the ledger catches up', async () => {
      const setting = (value: string) => {
        stage.postgres.sql(`alter system set default_transaction_read_only = ${value}`);
        stage.postgres.sql('select pg_reload_conf()');
      };
      await stage.during(async (load, [customer]) => {
        setting('on');
        await load.more(60);
        await assert.rejects(stage.fleet.runAsCommand((gateway) => gateway.credit(customer!, 5n)));
        setting('off');
      });
      await stage.bothReady();
    });

    test('a database with half a second for each answer delays no account with money', async () => {
      let slowest = 0;
      await stage.during(async (load) => {
        stage.network.delayMs = 500;
        const from = load.answers.length;
        await load.more(150);
        stage.network.delayMs = 0;
        const took = load.answers.slice(from).map(({ tookMs }) => tookMs);
        slowest = took.toSorted((one, other) => one - other)[Math.floor(took.length * 0.9)]!;
      });
      assert.ok(slowest < 500, `nine in ten were answered within ${slowest} ms`);
    });

    test('a database with 2 s for each answer delays no known account with money, and one with 6 s an unknown key for a bounded time', async () => {
      const [stranger] = await stage.customers();
      let slowest = 0;
      await stage.during(
        async (load) => {
          const from = load.answers.length;
          stage.network.delayMs = 2_000;
          await load.more(40);
          // Later than a key is waited for: with less, a lookup on a connection that is open may still be in time.
          stage.network.delayMs = 6_000;
          const beganAt = performance.now();
          const answer = await send(stage.fleet.nodes[0]!.origin, stranger!);
          const tookMs = performance.now() - beganAt;
          await load.more(40);
          stage.network.delayMs = 0;
          assert.ok(tookMs < 12_000, `it took ${tookMs} ms`);
          assert.deepEqual([answer.status, answer.retryAfter], [503, '1'], answer.text);
          const took = load.answers.slice(from).map(({ tookMs }) => tookMs);
          slowest = took.toSorted((one, other) => one - other)[Math.floor(took.length * 0.9)]!;
        },
        // Slowly, so that the backlog's bound is not what is met.
        { pauseMs: 100 },
      );
      assert.ok(slowest < 1_000, `nine in ten were answered within ${slowest} ms`);
      await until('it is served', async () => (await send(stage.fleet.nodes[0]!.origin, stranger!)).status === 200);
    });
  });
}
