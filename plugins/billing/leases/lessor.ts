/** Brings slices of balances to this node's purses, gives back what others need, and keeps its leases alive. */
import type { Clock, Log } from '../../../core/contract.ts';
import type { Money } from '../../../core/money.ts';
import type { Flusher } from '../flusher.ts';
import type { Funds } from '../funds.ts';
import { balanceUnavailable, type Purse, type Purses } from '../purses.ts';
import type { Funding, Patience } from './funding.ts';
import { type Ask, askOf, newSlice, type Slice, takeAnswer } from './slice.ts';
import type { Leased } from './store.ts';

/** How long a lease lasts; a node that cannot reach the database admits nothing by it afterwards. */
export const leaseMs = 30_000;
/** A call waits this long for what other nodes may give back. */
const patienceMs = 1_000;
/** A call that has ended on another node is in the ledger after this long. */
const ledgerMs = 200;
/** The others are asked for the same account at most this often. */
const callEveryMs = 200;
/** Looks of a second each without a new row, after which a slice goes back. */
const idleTurns = 10;

export interface LessorOptions {
  /** Names this node. */
  readonly node: string;
  readonly purses: Purses;
  readonly flusher: Flusher;
  readonly clock: Clock;
  readonly log: Log;
  readonly takeSlices: (asks: readonly Ask[]) => Promise<Map<string, Leased>>;
  /** Tells all nodes: `lease wanted`, `lease returned`. */
  readonly announce: (topic: string, subject: string) => Promise<void>;
}

export class Lessor implements Funding {
  readonly #options: LessorOptions;
  #draining = false;

  constructor(options: LessorOptions) {
    this.#options = options;
  }

  /** The first slice of a new purse. */
  async open(purse: Purse, need: Money): Promise<void> {
    await this.#exchange(purse, need);
  }

  async ask(purse: Purse, amount: Money, { tries, since }: Patience): Promise<boolean> {
    const slice = purse.slice!;
    // Of what is there, others may have been quicker to take what the last exchange brought.
    const isFree = slice.unleased > 0n && purse.base + purse.posted + slice.unleased >= amount;
    if (tries > 0 && this.#options.clock.monotonic() - since >= (isFree ? patienceMs : waitMsOf(slice, amount)))
      return false;
    if (tries > 0 && !isFree) await this.#callIn(purse);
    await this.#exchange(purse, amount);
    return true;
  }

  topUp(purse: Purse): void {
    // Marked, so that the next calls do not ask for the same.
    purse.slice!.lowWater = noLowWater;
    void this.#options.flusher.refresh(purse.accountId);
  }

  prepare(purse: Purse, amount: Money): void {
    const slice = purse.slice!;
    if (purse.base + purse.posted >= amount || slice.ahead >= amount) return;
    slice.ahead = amount;
    void this.#options.flusher.refresh(purse.accountId);
  }

  /** Asks the database, together with all other calls that wait for this account. */
  async #exchange(purse: Purse, amount: Money): Promise<void> {
    const { waiting } = purse.slice!;
    waiting.push(amount);
    try {
      if (!(await this.#options.flusher.refresh(purse.accountId))) throw balanceUnavailable();
    } finally {
      waiting.splice(waiting.indexOf(amount), 1);
    }
  }

  /** Between two batches, for the flusher: exchanges the slices of these accounts. */
  async exchange(accountIds: readonly string[]): Promise<Map<string, Funds>> {
    const { purses, clock, takeSlices } = this.#options;
    const sentAt = clock.monotonic();
    // What a forgotten purse left in the database goes back.
    const asks = accountIds.map((accountId) => {
      const purse = purses.find(accountId);
      return purse === undefined ? nothingOf(accountId) : askOf(purse, purse.slice!, sentAt);
    });
    const answers = await takeSlices(asks);
    const funds = new Map<string, Funds>();
    for (const ask of asks) {
      const answer = answers.get(ask.accountId)!;
      this.#take(ask, answer, sentAt);
      funds.set(ask.accountId, { balance: answer.amount, pool: answer.pool, term: answer.term });
    }
    return funds;
  }

  #take(ask: Ask, answer: Leased, sentAt: number): void {
    const { purses, flusher, node } = this.#options;
    const purse = purses.find(ask.accountId);
    const slice = purse?.slice;
    if (purse === undefined || slice === undefined) return;
    const isTooMuch = takeAnswer(purse, slice, ask, answer, sentAt, answer.lastsMs);
    if (isTooMuch) void flusher.refresh(ask.accountId);
    if (!ask.leaving || !slice.called) return;
    slice.called = slice.leaving;
    this.#tell('lease returned', `${node} ${ask.accountId}`);
  }

  /** Asks the other nodes for what they do not use, and waits for an answer or the next turn. */
  #callIn(purse: Purse): Promise<void> {
    const { clock, node } = this.#options;
    const slice = purse.slice!;
    const now = clock.monotonic();
    if (now - slice.calledAt >= callEveryMs) {
      slice.calledAt = now;
      this.#tell('lease wanted', `${node} ${purse.accountId}`);
    }
    slice.turn ??= Promise.withResolvers<void>();
    return slice.turn.promise;
  }

  #tell(topic: string, subject: string): void {
    this.#options.announce(topic, subject).catch((error: unknown) => {
      this.#options.log.warn({ error, topic }, 'other nodes could not be told of a lease');
    });
  }

  /** Another node wants what is not used here. `subject`: node and account. */
  wanted(subject: string): void {
    const purse = this.#purseOf(subject);
    if (purse?.slice === undefined) return;
    purse.slice.called = true;
    this.#leave(purse);
  }

  /** Another node has given back: whoever waits asks again. */
  returned(subject: string): void {
    const purse = this.#purseOf(subject);
    if (purse?.slice !== undefined) this.#nextTurn(purse);
  }

  #purseOf(subject: string): Purse | undefined {
    const space = subject.indexOf(' ');
    if (subject.slice(0, space) === this.#options.node) return undefined;
    return this.#options.purses.find(subject.slice(space + 1));
  }

  #nextTurn({ slice }: Purse): void {
    const turn = slice!.turn;
    slice!.turn = undefined;
    turn?.resolve();
  }

  /** A batch was applied that was sent at `sentAt`: the leases of its accounts were renewed with it. */
  renewed(accountIds: readonly string[], sentAt: number): void {
    for (const accountId of accountIds) {
      const purse = this.#options.purses.find(accountId);
      if (purse?.slice === undefined) continue;
      const { slice } = purse;
      // What could not be given back before the ledger had these rows.
      if (slice.leaving || slice.withheld > 0n) void this.#options.flusher.refresh(accountId);
      if (purse.pool !== undefined) continue;
      // One that has ended may have been released: the database must be asked.
      if (this.#options.clock.monotonic() < slice.validUntil)
        slice.validUntil = Math.max(slice.validUntil, sentAt + leaseMs);
    }
  }

  /** Every few milliseconds: lets those who wait ask again, gives back what is left over of accounts that are nearly empty. */
  turn(): void {
    for (const purse of this.#options.purses) {
      const slice = purse.slice!;
      if (slice.turn !== undefined) this.#nextTurn(purse);
      const isSpare = this.#draining || (slice.tight && slice.nodes > 1);
      if (!isSpare || slice.leaving || purse.users > 0) continue;
      if (purse.base + purse.posted > 0n) this.#leave(purse);
    }
  }

  /** Once a second: gives back what nobody uses, renews what is used and would end soon. */
  look(): void {
    const now = this.#options.clock.monotonic();
    for (const purse of this.#options.purses) {
      const slice = purse.slice!;
      slice.idleTurns = slice.rows === purse.rows ? slice.idleTurns + 1 : 0;
      slice.rows = purse.rows;
      // Below zero it was overspent by a settlement; what that leaves of the lease is cleared too.
      if (purse.base + purse.posted === 0n) continue;
      if (slice.idleTurns >= idleTurns) this.#leave(purse);
      else if (slice.validUntil - now < leaseMs / 2) void this.#options.flusher.refresh(purse.accountId);
    }
  }

  /** From now on nothing is kept that no call has spoken for. */
  drain(): void {
    this.#draining = true;
    for (const purse of this.#options.purses) if (purse.base + purse.posted > 0n) this.#leave(purse);
  }

  #leave(purse: Purse): void {
    purse.slice!.leaving = true;
    void this.#options.flusher.refresh(purse.accountId);
  }

  /** The database was asked which accounts this node leases: what no purse knows of goes back. */
  reclaim(accountIds: readonly string[]): void {
    const { purses, flusher } = this.#options;
    for (const accountId of accountIds) if (!purses.knows(accountId)) void flusher.refresh(accountId);
  }
}

/** How long a call waits for what it needs: not at all if no other node can have it. */
function waitMsOf({ nodes, elsewhere, held, rest }: Slice, amount: Money): number {
  if (nodes === 1 || rest + elsewhere + held < amount) return 0;
  if (elsewhere > 0n) return patienceMs;
  return held > 0n ? ledgerMs : 0;
}

const noLowWater = newSlice().lowWater;

function nothingOf(accountId: string): Ask {
  const none = noLowWater;
  const nothing = { pending: none, keep: none, need: none, smallest: none, wish: none, ahead: none };
  return { accountId, ...nothing, leaving: true, owing: false };
}
