/** Takes, extends and ends holds in memory, each step into the journal first and to the database in its own time. */
import type { Clock, Log } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { cost, costBound, type Money, money } from '../../core/money.ts';
import { readCount } from '../../core/usage.ts';
import type { Attempt } from '../../core/vocabulary.ts';
import type { Flusher } from './flusher.ts';
import { endEntry, extendEntry, type Hold, holdEntry, holdRecord, newHold, type Terms } from './hold.ts';
import type { Journal } from './journal.ts';
import type { Verdict } from './outcome.ts';
import type { Purse, Purses } from './purses.ts';
import type { AttemptNote, EndRecord } from './records.ts';

/** A sum that no call can cost: what would be charged above it is a fault, and no `bigint` column overflows below it. */
const absurdCost = 1_000_000_000_000_000_000n;

export interface DeskOptions {
  readonly journal: Journal;
  readonly flusher: Flusher;
  readonly purses: Purses;
  readonly clock: Clock;
  readonly log: Log;
  /** Output tokens that an extension reaches beyond what was seen. */
  readonly stepTokens: number;
  /** Entries that may wait for the database before admission stops. */
  readonly backlogLimit: number;
}

export class Desk {
  readonly #options: DeskOptions;
  /**
   * Every hold whose end has not reached the database, in any order. No Map: a long-lived one keeps what was deleted from
   * it reachable until it grows, and the collector then carries each finished request along.
   */
  readonly #holds: Hold[] = [];

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  /** Sequence number of the oldest record that is still needed to recover a hold. */
  get oldestSequence(): number {
    let oldest = Number.POSITIVE_INFINITY;
    for (const { sequence } of this.#holds) if (sequence < oldest) oldest = sequence;
    return oldest;
  }

  /** Whether new calls are admitted. */
  accepting(): boolean {
    const { journal, flusher, backlogLimit } = this.#options;
    return journal.accepting() && !flusher.shutOut && flusher.backlog < backlogLimit;
  }

  /** Sets aside what the call may cost at most. 402 when the account cannot pay that, 503 while nothing can be recorded. */
  async hold(terms: Terms): Promise<Hold> {
    const { journal, purses, flusher, clock } = this.#options;
    if (!this.accepting()) throw journal.refusal();
    const amount = costBound(terms.inputTokens, terms.outputTokens, terms.price, terms.ratio);
    const purse = await purses.acquire(terms.accountId);
    try {
      if (!purses.covers(purse, amount)) await this.#recheck(purse, amount);
    } catch (error) {
      purses.release(purse);
      throw error;
    }
    const hold = newHold(terms, clock.now(), amount, purse);
    hold.sequence = journal.append(holdRecord(hold));
    this.adopt(hold);
    flusher.push(holdEntry(hold));
    return hold;
  }

  /** Money may have come in a moment ago, by another process. */
  async #recheck(purse: Purse, amount: Money): Promise<void> {
    const { purses, flusher } = this.#options;
    if ((await flusher.freshen(purse)) && purses.covers(purse, amount)) return;
    throw new GatewayError('insufficient_balance', 'The balance of this account does not cover this call.', {
      code: 'insufficient_balance',
      shouldRetry: false,
    });
  }

  /** Before an attempt is handed to a socket: resolves when HOLD and SENT are in the journal. */
  async sent(hold: Hold, attempt: Attempt | undefined): Promise<void> {
    const { journal, clock } = this.#options;
    if (!journal.writing()) throw journal.refusal();
    const record = {
      kind: 'SENT',
      id: hold.terms.id,
      at: clock.now(),
      number: attempt?.number ?? hold.sent.length + 1,
      provider: attempt?.provider ?? '',
      model: attempt?.model ?? hold.terms.model,
      credential: attempt?.credential ?? '',
      protocol: attempt?.protocol ?? '',
    } as const;
    journal.append(record);
    await journal.written();
    hold.sent.push(record);
  }

  /** Output tokens seen so far. false: they are more than can be paid for, the answer must end. */
  observe(hold: Hold, outputTokens: number): boolean {
    const seen = readCount(Math.ceil(outputTokens)) ?? 0;
    if (seen > hold.seenOutput) hold.seenOutput = seen;
    return hold.seenOutput <= hold.coveredOutput || this.#extend(hold);
  }

  /** Sets more aside: a step ahead of what was seen, or as much of a step as the balance allows. */
  #extend(hold: Hold): boolean {
    const { purses, stepTokens } = this.#options;
    const { purse, terms } = hold;
    if (hold.ended || purse === undefined) return false;
    for (let step = stepTokens; ; step = Math.floor(step / 2)) {
      const output = hold.seenOutput + step;
      const bound = costBound(terms.inputTokens, output, terms.price, terms.ratio);
      const amount = money(bound > hold.held ? bound - hold.held : 0n);
      if (purses.covers(purse, amount)) {
        this.#postExtension(hold, output, amount);
        return true;
      }
      if (step === 0) return false;
    }
  }

  #postExtension(hold: Hold, output: number, amount: Money): void {
    const { journal, flusher, clock } = this.#options;
    if (amount === 0n) {
      hold.coveredOutput = output;
      return;
    }
    const part = hold.extensions + 1;
    const at = clock.now();
    const record = { kind: 'EXTEND', id: hold.terms.id, at, part, output, amount: amount.toString() } as const;
    flusher.push(extendEntry(hold, record, journal.append(record)));
  }

  /** Ends a hold as judged. Never refused: a cost beyond the hold and the balance is posted in full. */
  end(hold: Hold, verdict: Verdict, attempts: readonly AttemptNote[]): void {
    if (hold.ended) return;
    const { journal, flusher, purses, clock } = this.#options;
    const record = this.#endRecord(hold, verdict, attempts, clock.now());
    flusher.push(endEntry(hold, record, journal.append(record)));
    if (hold.purse !== undefined) purses.release(hold.purse);
  }

  #endRecord(hold: Hold, verdict: Verdict, attempts: readonly AttemptNote[], at: number): EndRecord {
    const { id, price, ratio } = hold.terms;
    if (verdict.kind === 'VOID') return { kind: 'VOID', id, at, reason: verdict.reason, attempts };
    const exact = cost(verdict.usage, price, ratio);
    if (exact <= absurdCost) return { ...verdict, id, at, cost: exact.toString(), attempts };
    this.#options.log.error(
      { id, cost: exact.toString(), usage: verdict.usage },
      'an absurd cost: the hold is charged',
    );
    return { ...verdict, id, at, cost: hold.held.toString(), estimated: true, attempts };
  }

  /** Keeps a hold, a new one or one of an earlier run. */
  adopt(hold: Hold): void {
    hold.slot = this.#holds.push(hold) - 1;
  }

  /** The end of a hold is in the database: it can be forgotten. One that ended in an earlier run was never kept. */
  forget(hold: Hold): void {
    if (this.#holds[hold.slot] !== hold) return;
    const last = this.#holds.pop()!;
    if (last === hold) return;
    this.#holds[hold.slot] = last;
    last.slot = hold.slot;
  }

  /** Notes in the journal how far running answers have come. */
  noteProgress(): void {
    const { journal } = this.#options;
    if (!journal.writing()) return;
    for (const hold of this.#holds) {
      if (hold.ended || hold.seenOutput === hold.notedOutput) continue;
      hold.notedOutput = hold.seenOutput;
      journal.append({ kind: 'PROGRESS', id: hold.terms.id, output: hold.seenOutput });
    }
  }
}
