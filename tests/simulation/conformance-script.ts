/** Random histories of claims, batches and entries for a store: the same steps for each that is held against another. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { Funds } from '../../plugins/billing/grants/funds.ts';
import { creditAndPay, giveCredit, setCredit, viewCredit } from '../../plugins/billing/ledger/credit-lines.ts';
import { refundCredit, refundRequest } from '../../plugins/billing/ledger/refunds.ts';
import { applyDueTerms, beginTerm } from '../../plugins/billing/ledger/terms.ts';
import type { EndRecord, JournalRecord } from '../../plugins/billing/model/records.ts';
import type { Store } from '../../plugins/billing/store.ts';
import { type Money, money } from '../../plugins/common/domain/money.ts';
import type { PlanTerms } from '../../plugins/common/domain/plans.ts';
import { lineOf } from '../plugins/billing/world.ts';
import { Chance } from './chance.ts';

const accounts = ['alice', 'bob', 'carol'] as const;

const plan: PlanTerms = {
  name: 'plan',
  limits: {},
  models: undefined,
  multiplier: undefined,
  grant: { amount: money(5_000n), every: 'day' },
  windows: { '5h': money(1_500n) },
};

/** Months that end while a history goes on, and are overdue soon. */
const creditTerms = { zone: 'Asia/Tokyo', payWithinMs: 3_600_000, stopAfterMs: 24 * 3_600_000, noticeMs: 60_000 };

/** What one history does to a store, step after step; each step's answer as plain values. */
export type Step = (store: Store) => Promise<unknown>;

export class Script {
  readonly steps: Step[] = [];
  readonly #chance: Chance;
  readonly #requests: string[];
  readonly #texts: { text: string; ids: string[]; applied: number; journal: string }[] = [];
  readonly #owners = new Map<string, string>();
  #at = Date.UTC(2027, 0, 30);
  #applied = 0;
  #count = 0;

  constructor(seed: number, length: number) {
    this.#chance = new Chance(seed);
    const id = (index: number) =>
      `01a3185c-${seed.toString(16).padStart(4, '0')}-7000-8000-${String(index).padStart(12, '0')}`;
    this.#requests = Array.from({ length: 24 }, (_, index) => id(index));
    this.#claim();
    for (const [index, account] of accounts.entries()) this.#fill(account, `reference-${index}`);
    for (let step = 0; step < length; step += 1) {
      this.#at += this.#chance.pick([0, 1, 60_000, 7 * 3_600_000, 30 * 3_600_000]);
      this.#chance
        .pick([
          this.#claim,
          ...[this.#batch, this.#batch, this.#batch, this.#again],
          ...[this.#entry, this.#entry, this.#funds, this.#term, this.#back, this.#back, this.#deposit, this.#credit],
        ])
        .call(this);
    }
  }

  /** Something to begin with, so that not all that costs is refused. */
  #fill(account: string, reference: string): void {
    const [at, grant] = [this.#at, { kind: 'top-up', reason: 'test', reference }];
    this.steps.push((store) => store.transact(account, at, (entries) => entries.credit(money(20_000n), grant)));
  }

  #claim(): void {
    const journal = this.#chance.pick(['one', 'two']);
    this.#count += 1;
    const owner = `owner-${this.#count}`;
    this.#owners.set(journal, owner);
    // Now and then the epoch is an old one.
    const epoch = this.#chance.oneIn(8) ? 1 : this.#count;
    this.steps.push(async (store) => [await store.claim(journal, owner, epoch), await store.cursorOf(journal)]);
  }

  #batch(): void {
    const chance = this.#chance;
    const records = Array.from({ length: chance.between(1, 6) }, () => this.#record());
    // Now and then the batch names an account too few, or comes from a process that was shut out.
    const named = new Set(records.flatMap((record) => ('account' in record ? [record.account] : [])));
    if (chance.oneIn(15)) named.delete(chance.pick(accounts));
    const journal = chance.pick(['one', 'two']);
    this.#applied += records.length;
    const text = lineOf(this.#applied, ...records).toString('utf8');
    const given = { text, ids: [...named], applied: this.#applied, journal };
    this.#texts.push(given);
    this.#push(given, chance.oneIn(10) ? 'missing' : this.#owners.get(journal));
  }

  /** A batch whose answer was lost is applied again. */
  #again(): void {
    if (this.#texts.length > 0) {
      const given = this.#chance.pick(this.#texts);
      this.#push(given, this.#owners.get(given.journal));
    }
  }

  #push(
    { text, ids, applied, journal }: { text: string; ids: string[]; applied: number; journal: string },
    owner = 'missing',
  ) {
    this.steps.push(async (store) =>
      plain(await store.apply(text, new Map(ids.map((id) => [id, money(0n)])), { journal, owner, applied })),
    );
  }

  #funds(): void {
    const at = this.#at;
    this.steps.push(async (store) => plain(await store.funds([...accounts, 'missing'], at)));
  }

  #record(): JournalRecord {
    const chance = this.#chance;
    const index = chance.below(this.#requests.length);
    const shared = { id: this.#requests[index]!, at: this.#at, account: accounts[index % accounts.length]! };
    const amount = String(chance.below(400));
    const price = { input: '1', output: '2' };
    switch (chance.below(5)) {
      case 0:
      case 1:
        return {
          ...shared,
          kind: 'HOLD',
          key: 'k',
          model: 'm',
          input: 1,
          output: 2,
          amount,
          price,
          ratio: '1/1',
          version: 'v',
        };
      case 2:
        return { ...shared, kind: 'EXTEND', part: chance.between(1, 2), output: 5, amount };
      default:
        return { ...this.#end(), ...shared };
    }
  }

  /** The end of a call that was charged, or cost nothing. */
  #end(): EndRecord {
    const chance = this.#chance;
    const shared = { id: '', at: this.#at, account: '', model: 'm', held: String(chance.below(400)) };
    // Journals of earlier versions do not say when the money was held.
    const heldAt = chance.oneIn(4) ? undefined : this.#at - 3_600_000 * chance.below(7);
    const absorbed = chance.oneIn(4) ? { absorbed: String(chance.below(50)) } : {};
    if (chance.oneIn(3))
      return { ...shared, ...absorbed, kind: 'VOID', heldAt, reason: 'refused', attempts: this.#attempts() };
    return {
      ...shared,
      ...absorbed,
      kind: 'SETTLE',
      key: 'k',
      heldAt,
      input: 1,
      cost: String(chance.oneIn(6) ? 0 : chance.below(500)),
      usage: { input: chance.below(9), output: 2 },
      estimated: chance.oneIn(2),
      terminal: true,
      reason: 'answered',
      price: { input: '1', output: '2' },
      ratio: '1/1',
      version: 'v',
      attempts: this.#attempts(),
    };
  }

  #attempts() {
    return Array.from({ length: this.#chance.below(3) }, (_, index) => ({
      number: index + 1,
      provider: 'p',
      model: 'pm',
      credential: 'p#1',
      protocol: 'chat',
      startedAt: this.#at,
      result: this.#chance.pick(['answered', 'refused'] as const),
    }));
  }

  #entry(): void {
    const chance = this.#chance;
    const [account, at, amount] = [chance.pick(accounts), this.#at, money(BigInt(chance.between(1, 9_000)))];
    const reference = `reference-${chance.below(40)}`;
    // A time of its own for each, because of two that end together the id decides, and ids are drawn again.
    this.#count += 1;
    const expiresAt = chance.oneIn(3) ? at + 3_600_000 * chance.between(1, 40) + this.#count : undefined;
    const grant = { kind: 'top-up', reason: 'test', reference, expiresAt };
    const fate = chance.below(5);
    const came = at - 3_600_000 * chance.pick([0, 8, 60]);
    this.steps.push((store) =>
      store.transact(account, at, async (entries) => {
        if (fate < 2) await entries.credit(amount, grant);
        else if (fate === 2) await entries.debit(amount, { reason: 'test', reference: `debit-${reference}` });
        else await applyDueTerms(entries, { terms: plan, at: came });
        if (fate === 4) await entries.credit(amount, { ...grant, reference: `${reference}-undone-${at}` });
        if (fate === 4) throw new GatewayError('conflict', 'thought better of it');
        return String(entries.balance);
      }),
    );
  }

  /** A plan is bought, extended or comes to its end; the grants that it brings are given. */
  #term(): void {
    const chance = this.#chance;
    const [account, at, fate] = [chance.pick(accounts), this.#at, chance.below(4)];
    const [price, reference] = [money(BigInt(chance.below(700))), `purchase-${chance.below(9)}`];
    const endsAt = chance.oneIn(3) ? undefined : at + 3_600_000 * chance.between(1, 90);
    const bought = { ...plan, name: chance.pick(['plan', 'other']) };
    this.steps.push((store) =>
      store.transact(account, at, async (entries) => {
        const { terms } = entries.tables;
        if (fate === 0)
          await applyDueTerms(entries, undefined, { onEnded: async () => beginTerm(entries, plan, endsAt) });
        if (fate > 1 && (await entries.purchase(price, { reason: 'test', reference })))
          await beginTerm(entries, bought, endsAt);
        const running = await terms.last(at);
        if (fate === 1 && running !== undefined) await terms.setEnd(running.id, endsAt);
        if (fate === 3) throw new GatewayError('conflict', 'thought better of it');
        const last = await terms.last(at);
        return (
          last && [last.plan, String(last.amount), last.every, String(last.limits['5h']), last.startsAt, last.endsAt]
        );
      }),
    );
  }

  /** Money back: of a credit, or of a request. */
  #back(): void {
    const chance = this.#chance;
    const [index, at, amount] = [chance.below(this.#requests.length), this.#at, money(BigInt(chance.between(1, 300)))];
    const account = accounts[chance.oneIn(8) ? 0 : index % accounts.length]!;
    const of = chance.oneIn(2) ? `reference-${chance.below(40)}` : this.#requests[index]!;
    const entry = { reason: 'test', reference: `back-${chance.below(20)}` };
    const fails = chance.oneIn(8);
    this.steps.push((store) =>
      store.transact(account, at, async (entries) => {
        await (of.startsWith('reference') ? refundCredit : refundRequest)(entries, of, amount, entry);
        if (fails) throw new GatewayError('conflict', 'thought better of it');
        return String(entries.balance);
      }),
    );
  }

  /** A decision on a credit line, a payment of what is due, or what a new month brings. */
  #credit(): void {
    const chance = this.#chance;
    const [account, at, fate] = [chance.pick(accounts), this.#at, chance.below(4)];
    const amount = money(BigInt(chance.oneIn(4) ? 0 : chance.between(1, 9_000)));
    const grant = { kind: 'top-up', reason: 'test', reference: `payment-${chance.below(40)}` };
    this.steps.push((store) =>
      store.transact(account, at, async (entries) => {
        if (fate === 0) await creditAndPay(entries, money(amount + 1n), grant, creditTerms);
        else if (fate === 1) await giveCredit(entries, creditTerms);
        else await setCredit(entries, amount, 'test', creditTerms);
        const view = await viewCredit(entries, creditTerms);
        if (fate === 3) throw new GatewayError('conflict', 'thought better of it');
        const months = view?.months.map(({ month, used, paid, state }) => [month, String(used), String(paid), state]);
        return [String(view?.amount), String(view?.left), view?.isStopped, view?.stopsAt, months];
      }),
    );
  }

  /** Work that is done later: its money is set aside with it, and ends with it. */
  #deposit(): void {
    const chance = this.#chance;
    const [at, index, fails] = [this.#at, chance.below(this.#requests.length), chance.oneIn(8)];
    const [id, account] = [this.#requests[index]!, accounts[index % accounts.length]!];
    const record = { ...this.#end(), id, at, account };
    this.steps.push((store) =>
      store.transact(account, at, async (entries) => {
        const { authorizations: deposits } = entries.tables;
        const kept = await deposits.find(id);
        if (kept === undefined) await deposits.add(id, { held: money(BigInt(index)), terms: '{"of":1}' }, at);
        else {
          await deposits.remove(id, kept.held);
          await deposits.post(record);
        }
        if (fails) throw new GatewayError('conflict', 'thought better of it');
        return [String(kept?.held), kept?.terms];
      }),
    );
  }
}

/** Values that can be compared: amounts as digits, grants without their ids. */
function plain(found: Map<string, Money | Funds>): unknown {
  return [...found]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([id, value]) => {
      if (typeof value === 'bigint') return [id, String(value)];
      const grantBalances = value.pool?.grants.map(({ remaining, expiresAt }) => [String(remaining), expiresAt]);
      // What others have spent may stand beside it, and matters to no one.
      const own = [...(value.pool?.spent ?? [])].filter(([key]) => key.startsWith(`plan:${id}:`));
      const spent = own.map(([key, sum]) => `${key} ${sum}`).sort();
      return [
        id,
        String(value.balance),
        grantBalances,
        grantBalances === undefined ? undefined : spent,
        value.term !== undefined,
      ];
    });
}
