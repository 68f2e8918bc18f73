/** A simulated world of one seed: nodes, clients, vendors, faults; run for so many operations, brought to rest, and audited. */
import type { LiveExchange } from '../../core/http/exchange.ts';
import type { Store } from '../../plugins/billing/store.ts';
import { type ArchiveRoom, archiveRoom } from './archive-room.ts';
import { Arrivals, modelIds } from './arrivals.ts';
import { Audit } from './audit.ts';
import { CallerWorld } from './caller-world.ts';
import { Chance } from './chance.ts';
import { Credit } from './credit.ts';
import type { DatabaseFaults } from './database.ts';
import { Errands } from './errands.ts';
import { LeaseOracle } from './lease-oracle.ts';
import { LimitsOracle } from './limits-oracle.ts';
import { Lulls } from './lulls.ts';
import { KeyTable } from './memory-keys.ts';
import { MemoryLedger } from './memory-ledger.ts';
import { ShopTables } from './memory-shop.ts';
import { type Again, Mishaps } from './mishaps.ts';
import { type Mutant, sound } from './mutants.ts';
import { Node } from './node.ts';
import { Oracle } from './oracle.ts';
import type { Process } from './process.ts';
import { drawProfile, type Profile, vendorNames } from './profile.ts';
import { Runs } from './runs.ts';
import { Schedule, withFakeTime } from './schedule.ts';
import { TaskWorld } from './task-world.ts';
import { Tools } from './tools.ts';
import { Trade } from './trade.ts';
import { type Violation, Violations } from './violations.ts';

export interface Result {
  readonly seed: number;
  readonly operations: number;
  readonly requests: number;
  /** Orders that were placed. */
  readonly tasks: number;
  readonly crashes: number;
  /** Calls that were served without the database. */
  readonly bridged: number;
  readonly rows: number;
  readonly violations: readonly Violation[];
  readonly fingerprint: string;
  /** Operations by kind. */
  readonly counts: ReadonlyMap<string, number>;
}

/** Half seconds after which a world that has not come to rest is looked at as it is. */
const longestRest = 120;
/** A process forgets an account that no one has used for five minutes. */
const forgottenAfterMs = 330_000;
/** Mostly a notification wakes who listens; now and then it is found by looking. */
const newsMeanMs = 100;

/** Runs a seed's world for about so many operations. */
export async function simulate(seed: number, operations: number, mutant: Mutant = sound): Promise<Result> {
  const world = new World(seed, mutant);
  return withFakeTime(
    (delayMs, work) => world.wait(delayMs, work),
    () => world.run(operations),
  );
}

class World {
  readonly #seed: number;
  readonly #mutant: Mutant;
  readonly #schedule = new Schedule();
  readonly #violations = new Violations(this.#schedule);
  readonly #ledger = new MemoryLedger(() => this.#schedule.now);
  readonly #keys = new KeyTable(() => this.#schedule.now);
  readonly #tables = new ShopTables();
  readonly #tasks: TaskWorld | undefined;
  readonly #callers: CallerWorld | undefined;
  readonly #archive: ArchiveRoom | undefined;
  readonly #faults: DatabaseFaults;
  readonly #chance: Chance;
  readonly #profile: Profile;
  readonly #oracle: Oracle;
  readonly #audit: Audit;
  /** Where balances are shared. */
  readonly #leases: LeaseOracle | undefined;
  readonly #nodes: Node[];
  readonly #arrivals: Arrivals;
  readonly #runs: Runs | undefined;
  readonly #trade: Trade;
  readonly #credit: Credit | undefined;
  readonly #errands: Errands;
  readonly #mishaps: Mishaps;
  readonly #lulls: Lulls;
  readonly #store: Store;
  #isOpen = true;

  constructor(seed: number, mutant: Mutant) {
    this.#seed = seed;
    this.#mutant = mutant;
    this.#chance = new Chance(seed);
    this.#profile = drawProfile(this.#chance, {
      tasks: new Chance(seed, 1),
      callers: new Chance(seed, 2),
      hedges: new Chance(seed, 3),
      instead: new Chance(seed, 4),
      talks: new Chance(seed, 5),
      names: new Chance(seed, 6),
      bridges: new Chance(seed, 7),
      // By these numbers, hardly a world by which `mutants.test.ts` finds another mutant has a cache or guardrails.
      cached: new Chance(seed, 1_866),
      guards: new Chance(seed, 37_882),
      budgets: new Chance(seed, 9),
      // By this number, no world by which `mutants.test.ts` finds another mutant has credit lines.
      credit: new Chance(seed, 40_070),
    });
    this.#faults = { down: false, faultOneIn: this.#profile.databaseFaultOneIn, meanMs: this.#profile.databaseMeanMs };
    const limits = new Map(this.#profile.accounts.map((account) => [account.id, account.plan.limits]));
    const limitsOracle = new LimitsOracle(this.#schedule, this.#violations, limits);
    this.#oracle = new Oracle(this.#schedule, this.#violations, limitsOracle, this.#ledger);
    for (const { id, plan } of this.#profile.accounts) {
      if (plan.grant !== undefined) this.#oracle.planGrants.set(id, plan.grant.amount);
    }
    this.#oracle.credit.zone = this.#profile.billing.statements?.zone ?? 'UTC';
    this.#audit = new Audit(this.#oracle, this.#ledger);
    this.#ledger.onEntry = (entry, grant) => {
      this.#oracle.entry(entry, grant);
      if (entry.kind === 'EXPIRE') this.#leases?.expired(entry);
    };
    this.#ledger.onSecondEnd = ({ id, kind }) => this.#violations.add('M3', id, `ended again, by ${kind}`);
    this.#leases = this.#profile.shared ? new LeaseOracle(this.#ledger, this.#oracle) : undefined;
    this.#oracle.shared = this.#leases;
    this.#oracle.hedges.rules = this.#profile.hedge;
    this.#oracle.absorb.share = this.#profile.hedge?.absorb ?? 0.05;
    this.#oracle.stepTokens = this.#profile.billing.hold.output_tokens;
    mutant.ledger?.(this.#ledger, this.#chance);
    this.#store = mutant.store?.(this.#ledger, this.#chance) ?? this.#ledger;
    this.#tasks = this.#newTasks();
    this.#callers = this.#newCallers();
    const records = { ledger: this.#ledger, faults: this.#faults, violations: this.#violations, mutant };
    this.#archive = archiveRoom(new Chance(seed, 8), { schedule: this.#schedule, ...records });
    this.#nodes = Array.from({ length: this.#profile.nodes }, (_, index) => this.#newNode(index));
    this.#tables.onUse = (use) => this.#oracle.trade.used(use);
    mutant.tables?.(this.#tables);
    const { chance, profile, oracle } = { chance: this.#chance, profile: this.#profile, oracle: this.#oracle };
    const places = { schedule: this.#schedule, nodes: this.#nodes };
    const shared = { chance, profile, oracle, tables: this.#tables, ...places };
    this.#errands = new Errands(this.#schedule, chance, this.#nodes);
    // By this number, no world by which `mutants.test.ts` finds another mutant first has runs.
    const runs = new Chance(seed, 22_695);
    this.#runs = runs.oneIn(4) ? new Runs(runs) : undefined;
    const callers = this.#callers?.open(this.#nodes, this.#errands);
    this.#arrivals = new Arrivals({
      ...shared,
      ...{ mutant, callers, runs: this.#runs, tools: this.#newTools() },
      strike: (node) => this.#mishaps.strike(node),
    });
    this.#tasks?.open({
      profile,
      nodes: this.#nodes,
      errands: this.#errands,
      planOf: (account, node) => this.#arrivals.planOf(account, node),
    });
    this.#mishaps = new Mishaps({
      ...shared,
      faults: this.#faults,
      keys: this.#keys,
      tasks: this.#tasks,
      arrivals: this.#arrivals,
    });
    this.#lulls = new Lulls({
      ...places,
      chance: new Chance(seed, 8),
      profile: profile.bridge,
      mishaps: this.#mishaps,
      recall: () => void this.#announce('lease wanted', ` ${chance.pick(profile.accounts).id}`).catch(() => {}),
      isOpen: () => this.#isOpen,
    });
    this.#credit = profile.credit && new Credit({ ...places, chance: profile.credit, profile });
    this.#trade = new Trade({
      ...shared,
      errands: this.#errands,
      endedOf: (account) => this.#arrivals.endedOf(account),
      balanceOf: (account) => this.#storedOf(account),
    });
  }

  /** Timers of the processes, and the end of a turn of an event loop: anything may happen before. */
  wait(delayMs: number | undefined, work: () => void): void {
    const label = delayMs === undefined ? 'end of turn' : 'timer';
    this.#schedule.after(delayMs ?? this.#chance.fraction(), this.#schedule.current, label, work);
  }

  async run(operations: number): Promise<Result> {
    for (const node of this.#nodes) node.boot();
    this.#begin();
    const schedule = this.#schedule;
    await schedule.run(() => schedule.operations >= operations || this.#violations.list.length > 0);
    if (this.#violations.list.length === 0) await this.#rest();
    return {
      seed: this.#seed,
      operations: schedule.operations,
      requests: this.#oracle.traces.size,
      tasks: this.#tasks?.placed ?? 0,
      crashes: this.#mishaps.crashes,
      bridged: this.#arrivals.inOutage.filter(({ status }) => status === 200).length,
      rows: this.#ledger.rows.length,
      violations: this.#violations.list,
      fingerprint: this.#fingerprint(),
      counts: schedule.counts,
    };
  }

  #begin(): void {
    const { arrivalMeanMs, topUpMeanMs, tradeMeanMs } = this.#profile;
    const again: Again = (label, meanMs, work) => this.#again(label, meanMs, work);
    for (const account of this.#profile.accounts) this.#trade.topUp(account.id);
    this.#again('arrival', arrivalMeanMs, () => this.#arrivals.arrive());
    this.#again('top-up', topUpMeanMs, () => this.#trade.topUp(this.#chance.pick(this.#profile.accounts).id));
    this.#again('trade', tradeMeanMs, () => this.#trade.happen());
    this.#again('order', this.#profile.tasks?.meanMs ?? Number.POSITIVE_INFINITY, () => this.#tasks!.orders.happen());
    this.#callers?.begin(again);
    this.#credit?.begin(again);
    this.#archive?.begin(again, this.#nodes);
    this.#mishaps.begin(again);
    this.#lulls.begin(again);
    this.#again('new prices', 2_000, () => {
      this.#arrivals.changePrices(this.#chance.pick(modelIds));
      this.#tasks?.orders.changePrices();
    });
  }

  #again(label: string, meanMs: number, work: () => void): void {
    if (meanMs === Number.POSITIVE_INFINITY) return;
    this.#schedule.after(this.#chance.delay(meanMs) + this.#lulls.leftMs, undefined, label, () => {
      if (!this.#isOpen) return;
      this.#again(label, meanMs, work);
      work();
    });
  }

  /** No one comes any more, everything works, and what runs goes to its end. Then the ledger must be right. */
  async #rest(): Promise<void> {
    this.#isOpen = false;
    const schedule = this.#schedule;
    Object.assign(this.#faults, { down: false, faultOneIn: 0 });
    for (const { disk } of this.#nodes) Object.assign(disk.faults, { roomBytes: undefined, syncFails: false });
    this.#tasks?.calm();
    this.#callers?.calm();
    this.#archive?.calm();
    if (this.#chance.oneIn(2)) for (const node of this.#nodes) this.#mishaps.crash(node);
    for (let tries = 0; tries < longestRest && !this.#isQuiet(); tries += 1) await this.#pass(500);
    // The longest that a flusher waits after a failure.
    await this.#pass(5_100);
    for (const node of this.#nodes) {
      if (node.serving === undefined) {
        this.#violations.add('start', `node ${node.index}`, `does not start: ${String(node.lastFailure)}`);
      } else {
        this.#oracle.hedges.atRest(vendorNames.map((name) => [name, node.serving!.takenAt(name)]));
        await this.#compareMemory(node);
      }
    }
    let stopped = 0;
    for (const node of this.#nodes) void node.stop().then(() => (stopped += 1));
    await schedule.run(() => stopped === this.#nodes.length);
    this.#audit.finish();
    this.#oracle.trade.finish(this.#ledger, this.#tables);
    this.#leases?.finish();
    this.#archive?.finish();
    this.#runs?.finish(this.#ledger, this.#violations);
    this.#tasks?.finish(this.#ledger);
  }

  #isQuiet(): boolean {
    return (
      this.#oracle.running === 0 &&
      this.#errands.open === 0 &&
      this.#credit?.isQuiet !== false &&
      this.#tasks?.isQuiet !== false &&
      this.#nodes.every(({ serving }) => serving !== undefined)
    );
  }

  async #pass(milliseconds: number): Promise<void> {
    const until = this.#schedule.now + milliseconds;
    await this.#schedule.run(() => this.#schedule.now >= until);
  }

  /**
   * A process's own idea of each account's balance. What was set aside for a debit of which it could not learn whether it was
   * made stays aside until the process has forgotten the account.
   */
  async #compareMemory({ serving }: Node): Promise<void> {
    let mayBeLess = true;
    for (const { id } of this.#profile.accounts) {
      let reported = await this.#balanceIn(serving!, id);
      if (reported < this.#storedOf(id) && mayBeLess) {
        await this.#pass(forgottenAfterMs);
        mayBeLess = false;
        reported = await this.#balanceIn(serving!, id);
      }
      const stored = this.#storedOf(id);
      if (reported !== stored) this.#violations.add('M1', id, `memory says ${reported}, the database ${stored}`);
    }
  }

  #storedOf(account: string): bigint {
    return this.#ledger.accounts.get(account)?.balance ?? 0n;
  }

  async #balanceIn({ ledger }: Process, account: string): Promise<bigint> {
    const reported: bigint[] = [];
    void ledger.balance(account).then((balance) => reported.push(balance));
    await this.#schedule.run(() => reported.length > 0);
    return reported[0]!;
  }

  #newNode(index: number): Node {
    return new Node({
      ...this.#common,
      index,
      store: this.#store,
      shared: this.#profile.shared,
      keys: this.#keys,
      callers: this.#callers?.table,
      tables: this.#tables,
      tasks: this.#tasks,
      accounts: this.#profile.accounts,
      faults: this.#faults,
      billing: this.#profile.billing,
      hedge: this.#profile.hedge,
      bridgeMs: this.#profile.bridge?.bridgeMs ?? 0,
      guards: this.#profile.guards,
      announce: (topic, subject) => this.#announce(topic, subject),
      onRecovered: ({ index, journal, serving }) => {
        this.#leases?.recovered(journal!, serving!.life);
        this.#audit.recovered(index);
      },
    });
  }

  get #common() {
    return { schedule: this.#schedule, chance: this.#chance, oracle: this.#oracle, mutant: this.#mutant };
  }

  /** By this number, no world by which `mutants.test.ts` finds another mutant first has tools. */
  #newTools(): Tools | undefined {
    const chance = new Chance(this.#seed, 24_550);
    if (this.#profile.callers !== undefined || !chance.oneIn(4)) return undefined;
    const { exchange } = this.#mutant;
    const change = exchange && ((one: LiveExchange) => exchange(one, chance));
    return new Tools(chance, new Chance(this.#seed, 12), { schedule: this.#schedule, oracle: this.#oracle, change });
  }

  #newTasks(): TaskWorld | undefined {
    const { tasks, vendors } = this.#profile;
    if (tasks === undefined) return undefined;
    return new TaskWorld({ ...this.#common, profile: tasks, troublePercent: vendors.troublePercent });
  }

  #newCallers(): CallerWorld | undefined {
    const { callers } = this.#profile;
    if (callers === undefined) return undefined;
    return new CallerWorld({
      ...this.#common,
      ledger: this.#ledger,
      profile: this.#profile,
      callers,
      crash: () => this.#mishaps.crash(this.#chance.pick(this.#nodes)),
    });
  }

  async #announce(topic: string, subject: string): Promise<void> {
    if (this.#faults.down) throw new Error('the database is down');
    for (const node of this.#nodes) {
      this.#schedule.after(this.#chance.delay(newsMeanMs), undefined, 'news', () => {
        this.#schedule.current = node.serving?.life;
        node.serving?.hear(topic, subject);
      });
    }
  }

  #fingerprint(): string {
    for (const row of this.#ledger.rows) {
      this.#schedule.traceText(`${row.account} ${row.kind} ${row.request} ${row.amount} ${row.balanceAfter}`);
    }
    return this.#schedule.fingerprint;
  }
}
