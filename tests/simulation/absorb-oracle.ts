/** Watches what attempts that were followed by another one may cost: each is allowed exactly where the share of the hour has room. */
import type { LiveExchange } from '../../core/http/exchange.ts';
import { type Attempt, type SpendGuard, spendGuard } from '../../plugins/common/domain/calls.ts';
import { shareOf } from './audit.ts';
import type { Life } from './schedule.ts';
import type { Trace } from './trace.ts';
import type { Violations } from './violations.ts';

/** Nano-USD and calls that an hour counts as at least; one account takes a quarter. No process of a world lives for an hour. */
const leastCost = 10_000_000_000n;
const leastCalls = 200;

interface Taken {
  absorbed: bigint;
  beyond: number;
}

interface AccountCosts {
  readonly all: Taken;
  readonly own: Map<string, Taken>;
  /** It cannot be known any more, as the calls may have cost more than the least. */
  isUnsure: boolean;
}

export class AbsorbOracle {
  /** As the gateway's file says. */
  share = 0.05;
  /** At least what all calls have cost. */
  spent = 0n;
  readonly #violations: Violations;
  readonly #byAccount = new Map<Life, AccountCosts>();
  /** Calls for which it was asked whether another attempt may follow. */
  readonly #requestedFor = new WeakSet<Trace>();

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** Listens to what the call's money allows. */
  watch(exchange: LiveExchange, trace: Trace): void {
    const set = exchange.set.bind(exchange);
    exchange.set = (fact, value) => {
      if ((fact as unknown) === spendGuard) this.#listen(value as SpendGuard, trace);
      set(fact, value);
    };
  }

  #listen(guard: SpendGuard, trace: Trace): void {
    const send = guard.writeOff?.bind(guard);
    if (send === undefined) return;
    guard.writeOff = (attempt, share) => {
      const isAllowed = send(attempt, share);
      this.#requested(trace, attempt, isAllowed);
      return isAllowed;
    };
  }

  /** A call that may be tried again is not given up behind its first attempt that may have run. */
  refused(trace: Trace): void {
    const [only, ...others] = trace.tries;
    if (!trace.isPure || trace.clientLeft || only?.state !== 'broken' || others.length > 0) return;
    if (!this.#requestedFor.has(trace)) this.#violations.add('route', trace.id, 'is given up and could be tried again');
  }

  #requested(trace: Trace, { number }: Attempt, isAllowed: boolean): void {
    this.#requestedFor.add(trace);
    const book = this.#costsOf(trace.life);
    const own = book.own.get(trace.account) ?? { absorbed: 0n, beyond: 0 };
    book.own.set(trace.account, own);
    const amount = shareOf(trace, trace.tries[number - 1]!);
    const hasRoom = (cost: bigint) => {
      const allowed = cost * BigInt(Math.round(this.share * 1_000_000));
      const taken = [book.all.absorbed + amount, (own.absorbed + amount) * 4n];
      return this.share > 0 && taken.every((sum) => sum * 1_000_000n <= allowed);
    };
    const most = this.spent > leastCost ? this.spent : leastCost;
    book.isUnsure ||= hasRoom(leastCost) !== hasRoom(most);
    if (book.isUnsure) return;
    const few = this.share * leastCalls;
    const isFew = book.all.beyond < Math.floor(few) && own.beyond < Math.ceil(few / 4);
    const isWithin = hasRoom(most);
    if (isAllowed !== (isWithin || isFew))
      this.#violations.add(
        'M10',
        trace.id,
        `${amount} nano-USD are ${isAllowed ? '' : 'not '}written off, against the share`,
      );
    if (!isAllowed) return;
    for (const taken of [book.all, own]) {
      taken.absorbed += amount;
      if (!isWithin) taken.beyond += 1;
    }
  }

  #costsOf(life: Life): AccountCosts {
    const known = this.#byAccount.get(life);
    if (known !== undefined) return known;
    const book = { all: { absorbed: 0n, beyond: 0 }, own: new Map<string, Taken>(), isUnsure: false };
    this.#byAccount.set(life, book);
    return book;
  }
}
