/**
 * Reservations: creates, extends and ends holds in memory, each step written to the journal first and to the
 * database later.
 */

import type { RequestRow } from '../../common/domain/call-facts.ts';
import type { Attempt } from '../../common/domain/calls.ts';
import { type Money, money, zero } from '../../common/domain/money.ts';
import { readCount } from '../../common/domain/usage.ts';
import { uuidForm } from '../../common/kit/paging.ts';
import { notCovered } from '../grants/not-covered.ts';
import type { Journal } from '../journal/journal.ts';
import type { LeaseTopUp } from '../leases/top-up.ts';
import type { Backlog } from '../ledger/backlog.ts';
import type { Balance } from '../ledger/balance.ts';
import { type BalanceCache, longestReadMs } from '../ledger/balance-cache.ts';
import type { Flusher } from '../ledger/flusher.ts';
import type { CallPlan } from '../ledger/terms.ts';
import { factsText, recordText, textMember } from '../model/record-texts.ts';
import type { SentAttempt } from '../model/records.ts';
import { AbsorbBudget } from './absorb-budget.ts';
import { boundOf, type Charge, chargeFor, firstHold } from './charge.ts';
import { DueTerms, type DueTermsOptions } from './due-terms.ts';
import {
  type Hold,
  holdText,
  newHold,
  sentAttempts,
  sentMembers,
  servedTerms,
  settleText,
  voidRecord,
} from './hold.ts';
import { OpenHolds } from './open-holds.ts';
import type { Settlement, Verdict } from './outcome.ts';
import type { Terms } from './terms.ts';
import type { Shares } from './written-off.ts';

/** No call can cost this much: a higher charge is a fault, and below it no `bigint` column overflows. */
export const absurdCost = 1_000_000_000_000_000_000n;

const leastAmount = money(1n);

/** Bytes of journal text per call of the backlog's limit, which bounds the memory that the backlog takes. */
const bytesPerRow = 1_024;

/** Facts fill at most one part in so many of the backlog: the rest is for money. */
const factsShare = 4;

export interface ReservationsOptions extends DueTermsOptions {
  readonly journal: Journal;
  readonly backlog: Backlog;
  readonly flusher: Flusher;
  readonly balances: BalanceCache;
  /** Acquires more money for balances. */
  readonly topUp: LeaseTopUp;
  /** The initial `stepTokens`. */
  readonly stepTokens: number;
  /** Ended calls that may wait for the database before admission stops. */
  readonly backlogLimit: number;
  /** Whether the database is away, for no longer than is bridged: nothing is waited for that a call can do without. */
  readonly bridging: () => boolean;
}

export class Reservations {
  readonly #options: ReservationsOptions;
  readonly #open = new OpenHolds();
  readonly absorb: AbsorbBudget;
  readonly #dueTerms: DueTerms;
  /** Output tokens that an extension covers beyond the seen ones; may change at any time. */
  stepTokens: number;

  constructor(options: ReservationsOptions) {
    this.#options = options;
    this.absorb = new AbsorbBudget(options.clock);
    this.#dueTerms = new DueTerms(options);
    this.stepTokens = options.stepTokens;
  }

  /** Sequence number of the oldest record that is still needed to recover a hold. */
  get oldestSequence(): number {
    return Math.min(this.#open.oldestSequence, this.#options.backlog.oldestSequence);
  }

  /** Whether this run's records can no longer be applied: the next run replays the journal. */
  get fenced(): boolean {
    return this.#options.flusher.fenced;
  }

  /** Whether the database is away, and free calls are let in without it. */
  get bridging(): boolean {
    return this.#options.bridging();
  }

  /** Whether new calls are admitted. */
  accepting(): boolean {
    const { journal, backlog, flusher, backlogLimit } = this.#options;
    const roomLeft = backlog.rows < backlogLimit && backlog.bytes < backlogLimit * bytesPerRow;
    return roomLeft && !flusher.fenced && journal.accepting();
  }

  /**
   * Holds the most the call may cost: at once when the account is in memory and can pay. 402 when it cannot, 503
   * while nothing can be recorded.
   */
  create(terms: Terms): Hold | Promise<Hold> {
    const { journal, balances, clock, bridging } = this.#options;
    if (!this.accepting()) throw journal.refusal();
    const amount = firstHold(terms);
    const balance = balances.find(terms.accountId);
    const now = clock.now();
    if (balance !== undefined && this.#admits(balance, amount, now)) return this.#take(terms, amount, balance, now);
    if (amount > 0n || !bridging()) return this.#holdLater(terms, amount);
    return this.#take(terms, amount, balances.unread(terms.accountId), now);
  }

  /** A lease covers no money that ends within it, so that due terms do not change it. */
  #admits(balance: Balance, amount: Money, now: number): boolean {
    return balance.admits(amount) && (balance.isChecked(now) || this.#options.bridging());
  }

  #holdLater(terms: Terms, amount: Money): Promise<Hold> {
    const { clock } = this.#options;
    return this.#funded(terms.accountId, terms.plan, amount, (balance) =>
      this.#take(terms, amount, balance, clock.now()),
    );
  }

  /**
   * Acquires `amount` for the account's balance, and uses it in the same turn in which it was found: another
   * waiting call may take it otherwise. 402 when it is not available.
   */
  async #funded<T>(
    accountId: string,
    plan: CallPlan | undefined,
    amount: Money,
    use: (balance: Balance) => T,
  ): Promise<T> {
    const { balances, topUp, clock } = this.#options;
    const balance = await balances.acquire(accountId, amount, longestReadMs);
    try {
      await this.#dueTerms.apply(balance, plan);
      let again = false;
      const since = clock.monotonic();
      for (let tries = 0; !balance.admits(amount); tries += 1) {
        const unlocked = balance.untilUnlocked(amount);
        if (unlocked !== undefined) await unlocked;
        else if (!(await topUp.request(balance, amount, { tries, since }))) {
          // Its money may have expired since, and a new grant may be due.
          if (again || balance.isChecked(clock.now())) throw notCovered(balance.bindingWindow(amount));
          again = true;
          await this.#dueTerms.apply(balance, plan);
        }
      }
      return use(balance);
    } finally {
      balance.release();
    }
  }

  /** 402 when the account cannot spend this much now. Returns a promise only when that must be looked up. */
  requireFunds(accountId: string, plan: CallPlan | undefined, amount = leastAmount): undefined | Promise<void> {
    const { balances, clock } = this.#options;
    const balance = balances.find(accountId);
    if (balance !== undefined && this.#admits(balance, amount, clock.now())) return undefined;
    return this.#funded(accountId, plan, amount, () => {});
  }

  #take(terms: Terms, amount: Money, balance: Balance, at: number): Hold {
    const { journal, topUp } = this.#options;
    const hold = newHold(terms, amount, balance, at);
    hold.sequence = journal.append(holdText(hold));
    this.#open.add(hold);
    if (balance.hold(amount)) topUp.topUp(balance);
    return hold;
  }

  /** Before an attempt is sent: resolves when the hold and the sent attempt are in the journal. */
  sent(hold: Hold, attempt: Attempt | undefined): Promise<void> {
    const { journal, clock } = this.#options;
    if (!journal.writing()) throw journal.refusal();
    sentAttempts(hold);
    const sentAttempt: SentAttempt = {
      number: attempt?.number ?? hold.sent.length + 1,
      at: attempt?.startedAt ?? clock.now(),
      provider: attempt?.provider ?? '',
      model: attempt?.model ?? hold.terms.model,
      credential: attempt?.credential ?? '',
      protocol: attempt?.protocol ?? '',
    };
    const { id, before } = hold.terms;
    const members = sentMembers(sentAttempt);
    // The first attempt is a part of the hold's record if that is still to be written.
    const isFirst = before === undefined && hold.sent.length === 0;
    if (!isFirst || !journal.extend(hold.sequence, `,"sent":{${members}}`)) {
      const served = before === undefined ? '' : `,"served":${JSON.stringify(servedTerms(hold.terms))}`;
      journal.append(`${textMember('{"kind":"SENT","id":"', id)},${members}${served}`);
    }
    hold.sent = hold.sent.concat(sentAttempt);
    hold.turn = journal.turn();
    return hold.turn.promise;
  }

  /** Updates the output tokens seen. False: they exceed the balance, so the answer must end. */
  observe(hold: Hold, outputTokens: number): boolean {
    const seen = readCount(Math.ceil(outputTokens)) ?? 0;
    if (seen > hold.seenOutput) hold.seenOutput = seen;
    if (hold.balance?.isLeased === true) this.#prepare(hold);
    if (hold.seenOutput <= hold.coveredOutput || this.#extend(hold)) return true;
    hold.unpaid = true;
    return false;
  }

  /** An extension cannot wait for the database, so its money is requested in advance. */
  #prepare(hold: Hold): void {
    const { balance, terms, coveredOutput } = hold;
    const isSoon = coveredOutput - hold.seenOutput <= this.stepTokens / 2;
    if (!isSoon || hold.preparedOutput === coveredOutput || balance === undefined) return;
    hold.preparedOutput = coveredOutput;
    const bound = boundOf(terms, coveredOutput + this.stepTokens);
    if (bound <= hold.held) return;
    const amount = money(bound - hold.held);
    this.#options.topUp.prepare(balance, amount);
    terms.cap?.prepare(amount);
  }

  /** Extends the hold: one step ahead of the seen tokens, or the part of a step that the balance allows. */
  #extend(hold: Hold): boolean {
    const { balance, terms } = hold;
    if (hold.ended || balance === undefined) return false;
    for (let step = this.stepTokens; ; step = Math.floor(step / 2)) {
      const output = hold.seenOutput + step;
      const bound = boundOf(terms, output);
      const amount = money(bound > hold.held ? bound - hold.held : 0n);
      if (balance.covers(amount) && terms.cap?.covers(amount) !== false) {
        this.#postExtension(hold, balance, output, amount);
        return true;
      }
      if (step === 0) return false;
    }
  }

  /** Holds so much at least, before an answer at a price that is known. 402 when the account or the key's cap cannot pay it. */
  cover(hold: Hold, cost: Money): undefined | Promise<void> {
    const { balance, terms } = hold;
    const amount = money(cost - hold.held);
    if (amount <= 0n || balance === undefined) return undefined;
    const extend = (funded: Balance) => {
      if (hold.ended) return;
      if (terms.cap?.covers(amount) === false) throw terms.cap.refusal(amount);
      this.#postExtension(hold, funded, hold.coveredOutput, amount);
    };
    if (terms.cap?.covers(amount) === false)
      return terms.cap.whenCovered(amount, () => {}).then(() => this.cover(hold, cost));
    if (!balance.covers(amount)) return this.#funded(terms.accountId, terms.plan, amount, extend);
    extend(balance);
    return undefined;
  }

  #postExtension(hold: Hold, balance: Balance, output: number, amount: Money): void {
    const { journal, clock } = this.#options;
    hold.coveredOutput = output;
    if (amount === 0n) return;
    hold.held = money(hold.held + amount);
    hold.terms.cap?.grow(amount);
    hold.extensions += 1;
    const { id, accountId: account } = hold.terms;
    const part = hold.extensions;
    const record = { kind: 'EXTEND', id, at: clock.now(), account, part, output, amount: amount.toString() } as const;
    journal.append(recordText(record));
    balance.extend(amount);
  }

  /** Ends a hold with its verdict. Never refused: a cost beyond the hold and the balance is posted in full. */
  settle(hold: Hold, verdict: Verdict, shares: Shares): void {
    if (hold.ended) return;
    hold.ended = true;
    const { journal, backlog, clock } = this.#options;
    const at = clock.now();
    let spent = zero;
    if (verdict.kind === 'VOID') journal.append(recordText(voidRecord(hold, at, verdict.reason, shares)));
    else {
      const { settlement, charge } = this.#charged(hold, verdict, shares);
      spent = charge.cost;
      hold.spent = spent;
      hold.own = charge.own;
      hold.usage = charge.usage;
      this.absorb.note(charge.own ?? spent);
      journal.append(settleText(hold, at, settlement, charge, shares));
    }
    this.#open.delete(hold);
    hold.terms.cap?.end(spent, at, hold.terms.model);
    if (hold.balance === undefined) backlog.endRecovered(hold.terms.accountId, hold.sequence);
    else backlog.end(hold.balance, hold.held, spent, hold.sequence);
  }

  /**
   * Resolves when all records so far are in the journal, or cannot be written now: an answer does not wait for a
   * full disk.
   */
  written(): Promise<void> | undefined {
    const { journal } = this.#options;
    return journal.writing() ? journal.settledTurn() : undefined;
  }

  /** The charge for the usage; the hold where that is absurd. */
  #charged(hold: Hold, verdict: Settlement, { notes }: Shares): { settlement: Settlement; charge: Charge } {
    const charge = chargeFor(hold.terms, verdict.usage, verdict, notes);
    if (charge.cost <= absurdCost) return { settlement: verdict, charge };
    const { id, accountId, keyId } = hold.terms;
    const about = { request_id: id, account_id: accountId, key_id: keyId };
    const fields = { ...about, cost: charge.cost.toString(), usage: verdict.usage };
    this.#options.log.error(fields, 'an absurd cost: the hold is charged');
    return {
      settlement: { ...verdict, estimated: true, reason: 'absurd' },
      charge: { ...charge, cost: hold.held, own: undefined },
    };
  }

  /**
   * Adds the request's facts to its call, after the hold has ended. False: they are not taken, because the disk cannot be
   * written or the backlog is needed for charges.
   */
  complete({ accountId, keyId }: Terms, row: RequestRow, story: string | undefined): boolean {
    const { journal, backlog, backlogLimit } = this.#options;
    // Requests are listed and summed up by such ids.
    if (!uuidForm.test(accountId) || !uuidForm.test(keyId)) return false;
    if (!journal.writing() || backlog.bytes >= (backlogLimit * bytesPerRow) / factsShare) return false;
    journal.append(factsText(row, story));
    backlog.complete();
    return true;
  }

  /** Keeps a hold of an earlier run. */
  adopt(hold: Hold): void {
    this.#open.add(hold);
  }

  /** Records the progress of running answers in the journal. */
  noteProgress(): void {
    const { journal } = this.#options;
    if (!journal.writing()) return;
    this.#open.forEach((hold) => {
      if (hold.seenOutput === hold.notedOutput) return;
      hold.notedOutput = hold.seenOutput;
      journal.append(recordText({ kind: 'PROGRESS', id: hold.terms.id, output: hold.seenOutput }));
    });
  }
}
