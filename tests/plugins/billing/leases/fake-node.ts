/** A node without sockets, disk or database: real purses, backlog, flusher and lessor on a model of the database's leases. */
import assert from 'node:assert/strict';
import { type Money, money } from '../../../../core/money.ts';
import { Backlog } from '../../../../plugins/billing/backlog.ts';
import { Flusher } from '../../../../plugins/billing/flusher.ts';
import { Lessor, leaseMs } from '../../../../plugins/billing/leases/lessor.ts';
import type { Leased } from '../../../../plugins/billing/leases/store.ts';
import { type Purse, Purses } from '../../../../plugins/billing/purses.ts';
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
  /** What late statements and answers wait for. */
  gate: PromiseWithResolvers<void>;
  /** Statements on leases so far. */
  statements: number;
  /** What the account truly has: credits less charges less all that is set aside anywhere. */
  truth: bigint;
  /** What calls cost beyond what was set aside for them: it is charged all the same. */
  overrun: bigint;
  /** The lowest balance that the ledger has shown behind a hold. */
  lowest: bigint;
}

export interface FakeHold {
  readonly amount: bigint;
  readonly purse: Purse;
}

export function newTown(model: LeaseModel): Town {
  return {
    model,
    host: fakeHost(),
    nodes: new Map(),
    fault: 'none',
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
  readonly lessor: Lessor;
  readonly purses: Purses;
  readonly flusher: Flusher;
  readonly #town: Town;
  readonly #backlog: Backlog;
  readonly #slab = Buffer.alloc(1 << 20);
  #used = 0;
  #sequence = 0;
  #dead = false;
  /** The journal's rows that the database does not have; they outlive the node. */
  readonly #journal: { readonly sequence: number; readonly amount: bigint; readonly held: bigint }[] = [];

  constructor(town: Town, name: string) {
    this.name = name;
    this.#town = town;
    const { clock, log } = town.host;
    this.#backlog = new Backlog(() => {});
    this.purses = new Purses({
      clock,
      limit: 10,
      idleMs: 60_000,
      fundsOf: () => assert.fail('a whole balance was asked for'),
      lease: (purse, need) => this.lessor.open(purse, need),
    });
    this.flusher = new Flusher({
      backlog: this.#backlog,
      purses: this.purses,
      clock,
      log,
      applied: 0,
      apply: async (_text, accountIds, applied) => {
        const sentAt = clock.monotonic();
        await this.#run(() => this.#apply(applied), false);
        this.lessor.renewed(accountIds, sentAt);
        return new Map();
      },
      fundsOf: (accountIds) => this.lessor.exchange(accountIds),
    });
    this.lessor = new Lessor({
      node: name,
      purses: this.purses,
      flusher: this.flusher,
      clock,
      log,
      takeSlices: (asks) =>
        this.#run(() => {
          town.statements += 1;
          const answerOf = (ask: (typeof asks)[number]): [string, Leased] => {
            const answer = town.model.take(name, ask);
            return [ask.accountId, { ...answer, pool: undefined, term: undefined, lastsMs: leaseMs }];
          };
          return new Map(asks.map(answerOf));
        }, true),
      announce: async (topic, subject) => {
        for (const node of town.nodes.values()) {
          if (topic === 'lease wanted') node.lessor.wanted(subject);
          else node.lessor.returned(subject);
        }
      },
    });
    town.nodes.set(name, this);
    town.model.living.add(name);
  }

  /** A statement: refused before it ran, with an answer that never came, or with calls going on while it or its answer is on the way. */
  async #run<T>(work: () => T, isLease: boolean): Promise<T> {
    await Promise.resolve();
    const { fault } = this.#town;
    if (fault.startsWith('late') && isLease === (fault === 'late batch')) return work();
    // As long as batches are late all of them are.
    if (fault !== 'late batch') this.#town.fault = 'none';
    if (fault === 'refused') throw new Error('the database is down');
    if (fault === 'late' || fault === 'late batch') await this.#town.gate.promise;
    // The statement of a process that has died runs no more, or nobody hears of it.
    const nobody = new Promise<never>(() => {});
    if (this.#dead) return nobody;
    const result = work();
    await (fault === 'late answer' ? this.#town.gate.promise : Promise.resolve());
    if (this.#dead) return nobody;
    if (fault === 'lost answer') throw new Error('no answer after the commit');
    return result;
  }

  #apply(applied: number): void {
    while (this.#journal[0] !== undefined && this.#journal[0].sequence <= applied) {
      const { amount, held } = this.#journal.shift()!;
      const { model } = this.#town;
      model.apply(this.name, amount, held);
      if (amount < 0n && model.balance < this.#town.lowest) this.#town.lowest = model.balance;
    }
  }

  #post(purse: Purse, amount: bigint, held: bigint): void {
    this.#backlog.post(purse, money(amount));
    this.#journal.push({ sequence: ++this.#sequence, amount, held });
    this.#backlog.written(this.#slab, this.#used, ++this.#used, this.#sequence);
  }

  /** As the desk does it. false: refused, or nobody knows. */
  async hold(amount: Money): Promise<boolean> {
    const { clock } = this.#town.host;
    const purse = await this.purses.acquire(account, amount).catch(() => undefined);
    if (purse === undefined) return false;
    const since = clock.monotonic();
    for (let tries = 0; !this.purses.admits(purse, amount); tries += 1) {
      const again = await this.lessor.ask(purse, amount, { tries, since }).catch(() => false);
      if (again) continue;
      this.purses.release(purse);
      return false;
    }
    if (this.#dead) return false;
    this.#post(purse, -amount, amount);
    this.#town.truth -= amount;
    this.holds.push({ amount, purse });
    if (purse.base + purse.posted < purse.slice!.lowWater) this.lessor.topUp(purse);
    return true;
  }

  /** Ends the oldest call: it cost so many hundredths of what was set aside. */
  settle(hundredths: bigint): void {
    const hold = this.holds.shift();
    if (hold === undefined) return;
    const back = hold.amount - (hold.amount * hundredths) / 100n;
    this.#post(hold.purse, back, -hold.amount);
    this.#town.truth += back;
    if (back < 0n) this.#town.overrun -= back;
    this.purses.release(hold.purse);
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
      this.#journal.push({ sequence: ++this.#sequence, amount: amount / 2n, held: -amount });
      this.#town.truth += amount / 2n;
    }
    this.#apply(this.#sequence);
    this.#town.model.leases.delete(this.name);
  }
}
