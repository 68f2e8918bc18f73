/** What attempts that were followed by another one may cost within an hour, as a share of what all calls have cost. */

import type { Clock } from '../../../core/contract/host-tools.ts';
import { type Money, parseUsd } from '../../common/domain/money.ts';

const slotMs = 300_000;
/** An hour. */
const slots = 12;
/**
 * An hour counts as at least this much and as this many calls, so that the first failures of a quiet gateway are tried again, and
 * those of dear calls until a target's circuit has opened.
 */
const leastCost = parseUsd('10');
const leastCalls = 200;
/** One account gets one part in so many of the budget, so that its bad luck or abuse leaves the rest to others. */
const accountPart = 4;
/** Accounts that are remembered. */
const mostAccounts = 10_000;
/** Shares are compared in whole parts of a million. */
const parts = 1_000_000;

interface Slot {
  cost: bigint;
  absorbed: bigint;
  /** Attempts that were allowed beyond the share. */
  beyond: number;
}

/** Cost of one account's attempts within an hour of the first. */
interface Taken {
  readonly since: number;
  absorbed: bigint;
  beyond: number;
}

export class AbsorbBudget {
  readonly #clock: Clock;
  readonly #accounts = new Map<string, Taken>();
  readonly #slots: Slot[] = Array.from({ length: slots }, () => ({ cost: 0n, absorbed: 0n, beyond: 0 }));
  #turn = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A call has cost so much. */
  note(cost: Money): void {
    this.#now().cost += cost;
  }

  /**
   * Counts an attempt of the account that may have cost so much. false: it would exceed this share of the hour's cost, or the
   * account's part of it, and is not counted.
   */
  take(amount: Money, share: number, accountId: string): boolean {
    const now = this.#now();
    let [cost, absorbed, beyond] = [0n, amount as bigint, 0];
    for (const slot of this.#slots) {
      cost += slot.cost;
      absorbed += slot.absorbed;
      beyond += slot.beyond;
    }
    const counted = cost > leastCost ? cost : leastCost;
    const allowed = counted * BigInt(Math.round(share * parts));
    const own = this.#takenBy(accountId);
    const ownAbsorbed = (own.absorbed + amount) * BigInt(accountPart);
    const isWithin = share > 0 && absorbed * BigInt(parts) <= allowed && ownAbsorbed * BigInt(parts) <= allowed;
    const isFew = beyond + 1 <= share * leastCalls && own.beyond + 1 <= Math.ceil((share * leastCalls) / accountPart);
    if (!isWithin && !isFew) return false;
    for (const each of [now, own]) {
      each.absorbed += amount;
      if (!isWithin) each.beyond += 1;
    }
    this.#accounts.set(accountId, own);
    return true;
  }

  #takenBy(accountId: string): Taken {
    const at = this.#clock.monotonic();
    const known = this.#accounts.get(accountId);
    if (known !== undefined && at - known.since < slots * slotMs) return known;
    this.#accounts.delete(accountId);
    const [oldest] = this.#accounts.size < mostAccounts ? [] : this.#accounts.keys();
    if (oldest !== undefined) this.#accounts.delete(oldest);
    return { since: at, absorbed: 0n, beyond: 0 };
  }

  /** The current slot; clears the slots that have passed. */
  #now(): Slot {
    const turn = Math.floor(this.#clock.monotonic() / slotMs);
    const gone = Math.min(turn - this.#turn, slots);
    for (let back = 0; back < gone; back += 1)
      Object.assign(this.#slots[(turn - back) % slots]!, { cost: 0n, absorbed: 0n, beyond: 0 });
    this.#turn = turn;
    return this.#slots[turn % slots]!;
  }
}
