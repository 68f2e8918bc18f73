/** Asks the database for shares of scopes, all that are wanted at a time in one round, behind everything that has ended here. */
import type { Clock } from '../../../core/contract/host-tools.ts';
import { zero } from '../../common/domain/money.ts';
import { keyOf } from './scope.ts';
import type { ShareAnswer, ShareRequest } from './shares.ts';
import type { Tally } from './tally.ts';

export interface RoundsOptions {
  readonly clock: Clock;
  /** Resolves when the ledger has everything that ended here before the call. */
  readonly drained: () => Promise<void>;
  readonly take: (requests: readonly ShareRequest[]) => Promise<ReadonlyMap<string, ShareAnswer>>;
}

/** A scope of which this process has no more use. */
interface Unused {
  readonly accountId: string;
  readonly scope: string;
}

/** The most scopes that wait to be returned; what is beyond stays with this process until it ends. */
const mostUnused = 10_000;

export class Rounds {
  readonly #options: RoundsOptions;
  #wanted = new Set<Tally>();
  #unused = new Map<string, Unused>();
  #next: PromiseWithResolvers<void> | undefined;
  #isRunning = false;

  constructor(options: RoundsOptions) {
    this.#options = options;
  }

  /** Resolves with the answer for this scope to a request that begins from now on. */
  ask(tally: Tally): Promise<void> {
    if (!this.#wanted.has(tally)) tally.asked += 1;
    this.#wanted.add(tally);
    this.#unused.delete(tally.key);
    return this.#begin();
  }

  /** Gives back what the process has of the scope, in the background. */
  giveBack(unused: Unused): void {
    if (this.#unused.size < mostUnused) this.#unused.set(keyOf(unused.accountId, unused.scope), unused);
    void this.#begin().catch(() => {});
  }

  #begin(): Promise<void> {
    this.#next ??= Promise.withResolvers();
    const { promise } = this.#next;
    // Some who ask do not wait.
    promise.catch(() => {});
    if (!this.#isRunning) {
      this.#isRunning = true;
      // After a moment, so that requests made together are answered together.
      void Promise.resolve().then(() => this.#run());
    }
    return promise;
  }

  async #run(): Promise<void> {
    while (this.#next !== undefined) {
      const { resolve, reject } = this.#next;
      const [wanted, unused] = [this.#wanted, this.#unused];
      this.#next = undefined;
      this.#wanted = new Set();
      this.#unused = new Map();
      try {
        await this.#round(wanted, unused);
        resolve();
      } catch (error) {
        reject(error as Error);
      } finally {
        for (const tally of wanted) tally.asked -= 1;
      }
    }
    this.#isRunning = false;
  }

  /** What ends behind the mark may be in the ledger or not, so it is counted in any case: too much is counted then, never too little. */
  async #round(wanted: ReadonlySet<Tally>, unused: Map<string, Unused>): Promise<void> {
    const { clock, drained, take } = this.#options;
    for (const tally of wanted) tally.mark();
    await drained();
    const sentAt = clock.monotonic();
    const requests = Array.from(wanted, (tally) => {
      tally.roll(clock.now());
      return [tally, tally.request(sentAt)] as const;
    });
    for (const { key } of wanted) unused.delete(key);
    const given = [...requests.map(([, request]) => request), ...Array.from(unused.values(), nothingOf)];
    const answers = given.length === 0 ? new Map<string, ShareAnswer>() : await take(given);
    for (const [tally, request] of requests)
      if (tally.answered(request, answers.get(tally.key)!, sentAt)) void this.ask(tally).catch(() => {});
  }
}

function nothingOf({ accountId, scope }: Unused): ShareRequest {
  const nothing = { pending: zero, open: zero, keep: zero, need: zero, smallest: zero, wish: zero };
  return { accountId, scope, counted: undefined, ...nothing, waitedMs: 0 };
}
