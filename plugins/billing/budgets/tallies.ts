/** Holds what calls may cost within all their scopes together, in memory from a scope's first call on. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import type { Authorization } from '../../common/domain/ledger.ts';
import { type Money, money, zero } from '../../common/domain/money.ts';
import { Rounds, type RoundsOptions } from './rounds.ts';
import { keyOf, keyScope, reached, type Scope, unavailable } from './scope.ts';
import { type ShareTimes, Tally } from './tally.ts';

export interface TalliesOptions extends RoundsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly times: ShareTimes;
  /** Asks the other processes for what they do not need of the scope with this key. */
  readonly recall: (key: string) => void;
  /** Says to the other processes that this one has returned what it did not need. */
  readonly returned: (key: string) => void;
  /** The most scopes in memory. */
  readonly limit: number;
}

/** What one call holds of its scopes, from admission to end. */
export interface ScopeShare {
  /** How many scopes it lies in. */
  readonly size: number;
  /** Whether it is of the scope with this key. */
  has(key: string): boolean;
  /** Whether this much more may be held. */
  covers(amount: Money): boolean;
  /** Holds this much more. */
  grow(amount: Money): void;
  /** Runs `use`, which holds this much more, as soon as it may be held. 402 where it may not. */
  whenCovered(amount: Money, use: () => void): Promise<void>;
  /** This much more will be needed soon. */
  prepare(amount: Money): void;
  /** Why so much more is not held. */
  refusal(amount: Money): GatewayError;
  /** Ends the share with the call's cost, for the model that has served it; it holds nothing afterwards. */
  end(cost: Money, at: number, model: string): void;
}

interface Parties {
  readonly accountId: string;
  readonly keyId: string;
  readonly cap?: ScopeShare;
}

/** How long what other processes may return is waited for: as long as for balances. */
const patienceMs = 5_000;
const recallEveryMs = 200;
const turnMs = 50;
/** The most scopes that are looked at to make room for one. */
const evictionTries = 100;
/** What a scope without a ceiling may spend, for the calls that still hold money in it. */
const boundless = money(10n ** 18n);

export class Tallies {
  readonly #options: TalliesOptions;
  readonly #rounds: Rounds;
  readonly #tallies = new Map<string, Tally>();

  constructor(options: TalliesOptions) {
    this.#options = options;
    this.#rounds = new Rounds(options);
  }

  /**
   * Holds `amount` within all scopes, or within none: at once where they are known. The first of them that does not cover it says so
   * by 402; 503 while one cannot be read.
   */
  enter(scopes: readonly Scope[], amount: Money): ScopeShare | Promise<ScopeShare> {
    const { clock } = this.#options;
    const [now, at] = [clock.now(), clock.monotonic()];
    const tallies: Tally[] = [];
    let isReady = true;
    for (const scope of scopes) {
      const tally = this.#tallyOf(scope);
      tally.roll(now);
      tallies.push(tally);
      if (!isReady || tally.admits(amount, at)) continue;
      if (tally.refuses(amount, at)) throw reached(tally.scope, tally.left, tally.period, now);
      isReady = false;
    }
    return isReady ? this.#take(tallies, amount, at) : this.#enterLater(tallies, amount);
  }

  /** An authorization within the scopes. Its money counts from before it is placed until it has ended, in any process. */
  guard(authorization: Authorization, scopesOf: () => Promise<readonly Scope[]>, amount: Money): Authorization {
    return {
      ...authorization,
      place: async (work) => {
        const scopes = await scopesOf();
        const share = await this.enter(scopes, amount);
        let isSure = false;
        try {
          await authorization.place(work);
          isSure = true;
        } finally {
          // It may have been placed despite an error.
          (share as Share).order(isSure);
        }
      },
    };
  }

  /** Counts a call that ended in what it was admitted before: the cap of its key, and these scopes. */
  charged({ accountId, keyId, cap }: Parties, cost: Money, at: number, scopes: readonly Scope[]): void {
    if (this.#tallies.size === 0) return;
    this.#chargeBeside(cap, keyOf(accountId, keyScope(keyId)), cost, at);
    for (const { key, origin } of scopes) if (origin !== undefined) this.#chargeBeside(cap, key, cost, at);
  }

  #chargeBeside(held: ScopeShare | undefined, key: string, cost: Money, at: number): void {
    if (held?.has(key) !== true) this.#tallies.get(key)?.charge(cost, at);
  }

  /**
   * Takes into account that the budgets of an account have changed, or of all accounts. `find`: a scope as it is from now on; undefined: it has no
   * ceiling any more.
   */
  revise(find: (scope: Scope) => Scope | undefined, accountId?: string): void {
    const now = this.#options.clock.now();
    for (const [key, tally] of this.#tallies) {
      if (accountId !== undefined && tally.scope.spending.accountId !== accountId) continue;
      const scope = find(tally.scope);
      if (scope === undefined && tally.isIdle) {
        this.#tallies.delete(key);
        if (tally.isShared) this.#giveBack(tally);
        continue;
      }
      tally.adopt(scope ?? { ...tally.scope, amount: boundless });
      tally.roll(now);
      tally.endTurn();
      if (tally.isShared && !tally.isKnown) this.#refresh(tally);
    }
  }

  /** Another process needs what is free here of the scope. `subject`: node, account, scope. */
  wanted(subject: string): void {
    const [, accountId = '', scope = ''] = subject.split(' ');
    const tally = this.#tallies.get(keyOf(accountId, scope));
    if (tally === undefined) {
      this.#rounds.giveBack({ accountId, scope });
      return;
    }
    tally.leave(this.#options.clock.monotonic());
    this.#rounds.ask(tally).then(
      () => this.#options.returned(tally.key),
      (error: unknown) => this.#noteFailure(tally, error),
    );
  }

  /** Another process has returned what it did not need: waiting calls ask again. */
  wasReturned(subject: string): void {
    const [, accountId = '', scope = ''] = subject.split(' ');
    this.#tallies.get(keyOf(accountId, scope))?.endTurn();
  }

  #enterLater(tallies: readonly Tally[], amount: Money): Promise<ScopeShare> {
    return this.until(tallies, amount, (at) => this.#take(tallies, amount, at));
  }

  /** Waits until all of them have so much, and uses it in the turn in which it was found. */
  async until<T>(tallies: readonly Tally[], amount: Money, use: (at: number) => T): Promise<T> {
    const { clock } = this.#options;
    const since = clock.monotonic();
    for (const tally of tallies) tally.waiting += 1;
    try {
      for (;;) {
        const [now, at] = [clock.now(), clock.monotonic()];
        for (const tally of tallies) tally.roll(now);
        const lacking = tallies.find((tally) => !tally.admits(amount, at));
        if (lacking === undefined) return use(at);
        if (lacking.refuses(amount, at)) throw reached(lacking.scope, lacking.left, lacking.period, now);
        await this.#obtain(lacking, amount, since);
      }
    } finally {
      for (const tally of tallies) tally.waiting -= 1;
    }
  }

  /** Asks once for so much of a scope, or waits once for other processes. Throws where that is in vain. */
  async #obtain(tally: Tally, amount: Money, since: number): Promise<void> {
    const { clock } = this.#options;
    tally.wait(amount, since);
    try {
      await this.#rounds.ask(tally);
    } catch (error) {
      // What is known is old, but can be used.
      if (!tally.isUsable(amount)) throw unavailable(tally.scope, error);
      this.#noteFailure(tally, error);
    } finally {
      tally.waited(amount);
    }
    const at = clock.monotonic();
    // However long it took: the money is there, and the next scope is looked at.
    if (tally.isKnown && tally.admits(amount, at)) return;
    // Another period has begun meanwhile, or the ceiling was changed.
    if (!tally.isKnown) return this.#hasPatience(tally, since, at);
    if (!tally.isObtainable(amount)) {
      tally.confirmRefusal(amount, at);
      throw reached(tally.scope, tally.left, tally.period, clock.now());
    }
    this.#hasPatience(tally, since, at);
    if (tally.elsewhere > 0n) await this.#recall(tally, at);
  }

  #hasPatience({ scope }: Tally, since: number, at: number): void {
    if (at - since >= patienceMs) throw unavailable(scope);
  }

  /** Asks the other processes for what they do not need, and waits for one of them, or for a moment. */
  async #recall(tally: Tally, at: number): Promise<void> {
    if (at - tally.recalledAt >= recallEveryMs) {
      tally.recalledAt = at;
      this.#options.recall(tally.key);
    }
    let timer: NodeJS.Timeout | undefined;
    const pause = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, turnMs);
    });
    await Promise.race([tally.nextTurn, pause]);
    clearTimeout(timer);
  }

  #take(tallies: readonly Tally[], amount: Money, at: number): ScopeShare {
    for (const tally of tallies) {
      if (!tally.take(amount, at)) continue;
      tally.toppingUp();
      this.#refresh(tally);
    }
    return new Share(this, tallies, amount);
  }

  /** Asks in the background. */
  #refresh(tally: Tally): void {
    this.#rounds.ask(tally).catch((error: unknown) => this.#noteFailure(tally, error));
  }

  prepare(tally: Tally, amount: Money): void {
    if (tally.needSoon(amount)) this.#refresh(tally);
  }

  refusalBy(tallies: readonly Tally[], amount: Money): GatewayError {
    const tally = tallies.find((one) => !one.covers(amount)) ?? tallies[0]!;
    return reached(tally.scope, tally.left, tally.period, this.#options.clock.now());
  }

  #noteFailure(tally: Tally, error: unknown): void {
    tally.postpone(this.#options.clock.monotonic());
    this.#options.log.warn(
      { error, scope: tally.scope.id },
      'the spending of a key or budget could not be refreshed; its last known value is used',
    );
  }

  #tallyOf(scope: Scope): Tally {
    const { key } = scope;
    let tally = this.#tallies.get(key);
    if (tally === undefined) {
      this.#makeRoom();
      tally = new Tally(scope, this.#options.times);
      this.#tallies.set(key, tally);
    } else tally.adopt(scope);
    return tally;
  }

  /** Evicts a scope without holds: its spending is in the database. */
  #makeRoom(): void {
    let triesLeft = evictionTries;
    for (const [key, tally] of this.#tallies) {
      if (this.#tallies.size < this.#options.limit || triesLeft === 0) break;
      this.#tallies.delete(key);
      // Moved to the end, so that the next search looks at others.
      if (!tally.isIdle) this.#tallies.set(key, tally);
      else if (tally.isShared) this.#giveBack(tally);
      triesLeft -= 1;
    }
    if (this.#tallies.size < this.#options.limit) return;
    throw new GatewayError('overloaded', 'Too many keys and budgets are active at the moment.', {
      retryAfterMs: 1_000,
    });
  }

  #giveBack({ scope }: Tally): void {
    this.#rounds.giveBack({ accountId: scope.spending.accountId, scope: scope.id });
  }
}

class Share implements ScopeShare {
  readonly #owner: Tallies;
  readonly #tallies: readonly Tally[];
  #held: Money;

  constructor(owner: Tallies, tallies: readonly Tally[], held: Money) {
    this.#owner = owner;
    this.#tallies = tallies;
    this.#held = held;
  }

  get size(): number {
    return this.#tallies.length;
  }

  has(key: string): boolean {
    return this.#tallies.some((tally) => tally.key === key);
  }

  covers(amount: Money): boolean {
    return this.#tallies.every((tally) => tally.covers(amount));
  }

  grow(amount: Money): void {
    this.#held = money(this.#held + amount);
    // A running answer asks for more in advance.
    for (const tally of this.#tallies) tally.take(amount, 0);
  }

  whenCovered(amount: Money, use: () => void): Promise<void> {
    return this.#owner.until(this.#tallies, amount, use);
  }

  prepare(amount: Money): void {
    for (const tally of this.#tallies) this.#owner.prepare(tally, amount);
  }

  refusal(amount: Money): GatewayError {
    return this.#owner.refusalBy(this.#tallies, amount);
  }

  end(cost: Money, at: number, model: string): void {
    const held = this.#held;
    this.#held = zero;
    for (const tally of this.#tallies) tally.end(held, tally.counts(model) ? cost : zero, at);
  }

  /** An order has it from here on. */
  order(isSure: boolean): void {
    const held = this.#held;
    this.#held = zero;
    for (const tally of this.#tallies) tally.order(held, isSure);
  }
}
