/** Random histories of holds, answers, credits, crashes and failing batches against a model that only adds and subtracts. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { type Attempt, usageReport } from '../../../plugins/common/domain/calls.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { cost, costBound, money } from '../../../plugins/common/domain/money.ts';
import type { FakeExchange } from '../../helpers/fakes.ts';
import { runsOf } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import { enter, leaveWorlds, meterOf, newCall, newWorld, price, report, send, type World } from './world.ts';

after(leaveWorlds);

const step = 200;
const accounts = ['alice', 'bob'];

interface Running {
  readonly exchange: FakeExchange;
  readonly accountId: string;
  readonly inputTokens: number;
  held: bigint;
  seen: number;
  noted: number;
  /** It was stopped, and what was seen of it is charged however it ends. */
  unpaid: boolean;
  attempt: Attempt | undefined;
}

/** The gateway under test beside the sums that it must agree with. */
class History {
  world: World;
  readonly available = new Map(accounts.map((name) => [name, 0n]));
  readonly running: Running[] = [];
  references = 0;
  charged = 0n;
  credited = 0n;

  constructor(world: World) {
    this.world = world;
  }

  move(accountId: string, amount: bigint): void {
    this.available.set(accountId, this.available.get(accountId)! + amount);
  }

  pick(index: number): Running | undefined {
    return this.running[index % Math.max(1, this.running.length)];
  }

  close(call: Running, charge: bigint): void {
    this.running.splice(this.running.indexOf(call), 1);
    this.move(call.accountId, call.held - charge);
    this.charged += charge;
  }

  /** What a process that died has to charge for a call that it left open. */
  interrupt(call: Running): void {
    const usage = { input: call.inputTokens, output: call.noted };
    this.close(call, call.attempt === undefined ? 0n : cost(usage, price));
  }

  async check(): Promise<void> {
    for (const name of accounts) assert.equal(await this.world.balance(name), this.available.get(name), name);
  }
}

type Step = (history: History) => Promise<void>;

const enterStep = (account: number, inputTokens: number, maxOutputTokens: number): Step =>
  async function entering(history) {
    const accountId = accounts[account]!;
    const exchange = newCall({ accountId, call: { inputTokens, maxOutputTokens } });
    const bound = costBound(inputTokens, Math.min(maxOutputTokens, step), price);
    const affordable = bound <= history.available.get(accountId)!;
    const status = await enter(history.world, exchange).then(
      () => 200,
      (error: GatewayError) => error.status,
    );
    assert.equal(status, affordable || bound === 0n ? 200 : 402);
    if (status !== 200) return;
    history.move(accountId, -bound);
    const fresh = { seen: 0, noted: 0, unpaid: false, attempt: undefined };
    history.running.push({ exchange, accountId, inputTokens, held: bound, ...fresh });
  };

const sendStep = (index: number): Step =>
  async function sending(history) {
    const call = history.pick(index);
    if (call === undefined) return;
    if (call.attempt !== undefined) call.attempt.result = 'refused';
    call.attempt = await send(call.exchange);
  };

const observeStep = (index: number, tokens: number): Step =>
  async function observing(history) {
    const call = history.pick(index);
    if (call?.attempt === undefined) return;
    const before = await history.world.balance(call.accountId);
    call.seen += tokens;
    const goesOn = meterOf(call.exchange).observe(call.seen);
    const taken = before - (await history.world.balance(call.accountId));
    assert.ok(taken >= 0n && (taken === 0n || taken <= before), `${taken} of ${before}`);
    const needed = costBound(call.inputTokens, call.seen, price);
    assert.equal(goesOn, needed <= call.held + taken);
    if (!goesOn) assert.ok(needed - call.held > before);
    call.unpaid ||= !goesOn;
    call.held += taken;
    history.move(call.accountId, -taken);
  };

const endStep = (index: number, how: 'answered' | 'refused' | 'unknown' | 'cut' | 'left', output: number): Step =>
  async function ending(history) {
    const call = history.pick(index);
    if (call === undefined) return;
    const { attempt, exchange, inputTokens } = call;
    if (attempt !== undefined) attempt.result = how === 'refused' || how === 'unknown' ? how : 'answered';
    const counted = { input: inputTokens - 1, output };
    if (how === 'answered') exchange.set(usageReport, report(counted));
    await exchange.end({ kind: how === 'left' ? 'client_left' : how === 'cut' ? 'failed' : 'complete' });
    const usage = how === 'answered' ? counted : { input: inputTokens, output: call.seen };
    const failed = how === 'refused' || how === 'unknown';
    const free = attempt === undefined ? how !== 'answered' : failed && !call.unpaid;
    // Usage that was reported without an attempt belongs to nothing that was sent.
    history.close(call, free || attempt === undefined ? 0n : cost(usage, price));
  };

const creditStep = (account: number, amount: bigint): Step =>
  async function crediting(history) {
    const book = history.world.host.get(ledger);
    const grant = { kind: 'top-up', reason: 'test', reference: `credit-${++history.references}` };
    const credit = () => book.credit(accounts[account]!, money(amount), grant);
    for (let tries = 1; tries < 5; tries += 1) await credit().catch(() => undefined);
    await credit();
    // Memory hears of it as soon as the database takes batches again.
    for (let round = 0; round < 5; round += 1) await writing(history);
    history.move(accounts[account]!, amount);
    history.credited += amount;
  };

async function writing(history: History): Promise<void> {
  history.world.host.advance(10_000);
  await history.world.tick('write the ledger');
}

async function noting(history: History): Promise<void> {
  await history.world.tick('note progress');
  for (const call of history.running) call.noted = call.seen;
}

async function sweeping(history: History): Promise<void> {
  await history.world.tick('forget idle accounts');
}

async function crashing(history: History): Promise<void> {
  Object.assign(history.world.faults, { refusals: 0, afterCommit: false });
  history.world = await history.world.crash();
  for (const call of [...history.running]) history.interrupt(call);
}

/** An orderly stop with calls still open: they have not ended, so the next start ends them. */
async function restarting(history: History): Promise<void> {
  await history.world.stop();
  await crashing(history);
}

const failing = (refusals: number): Step =>
  async function failingNext(history) {
    history.world.faults.refusals = refusals;
  };

async function losingAnswer(history: History): Promise<void> {
  history.world.faults.afterCommit = true;
}

const index = fc.nat(9);
const account = fc.nat(1);
const tokens = fc.nat(2_000);
const always = (run: Step) => fc.constant(run);
const steps = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(account, fc.integer({ min: 1, max: 2_000 }), tokens).map((p) => enterStep(...p)) },
  { weight: 5, arbitrary: index.map(sendStep) },
  { weight: 4, arbitrary: fc.tuple(index, tokens).map((p) => observeStep(...p)) },
  {
    weight: 5,
    arbitrary: fc
      .tuple(index, fc.constantFrom('answered', 'refused', 'unknown', 'cut', 'left'), tokens)
      .map(([at, how, output]) => endStep(at, how as 'answered', output)),
  },
  { weight: 3, arbitrary: fc.tuple(account, fc.bigInt(1n, 60_000_000n)).map((p) => creditStep(...p)) },
  { weight: 3, arbitrary: always(writing) },
  { weight: 1, arbitrary: always(noting) },
  { weight: 1, arbitrary: always(sweeping) },
  { weight: 1, arbitrary: always(crashing) },
  { weight: 1, arbitrary: always(restarting) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }).map(failing) },
  { weight: 1, arbitrary: always(losingAnswer) },
);

test('after any events in any order, the balances are the sums and the audit is clean', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 5, maxLength: 60, size: 'max' }), async (list) => {
      const history = new History(await newWorld({ section: { hold: { output_tokens: step } } }));
      try {
        for (const run of list) {
          await run(history);
          await setImmediate();
          await history.check();
        }
        await crashing(history);
        await history.check();
        const left = accounts.reduce((sum, name) => sum + history.available.get(name)!, 0n);
        assert.equal(left, history.credited - history.charged);
        assert.deepEqual((await history.world.audit()).violations, []);
      } finally {
        Object.assign(history.world.faults, { refusals: 0, afterCommit: false });
        await history.world.stop();
        history.world.leave();
      }
    }),
    { numRuns: runsOf(4, 25) },
  );
});
