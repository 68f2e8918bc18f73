/** A process that lives, but was silent for longer than a lease: what its keyed calls came to decides whether others run them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Next, PluginInstance } from '../../../core/contract/contract.ts';
import { type ErrorDetails, GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { type Attempt, attempts, call } from '../../../plugins/common/domain/calls.ts';
import { database, markUndecided } from '../../../plugins/common/domain/database.ts';
import { type Ledger, ledger } from '../../../plugins/common/domain/ledger.ts';
import { setUpIdempotency } from '../../../plugins/idempotency/index.ts';
import { type FakeExchange, type FakeHost, fakeExchange, fakeHost, okAnswer } from '../../helpers/fakes.ts';
import { newKey, openShop, type Shop } from './nodes.ts';

type End = Awaited<ReturnType<Ledger['endOf']>>;

let shop: Shop;
before(async () => {
  shop = await openShop();
});
after(() => shop.close());

/** A process with a ledger that gives the same answer for every request. */
async function processOf(end: End): Promise<{ host: FakeHost; part: PluginInstance }> {
  const host = fakeHost();
  const { rows } = await shop.node();
  host.provide(database, shop.database);
  host.provide(ledger, { endOf: async () => end, safe: async () => {} } as Partial<Ledger> as Ledger);
  const section = { keep: 86_400_000, max_bytes: 1_000_000, finish: 1_000 };
  const part = await setUpIdempotency(host, section, async () => rows);
  await part.lifecycle!.start!();
  return { host, part };
}

function callUnder(key: string): FakeExchange {
  const requestedCall = { protocol: 'chat', model: 'm', stream: false, billable: true, inputTokens: 1, choices: 1 };
  return fakeExchange({
    request: { headers: { 'idempotency-key': key } },
    facts: [
      [call, { ...requestedCall, maxOutputTokens: 1 }],
      [caller, { accountId: 'alice', keyId: 'k', plan: 'free', models: undefined }],
    ],
  });
}

/** `answered`, or how it was refused. */
async function outcomeOf(part: PluginInstance, exchange: FakeExchange, next: Next): Promise<string> {
  return (part.handle!(exchange, next) as Promise<Answer>).then(
    () => 'answered',
    (error: unknown) => (error instanceof GatewayError ? (error.code ?? error.kind) : String(error)),
  );
}

/** A call that breaks off at the vendor; its process has not updated the database, and then is silent for a while. */
async function breakOff(part: PluginInstance, key: string): Promise<void> {
  const exchange = callUnder(key);
  const outcome = await outcomeOf(part, exchange, () => {
    exchange.set(attempts, [{ number: 1, result: 'unknown' } as Attempt]);
    return Promise.reject(new GatewayError('upstream_failed', 'The vendor broke off.'));
  });
  assert.equal(outcome, 'upstream_failed');
  await exchange.end({ status: 502 });
  await shop.lapse();
}

test('double run on another node: a call that may have run is not run again before its process has reported its end, nor after', async () => {
  const [silent, other] = [await processOf('in_vain'), await processOf('in_vain')];
  const key = newKey();
  await breakOff(silent.part, key);
  let runs = 0;
  const run = async () => {
    runs += 1;
    return okAnswer;
  };
  assert.equal(await outcomeOf(other.part, callUnder(key), run), 'idempotency_answer_lost');
  await silent.host.intervals.find(({ name }) => name === 'keep answers of keyed calls')!.work();
  assert.equal(await outcomeOf(other.part, callUnder(key), run), 'upstream_failed');
  assert.equal(runs, 0);
});

test('a call that never ran is run by another node, once its process is silent', async () => {
  const [silent, other] = [await processOf('free'), await processOf('free')];
  const key = newKey();
  assert.equal(await outcomeOf(silent.part, callUnder(key), async () => okAnswer), 'answered');
  await shop.lapse();
  assert.equal(await outcomeOf(other.part, callUnder(key), async () => okAnswer), 'answered');
});

test('a failure with unknown outcome keeps its key and is replayed; one without effect frees it', async () => {
  const { part } = await processOf('in_vain');
  const fails = async (key: string, details: ErrorDetails, next?: Next) => {
    const exchange = callUnder(key);
    const reported = new GatewayError('overloaded', 'The database is away.', details);
    const outcome = await outcomeOf(part, exchange, next ?? (() => Promise.reject(reported)));
    await exchange.end({ status: 503 });
    return outcome;
  };
  const lost = markUndecided(new Error('the connection was lost at the commit'));
  const [unknown, nothing] = [newKey(), newKey()];
  assert.equal(await fails(unknown, { code: 'order_unknown', cause: lost }), 'order_unknown');
  assert.equal(await fails(nothing, { code: 'away', retryAfterMs: 1_000 }), 'away');
  assert.equal(await fails(unknown, {}, async () => okAnswer), 'order_unknown');
  assert.equal(await fails(nothing, {}, async () => okAnswer), 'answered');
});
