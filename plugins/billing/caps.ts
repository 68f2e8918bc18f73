/** What keys have spent of their caps, in memory from a key's first call on: admission then asks nobody. */
import type { Clock, Log } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { formatUsd, type Money, money, zero } from '../../core/money.ts';
import type { Deposit, KeyCap } from '../../core/vocabulary.ts';
import { calendarAnchors, type Period, periodAt } from './periods.ts';

/** What the database knows of a key. */
export interface KeySpend {
  /** Charged since the moment that was asked for. */
  readonly settled: Money;
  /** Set aside for orders that have not ended. */
  readonly ordered: Money;
}

export interface CapsOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** What a key was charged since `from`, once all that ended here before is in it; rejects while the database is away. */
  readonly spentSince: (keyId: string, from: number) => Promise<KeySpend>;
  /** Other processes let calls of the same keys in. */
  readonly shared: boolean;
  /** Keys in memory at most. */
  readonly limit: number;
}

/** One call's part of its key's cap, from its admission to its end. */
export interface CapShare {
  /** Whether so much more may be set aside for it. */
  covers(amount: Money): boolean;
  /** So much more is. */
  grow(amount: Money): void;
  /** It has cost this; nothing is set aside for it any more. */
  end(cost: Money, at: number): void;
}

/** What is not known of other processes and of orders is asked for again after so long, beside the calls. */
const refreshMs = 2_500;
/** Of a key that nobody has called with for so long it is asked for before it lets anybody in. */
const oldestMs = 5_000;
/** Before a refusal it is asked for after so long. */
const staleMs = 1_000;
/** Keys that are looked at to make room for one. */
const evictionTries = 100;

/** One key. All sums are of the running period. */
interface Tally {
  readonly keyId: string;
  cap: KeyCap;
  period: Period;
  /** Charged; `held`: set aside for running calls of this process; `ordered`: for orders, of any. */
  settled: Money;
  held: Money;
  ordered: Money;
  /** Ended and ordered here since the reading that runs was begun. */
  settledSince: Money;
  orderedSince: Money;
  /** false: the settled sum is not known yet. */
  known: boolean;
  /** Calls that wait to be let in. */
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
   * Sets `amount` aside within the key's cap: at once for a key that is known. 402 when it does not fit, 503 while what the
   * key has spent cannot be read.
   */
  enter(keyId: string, cap: KeyCap, amount: Money): CapShare | Promise<CapShare> {
    const tally = this.#tallyOf(keyId, cap);
    const now = this.#roll(tally);
    const readAgainMs = fits(tally, amount) ? oldestMs : staleMs;
    if (!tally.known || this.#isStale(tally, readAgainMs)) return this.#enterLater(tally, amount);
    if (this.#isStale(tally, refreshMs)) this.#refresh(tally);
    return this.#take(tally, amount, now);
  }

  /** An order's deposit, whose money counts from before it is placed until it has ended, wherever that is. */
  guard(deposit: Deposit, cap: KeyCap, amount: Money): Deposit {
    return {
      ...deposit,
      place: async (work) => {
        const share = await this.enter(deposit.keyId, cap, amount);
        try {
          await deposit.place(work);
          this.#noteOrder(deposit.keyId, amount);
        } catch (error) {
          // It may have been placed all the same.
          this.#doubt(deposit.keyId);
          throw error;
        } finally {
          share.end(zero, this.#options.clock.now());
        }
      },
    };
  }

  /** A call has ended that was let in before its key had a cap. */
  charged(keyId: string, cost: Money, at: number): void {
    const tally = this.#tallies.get(keyId);
    if (tally !== undefined) this.#charge(tally, cost, at);
  }

  async #enterLater(tally: Tally, amount: Money): Promise<CapShare> {
    tally.waiting += 1;
    try {
      // A second time where the period ended, or another one was set, while it was read.
      await this.#read(tally).catch((error: unknown) => {
        // What is known is old, but not nothing.
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
      // While other terms are being read a running answer is not broken off.
      covers: (more) => !tally.known || fits(tally, more),
      grow: (more) => {
        held = money(held + more);
        tally.held = money(tally.held + more);
      },
      end: (cost, at) => {
        tally.held = money(tally.held - held);
        held = zero;
        this.#charge(tally, cost, at);
      },
    };
  }

  #charge(tally: Tally, cost: Money, at: number): void {
    this.#roll(tally);
    // What ended in an earlier period is none of this one's.
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

  /** Begins the period around now where another one was running. Of a new period everything is known here, or soon asked for. */
  #roll(tally: Tally): number {
    const now = this.#options.clock.now();
    const { period } = tally;
    if (now >= period.start && now < period.end) return now;
    // A clock that stepped back, or a key that is seen for the first time.
    if (now < period.start || period === never) tally.known = false;
    tally.period = periodOf(tally.cap.every, now);
    tally.settled = zero;
    tally.settledSince = zero;
    tally.readAt = Number.NEGATIVE_INFINITY;
    return now;
  }

  /** A single process knows all but how its orders end. */
  #isStale({ ordered, readAt }: Tally, afterMs: number): boolean {
    return (this.#options.shared || ordered > 0n) && this.#options.clock.monotonic() - readAt >= afterMs;
  }

  #refresh(tally: Tally): void {
    if (tally.reading !== undefined) return;
    this.#read(tally).catch((error: unknown) => this.#noteFailure(tally, error));
  }

  #noteFailure(tally: Tally, error: unknown): void {
    tally.readAt = this.#options.clock.monotonic();
    this.#options.log.warn({ error, keyId: tally.keyId }, 'what a key has spent could not be read again; it goes on');
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
   * All that ended here before the reading is in what is read; what ends meanwhile may be in it or not, so it is counted in
   * any case: too much by it until the next reading, never too little.
   */
  async #readNow(tally: Tally): Promise<void> {
    const { period } = tally;
    tally.settledSince = zero;
    tally.orderedSince = zero;
    const { settled, ordered } = await this.#options.spentSince(tally.keyId, period.start);
    // Another period has begun meanwhile.
    if (tally.period !== period) return;
    tally.settled = money(settled + tally.settledSince);
    tally.ordered = money(ordered + tally.orderedSince);
    tally.known = true;
    tally.readAt = this.#options.clock.monotonic();
  }

  /** Forgets a key that sets nothing aside: what it has spent is in the database. */
  #makeRoom(): void {
    let triesLeft = evictionTries;
    for (const [keyId, tally] of this.#tallies) {
      if (this.#tallies.size < this.#options.limit || triesLeft === 0) break;
      this.#tallies.delete(keyId);
      // To the back, so that the next search looks at others.
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

/** What costs nothing always does. */
function fits({ cap, settled, held, ordered }: Tally, amount: Money): boolean {
  return amount === 0n || settled + held + ordered + amount <= cap.amount;
}

const spans = { day: ' a day', week: ' a week', month: ' a month', ever: '' } as const;

function capReached({ cap, period }: Tally, now: number): GatewayError {
  const until = cap.every === 'ever' || period.end <= now ? '' : ` It frees at ${new Date(period.end).toISOString()}.`;
  const message = `What is left of this key's spend cap, ${formatUsd(cap.amount)} USD${spans[cap.every]}, does not cover this call.${until}`;
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
