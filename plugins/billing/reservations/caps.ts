/** Spending of keys against their caps, in memory from a key's first call on, so that admission needs no query. */

import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import type { KeyCap } from '../../common/domain/accounts.ts';
import type { Authorization } from '../../common/domain/ledger.ts';
import { formatUsd, type Money, money, zero } from '../../common/domain/money.ts';
import { calendarAnchors, type Period, periodAt } from '../grants/periods.ts';
import type { KeySpend } from '../ledger/store.ts';

export interface CapsOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** A key's charges since `from`, including everything that ended here before; rejects while the database is away. */
  readonly spentSince: (keyId: string, from: number) => Promise<KeySpend>;
  /** Other processes admit calls of the same keys. */
  readonly shared: boolean;
  /** The most keys in memory. */
  readonly limit: number;
}

/** One call's share of its key's cap, from admission to end. */
export interface CapShare {
  /** Whether this much more may be held. */
  covers(amount: Money): boolean;
  /** Holds this much more. */
  grow(amount: Money): void;
  /** Why more is not held. */
  refusal(): GatewayError;
  /** Ends the share with its cost; it holds nothing afterwards. */
  end(cost: Money, at: number): void;
}

/** Spending of other processes and authorizations is read again in the background after this long. */
const refreshMs = 2_500;
/** A key unused for this long is read before it admits a call. */
const oldestMs = 5_000;
/** Before a refusal, values older than this are read again. */
const staleMs = 1_000;
/** The most keys checked to make room for one. */
const evictionTries = 100;

/** One key. All sums are of the running period. */
interface Tally {
  readonly keyId: string;
  cap: KeyCap;
  period: Period;
  /** Charged; `held`: for running calls of this process; `ordered`: by open authorizations of any process. */
  settled: Money;
  held: Money;
  ordered: Money;
  /** Settled and authorized here since the running read began. */
  settledSince: Money;
  orderedSince: Money;
  /** False: the settled sum is unknown yet. */
  known: boolean;
  /** Calls that wait for admission. */
  waiting: number;
  reading: Promise<void> | undefined;
  /** Monotonic. */
  readAt: number;
}

export class Caps {
  readonly #options: CapsOptions;
  readonly #tallies = new Map<string, Tally>();

  constructor(options: CapsOptions) {
    this.#options = options;
  }

  /**
   * Holds `amount` within the key's cap: at once for a known key. 402 when it does not fit, 503 while the key's
   * spending cannot be read.
   */
  enter(keyId: string, cap: KeyCap, amount: Money): CapShare | Promise<CapShare> {
    const tally = this.#tallyOf(keyId, cap);
    const now = this.#roll(tally);
    const readAgainMs = fits(tally, amount) ? oldestMs : staleMs;
    if (!tally.known || this.#isStale(tally, readAgainMs)) return this.#enterLater(tally, amount);
    if (this.#isStale(tally, refreshMs)) this.#refresh(tally);
    return this.#take(tally, amount, now);
  }

  /** An authorization within the cap. Its money counts from before it is placed until it has ended, in any process. */
  guard(authorization: Authorization, cap: KeyCap, amount: Money): Authorization {
    return {
      ...authorization,
      place: async (work) => {
        const share = await this.enter(authorization.keyId, cap, amount);
        try {
          await authorization.place(work);
          this.#noteOrder(authorization.keyId, amount);
        } catch (error) {
          // It may have been placed despite the error.
          this.#doubt(authorization.keyId);
          throw error;
        } finally {
          share.end(zero, this.#options.clock.now());
        }
      },
    };
  }

  /** Counts a call that ended and was admitted before its key had a cap. */
  charged(keyId: string, cost: Money, at: number): void {
    const tally = this.#tallies.get(keyId);
    if (tally !== undefined) this.#charge(tally, cost, at);
  }

  async #enterLater(tally: Tally, amount: Money): Promise<CapShare> {
    tally.waiting += 1;
    try {
      // A second read where the period ended, or the cap changed, during the first.
      await this.#read(tally).catch((error: unknown) => {
        // The known values are old, but usable.
        if (!tally.known || !fits(tally, amount)) throw error;
        this.#noteFailure(tally, error);
      });
      this.#roll(tally);
      if (!tally.known) await this.#read(tally);
      return this.#take(tally, amount, this.#roll(tally));
    } finally {
      tally.waiting -= 1;
    }
  }

  #take(tally: Tally, amount: Money, now: number): CapShare {
    if (!tally.known) throw spendUnavailable();
    if (!fits(tally, amount)) throw capReached(tally, now);
    tally.held = money(tally.held + amount);
    let held = amount;
    return {
      // A running answer is not ended while a new period is being read.
      covers: (more) => !tally.known || fits(tally, more),
      grow: (more) => {
        held = money(held + more);
        tally.held = money(tally.held + more);
      },
      refusal: () => capReached(tally, this.#options.clock.now()),
      end: (cost, at) => {
        tally.held = money(tally.held - held);
        held = zero;
        this.#charge(tally, cost, at);
      },
    };
  }

  #charge(tally: Tally, cost: Money, at: number): void {
    this.#roll(tally);
    // The end of an earlier period's call does not count in this one.
    if (at < tally.period.start) return;
    tally.settled = money(tally.settled + cost);
    tally.settledSince = money(tally.settledSince + cost);
  }

  #noteOrder(keyId: string, amount: Money): void {
    const tally = this.#tallies.get(keyId);
    if (tally === undefined) return;
    tally.ordered = money(tally.ordered + amount);
    tally.orderedSince = money(tally.orderedSince + amount);
  }

  #doubt(keyId: string): void {
    const tally = this.#tallies.get(keyId);
    if (tally !== undefined) tally.known = false;
  }

  #tallyOf(keyId: string, cap: KeyCap): Tally {
    let tally = this.#tallies.get(keyId);
    if (tally === undefined) {
      this.#makeRoom();
      tally = newTally(keyId, cap);
      this.#tallies.set(keyId, tally);
    }
    if (tally.cap.every !== cap.every) {
      tally.period = never;
      tally.known = false;
    }
    tally.cap = cap;
    return tally;
  }

  /** Starts the current period if another one was running. A new period's spending is known here, or read soon. */
  #roll(tally: Tally): number {
    const now = this.#options.clock.now();
    const { period } = tally;
    if (now >= period.start && now < period.end) return now;
    // The clock went back, or the key is new.
    if (now < period.start || period === never) tally.known = false;
    tally.period = periodOf(tally.cap.every, now);
    tally.settled = zero;
    tally.settledSince = zero;
    tally.readAt = Number.NEGATIVE_INFINITY;
    return now;
  }

  /** A single process knows everything except the ends of its authorizations. */
  #isStale({ ordered, readAt }: Tally, afterMs: number): boolean {
    return (this.#options.shared || ordered > 0n) && this.#options.clock.monotonic() - readAt >= afterMs;
  }

  #refresh(tally: Tally): void {
    if (tally.reading !== undefined) return;
    this.#read(tally).catch((error: unknown) => this.#noteFailure(tally, error));
  }

  #noteFailure(tally: Tally, error: unknown): void {
    tally.readAt = this.#options.clock.monotonic();
    this.#options.log.warn(
      { error, key_id: tally.keyId },
      'the spending of a key could not be refreshed; its last known value is used',
    );
  }

  #read(tally: Tally): Promise<void> {
    tally.reading ??= this.#readNow(tally)
      .catch((cause: unknown) => {
        throw spendUnavailable(cause);
      })
      .finally(() => {
        tally.reading = undefined;
      });
    return tally.reading;
  }

  /**
   * Everything that ended here before the read is included in it; what ends during the read may be or not, so it is
   * counted in any case: the sum may be too high until the next read, never too low.
   */
  async #readNow(tally: Tally): Promise<void> {
    const { period } = tally;
    tally.settledSince = zero;
    tally.orderedSince = zero;
    const { settled, ordered } = await this.#options.spentSince(tally.keyId, period.start);
    // Another period has begun during the read.
    if (tally.period !== period) return;
    tally.settled = money(settled + tally.settledSince);
    tally.ordered = money(ordered + tally.orderedSince);
    tally.known = true;
    tally.readAt = this.#options.clock.monotonic();
  }

  /** Evicts a key without holds: its spending is in the database. */
  #makeRoom(): void {
    let triesLeft = evictionTries;
    for (const [keyId, tally] of this.#tallies) {
      if (this.#tallies.size < this.#options.limit || triesLeft === 0) break;
      this.#tallies.delete(keyId);
      // Moved to the end, so that the next search checks other keys.
      if (tally.held > 0n || tally.waiting > 0) this.#tallies.set(keyId, tally);
      triesLeft -= 1;
    }
    if (this.#tallies.size < this.#options.limit) return;
    throw new GatewayError('overloaded', 'Too many keys are active at the moment.', { retryAfterMs: 1_000 });
  }
}

const never: Period = { start: Number.POSITIVE_INFINITY, end: Number.POSITIVE_INFINITY };
const always: Period = { start: 0, end: Number.POSITIVE_INFINITY };

function periodOf(every: KeyCap['every'], at: number): Period {
  return every === 'ever' ? always : periodAt(every, calendarAnchors[every], at);
}

function newTally(keyId: string, cap: KeyCap): Tally {
  return {
    keyId,
    cap,
    period: never,
    settled: zero,
    held: zero,
    ordered: zero,
    settledSince: zero,
    orderedSince: zero,
    known: false,
    waiting: 0,
    reading: undefined,
    readAt: Number.NEGATIVE_INFINITY,
  };
}

/** A free call always fits. */
function fits({ cap, settled, held, ordered }: Tally, amount: Money): boolean {
  return amount === 0n || settled + held + ordered + amount <= cap.amount;
}

const spans = { day: ' a day', week: ' a week', month: ' a month', ever: '' } as const;

function capReached({ cap, period }: Tally, now: number): GatewayError {
  const until = cap.every === 'ever' || period.end <= now ? '' : ` It frees at ${new Date(period.end).toISOString()}.`;
  const message = `The rest of this key's spend cap, ${formatUsd(cap.amount)} USD${spans[cap.every]}, does not cover this call.${until}`;
  return new GatewayError('insufficient_balance', message, { code: 'key_cap_reached', shouldRetry: false });
}

function spendUnavailable(cause?: unknown): GatewayError {
  return new GatewayError(
    'overloaded',
    'What this key has spent cannot be read at the moment; please try again soon.',
    {
      code: 'key_spend_unavailable',
      retryAfterMs: 1_000,
      cause,
    },
  );
}
