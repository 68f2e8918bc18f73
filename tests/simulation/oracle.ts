/** Follows every request from the vendor's and the client's side and knows what the ledger must come to. */

import type { Outcome } from '../../core/contract/contract.ts';
import type { GatewayError } from '../../core/contract/errors.ts';
import { AbsorbOracle } from './absorb-oracle.ts';
import { type Cached, costOfCached, dueForCached } from './cached.ts';
import { CallersOracle } from './callers-oracle.ts';
import { CreditOracle } from './credit.ts';
import type { CrashKind, Disk } from './disk.ts';
import { EstimateOracle } from './estimate-oracle.ts';
import { HedgeOracle } from './hedge-oracle.ts';
import { KeysOracle } from './keys-oracle.ts';
import type { LimitsOracle } from './limits-oracle.ts';
import type { Entry, MemoryLedger, StoredGrant } from './memory-ledger.ts';
import type { Life, Schedule } from './schedule.ts';
import { costOf, coverOf, type PriceList } from './tariff.ts';
import { TasksOracle } from './tasks-oracle.ts';
import type { Trace, Try } from './trace.ts';
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
  readonly open: Set<Trace>;
  mostOpen: number;
  /** The most that one of its calls can cost. */
  dearestCall: bigint;
}

/** What leases come to. */
export interface SharedAccounts {
  /** Whether all that the account's calls cost is in the ledger, and no node counts on more than there is. */
  isAtRest(view: AccountView): boolean;
  leasedOf(account: string): bigint;
  /** A call was admitted, beside the others of its process. */
  admitted(trace: Trace, others: Iterable<Trace>): void;
}

export class Oracle {
  readonly traces = new Map<string, Trace>();
  readonly accounts = new Map<string, AccountView>();
  readonly limits: LimitsOracle;
  readonly hedges: HedgeOracle;
  readonly absorb: AbsorbOracle;
  readonly estimates = new EstimateOracle();
  readonly keys: KeysOracle;
  readonly callers: CallersOracle;
  readonly trade: TradeOracle;
  readonly tasks: TasksOracle;
  readonly credit: CreditOracle;
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
  /** Payments of which somebody learned that they are in. */
  readonly acknowledged = new Set<string>();
  /** Traces of processes that live, those that have ended included until they are beyond a crash. */
  readonly #byLife = new Map<Life, Set<Trace>>();
  /** Traces that a crash cut off and that no recovery has reported of yet. */
  readonly uncertain = new Set<Trace>();
  /** Calls that ended before their process was killed, with an end that only the machine's memory has: power may take it. */
  readonly #unsynced = new Set<Trace>();

  constructor(schedule: Schedule, violations: Violations, limits: LimitsOracle, ledger: MemoryLedger) {
    this.#schedule = schedule;
    this.violations = violations;
    this.limits = limits;
    this.hedges = new HedgeOracle(schedule, violations);
    this.absorb = new AbsorbOracle(violations);
    this.keys = new KeysOracle(violations);
    this.callers = new CallersOracle(schedule, violations);
    this.trade = new TradeOracle(violations);
    this.tasks = new TasksOracle(violations);
    this.credit = new CreditOracle(ledger, violations);
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
    for (const trace of this.#byLife.get(life)!) {
      if (trace.ended) continue;
      if (trace.noting !== undefined && trace.noting.line < line) trace.noted = trace.noting.seen;
      trace.noting = { seen: trace.seen, line };
    }
  }

  /** A process died. Calls whose end is not safe in its journal have an end that only its recovery can tell. */
  died(life: Life, node: number, kind: CrashKind, disk: Disk): void {
    const safeLine = kind === 'process' ? disk.writes : disk.safeWrites;
    if (kind === 'power') this.#lostSince(node, safeLine);
    for (const trace of this.#byLife.get(life) ?? []) {
      if (trace.ended && trace.endedLine < safeLine) {
        if (trace.endedLine >= disk.safeWrites) this.#unsynced.add(trace);
        continue;
      }
      if (trace.noting !== undefined && trace.noting.line < safeLine) trace.noted = trace.noting.seen;
      const view = this.view(trace.account);
      if (trace.ended) view.settled -= trace.expected!;
      else this.#close(view, trace);
      trace.crash = { kind, safeLine };
      this.uncertain.add(trace);
    }
    this.#byLife.delete(life);
    this.limits.died(life);
    this.estimates.died(life);
    this.hedges.died(life);
  }

  /** What a killed process had written is lost if the power goes before the next one has made it safe. */
  #lostSince(node: number, safeLine: number): void {
    for (const trace of this.uncertain) {
      if (trace.node !== node || trace.crash!.safeLine <= safeLine) continue;
      trace.crash = { kind: 'power', safeLine };
      trace.noted = 0;
    }
    for (const trace of this.#unsynced) {
      if (trace.node !== node) continue;
      this.#unsynced.delete(trace);
      // Its end is in the ledger already, or its line was made safe by a later one.
      if (trace.settled || trace.endedLine < safeLine) continue;
      this.view(trace.account).settled -= trace.expected!;
      trace.crash = { kind: 'power', safeLine };
      trace.noted = 0;
      this.uncertain.add(trace);
    }
  }

  /** Calls that run. */
  get running(): number {
    let running = 0;
    for (const traces of this.#byLife.values()) for (const { ended } of traces) if (!ended) running += 1;
    return running;
  }

  /** The database has an entry that no call made. */
  entry(row: Entry, grant: StoredGrant | undefined): void {
    const view = this.view(row.account);
    view.credited += row.amount;
    if (row.kind === 'EXPIRE') {
      const end = this.credit.endOf(grant!) ?? Number.POSITIVE_INFINITY;
      const early = (row.postedAt ?? row.at) < end + lapseAfterMs;
      if (row.at !== end) this.violations.add('M12', grant!.reference, `expired at ${row.at}, ended at ${end}`);
      if (early || this.lapsed.has(grant!.id)) this.violations.add('M12', grant!.reference, 'lapsed early, or twice');
      this.lapsed.set(grant!.id, -row.amount);
      // Running calls, and nodes that had leased it, may have counted on it.
      const inCalls = view.covered + this.#aheadOf(view);
      const leased = this.shared?.leasedOf(view.id) ?? 0n;
      const left = view.credited - view.settled - (leased > inCalls ? leased : inCalls);
      if (left < 0n) view.excess -= left;
      return;
    }
    if (this.credit.entry(row, grant)) return;
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

  /** `lists`: of the models that may serve it. */
  arrived(trace: Trace, longestOutput: number, lists: readonly PriceList[]): void {
    this.traces.set(trace.id, trace);
    this.#byLife.get(trace.life)!.add(trace);
    this.hedges.arrived(trace);
    const view = this.view(trace.account);
    for (const list of lists) {
      const most = coverOf(trace.inputTokens, longestOutput, list, trace.ratio);
      if (most > view.dearestCall) view.dearestCall = most;
    }
  }

  /** A try begins: the one that comes here has passed the limiter and has money set aside. */
  aimed(trace: Trace, attempt: Try, model: string): void {
    this.limits.aimed(trace, attempt.credential, model);
    this.hedges.aimed(trace, attempt);
    this.keys.aimed(trace);
    if (trace.admitted) this.#coverOther(trace);
    else this.held(trace);
  }

  /** It has passed the limiter and has money set aside. */
  held(trace: Trace): void {
    this.limits.passed(trace);
    trace.admitted = true;
    this.callers.held(trace);
    const view = this.view(trace.account);
    if (this.shared?.isAtRest(view) === true) view.excess = 0n;
    this.shared?.admitted(trace, this.#byLife.get(trace.life)!);
    view.open.add(trace);
    view.mostOpen = Math.max(view.mostOpen, view.open.size + this.uncertain.size);
    const amount = coverOf(trace.inputTokens, trace.heldOutput, trace.list, trace.ratio);
    // That another node's call has turned out dearer than its hold is not known here before it is in the ledger.
    this.#cover(view, trace, amount, { rule: 'M6', excused: this.shared === undefined ? 0n : view.excess });
  }

  /** It gets an answer that was kept: its price is known and set aside before any of it is sent. */
  served(trace: Trace, cached: Cached): void {
    trace.served = cached;
    this.hedges.turnedAway(trace);
    const view = this.view(trace.account);
    this.#cover(view, trace, costOfCached(cached, trace), { rule: 'M7', excused: view.excess });
  }

  /** Another model's price may be dearer: its money was set aside when the call came. */
  #coverOther(trace: Trace): void {
    const view = this.view(trace.account);
    if (!view.open.has(trace)) return;
    const amount = coverOf(trace.inputTokens, trace.heldOutput, trace.list, trace.ratio);
    this.#cover(view, trace, amount, { rule: 'M7', excused: view.excess });
  }

  received(trace: Trace, attempt: Try): void {
    this.#schedule.trace(attempt.billed ? 2 : 1);
    this.hedges.received(trace, attempt);
    if (trace.departed === 0) this.violations.add('M16', trace.id, 'sent before the hold was in the journal');
  }

  turnedAway(trace: Trace, credential: string, model: string, status: number, retryAfterMs: number | undefined): void {
    this.limits.turnedAway(trace, credential, model, status, retryAfterMs);
  }

  /** The client got an error instead of an answer. */
  refused(trace: Trace, error: GatewayError): void {
    this.#schedule.trace(error.status);
    const byLimiter = error.kind === 'rate_limited' && error.code !== 'upstream' && trace.tries.length === 0;
    if (byLimiter) this.limits.stopped(trace, error.code);
    else this.limits.passed(trace);
    if (byLimiter || error.kind === 'insufficient_balance') this.hedges.turnedAway(trace);
    this.absorb.refused(trace);
    const { names } = trace;
    if (error.code === 'other_model' && error.field !== names?.field)
      this.violations.add('route', trace.id, `refused for ${error.field}, and it names ${names?.field ?? 'nothing'}`);
    if (error.kind === 'internal') this.violations.add('start', trace.id, `an internal error: ${String(error.cause)}`);
  }

  /** Tokens were shown to the meter. true: they are paid for. */
  observed(trace: Trace, goesOn: boolean): void {
    if (!goesOn) return;
    const view = this.view(trace.account);
    // It may have been set aside before other calls turned out dearer than what was covered.
    const amount = coverOf(trace.inputTokens, trace.seen, trace.list, trace.ratio);
    this.#cover(view, trace, amount, { rule: 'M7', excused: view.excess });
  }

  #cover(view: AccountView, trace: Trace, amount: bigint, { rule, excused }: { rule: string; excused: bigint }): void {
    if (amount <= trace.cover) return;
    view.covered += amount - trace.cover;
    trace.cover = amount;
    const left = view.credited - view.settled - view.covered;
    if (left + excused < 0n) this.violations.add(rule, view.id, `let in ${-left} nano-USD more than the account has`);
  }

  #close(view: AccountView, trace: Trace): void {
    if (!view.open.delete(trace)) return;
    view.covered -= trace.cover;
    trace.cover = 0n;
  }

  /** Its charge is known now: of two tries that may run at once this is before both are over. */
  settled(trace: Trace, atMs: number): void {
    const payer = trace.ended ? trace.payer : (trace.winner ?? trace.payer);
    const reported = trace.reported ?? payer?.reported;
    if (payer === undefined) return;
    if (!trace.ended) trace.charged = this.estimates.usageOf({ ...trace, reported }, payer, atMs);
    this.estimates.learn({ ...trace, reported }, payer, atMs);
  }

  ended(trace: Trace, outcome: Outcome['kind'], atMs: number): void {
    trace.endedAtMs = atMs;
    const view = this.view(trace.account);
    const { cover } = trace;
    this.#close(view, trace);
    this.limits.ended(trace);
    this.hedges.ended(trace);
    trace.payer = trace.isSpared ? undefined : payerOf(trace, outcome);
    // A client that left while the vendor was at work pays for the prompt that it had us send.
    const usage = trace.payer && (trace.charged ?? this.estimates.usageOf(trace, trace.payer, atMs));
    const due = trace.payer === undefined ? 0n : costOf(usage!, trace.payer.list, trace.ratio);
    trace.expected = trace.served === undefined ? due : dueForCached(trace, outcome);
    this.#schedule.trace(Number(trace.expected & 0xffffffn));
    this.charge(view, trace.expected);
    if (trace.expected > cover) {
      // Money that is on its way out was set aside before this was known.
      view.excess += trace.expected - cover;
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
function payerOf(trace: Trace, outcome: Outcome['kind']): Try | undefined {
  if (trace.hedgeAfterMs !== undefined) return trace.winner ?? trace.payer;
  const last = trace.tries.at(-1);
  const hasLeft = last?.state === 'flying' && outcome === 'client_left' && last.received;
  return last?.state === 'answered' || hasLeft ? last : undefined;
}
