/** Random histories of payments, refunds and disputes, of events that come twice, late or never, against plain sums. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FakeStripe, SignedEvent } from '../../helpers/fake-stripe.ts';
import { runsOf } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import { openPayments, type PaymentsTestbed } from './testbed.ts';

const dayMs = 24 * 3_600_000;
const centNano = 10_000_000n;
const accounts = ['alice', 'bob'];

type Back = ReturnType<FakeStripe['refund']>['item'] & { readonly kind: 'refund' | 'dispute' };

interface Bought {
  readonly session: string;
  readonly accountId: string;
  readonly cents: number;
  isPaid: boolean;
  readonly backs: Back[];
}

class History {
  readonly testbed: PaymentsTestbed;
  readonly bought: Bought[] = [];
  /** Events that were not delivered yet, and those that were and may come again. */
  readonly events: SignedEvent[] = [];

  constructor(testbed: PaymentsTestbed) {
    this.testbed = testbed;
  }

  /** Something has happened; the event may come at once, late, or never. */
  async report(event: SignedEvent, atOnce: boolean): Promise<void> {
    this.events.push(event);
    if (atOnce) await this.testbed.deliver(event);
  }

  pick(index: number): Bought | undefined {
    return this.bought[index % Math.max(1, this.bought.length)];
  }

  /** What an account has when everything is known: what it paid in, less what is with its payer again. */
  due(accountId: string): bigint {
    const standing = ({ status }: Back) => status !== 'failed' && status !== 'won';
    const cents = this.bought
      .filter((each) => each.accountId === accountId && each.isPaid)
      .map((each) => each.backs.filter(standing).reduce((left, { amount }) => left - amount, each.cents));
    return BigInt(cents.reduce((sum, each) => sum + each, 0)) * centNano;
  }
}

type Step = (history: History) => Promise<void>;

const buying = (account: number, dollars: number): Step =>
  async function buy({ testbed, bought }) {
    const accountId = accounts[account]!;
    const session = await testbed.begin(String(dollars), accountId).catch(() => undefined);
    if (session !== undefined) bought.push({ session, accountId, cents: dollars * 100, isPaid: false, backs: [] });
  };

const paying = (index: number, atOnce: boolean): Step =>
  async function pay(history) {
    const order = history.pick(index);
    if (order === undefined || order.isPaid) return;
    order.isPaid = true;
    await history.report(history.testbed.stripe.pay(order.session), atOnce);
  };

const payingBack = (index: number, kind: Back['kind'], share: number, atOnce: boolean): Step =>
  async function payBack(history) {
    const order = history.pick(index);
    if (order?.isPaid !== true) return;
    const out = order.backs.filter(({ status }) => status !== 'failed' && status !== 'won');
    const left = out.reduce((rest, { amount }) => rest - amount, order.cents);
    const cents = Math.ceil((left * share) / 100);
    if (cents === 0) return;
    const { item, ...event } = history.testbed.stripe[kind](order.session, cents);
    order.backs.push(Object.assign(item, { kind }));
    await history.report(event, atOnce);
  };

const keeping = (index: number, backIndex: number, atOnce: boolean): Step =>
  async function keep(history) {
    const backs = history.pick(index)?.backs ?? [];
    const item = backs[backIndex % Math.max(1, backs.length)];
    if (item === undefined || item.status === 'failed' || item.status === 'won') return;
    item.status = item.kind === 'refund' ? 'failed' : 'won';
    const type = item.kind === 'refund' ? 'refund.failed' : 'charge.dispute.closed';
    await history.report(history.testbed.stripe.event(type, item), atOnce);
  };

const delivering = (index: number, times: number): Step =>
  async function deliver({ testbed, events }) {
    const event = events[index % Math.max(1, events.length)];
    if (event === undefined) return;
    const reply = await Promise.all(Array.from({ length: times }, () => testbed.deliver(event)));
    // An event that is older than five minutes is no longer believed; the service signs it again.
    assert.ok(
      reply.every((status) => status === (testbed.stripe.down > 0 ? 502 : 200) || status === 400),
      String(reply),
    );
  };

const passing = (minutes: number): Step =>
  async function pass({ testbed }) {
    testbed.host.advance(minutes * 60_000);
    await testbed.round();
  };

const falling = (isDown: boolean): Step =>
  async function fall({ testbed }) {
    testbed.stripe.down = isDown ? 403 : 0;
  };

const index = fc.nat(2);
const atOnce = fc.boolean();
const steps = fc.oneof(
  { weight: 2, arbitrary: fc.tuple(fc.nat(1), fc.integer({ min: 5, max: 500 })).map((p) => buying(...p)) },
  { weight: 5, arbitrary: fc.tuple(index, atOnce).map((p) => paying(...p)) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(index, fc.constantFrom('refund' as const, 'dispute' as const), fc.integer({ min: 1, max: 100 }), atOnce)
      .map((p) => payingBack(...p)),
  },
  { weight: 3, arbitrary: fc.tuple(index, fc.nat(3), atOnce).map((p) => keeping(...p)) },
  { weight: 5, arbitrary: fc.tuple(index, fc.integer({ min: 1, max: 3 })).map((p) => delivering(...p)) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 20 }).map(passing) },
  { weight: 1, arbitrary: fc.boolean().map(falling) },
);

test('after any events in any order each account has its payments less the amounts paid back', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 5, maxLength: 40, size: 'max' }), async (list) => {
      const history = new History(await openPayments());
      const { testbed } = history;
      try {
        for (const step of list) await step(history);
        testbed.stripe.down = 0;
        // Whatever was not heard of is found by the rounds.
        for (let round = 0; round < 4; round += 1) await passing((dayMs + 1) / 60_000)(history);
        for (const accountId of accounts)
          assert.equal(await testbed.balance(accountId), history.due(accountId), accountId);
        await testbed.audit();
      } finally {
        await testbed.close();
      }
    }),
    { numRuns: runsOf(4, 12) },
  );
});
