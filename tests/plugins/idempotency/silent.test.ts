/** A process that lives, but was silent for longer than a lease: what its keyed calls came to decides whether others run them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Answer, Next, Part } from '../../../core/contract.ts';
import { GatewayError } from '../../../core/errors.ts';
import { type Attempt, attempts, call, caller, database, type Ledger, ledger } from '../../../core/vocabulary.ts';
import { setUpIdempotency } from '../../../plugins/idempotency/index.ts';
import { type FakeExchange, type FakeHost, fakeExchange, fakeHost, okAnswer } from '../../helpers/fakes.ts';
import { newKey, openShop, type Shop } from './nodes.ts';

type End = Awaited<ReturnType<Ledger['endOf']>>;

let shop: Shop;
before(async () => {
  shop = await openShop();
});
after(() => shop.close());

/** A process whose ledger says the same of every request. */
async function processOf(end: End): Promise<{ host: FakeHost; part: Part }> {
  const host = fakeHost();
  const { rows } = await shop.node();
  host.provide(database, shop.database);
  host.provide(ledger, { endOf: async () => end, safe: async () => {} } as Partial<Ledger> as Ledger);
  const section = { keep: 86_400_000, max_bytes: 1_000_000, finish: 1_000 };
  const part = await setUpIdempotency(host, section, async () => rows);
  await part.start!();
  return { host, part };
}

function callUnder(key: string): FakeExchange {
  const asked = { protocol: 'chat', model: 'm', stream: false, billable: true, inputTokens: 1, choices: 1 };
  return fakeExchange({
    request: { headers: { 'idempotency-key': key } },
    facts: [
      [call, { ...asked, maxOutputTokens: 1 }],
      [caller, { accountId: 'alice', keyId: 'k', plan: 'free', models: undefined }],
    ],
  });
}

/** `answered`, or how it was refused. */
async function outcomeOf(part: Part, exchange: FakeExchange, next: Next): Promise<string> {
  return (part.handle!(exchange, next) as Promise<Answer>).then(
    () => 'answered',
    (error: unknown) => (error instanceof GatewayError ? (error.code ?? error.kind) : String(error)),
  );
}

/** A call that breaks off at the vendor; its process has not told the database, and then says nothing for a while. */
async function breakOff(part: Part, key: string): Promise<void> {
  const exchange = callUnder(key);
  const outcome = await outcomeOf(part, exchange, () => {
    exchange.set(attempts, [{ number: 1, result: 'unknown' } as Attempt]);
    return Promise.reject(new GatewayError('upstream_failed', 'The vendor broke off.'));
  });
  assert.equal(outcome, 'upstream_failed');
  await exchange.end({ status: 502 });
  await shop.lapse();
}

test('double run on another node: what ran in vain is not run again while its process has not told its end, nor after', async () => {
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

test('what came to nothing and never ran is run by another node, once its process is silent', async () => {
  const [silent, other] = [await processOf('VOID'), await processOf('VOID')];
  const key = newKey();
  assert.equal(await outcomeOf(silent.part, callUnder(key), async () => okAnswer), 'answered');
  await shop.lapse();
  assert.equal(await outcomeOf(other.part, callUnder(key), async () => okAnswer), 'answered');
});
