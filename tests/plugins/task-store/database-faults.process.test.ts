/** The database fails at one statement of an order after the other: each order is refused cleanly and costs nothing, or is carried out. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, mock, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { database, markUndecided } from '../../../plugins/common/domain/database.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { unavailable } from '../../../plugins/storage/passing.ts';
import { Pool, type Runner, type Statement } from '../../../plugins/storage/pool.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';
import { type Client, clientOf, png } from './clients.ts';

const vendor = createServer((incoming, outgoing) => {
  incoming.resume();
  outgoing.writeHead(200, { 'content-type': 'application/json' });
  outgoing.end(JSON.stringify({ created: 1, data: [{ b64_json: png.toString('base64') }], output_format: 'png' }));
});

/** `before`: the statement is not run; `after`: it is, and its answer is lost; `away`: none is run for a while from it on. */
type Manner = 'before' | 'after' | 'away';
const awayMs = 300;

/** Counts the statements of all that is not regular work, and fails at one of them. */
class Faults {
  manner: Manner = 'before';
  left = Number.POSITIVE_INFINITY;
  #awayUntil = 0;

  async around<T>(text: string, work: () => Promise<T>): Promise<T> {
    if (performance.now() < this.#awayUntil) throw unavailable('the database is away');
    if (regular.test(text)) return work();
    this.left -= 1;
    if (this.left !== 0) return work();
    if (this.manner === 'away') this.#awayUntil = performance.now() + awayMs;
    if (this.manner === 'after') await work();
    throw unavailable('the connection was lost');
  }

  get isAway(): boolean {
    return performance.now() < this.#awayUntil;
  }
}
/** Polls, and what is written beside orders. */
const regular = /changes where id >|with due as|jsonb_populate_recordset|last_used|journal_cursor|keyed_calls set/;

const faults = new Faults();
const { run, transaction } = Pool.prototype;
mock.method(Pool.prototype, 'run', function (this: Pool, statement: Statement) {
  return faults.around(statement.text, () => run.call(this, statement));
});
mock.method(Pool.prototype, 'transaction', async function (this: Pool, work: (runner: Runner) => Promise<unknown>) {
  const commit = async (isDone: boolean) => {
    if ((faults.manner === 'after') !== isDone) return;
    await faults
      .around('commit', async () => [])
      .catch((error: unknown) => {
        throw isDone ? markUndecided(error) : error;
      });
  };
  const within = async (runner: Runner) => {
    const result = await work({ run: (statement) => faults.around(statement.text, () => runner.run(statement)) });
    await commit(false);
    return result;
  };
  const result = await transaction.call(this, within);
  await commit(true);
  return result;
});

let gateway: TestGateway;
let alice: Client;

before(async () => {
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
  gateway = await startGateway(`
gateway: faults
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, rate-limit, providers, models, idempotency, billing, route, files, task-store]
auth: { public: [] }
plans: { default: free, offers: { free: { price: 0, limits: { rpm: 1000000 } } } }
providers: { painter: { keys: key, speaks: { openai-images: "http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1" } } }
models: { paint: { owned_by: tests, kind: image, targets: [painter/p1], price: { image: 0.01 } } }
files: { fetch: { allow_private: true } }
task-store: { lease: 5s, poll: { first: 20ms, longest: 50ms }, retry: { first: 20ms, longest: 100ms } }
`);
  alice = await clientOf(gateway, 'alice');
});
after(async () => {
  await gateway?.stop();
  vendor.close();
  mock.restoreAll();
});

const rows = async <Row>(query: (schema: string) => string): Promise<Row[]> => {
  const store = gateway.gateway.find(database)!;
  return [...((await store.orm.execute(sql.raw(query(store.schema)))) as unknown as Row[])];
};

/** The states of the tasks with this prompt, once all have ended and no money is set aside. */
const endOf = (prompt: string) =>
  until(`the end of ${prompt}`, async () => {
    const tasks = await rows<{ state: string }>(
      (schema) => `select state from ${schema}.tasks where order_head->>'prompt' = '${prompt}'`,
    );
    const held = await rows((schema) => `select 1 from ${schema}.deposits`);
    const states = tasks.map(({ state }) => state);
    return held.length === 0 && states.every((state) => state === 'completed' || state === 'failed')
      ? states
      : undefined;
  });

const forms = [
  { manner: 'before', who: 'asks later', more: {}, headers: () => ({}) },
  { manner: 'after', who: 'waits', more: { response_format: 'b64_json' }, headers: () => ({}) },
  { manner: 'away', who: 'has a key', more: {}, headers: (prompt: string) => ({ 'idempotency-key': prompt }) },
] as const;

for (const { manner, who, more, headers } of forms) {
  test(`an order of a client who ${who} survives a database failure at each statement (${manner})`, async () => {
    let taken = 0;
    // What fails after the order was taken is the worker's: `queue.test.ts` has it fail at each of its statements.
    for (let at = 1; taken < 3 && (await orderWithFault(at)); at += 1);
    assert.ok(taken > 0);

    /** False: the order needs fewer statements. */
    async function orderWithFault(left: number): Promise<boolean> {
      const prompt = `${manner} ${left}`;
      const balance = await alice.balance();
      Object.assign(faults, { manner, left });
      const order = { model: 'paint', prompt, ...more };
      const reply = await alice.send('POST', '/v1/images/generations', order, headers(prompt));
      const isReached = faults.left <= 0;
      faults.left = Number.POSITIVE_INFINITY;
      const isBack = () => !faults.isAway && gateway.gateway.find(database)!.healthy();
      await until('the database', async () => isBack() || undefined);
      const states = await endOf(prompt);
      const what = `${prompt}: ${reply.status} ${JSON.stringify(reply.json).slice(0, 300)} ${states}`;
      if (reply.status === 200) {
        taken += 1;
        assert.deepEqual(states, ['completed'], what);
      } else {
        assert.deepEqual([reply.status, typeof reply.json.error.message, states], [503, 'string', []], what);
        assert.ok(Number(reply.headers.get('retry-after')) >= 1, what);
      }
      await alice.hasPaid(balance, reply.status === 200 ? parseUsd('0.01') : 0n);
      return isReached;
    }
  });
}
