/** Takes, extends and ends holds in memory, each step into the journal first and to the database in its own time. */
import type { Clock, Log } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { formatUsd, type Money, money, zero } from '../../core/money.ts';
import { readCount } from '../../core/usage.ts';
import type { Attempt } from '../../core/vocabulary.ts';
import type { Shares } from './absorbed.ts';
import type { Backlog } from './backlog.ts';
import { boundOf, type Charge, chargeFor } from './charge.ts';
import type { Flusher } from './flusher.ts';
import { departures, type Hold, holdRecord, newHold, settleRecord, type Terms, voidRecord } from './hold.ts';
import { OpenHolds } from './holds.ts';
import type { Journal } from './journal.ts';
import type { Funding } from './leases/funding.ts';
import type { Settlement, Verdict } from './outcome.ts';
import type { WindowAt } from './pots.ts';
import type { Purse, Purses } from './purses.ts';
import type { Departure } from './records.ts';
import type { StatedPlan } from './terms.ts';

/** A sum that no call can cost: what would be charged above it is a fault, and no `bigint` column overflows below it. */
export const absurdCost = 1_000_000_000_000_000_000n;

/** Bytes of journal text for each ledger row of the backlog's limit, above what a row takes on the average. */
const bytesPerRow = 1_024;

export interface DeskOptions {
  readonly journal: Journal;
  readonly backlog: Backlog;
  readonly flusher: Flusher;
  readonly purses: Purses;
  /** Brings money to the purses. */
  readonly funding: Funding;
  readonly clock: Clock;
  readonly log: Log;
  /** What `stepTokens` is at first. */
  readonly stepTokens: number;
  /** Ledger rows that may wait for the database before admission stops. */
  readonly backlogLimit: number;
  /** Gives and takes what is due to an account beside its calls; resolves with when there is something to do again. */
  readonly upkeep: (accountId: string, plan: StatedPlan | undefined) => Promise<number>;
}

export class Desk {
  readonly #options: DeskOptions;
  readonly #open = new OpenHolds();
  /** Output tokens that an extension reaches beyond what was seen; may change at any time. */
  stepTokens: number;

  constructor(options: DeskOptions) {
    this.#options = options;
    this.stepTokens = options.stepTokens;
  }

  /** Sequence number of the oldest record that is still needed to recover a hold. */
  get oldestSequence(): number {
    return Math.min(this.#open.oldestSequence, this.#options.backlog.oldestSequence);
  }

  /** Whether this run's records can no longer become true: the next run replays what is in the journal. */
  get shutOut(): boolean {
    return this.#options.flusher.shutOut;
  }

  /** Whether new calls are admitted. */
  accepting(): boolean {
    const { journal, backlog, flusher, backlogLimit } = this.#options;
    const roomLeft = backlog.rows < backlogLimit && backlog.bytes < backlogLimit * bytesPerRow;
    return roomLeft && !flusher.shutOut && journal.accepting();
  }

  /**
   * Sets aside what the call may cost at most: at once when the account is in memory and can pay that. 402 when it
   * cannot, 503 while nothing can be recorded.
   */
  hold(terms: Terms): Hold | Promise<Hold> {
    const { journal, purses, clock } = this.#options;
    if (!this.accepting()) throw journal.refusal();
    const amount = boundOf(terms, terms.outputTokens);
    const purse = purses.find(terms.accountId);
    const ready = purse !== undefined && clock.now() < purse.upkeepAt && purses.admits(purse, amount);
    if (!ready) return this.#holdLater(terms, amount);
    return this.#take(terms, amount, purses.use(purse));
  }

  async #holdLater(terms: Terms, amount: Money): Promise<Hold> {
    const { purses, funding, clock } = this.#options;
    const purse = await purses.acquire(terms.accountId, amount);
    try {
      await this.#keepUp(purse, terms.plan);
      // Looked at in the same turn in which it is taken: of several who waited for an answer, one may have taken it all.
      const since = clock.monotonic();
      for (let tries = 0; !purses.admits(purse, amount); tries += 1) {
        if (!(await funding.ask(purse, amount, { tries, since })))
          throw notCovered(purses.bindingWindow(purse, amount));
      }
    } catch (error) {
      purses.release(purse);
      throw error;
    }
    return this.#take(terms, amount, purse);
  }

  #take(terms: Terms, amount: Money, purse: Purse): Hold {
    const { journal, backlog, clock, funding } = this.#options;
    const hold = newHold(terms, amount, purse);
    hold.record = holdRecord(hold, clock.now());
    hold.sequence = journal.append(hold.record);
    backlog.post(purse, money(-amount));
    this.#open.add(hold);
    if (purse.slice !== undefined && purse.base + purse.posted < purse.slice.lowWater) funding.topUp(purse);
    return hold;
  }

  /** What is due to the account comes first; of several calls one sees to it. */
  async #keepUp(purse: Purse, plan: StatedPlan | undefined): Promise<void> {
    if (this.#options.clock.now() < purse.upkeepAt) return;
    if (purse.term === undefined && purse.pool === undefined && plan?.terms.grant === undefined) {
      purse.upkeepAt = Number.POSITIVE_INFINITY;
      return;
    }
    purse.upkeep ??= this.#runUpkeep(purse, plan).finally(() => {
      purse.upkeep = undefined;
    });
    await purse.upkeep;
  }

  async #runUpkeep(purse: Purse, plan: StatedPlan | undefined): Promise<void> {
    const { upkeep, clock, log } = this.#options;
    try {
      purse.upkeepAt = Math.max(await upkeep(purse.accountId, plan), clock.now() + 1_000);
    } catch (error) {
      // What is in the purse can be spent all the same.
      purse.upkeepAt = clock.now() + 5_000;
      log.warn(
        { error, accountId: purse.accountId },
        'what is due to an account could not be given; it is tried again',
      );
    }
  }

  /** Before an attempt is handed to a socket: resolves when hold and departure are in the journal. */
  sent(hold: Hold, attempt: Attempt | undefined): Promise<void> {
    const { journal, clock } = this.#options;
    if (!journal.writing()) throw journal.refusal();
    departures(hold);
    const departure: Departure = {
      number: attempt?.number ?? hold.sent.length + 1,
      at: attempt?.startedAt ?? clock.now(),
      provider: attempt?.provider ?? '',
      model: attempt?.model ?? hold.terms.model,
      credential: attempt?.credential ?? '',
      protocol: attempt?.protocol ?? '',
    };
    const { record } = hold;
    hold.record = undefined;
    if (record !== undefined && hold.sequence > journal.writtenSequence) record.sent = departure;
    else journal.append({ kind: 'SENT', id: hold.terms.id, ...departure });
    hold.sent.push(departure);
    hold.turn = journal.turn();
    return hold.turn.promise;
  }

  /** Output tokens seen so far. false: they are more than can be paid for, the answer must end. */
  observe(hold: Hold, outputTokens: number): boolean {
    const seen = readCount(Math.ceil(outputTokens)) ?? 0;
    if (seen > hold.seenOutput) hold.seenOutput = seen;
    if (hold.purse?.slice !== undefined) this.#prepare(hold);
    if (hold.seenOutput <= hold.coveredOutput || this.#extend(hold)) return true;
    hold.unpaid = true;
    return false;
  }

  /** An extension cannot wait for the database: what it will need is asked for while there is time. */
  #prepare(hold: Hold): void {
    const { funding } = this.#options;
    const { purse, terms, coveredOutput } = hold;
    const isSoon = coveredOutput - hold.seenOutput <= this.stepTokens / 2;
    if (!isSoon || hold.preparedOutput === coveredOutput || purse === undefined) return;
    hold.preparedOutput = coveredOutput;
    const bound = boundOf(terms, coveredOutput + this.stepTokens);
    if (bound > hold.held) funding.prepare(purse, money(bound - hold.held));
  }

  /** Sets more aside: a step ahead of what was seen, or as much of a step as the balance allows. */
  #extend(hold: Hold): boolean {
    const { purses } = this.#options;
    const { purse, terms } = hold;
    if (hold.ended || purse === undefined) return false;
    for (let step = this.stepTokens; ; step = Math.floor(step / 2)) {
      const output = hold.seenOutput + step;
      const bound = boundOf(terms, output);
      const amount = money(bound > hold.held ? bound - hold.held : 0n);
      if (purses.covers(purse, amount) && terms.cap?.covers(amount) !== false) {
        this.#postExtension(hold, purse, output, amount);
        return true;
      }
      if (step === 0) return false;
    }
  }

  #postExtension(hold: Hold, purse: Purse, output: number, amount: Money): void {
    const { journal, backlog, clock } = this.#options;
    hold.coveredOutput = output;
    if (amount === 0n) return;
    hold.held = money(hold.held + amount);
    hold.terms.cap?.grow(amount);
    hold.extensions += 1;
    const { id, accountId: account } = hold.terms;
    const part = hold.extensions;
    journal.append({ kind: 'EXTEND', id, at: clock.now(), account, part, output, amount: amount.toString() });
    backlog.post(purse, money(-amount));
  }

  /** Ends a hold as judged. Never refused: a cost beyond the hold and the balance is posted in full. */
  end(hold: Hold, verdict: Verdict, shares: Shares): void {
    if (hold.ended) return;
    hold.ended = true;
    const { journal, backlog, purses, clock } = this.#options;
    const at = clock.now();
    let spent = zero;
    if (verdict.kind === 'VOID') journal.append(voidRecord(hold, at, verdict.reason, shares));
    else {
      const { told, charge } = this.#charged(hold, verdict, shares);
      spent = charge.cost;
      hold.spent = spent;
      hold.own = charge.own;
      journal.append(settleRecord(hold, at, told, charge, shares));
    }
    this.#open.delete(hold);
    hold.terms.cap?.end(spent, at);
    const { purse } = hold;
    if (purse === undefined) backlog.postEnd(hold.terms.accountId, hold.sequence);
    else {
      backlog.post(purse, money(hold.held - spent), hold.sequence);
      purses.release(purse);
    }
  }

  /** What the usage comes to; where that is absurd, the hold. */
  #charged(hold: Hold, verdict: Settlement, { notes }: Shares): { told: Settlement; charge: Charge } {
    const charge = chargeFor(hold.terms, verdict.usage, verdict, notes);
    if (charge.cost <= absurdCost) return { told: verdict, charge };
    const fields = { id: hold.terms.id, cost: charge.cost.toString(), usage: verdict.usage };
    this.#options.log.error(fields, 'an absurd cost: the hold is charged');
    return {
      told: { ...verdict, estimated: true, reason: 'absurd' },
      charge: { ...charge, cost: hold.held, own: undefined },
    };
  }

  /** Keeps a hold of an earlier run. */
  adopt(hold: Hold): void {
    this.#open.add(hold);
  }

  /** Notes in the journal how far running answers have come. */
  noteProgress(): void {
    const { journal } = this.#options;
    if (!journal.writing()) return;
    this.#open.forEach((hold) => {
      if (hold.seenOutput === hold.notedOutput) return;
      hold.notedOutput = hold.seenOutput;
      journal.append({ kind: 'PROGRESS', id: hold.terms.id, output: hold.seenOutput });
    });
  }
}

const windowWords = { '5h': '5-hour', day: 'daily', week: 'weekly', month: 'monthly' } as const;

/** The refusal says which window keeps the money back and when it frees. Trying again before that cannot help. */
export function notCovered(window: WindowAt | undefined): GatewayError {
  if (window === undefined) {
    return new GatewayError('insufficient_balance', 'The balance of this account does not cover this call.', {
      code: 'insufficient_balance',
      shouldRetry: false,
    });
  }
  const { name, limit, end } = window;
  const message =
    `The ${windowWords[name]} window of the plan is used up: ${formatUsd(limit)} USD of its grant may be spent within it, ` +
    `and the rest of the balance does not cover this call. It frees at ${new Date(end).toISOString()}.`;
  return new GatewayError('insufficient_balance', message, { code: 'plan_window_used_up', shouldRetry: false });
}
