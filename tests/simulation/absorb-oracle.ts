/** Watches what attempts that were followed by another one may cost: each is allowed exactly where the share of the hour has room. */
import type { LiveExchange } from '../../core/http/exchange.ts';
import { type Attempt, type SpendGuard, spendGuard } from '../../plugins/common/domain/calls.ts';
import { shareOf } from './audit.ts';
import type { Life } from './schedule.ts';
import type { Story } from './story.ts';
import type { Violations } from './violations.ts';

/** Nano-USD and calls that an hour counts as at least; one account takes a quarter. No process of a world lives for an hour. */
const leastCost = 10_000_000_000n;
const leastCalls = 200;

interface Taken {
  absorbed: bigint;
  beyond: number;
}

interface Book {
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
  readonly #books = new Map<Life, Book>();
  /** Calls for which it was asked whether another attempt may follow. */
  readonly #askedFor = new WeakSet<Story>();

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** Listens to what the call's money allows. */
  watch(exchange: LiveExchange, story: Story): void {
    const set = exchange.set.bind(exchange);
    exchange.set = (fact, value) => {
      if ((fact as unknown) === spendGuard) this.#listen(value as SpendGuard, story);
      set(fact, value);
    };
  }

  #listen(guard: SpendGuard, story: Story): void {
    const ask = guard.writeOff?.bind(guard);
    if (ask === undefined) return;
    guard.writeOff = (attempt, share) => {
      const isAllowed = ask(attempt, share);
      this.#asked(story, attempt, isAllowed);
      return isAllowed;
    };
  }

  /** A call that may be tried again is not given up behind its first attempt that may have run. */
  refused(story: Story): void {
    const [only, ...others] = story.tries;
    if (!story.isPure || story.clientLeft || only?.state !== 'broken' || others.length > 0) return;
    if (!this.#askedFor.has(story)) this.#violations.add('route', story.id, 'is given up and could be tried again');
  }

  #asked(story: Story, { number }: Attempt, isAllowed: boolean): void {
    this.#askedFor.add(story);
    const book = this.#bookOf(story.life);
    const own = book.own.get(story.account) ?? { absorbed: 0n, beyond: 0 };
    book.own.set(story.account, own);
    const amount = shareOf(story, story.tries[number - 1]!);
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
        story.id,
        `${amount} nano-USD are ${isAllowed ? '' : 'not '}written off, against the share`,
      );
    if (!isAllowed) return;
    for (const taken of [book.all, own]) {
      taken.absorbed += amount;
      if (!isWithin) taken.beyond += 1;
    }
  }

  #bookOf(life: Life): Book {
    const known = this.#books.get(life);
    if (known !== undefined) return known;
    const book = { all: { absorbed: 0n, beyond: 0 }, own: new Map<string, Taken>(), isUnsure: false };
    this.#books.set(life, book);
    return book;
  }
}
