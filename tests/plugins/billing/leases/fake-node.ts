/**
 * A node without sockets, disk or database: real cached balances, backlog, flusher and lease manager on a model of
 * the database's leases.
 */
import assert from 'node:assert/strict';
import { LeasedBalance } from '../../../../plugins/billing/leases/leased-balance.ts';
import { LeaseManager, leaseTimes } from '../../../../plugins/billing/leases/manager.ts';
import type { Leased } from '../../../../plugins/billing/leases/store.ts';
import { Backlog } from '../../../../plugins/billing/ledger/backlog.ts';
import { BalanceCache } from '../../../../plugins/billing/ledger/balance-cache.ts';
import { Flusher } from '../../../../plugins/billing/ledger/flusher.ts';
import { type Money, money } from '../../../../plugins/common/domain/money.ts';
import { type FakeHost, fakeHost } from '../../../helpers/fakes.ts';
import type { LeaseModel } from './lease-model.ts';

export type Fault = 'none' | 'refused' | 'lost answer' | 'late' | 'late answer' | 'late batch';

/** Everything that nodes share. */
export interface Town {
  readonly model: LeaseModel;
  readonly host: FakeHost;
  readonly nodes: Map<string, FakeNode>;
  /** What becomes of the next statement. */
  fault: Fault;
  /** Every statement is refused. */
  isDown: boolean;
  /** What late statements and answers wait for. */
  gate: PromiseWithResolvers<void>;
  /** Statements on leases so far. */
  statements: number;
  /** What the account truly has: credits less charges less all that is set aside anywhere. */
  truth: bigint;
  /** What calls cost beyond what was set aside for them: it is charged all the same. */
  overrun: bigint;
  /** The lowest balance that the ledger has shown behind a charge. */
  lowest: bigint;
  /** When nodes looked after their leases. */
  lookedAt: number;
  /** How late nodes hear what another announces. */
  heardAfterMs: number;
  /** How long an outage of the database passes. */
  readonly bridgeMs: number;
  readonly letters: { readonly topic: string; readonly subject: string; readonly heardAt: number }[];
  /** Tells the nodes what they hear by now. */
  deliver(): void;
}

export interface FakeHold {
  readonly amount: Money;
  readonly balance: LeasedBalance;
  readonly sequence: number;
}

export function newTown(model: LeaseModel, bridgeMs = 0): Town {
  const host = fakeHost();
  const nodes: Town['nodes'] = new Map();
  const letters: Town['letters'] = [];
  return {
    model,
    host,
    nodes,
    lookedAt: host.clock.monotonic(),
    heardAfterMs: 0,
    bridgeMs,
    letters,
    deliver() {
      while (letters[0] !== undefined && letters[0].heardAt <= host.clock.monotonic()) {
        const { topic, subject } = letters.shift()!;
        for (const { leases } of nodes.values())
          if (topic === 'lease wanted') leases.wanted(subject);
          else leases.returned(subject);
      }
    },
    fault: 'none',
    isDown: false,
    gate: Promise.withResolvers(),
    statements: 0,
    truth: model.balance,
    overrun: 0n,
    lowest: 0n,
  };
}

const account = 'alice';

export class FakeNode {
  readonly name: string;
  readonly holds: FakeHold[] = [];
  /** Why the last hold was refused: the money is not there, or it is not known. */
  refusal: 'lacking' | 'unknown' | undefined;
  readonly leases: LeaseManager;
  readonly balances: BalanceCache<LeasedBalance>;
  readonly flusher: Flusher;
  readonly #town: Town;
  readonly #backlog: Backlog;
  readonly #slab = Buffer.alloc(1 << 20);
  #used = 0;
  #sequence = 0;
  #dead = false;
  /** The charges in the journal that the database does not have; they outlive the node. */
  readonly #journal: { readonly sequence: number; readonly cost: bigint }[] = [];

  constructor(town: Town, name: string) {
    this.name = name;
    this.#town = town;
    const { clock, log } = town.host;
    this.#backlog = new Backlog(() => {});
    this.balances = new BalanceCache({
      clock,
      limit: 10,
      idleMs: 60_000,
      kind: LeasedBalance,
      fundsOf: () => assert.fail('a whole balance was asked for'),
      lease: (balance, need) => this.leases.open(balance, need),
    });
    this.flusher = new Flusher({
      backlog: this.#backlog,
      balances: this.balances,
      clock,
      log,
      applied: 0,
      apply: async (_text, accounts, applied) => {
        const sentAt = clock.monotonic();
        await this.#run(() => this.#apply(applied, accounts.get(account)), false);
        this.leases.renewed([...accounts.keys()], sentAt);
        return new Map();
      },
      fundsOf: (accountIds) => this.leases.exchange(accountIds),
    });
    this.leases = new LeaseManager({
      node: name,
      balances: this.balances,
      flusher: this.flusher,
      clock,
      log,
      takeShares: (requests) =>
        this.#run(() => {
          town.statements += 1;
          const answerOf = (request: (typeof requests)[number]): [string, Leased] => {
            const answer = town.model.take(name, request);
            return [
              request.accountId,
              { ...answer, pool: undefined, term: undefined, lastsMs: leaseTimes(town.bridgeMs).lastsMs },
            ];
          };
          return new Map(requests.map(answerOf));
        }, true),
      bridgeMs: town.bridgeMs,
      mostResting: 5,
      announce: async (topic, subject) => {
        const heardAt = clock.monotonic() + town.heardAfterMs;
        town.letters.push({ topic, subject, heardAt });
        town.deliver();
      },
    });
    town.nodes.set(name, this);
    town.model.living.add(name);
  }

  /** A statement: refused before it ran, with an answer that never came, or with calls going on while it or its answer is on the way. */
  async #run<T>(work: () => T, isLease: boolean): Promise<T> {
    await Promise.resolve();
    const { fault, isDown } = this.#town;
    if (isDown) throw new Error('the database is down');
    if (fault.startsWith('late') && isLease === (fault === 'late batch')) return work();
    // As long as batches are late all of them are.
    if (fault !== 'late batch') this.#town.fault = 'none';
    if (fault === 'refused') throw new Error('the database is down');
    if (fault === 'late' || fault === 'late batch') await this.#town.gate.promise;
    // The statement of a dead process no longer runs, or its answer is ignored.
    const none = new Promise<never>(() => {});
    if (this.#dead) return none;
    const result = work();
    await (fault === 'late answer' ? this.#town.gate.promise : Promise.resolve());
    if (this.#dead) return none;
    if (fault === 'lost answer') throw new Error('no answer after the commit');
    return result;
  }

  /** `open`: what running calls hold; undefined: no call has ended. */
  #apply(applied: number, open: bigint | undefined): void {
    const { model } = this.#town;
    let charges = 0n;
    while (this.#journal[0] !== undefined && this.#journal[0].sequence <= applied)
      charges += this.#journal.shift()!.cost;
    if (open !== undefined) model.apply(this.name, charges, open);
    if (model.balance < this.#town.lowest) this.#town.lowest = model.balance;
  }

  #write(): void {
    this.#backlog.written(this.#slab, this.#used, ++this.#used, ++this.#sequence);
  }

  /** What running calls hold, and what ended ones cost that the database does not have. */
  get owed(): bigint {
    const held = this.holds.reduce((sum, { amount }) => sum + amount, 0n);
    return this.#journal.reduce((sum, { cost }) => sum + cost, held);
  }

  /** As `Reservations` does. False: refused, or unknown. */
  async hold(amount: Money): Promise<boolean> {
    const { clock } = this.#town.host;
    this.refusal = 'unknown';
    const balance = await this.balances.acquire(account, amount).catch(() => undefined);
    if (balance === undefined) return false;
    const since = clock.monotonic();
    for (let tries = 0; !balance.admits(amount); tries += 1) {
      const again = await this.leases.request(balance, amount, { tries, since }).catch(() => undefined);
      if (again) continue;
      this.refusal = again === false ? 'lacking' : 'unknown';
      balance.release();
      return false;
    }
    if (this.#dead) return false;
    const isLow = balance.hold(amount);
    balance.release();
    this.#write();
    this.#town.truth -= amount;
    this.holds.push({ amount, balance, sequence: this.#sequence });
    if (isLow) this.leases.topUp(balance);
    return true;
  }

  /** Ends the oldest call: it cost so many hundredths of what was set aside. */
  settle(hundredths: bigint): void {
    const hold = this.holds.shift();
    if (hold === undefined) return;
    const cost = money((hold.amount * hundredths) / 100n);
    const back = hold.amount - cost;
    this.#backlog.end(hold.balance, hold.amount, cost, hold.sequence);
    this.#journal.push({ sequence: this.#sequence + 1, cost });
    this.#write();
    this.#town.truth += back;
    if (back < 0n) this.#town.overrun -= back;
  }

  flush(): Promise<boolean> {
    return this.flusher.drain();
  }

  /** It dies, and its journal stays behind. */
  crash(): void {
    this.#dead = true;
    this.#town.nodes.delete(this.name);
    this.#town.model.living.delete(this.name);
  }

  /** Another run reads the journal: calls that were cut cost half of what was set aside; then the lease goes back. */
  recover(): void {
    for (const { amount } of this.holds.splice(0)) {
      const cost = amount / 2n;
      this.#journal.push({ sequence: ++this.#sequence, cost });
      this.#town.truth += amount - cost;
    }
    this.#apply(this.#sequence, 0n);
    this.#town.model.end(this.name);
  }
}
