/** Follows every request from the vendor's and the client's side and knows what the books must come to. */

import type { Outcome } from '../../core/contract/contract.ts';
import type { GatewayError } from '../../core/contract/errors.ts';
import { AbsorbOracle } from './absorb-oracle.ts';
import { CallersOracle } from './callers-oracle.ts';
import type { CrashKind, Disk } from './disk.ts';
import { EstimateOracle } from './estimate-oracle.ts';
import { HedgeOracle } from './hedge-oracle.ts';
import { KeysOracle } from './keys-oracle.ts';
import type { LimitsOracle } from './limits-oracle.ts';
import type { Entry, StoredGrant } from './memory-ledger.ts';
import type { Life, Schedule } from './schedule.ts';
import type { Story, Try } from './story.ts';
import { costOf, coverOf, type PriceList } from './tariff.ts';
import { TasksOracle } from './tasks-oracle.ts';
import { TradeOracle } from './trade-oracle.ts';
import type { Violations } from './violations.ts';

/** What is left of a grant is taken off this long after its end, at the earliest. */
const lapseAfterMs = 15 * 60_000;

/** What the oracle knows of an account. */
export interface AccountView {
  readonly id: string;
  /** All money that came in, and all that finished calls cost. */
  credited: bigint;
  settled: bigint;
  /** What running calls may cost so far. */
  covered: bigint;
  /** What finished calls cost beyond what was covered: the balance could not know before their end. */
  excess: bigint;
  readonly open: Set<Story>;
  mostOpen: number;
  /** The most that one of its calls can cost. */
  dearestCall: bigint;
}

/** What leases come to. */
export interface SharedAccounts {
  /** Whether all that the account's calls cost is in the ledger, and no node counts on more than there is. */
  isAtRest(view: AccountView): boolean;
  leasedOf(account: string): bigint;
}

export class Oracle {
  readonly stories = new Map<string, Story>();
  readonly accounts = new Map<string, AccountView>();
  readonly limits: LimitsOracle;
  readonly hedges: HedgeOracle;
  readonly absorb: AbsorbOracle;
  readonly estimates = new EstimateOracle();
  readonly keys: KeysOracle;
  readonly callers: CallersOracle;
  readonly trade: TradeOracle;
  readonly tasks: TasksOracle;
  readonly violations: Violations;
  readonly #schedule: Schedule;
  /** Set where several nodes spend an account. */
  shared: SharedAccounts | undefined;
  /** Tokens by which what is set aside grows. */
  stepTokens = 0;
  /** What was paid by reference, and what each account's plan brings for a period. */
  readonly payments = new Map<string, bigint>();
  readonly planGrants = new Map<string, bigint>();
  /** What was taken off at the end of grants, by their ids. */
  readonly lapsed = new Map<string, bigint>();
  /** Payments of which somebody was told that they are in. */
  readonly acknowledged = new Set<string>();
  /** Stories of processes that live, those that have ended included until they are beyond a crash. */
  readonly #byLife = new Map<Life, Set<Story>>();
  /** Stories that a crash cut off and that no recovery has told of yet. */
  readonly uncertain = new Set<Story>();
  /** Calls that ended before their process was killed, with an end that only the machine's memory has: power may take it. */
  readonly #unsynced = new Set<Story>();

  constructor(schedule: Schedule, violations: Violations, limits: LimitsOracle) {
    this.#schedule = schedule;
    this.violations = violations;
    this.limits = limits;
    this.hedges = new HedgeOracle(schedule, violations);
    this.absorb = new AbsorbOracle(violations);
    this.keys = new KeysOracle(violations);
    this.callers = new CallersOracle(schedule, violations);
    this.trade = new TradeOracle(violations);
    this.tasks = new TasksOracle(violations);
  }

  view(account: string): AccountView {
    let view = this.accounts.get(account);
    if (view === undefined) {
      view = {
        id: account,
        credited: 0n,
        settled: 0n,
        covered: 0n,
        excess: 0n,
        open: new Set(),
        mostOpen: 0,
        dearestCall: 0n,
      };
      this.accounts.set(account, view);
    }
    return view;
  }

  // ----------------------------------------------------------------------------------------------------- processes

  begun(life: Life): void {
    this.#byLife.set(life, new Set());
    this.limits.begun(life);
    this.estimates.begun(life);
    this.hedges.begun(life);
  }

  /** Progress that is noted from here on outlives a crash as soon as the journal has another line. */
  noting(life: Life, line: number): void {
    for (const story of this.#byLife.get(life)!) {
      if (story.ended) continue;
      if (story.noting !== undefined && story.noting.line < line) story.noted = story.noting.seen;
      story.noting = { seen: story.seen, line };
    }
  }

  /** A process died. Calls whose end is not safe in its journal have an end that only its recovery can tell. */
  died(life: Life, node: number, kind: CrashKind, disk: Disk): void {
    const safeLine = kind === 'process' ? disk.writes : disk.safeWrites;
    if (kind === 'power') this.#lostSince(node, safeLine);
    for (const story of this.#byLife.get(life) ?? []) {
      if (story.ended && story.endedLine < safeLine) {
        if (story.endedLine >= disk.safeWrites) this.#unsynced.add(story);
        continue;
      }
      if (story.noting !== undefined && story.noting.line < safeLine) story.noted = story.noting.seen;
      const view = this.view(story.account);
      if (story.ended) view.settled -= story.expected!;
      else this.#close(view, story);
      story.crash = { kind, safeLine };
      this.uncertain.add(story);
    }
    this.#byLife.delete(life);
    this.limits.died(life);
    this.estimates.died(life);
    this.hedges.died(life);
  }

  /** What a killed process had written is lost if the power goes before the next one has made it safe. */
  #lostSince(node: number, safeLine: number): void {
    for (const story of this.uncertain) {
      if (story.node !== node || story.crash!.safeLine <= safeLine) continue;
      story.crash = { kind: 'power', safeLine };
      story.noted = 0;
    }
    for (const story of this.#unsynced) {
      if (story.node !== node) continue;
      this.#unsynced.delete(story);
      // Its end is in the ledger already, or its line was made safe by a later one.
      if (story.settled || story.endedLine < safeLine) continue;
      this.view(story.account).settled -= story.expected!;
      story.crash = { kind: 'power', safeLine };
      story.noted = 0;
      this.uncertain.add(story);
    }
  }

  /** Calls that run. */
  get running(): number {
    let running = 0;
    for (const stories of this.#byLife.values()) for (const { ended } of stories) if (!ended) running += 1;
    return running;
  }

  // -------------------------------------------------------------------------------------------------------- money in

  /** The database has an entry that no call made. */
  entry(row: Entry, grant: StoredGrant | undefined): void {
    const view = this.view(row.account);
    view.credited += row.amount;
    if (row.kind === 'EXPIRE') {
      const early = row.at < (grant!.expiresAt ?? Number.POSITIVE_INFINITY) + lapseAfterMs;
      if (early || this.lapsed.has(grant!.id)) this.violations.add('M12', grant!.reference, 'lapsed early, or twice');
      this.lapsed.set(grant!.id, -row.amount);
      // Running calls, and nodes that had leased it, may have counted on it.
      const inCalls = view.covered + this.#aheadOf(view);
      const leased = this.shared?.leasedOf(view.id) ?? 0n;
      const left = view.credited - view.settled - (leased > inCalls ? leased : inCalls);
      if (left < 0n) view.excess -= left;
      return;
    }
    if (this.tasks.entry(row) || this.trade.entry(row, grant)) {
      const left = view.credited - view.settled - view.covered + view.excess;
      if (row.amount < 0n && left < 0n)
        this.violations.add('M7', view.id, `a ${row.kind} took ${-left} nano-USD that calls need`);
      return;
    }
    const { reference, kind } = grant!;
    const due = kind === 'plan' ? this.planGrants.get(row.account) : this.payments.get(reference);
    const isPlans = kind !== 'plan' || reference.startsWith(`plan:${row.account}:`);
    if (row.kind !== 'CREDIT' || due !== row.amount || !isPlans) {
      this.violations.add('M12', reference, `${row.amount} nano-USD were credited, ${due} are right`);
    }
  }

  /** What running calls may have set aside beyond what they were seen to need: up to a step of tokens each. */
  #aheadOf(view: AccountView): bigint {
    let ahead = 0n;
    for (const { inputTokens, seen, list, ratio, cover } of view.open) {
      const most = coverOf(inputTokens, seen + this.stepTokens, list, ratio);
      if (most > cover) ahead += most - cover;
    }
    return ahead;
  }

  // ------------------------------------------------------------------------------------------------------------ calls

  /** `lists`: of the models that may serve it. */
  arrived(story: Story, longestOutput: number, lists: readonly PriceList[]): void {
    this.stories.set(story.id, story);
    this.#byLife.get(story.life)!.add(story);
    this.hedges.arrived(story);
    const view = this.view(story.account);
    for (const list of lists) {
      const most = coverOf(story.inputTokens, longestOutput, list, story.ratio);
      if (most > view.dearestCall) view.dearestCall = most;
    }
  }

  /** A try begins: whoever comes here has passed the limiter and has money set aside. */
  aimed(story: Story, attempt: Try, model: string): void {
    this.limits.passed(story);
    this.limits.aimed(story, attempt.credential, model);
    this.hedges.aimed(story, attempt);
    this.keys.aimed(story);
    if (story.admitted) {
      this.#coverOther(story);
      return;
    }
    story.admitted = true;
    this.callers.held(story);
    const view = this.view(story.account);
    if (this.shared?.isAtRest(view) === true) view.excess = 0n;
    view.open.add(story);
    view.mostOpen = Math.max(view.mostOpen, view.open.size + this.uncertain.size);
    const amount = coverOf(story.inputTokens, story.heldOutput, story.list, story.ratio);
    // That another node's call has turned out dearer than its hold is not known here before it is in the ledger.
    this.#cover(view, story, amount, { rule: 'M6', excused: this.shared === undefined ? 0n : view.excess });
  }

  /** Another model's price may be dearer: its money was set aside when the call came. */
  #coverOther(story: Story): void {
    const view = this.view(story.account);
    if (!view.open.has(story)) return;
    const amount = coverOf(story.inputTokens, story.heldOutput, story.list, story.ratio);
    this.#cover(view, story, amount, { rule: 'M7', excused: view.excess });
  }

  received(story: Story, attempt: Try): void {
    this.#schedule.trace(attempt.billed ? 2 : 1);
    this.hedges.received(story, attempt);
    if (story.departed === 0) this.violations.add('M16', story.id, 'sent before the hold was in the journal');
  }

  turnedAway(story: Story, credential: string, model: string, status: number, retryAfterMs: number | undefined): void {
    this.limits.turnedAway(story, credential, model, status, retryAfterMs);
  }

  /** The client got an error instead of an answer. */
  refused(story: Story, error: GatewayError): void {
    this.#schedule.trace(error.status);
    const byLimiter = error.kind === 'rate_limited' && error.code !== 'upstream' && story.tries.length === 0;
    if (byLimiter) this.limits.stopped(story, error.code);
    else this.limits.passed(story);
    if (byLimiter || error.kind === 'insufficient_balance') this.hedges.turnedAway(story);
    this.absorb.refused(story);
    const { names } = story;
    if (error.code === 'other_model' && error.field !== names?.field)
      this.violations.add('route', story.id, `refused for ${error.field}, and it names ${names?.field ?? 'nothing'}`);
    if (error.kind === 'internal') this.violations.add('start', story.id, `an internal error: ${String(error.cause)}`);
  }

  /** Tokens were shown to the meter. true: they are paid for. */
  observed(story: Story, goesOn: boolean): void {
    if (!goesOn) return;
    const view = this.view(story.account);
    // It may have been set aside before other calls turned out dearer than what was covered.
    const amount = coverOf(story.inputTokens, story.seen, story.list, story.ratio);
    this.#cover(view, story, amount, { rule: 'M7', excused: view.excess });
  }

  #cover(view: AccountView, story: Story, amount: bigint, { rule, excused }: { rule: string; excused: bigint }): void {
    if (amount <= story.cover) return;
    view.covered += amount - story.cover;
    story.cover = amount;
    const left = view.credited - view.settled - view.covered;
    if (left + excused < 0n) this.violations.add(rule, view.id, `let in ${-left} nano-USD more than the account has`);
  }

  #close(view: AccountView, story: Story): void {
    if (!view.open.delete(story)) return;
    view.covered -= story.cover;
    story.cover = 0n;
  }

  /** Its charge is known now: of two tries that may run at once this is before both are over. */
  settled(story: Story, atMs: number): void {
    const payer = story.ended ? story.payer : (story.winner ?? story.payer);
    const told = story.told ?? payer?.told;
    if (payer === undefined) return;
    if (!story.ended) story.charged = this.estimates.usageOf({ ...story, told }, payer, atMs);
    this.estimates.learn({ ...story, told }, payer, atMs);
  }

  ended(story: Story, outcome: Outcome['kind'], atMs: number): void {
    const view = this.view(story.account);
    const { cover } = story;
    this.#close(view, story);
    this.limits.ended(story);
    this.hedges.ended(story);
    story.payer = payerOf(story, outcome);
    // A client that left while the vendor was at work pays for the prompt that it had us send.
    const usage = story.payer && (story.charged ?? this.estimates.usageOf(story, story.payer, atMs));
    story.expected = story.payer === undefined ? 0n : costOf(usage!, story.payer.list, story.ratio);
    this.#schedule.trace(Number(story.expected & 0xffffffn));
    this.charge(view, story.expected);
    this.callers.ended(story);
    if (story.expected > cover) {
      // Money that is on its way out was set aside before this was known.
      view.excess += story.expected - cover;
      return;
    }
    if (this.shared === undefined && view.open.size === 0 && view.credited >= view.settled) view.excess = 0n;
  }

  charge(view: AccountView, cost: bigint): void {
    this.absorb.spent += cost;
    view.settled += cost;
    const overdraft = view.settled - view.credited;
    const bound = view.dearestCall * BigInt(view.mostOpen);
    if (overdraft > bound)
      this.violations.add('M7', view.id, `${overdraft} nano-USD below zero, ${bound} are possible`);
  }
}

/** The outcome table, from what truly happened: the try that the client pays for, if any. */
function payerOf(story: Story, outcome: Outcome['kind']): Try | undefined {
  if (story.hedgeAfterMs !== undefined) return story.winner ?? story.payer;
  const last = story.tries.at(-1);
  const hasLeft = last?.state === 'flying' && outcome === 'client_left' && last.received;
  return last?.state === 'answered' || hasLeft ? last : undefined;
}
