/** Four gateway processes on one PostgreSQL: no account is spent beyond its balance, even when one of them dies; a revoked key is refused. */
import assert from 'node:assert/strict';
import { after, before, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { formatUsd, money } from '../../plugins/common/domain/money.ts';
import { type RunningVendor, startVendor as startSandbox } from '../../plugins/sandbox/vendor.ts';
import { databaseUrl, testOnServer } from '../helpers/database.ts';
import { startVendor, type Vendor } from '../helpers/vendor.ts';
import { type Fleet, gather } from './fleet.ts';
import { traceLeases } from './lease-trace.ts';
import { type Customer, modelAt, readReply, speaks, until } from './testbed.ts';

let sandbox: RunningVendor;
let replay: Vendor;
let fleet: Fleet;
/** What has been started, to be ended in the opposite order. */
const ends: (() => Promise<unknown>)[] = [];

// One process owns an embedded database: there is nothing to share.
if (databaseUrl !== undefined) {
  // After a start that failed nothing else runs here: what has been started would keep this process alive.
  before(async () => {
    try {
      await start();
    } catch (error) {
      await close();
      throw error;
    }
  });
  after(close);
}

async function start(): Promise<void> {
  sandbox = await startSandbox({ key: 'key' });
  ends.push(() => sandbox.close());
  replay = await startVendor();
  ends.push(() => replay.stop());
  const sections = {
    plans: {
      default: 'open',
      offers: {
        open: { price: 0 },
        small: { price: 0, grant: { amount: 1, every: 'month' }, windows: { '5h': 0.002, week: 0.9 } },
      },
    },
    providers: {
      sandbox: { keys: 'key', speaks: speaks(sandbox.origin) },
      replay: { keys: 'key', speaks: speaks(replay.origin) },
    },
    models: { sandbox: modelAt('sandbox'), replay: modelAt('replay') },
    billing: { budgets: [{ of: 'project', name: 'eval', amount: formatUsd(money(evalBudget)), every: 'month' }] },
  };
  fleet = await gather(sections, 4);
  ends.push(() => fleet.close());
  await Promise.all(fleet.nodes.map((node) => node.start()));
}

async function close(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

async function send(origin: string, { key }: Customer, model: string, prompt: string, more: object = {}) {
  const answer = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: prompt }], ...more }),
  });
  return readReply(answer);
}

const originOf = (index: number) => fleet.nodes[index % fleet.nodes.length]!.origin;
const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
const message = { role: 'assistant', content: 'Hello' };
const choices = [{ index: 0, message, finish_reason: 'stop' }];
const wholeAnswer = JSON.stringify({ id: 'c1', object: 'chat.completion', choices, usage });
/** 7 input tokens at 1,000 nano-USD and 3 output tokens at 2,000. */
const wholeCost = 13_000n;

const leases = () =>
  fleet.rows<{ account_id: string; amount: bigint; open: bigint }>(sql`select * from ${fleet.table('leases')}`);
const balanceOf = async ({ accountId }: Customer) => {
  const balances = fleet.table('balances');
  const [row] = await fleet.rows<{ balance: bigint; held: bigint }>(
    sql`select balance, held from ${balances} where account_id = ${accountId}`,
  );
  return row!;
};
/** Waits until so many of the account's calls have ended in the database, and no process holds money for others. */
async function settled({ accountId }: Customer, ends = 0): Promise<void> {
  await until('the calls are in the database', async () => {
    const [row] = await fleet.rows<{ ends: number; open: bigint }>(sql`
      select (select count(*)::int from ${fleet.table('calls')} where account_id = ${accountId}) as ends,
        (select coalesce(sum(open), 0)::bigint from ${fleet.table('leases')} where account_id = ${accountId}) as open`);
    return row!.ends >= ends && BigInt(row!.open) === 0n;
  });
}

async function holdOf(customer: Customer): Promise<bigint> {
  replay.play({ body: wholeAnswer });
  await send(originOf(0), customer, 'replay', 'Hello', { max_tokens: 50 });
  await settled(customer, 1);
  const [row] = await fleet.rows<{ held: bigint }>(
    sql`select held from ${fleet.table('calls')} where account_id = ${customer.accountId}`,
  );
  return row!.held;
}

testOnServer('400 parallel calls over four processes on a balance for 20: exactly 20 are admitted', async () => {
  const hold = await holdOf(await fleet.runAsCommand((gateway) => gateway.customer()));
  const nanoUsd = 20n * hold + hold - 1n;
  const customer = await fleet.runAsCommand((gateway) => gateway.customer({ nanoUsd }));
  const { promise: allRefused, resolve: release } = Promise.withResolvers<void>();
  replay.play({ body: wholeAnswer, after: allRefused });
  const seen = replay.requests.length;
  let refused = 0;
  const calls = Array.from({ length: 400 }, async (_, index) => {
    const answer = await send(originOf(index), customer, 'replay', 'Hello', { max_tokens: 50 });
    if (answer.status === 402 && ++refused >= 380) release();
    return answer.status;
  });
  const statuses = await Promise.all(calls);
  assert.equal(statuses.filter((status) => status === 200).length, 20);
  assert.equal(statuses.filter((status) => status === 402).length, 380);
  assert.equal(replay.requests.length - seen, 20);
  await settled(customer, 20);
  assert.equal((await balanceOf(customer)).balance, nanoUsd - 20n * wholeCost);
});

/** What a call here sets aside: the budget of the project `eval` is for 50 of them. */
const holdNanoUsd = 141_000n;
const evalBudget = 51n * holdNanoUsd - 1n;

/** A key of the customer's in the project with a budget. */
async function inProject({ accountId }: Customer): Promise<Customer> {
  const { key } = await fleet.runAsCommand(async ({ gateway }) => {
    const { accountAdmin } = await import('../../plugins/common/domain/admin/accounts.ts');
    return gateway.gateway.find(accountAdmin)!.createKey(accountId, { name: 'eval', project: 'eval' });
  });
  return { accountId, key };
}

testOnServer(
  '2,000 parallel calls over two processes in a project with a budget for 50, on a balance for 500: exactly 50 are admitted',
  async () => {
    assert.equal(await holdOf(await fleet.runAsCommand((gateway) => gateway.customer())), holdNanoUsd);
    const nanoUsd = 500n * holdNanoUsd;
    const customer = await inProject(await fleet.runAsCommand((gateway) => gateway.customer({ nanoUsd })));
    const { promise: allRefused, resolve: release } = Promise.withResolvers<void>();
    replay.play({ body: wholeAnswer, after: allRefused });
    let refused = 0;
    const statuses = await Promise.all(
      Array.from({ length: 2_000 }, async (_, index) => {
        const { status, text } = await send(originOf(index % 2), customer, 'replay', 'Hello', { max_tokens: 50 });
        if (status === 402) assert.match(text, /budget of the project eval.*budget_reached/);
        if (status === 402 && ++refused >= 1_950) release();
        return status;
      }),
    );
    assert.equal(statuses.filter((status) => status === 200).length, 50);
    assert.equal(refused, 1_950);
    await settled(customer, 50);
    assert.equal((await balanceOf(customer)).balance, nanoUsd - 50n * wholeCost);
    // For so long a process repeats a refusal, though calls of another one have ended meanwhile.
    await pause(200);
    // What the calls did not cost of their holds can be spent on any process.
    const left = Number((evalBudget - 50n * wholeCost) / holdNanoUsd);
    for (let index = 0; index < left; index++) {
      const { status, text } = await send(originOf(index), customer, 'replay', 'Hello', { max_tokens: 50 });
      assert.equal(status, 200, `call ${index} of ${left} that the budget is for: ${text}`);
    }
  },
);

testOnServer('the last cent can be spent on any process', async () => {
  const hold = await holdOf(await fleet.runAsCommand((gateway) => gateway.customer()));
  const customer = await fleet.runAsCommand((gateway) => gateway.customer({ nanoUsd: hold + 5n * wholeCost }));
  replay.play({ body: wholeAnswer });
  for (let index = 0; index < 6; index++) {
    const { status } = await send(originOf(index), customer, 'replay', 'Hello', { max_tokens: 50 });
    assert.equal(status, 200, `call ${index} of 6 that the balance is for`);
  }
  await settled(customer, 6);
  const last = await Promise.all(
    [0, 1, 2, 3].map((index) => send(originOf(index), customer, 'replay', 'Hello', { max_tokens: 50 })),
  );
  assert.deepEqual(new Set(last.map(({ status }) => status)), new Set([402]));
});

testOnServer('a window of a plan applies over all processes, and its grant is given once', async () => {
  const hold = await holdOf(await fleet.runAsCommand((gateway) => gateway.customer()));
  const customer = await fleet.runAsCommand((gateway) => gateway.customer({ nanoUsd: 0n, plan: 'small' }));
  const most = 2_000_000n / hold;
  const { promise: allRefused, resolve: release } = Promise.withResolvers<void>();
  replay.play({ body: wholeAnswer, after: allRefused });
  const calls = Number(most) + 40;
  let refused = 0;
  const statuses = await Promise.all(
    Array.from({ length: calls }, async (_, index) => {
      const { status, text } = await send(originOf(index), customer, 'replay', 'Hello', { max_tokens: 50 });
      if (status === 402) assert.match(text, /5-hour window of the plan is used up/);
      if (status === 402 && ++refused >= 40) release();
      return status;
    }),
  );
  const admitted = statuses.filter((status) => status === 200).length;
  assert.deepEqual([BigInt(admitted), refused], [most, 40]);
  await settled(customer, admitted);
  assert.equal((await balanceOf(customer)).balance, 1_000_000_000n - BigInt(admitted) * wholeCost);
});

testOnServer('a debit by command takes all money that no call holds, also leased money', async () => {
  const nanoUsd = 1_000_000_000n;
  const customer = await fleet.runAsCommand((gateway) => gateway.customer({ nanoUsd }));
  replay.play({ body: wholeAnswer });
  for (let index = 0; index < 4; index++) await send(originOf(index), customer, 'replay', 'Hello', { max_tokens: 50 });
  await settled(customer, 4);
  const { balance } = await balanceOf(customer);
  assert((await leases()).some(({ account_id: id, amount }) => id === customer.accountId && amount > 0n));
  await fleet.runAsCommand(async ({ gateway }) => {
    const { accounts: book } = await import('../../plugins/common/domain/accounts.ts');
    const { pool } = await import('../../plugins/common/domain/ledger.ts');
    assert.notEqual(gateway.gateway.find(book), undefined);
    const entry = { reason: 'test', reference: `debit-${customer.accountId}` };
    await gateway.gateway.find(pool)!.debit(customer.accountId, balance as never, entry);
  });
  assert.equal((await balanceOf(customer)).balance, 0n);
  const after402 = await send(originOf(2), customer, 'replay', 'Hello', { max_tokens: 50 });
  assert.equal(after402.status, 402);
});

/** Ends once all four processes answer with this status, within a second and what three calls take, which is how busy the machine is. */
async function allAnswer(t: TestContext, customer: Customer, wanted: number): Promise<void> {
  const since = performance.now();
  let longest = 0;
  const isAnswered = async (index: number) => {
    const sentAt = performance.now();
    const { status } = await send(originOf(index), customer, 'replay', 'Hello');
    longest = Math.max(longest, performance.now() - sentAt);
    return status === wanted;
  };
  const after = await Promise.all(
    [0, 1, 2, 3].map(async (index) => {
      while (!(await isAnswered(index))) await pause(5);
      return performance.now() - since;
    }),
  );
  t.diagnostic(`${wanted} after ${after.map(Math.round)} ms`);
  assert(Math.max(...after) < 1_000 + 3 * longest, `${wanted} after ${after.map(Math.round)} ms`);
}

const command = (name: string, values: Record<string, string>) =>
  fleet.runAsCommand(({ gateway }) => gateway.gateway.commands.find((one) => one.name === name)!.run(values));

testOnServer('a key revoked on one process is refused by all within a second', async (t) => {
  const customer = await fleet.runAsCommand((gateway) => gateway.customer());
  replay.play({ body: wholeAnswer });
  for (let index = 0; index < 4; index++) {
    assert.equal((await send(originOf(index), customer, 'replay', 'Hello')).status, 200);
  }
  await command('keys revoke', { key: customer.key.slice(0, 14) });
  await allAnswer(t, customer, 401);
});

testOnServer(
  'keys of a member who is removed in one process are refused by all within a second, and those handed over go on',
  async (t) => {
    const { accountId } = await fleet.runAsCommand((gateway) => gateway.customer());
    const { accountAdmin } = await import('../../plugins/common/domain/admin/accounts.ts');
    const { memberAdmin } = await import('../../plugins/common/domain/organizations/members.ts');
    const keyOf = (person: string) =>
      fleet.runAsCommand(async ({ gateway }) => {
        await gateway.gateway.find(memberAdmin)!.join(accountId, person, 'developer');
        const { key } = await gateway.gateway.find(accountAdmin)!.createKey(accountId, { name: person }, person);
        return { accountId, key };
      });
    const remove = (person: string, keys: 'revoke' | { readonly handTo: string }) =>
      fleet.runAsCommand(({ gateway }) =>
        gateway.gateway.find(memberAdmin)!.remove(accountId, person, keys, { role: 'owner' }),
      );
    const [ben, cleo] = [await keyOf('ben'), await keyOf('cleo')];
    replay.play({ body: wholeAnswer });
    for (const customer of [ben, cleo]) await allAnswer(t, customer, 200);
    await fleet.runAsCommand(({ gateway }) => gateway.gateway.find(memberAdmin)!.join(accountId, 'dan', 'developer'));
    await remove('cleo', { handTo: 'dan' });
    await remove('ben', 'revoke');
    await allAnswer(t, ben, 401);
    // What became of the keys before is known everywhere by now.
    await allAnswer(t, cleo, 200);
  },
);

testOnServer('a budget set, lowered or ended in one process is in force in all within a second', async (t) => {
  const customer = await fleet.runAsCommand((gateway) => gateway.customer());
  replay.play({ body: wholeAnswer });
  const set = (usd: string) =>
    command('budgets set', { account: customer.accountId, of: 'account', every: 'day', usd });
  await allAnswer(t, customer, 200);
  await set('0.000001');
  await allAnswer(t, customer, 402);
  await set('100');
  await allAnswer(t, customer, 200);
  await set('0.000001');
  await allAnswer(t, customer, 402);
  const { json } = await command('budgets list', { account: customer.accountId });
  const [{ id }] = (json as { id: string | null }[]).filter((one) => one.id !== null) as [{ id: string }];
  await command('budgets end', { account: customer.accountId, id });
  await allAnswer(t, customer, 200);
});

testOnServer(
  'when one process is killed under load and returns, no call is over-admitted and the three bills agree',
  async (t) => {
    const customers = await fleet.runAsCommand(async ({ customer }) => [
      await customer({ nanoUsd: 100_000_000_000n }),
      await customer({ nanoUsd: 3_000_000n }),
      await customer({ nanoUsd: 1_000_000n }),
    ]);
    const trace = await traceLeases(fleet);
    sandbox.resetBill();
    const acknowledged = new Map<string, { prompt_tokens: number; completion_tokens: number }>();
    let running = true;
    const work = async (worker: number) => {
      for (let turn = 0; running; turn++) {
        const prompt = `${worker} ${turn} [[sandbox: tokens=${(turn % 50) + 1} delay=${turn % 20}ms]]`;
        const customer = customers[worker % customers.length]!;
        const answer = await send(originOf(worker + turn), customer, 'sandbox', prompt, { max_tokens: 60 }).catch(
          () => undefined,
        );
        if (answer?.status === 200 && !answer.broken) acknowledged.set(answer.id, JSON.parse(answer.text).usage);
        else await pause(10);
      }
    };
    const workers = Array.from({ length: 12 }, (_, worker) => work(worker));
    for (const victim of [fleet.nodes[1]!, fleet.nodes[3]!]) {
      await pause(700);
      await victim.end('SIGKILL');
      await pause(500);
      await victim.start();
    }
    await pause(500);
    running = false;
    await Promise.all(workers);
    const chargedIds = () =>
      fleet.rows<{ id: string }>(sql`select id::text as id from ${fleet.table('calls')} where settled`);
    await until(
      'every answer is charged',
      async () => {
        const charged = new Set((await chargedIds()).map(({ id }) => id));
        return [...acknowledged.keys()].every((id) => charged.has(id));
      },
      20_000,
    );
    for (const customer of customers) await settled(customer);

    const uncovered = await trace.uncovered();
    if (uncovered > 0) t.diagnostic(await trace.report(customers));
    assert.equal(uncovered, 0, 'processes could spend more than an account had');
    type Charge = {
      id: string;
      estimated: boolean;
      classes: { input: number; output: number; cache_read?: number };
    };
    const accountIds = sql.join(
      customers.map(({ accountId }) => sql`${accountId}`),
      sql`, `,
    );
    const charges = await fleet.rows<Charge>(
      sql`select id::text as id, estimated, classes from ${fleet.table('calls')} where settled and account_id in (${accountIds})`,
    );
    const byId = new Map(charges.map((charge) => [charge.id, charge]));
    for (const [id, { prompt_tokens: input, completion_tokens: output }] of acknowledged) {
      const charge = byId.get(id);
      assert(charge !== undefined, `${id} was answered and never charged`);
      if (charge.estimated) continue;
      assert.equal(charge.classes.output, output);
      assert.equal(charge.classes.input + (charge.classes.cache_read ?? 0), input);
    }
    const exact = charges.filter(({ estimated }) => !estimated);
    const inLedger = exact.reduce((sum, { classes }) => sum + classes.output, 0);
    const guessed = charges.length - exact.length;
    const bill = sandbox.bill();
    const billed = bill.totals['sandbox']!.output!;
    assert(inLedger <= billed && exact.length <= bill.requests, 'more was charged exactly than the vendor ran');
    const [unknown] = await fleet.rows<{ count: number }>(
      sql`select count(*)::int as count from ${fleet.table('calls')}, json_array_elements(${fleet.table('attempts_of')}(attempts, provider, target_model)) as attempt
        where attempt->>'result' = 'unknown' and account_id in (${accountIds})`,
    );
    assert(
      bill.requests <= exact.length + guessed + unknown!.count,
      'the vendor ran calls that the ledger does not have',
    );
    if (guessed + unknown!.count === 0) assert.equal(inLedger, billed);
    assert(acknowledged.size > 20, `only ${acknowledged.size} answers`);
  },
);

testOnServer('a drain returns the leases at once, while its streams continue; the audit finds nothing', async () => {
  const customer = await fleet.runAsCommand((gateway) => gateway.customer());
  const drained = fleet.nodes[0]!;
  const stream = send(drained.origin, customer, 'sandbox', '[[sandbox: tokens=60 chunk_delay=100ms]]', {
    stream: true,
  });
  const ofCustomer = async () => (await leases()).filter(({ account_id: id }) => id === customer.accountId);
  await until('the stream runs on a lease', async () => (await ofCustomer()).length > 0);
  await until('the vendor has it', () => sandbox.bill().open > 0);
  drained.signal('SIGTERM');
  await until(
    'what the stream has not spoken for is back',
    async () => {
      return (await ofCustomer()).every(({ amount, open }) => amount === open);
    },
    4_000,
  );
  const other = await send(originOf(1), customer, 'sandbox', 'Hello');
  assert.equal(other.status, 200);
  const answer = await stream;
  assert.deepEqual([answer.status, answer.text.trimEnd().endsWith('data: [DONE]')], [200, true]);
  await drained.ended();
  for (const node of fleet.nodes.slice(1)) await node.end('SIGTERM');
  assert.deepEqual(await leases(), []);
  await fleet.runAsCommand((gateway) => gateway.audit());
});
