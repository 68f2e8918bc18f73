/** A simulated world of one seed: nodes, clients, vendors, faults; run for so many operations, brought to rest, and audited. */
import { type Money, money } from '../../core/money.ts';
import type { Store } from '../../plugins/billing/store.ts';
import { Audit } from './audit.ts';
import { Chance } from './chance.ts';
import type { DatabaseFaults } from './database.ts';
import { LeaseOracle } from './lease-oracle.ts';
import { LimitsOracle } from './limits-oracle.ts';
import { KeyTable } from './memory-keys.ts';
import { MemoryLedger } from './memory-ledger.ts';
import { type Mutant, sound } from './mutants.ts';
import { Node } from './node.ts';
import { Oracle } from './oracle.ts';
import { type AccountProfile, drawModel, drawProfile, type PricedModel, type Profile } from './profile.ts';
import { Schedule, withFakeTurns } from './schedule.ts';
import { newStory } from './story.ts';
import { type Violation, Violations } from './violations.ts';
import { type Ask, Visit } from './visit.ts';

export interface Result {
  readonly seed: number;
  readonly operations: number;
  readonly requests: number;
  readonly crashes: number;
  readonly rows: number;
  readonly violations: readonly Violation[];
  readonly fingerprint: string;
  /** Operations by kind. */
  readonly counts: ReadonlyMap<string, number>;
}

const modelIds = ['small', 'large'] as const;
/** Half seconds after which a world that has not come to rest is looked at as it is. */
const longestRest = 120;
/** Mostly a notification wakes who listens; now and then it is found by looking. */
const newsMeanMs = 100;
const one = { numerator: 1n, denominator: 1n };

/** Runs a seed's world for about so many operations. */
export async function simulate(seed: number, operations: number, mutant: Mutant = sound): Promise<Result> {
  const world = new World(seed, mutant);
  return withFakeTurns(
    (work) => world.turn(work),
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
  /** Keyed calls that a client may send again. */
  #keyed: Ask[] = [];
  readonly #faults: DatabaseFaults;
  readonly #chance: Chance;
  readonly #profile: Profile;
  readonly #oracle: Oracle;
  readonly #audit: Audit;
  /** Where balances are shared. */
  readonly #leases: LeaseOracle | undefined;
  readonly #nodes: Node[];
  readonly #models = new Map<string, PricedModel>();
  readonly #store: Store;
  #versions = 0;
  #references = 0;
  #crashes = 0;
  #isOpen = true;

  constructor(seed: number, mutant: Mutant) {
    this.#seed = seed;
    this.#mutant = mutant;
    this.#chance = new Chance(seed);
    this.#profile = drawProfile(this.#chance);
    this.#faults = { down: false, faultOneIn: this.#profile.databaseFaultOneIn, meanMs: this.#profile.databaseMeanMs };
    const limits = new Map(this.#profile.accounts.map((account) => [account.id, account.plan.limits]));
    this.#oracle = new Oracle(
      this.#schedule,
      this.#violations,
      new LimitsOracle(this.#schedule, this.#violations, limits),
    );
    for (const { id, plan } of this.#profile.accounts) {
      if (plan.grant !== undefined) this.#oracle.planGrants.set(id, plan.grant.amount);
    }
    this.#audit = new Audit(this.#oracle, this.#ledger);
    this.#ledger.onEntry = (row, grant) => {
      this.#oracle.entry(row, grant);
      if (row.kind === 'LAPSE') this.#leases?.lapsed(row);
    };
    this.#leases = this.#profile.shared ? new LeaseOracle(this.#ledger, this.#oracle) : undefined;
    this.#oracle.shared = this.#leases;
    mutant.ledger?.(this.#ledger, this.#chance);
    this.#store = mutant.store?.(this.#ledger, this.#chance) ?? this.#ledger;
    this.#nodes = Array.from({ length: this.#profile.nodes }, (_, index) => this.#newNode(index));
    for (const id of modelIds) this.#changePrices(id);
  }

  /** The end of a turn of some process's event loop comes a little later; anything may happen before. */
  turn(work: () => void): void {
    this.#schedule.after(this.#chance.fraction(), this.#schedule.current, 'end of turn', work);
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
      requests: this.#oracle.stories.size,
      crashes: this.#crashes,
      rows: this.#ledger.rows.length,
      violations: this.#violations.list,
      fingerprint: this.#fingerprint(),
      counts: schedule.counts,
    };
  }

  // ----------------------------------------------------------------------------------------------------- what happens

  #begin(): void {
    const { arrivalMeanMs, topUpMeanMs, crashMeanMs, diskMeanMs, outageMeanMs, clockStepMeanMs, leapMeanMs } =
      this.#profile;
    for (const account of this.#profile.accounts) this.#topUp(account.id);
    this.#again('arrival', arrivalMeanMs, () => this.#arrive());
    this.#again('top-up', topUpMeanMs, () => this.#topUp(this.#chance.pick(this.#profile.accounts).id));
    this.#again('crash', crashMeanMs, () => this.#crash(this.#chance.pick(this.#nodes)));
    this.#again('disk fault', diskMeanMs, () => this.#hurtDisk(this.#chance.pick(this.#nodes)));
    this.#again('outage', outageMeanMs, () => this.#outage());
    this.#again('clock step', clockStepMeanMs, () => this.#stepClock(this.#chance.pick(this.#nodes)));
    this.#again('leap in time', leapMeanMs, () => this.#leap());
    this.#again('new prices', 2_000, () => this.#changePrices(this.#chance.pick(modelIds)));
  }

  #again(label: string, meanMs: number, work: () => void): void {
    if (meanMs === Number.POSITIVE_INFINITY) return;
    this.#schedule.after(this.#chance.delay(meanMs), undefined, label, () => {
      if (!this.#isOpen) return;
      this.#again(label, meanMs, work);
      work();
    });
  }

  #arrive(): void {
    const account = this.#chance.pick(this.#profile.accounts);
    const again = this.#chance.oneIn(10) ? this.#sentBefore(account) : undefined;
    const ask = again ?? this.#ask(account);
    const node = this.#nodeFor(account, ask);
    const { serving } = node;
    if (serving === undefined) return;
    this.#schedule.current = serving.life;
    const exchange = Visit.exchangeOf(serving, ask);
    this.#mutant.exchange?.(exchange, this.#chance);
    const { output_tokens: stepTokens, whole_answers: whole } = this.#profile.billing.hold;
    const longest = ask.call.maxOutputTokens ?? 4_000;
    const story = newStory({
      id: exchange.id,
      account: account.id,
      life: serving.life,
      node: node.index,
      list: ask.price,
      ratio: ask.ratio ?? one,
      inputTokens: ask.call.inputTokens,
      heldOutput: whole === 'step' || ask.call.stream ? Math.min(longest, stepTokens) : longest,
    });
    this.#oracle.arrived(story, ask.call.maxOutputTokens ?? this.#profile.vendors.longestOutput);
    if (ask.key !== undefined) {
      this.#oracle.keys.arrived(story, ask.key, ask.body);
      if (again === undefined) this.#keyed = [...this.#keyed.slice(-20), ask];
    }
    const { vendors } = this.#profile;
    const setting = { schedule: this.#schedule, chance: this.#chance, oracle: this.#oracle, vendors };
    new Visit({ ...setting, line: () => node.disk.writes }, serving, story, exchange, ask).begin();
  }

  /** Calls go to any node; those with a key to the account's own, for a key is not kept safe from a second run elsewhere. */
  #nodeFor(account: AccountProfile, { key }: Ask): Node {
    if (key === undefined) return this.#chance.pick(this.#nodes);
    return this.#nodes[this.#profile.accounts.indexOf(account) % this.#nodes.length]!;
  }

  /** A client asks again under its key; now and then by mistake for something else. */
  #sentBefore({ id }: AccountProfile): Ask | undefined {
    const own = this.#keyed.filter(({ caller }) => caller.accountId === id);
    if (own.length === 0) return undefined;
    const ask = this.#chance.pick(own);
    return this.#chance.oneIn(20) ? { ...ask, body: `${ask.body} other` } : ask;
  }

  #ask({ id, plan, ratio }: AccountProfile): Ask {
    const chance = this.#chance;
    const { model, price } = this.#models.get(chance.pick(modelIds))!;
    const inputTokens = chance.pick([0, 1, 100, 3_000]);
    const maxOutputTokens = chance.oneIn(2) ? chance.between(1, 3_000) : undefined;
    return {
      caller: { accountId: id, keyId: `${id}-key`, plan: plan.name, models: undefined },
      plan,
      model,
      price,
      ratio,
      key: this.#profile.keys && chance.oneIn(4) ? `key-${chance.next()}` : undefined,
      body: `body-${chance.next()}`,
      call: {
        protocol: 'chat',
        model: model.id,
        stream: chance.below(100) >= this.#profile.wholePercent,
        billable: true,
        inputTokens,
        maxOutputTokens,
        choices: 1,
      },
      leavesAfterMs: chance.oneIn(8) ? chance.delay(100) : undefined,
    };
  }

  /** A payment comes in and is told to some gateway until that has said yes. */
  #topUp(account: string): void {
    const amount = money(BigInt(this.#chance.between(1, 2 * Number(this.#profile.topUp))));
    this.#references += 1;
    this.#oracle.payments.set(`payment-${this.#references}`, amount);
    this.#pay(account, amount, `payment-${this.#references}`);
  }

  #pay(account: string, amount: Money, reference: string): void {
    const { serving } = this.#chance.pick(this.#nodes);
    let isDone = false;
    const done = (worked: boolean) => {
      if (isDone) return;
      isDone = true;
      if (worked) this.#oracle.acknowledged.add(reference);
      // The provider of payments tells some payments twice.
      if (worked && !this.#chance.oneIn(10)) return;
      const again = () => this.#pay(account, amount, reference);
      this.#schedule.after(this.#chance.delay(300), undefined, 'pay again', again);
    };
    if (serving === undefined) {
      done(false);
      return;
    }
    this.#schedule.current = serving.life;
    const grant = { kind: 'top-up', reason: 'simulation', reference };
    serving.ledger.credit(account, amount, grant).then(
      () => done(true),
      () => done(false),
    );
    // A process that has died never answers.
    this.#schedule.after(5_000, undefined, 'payment timed out', () => done(false));
  }

  #crash(node: Node): void {
    this.#crashes += 1;
    const kind = this.#profile.powerCuts && this.#chance.oneIn(2) ? 'power' : 'process';
    node.crash(kind, this.#chance.delay(300));
  }

  #hurtDisk({ disk }: Node): void {
    if (this.#chance.oneIn(2)) disk.faults.roomBytes = this.#chance.below(2_000);
    else disk.faults.syncFails = true;
    this.#schedule.after(this.#chance.delay(500), undefined, 'disk mended', () => {
      Object.assign(disk.faults, { roomBytes: undefined, syncFails: false });
    });
  }

  #outage(): void {
    this.#faults.down = true;
    this.#schedule.after(this.#chance.delay(800), undefined, 'database back', () => {
      this.#faults.down = false;
    });
  }

  #stepClock(node: Node): void {
    // Grants lapse by the clock: nodes are held to agree within minutes.
    const reachMs = this.#chance.pick([500, 60_000, 240_000]);
    node.skewMs = this.#chance.between(-reachMs, reachMs);
  }

  /** For everybody at once; what monotonic clocks measure stands still meanwhile. */
  #leap(): void {
    const hours = this.#chance.between(0, this.#chance.pick([1, 6, 30, 200]));
    for (const node of this.#nodes) node.wallMs += hours * 3_600_000;
  }

  #changePrices(id: string): void {
    this.#versions += 1;
    this.#models.set(id, drawModel(this.#chance, id, this.#versions));
  }

  // ------------------------------------------------------------------------------------------------------------- rest

  /** Nobody comes any more, everything works, and what runs goes to its end. Then the books must be right. */
  async #rest(): Promise<void> {
    this.#isOpen = false;
    const schedule = this.#schedule;
    Object.assign(this.#faults, { down: false, faultOneIn: 0 });
    for (const { disk } of this.#nodes) Object.assign(disk.faults, { roomBytes: undefined, syncFails: false });
    if (this.#chance.oneIn(2)) for (const node of this.#nodes) this.#crash(node);
    for (let tries = 0; tries < longestRest && !this.#isQuiet(); tries += 1) await this.#pass(500);
    // The longest that a flusher waits after a failure.
    await this.#pass(5_100);
    for (const node of this.#nodes) {
      if (node.serving === undefined) {
        this.#violations.add('start', `node ${node.index}`, `does not start: ${String(node.lastFailure)}`);
      } else await this.#compareMemory(node);
    }
    let stopped = 0;
    for (const node of this.#nodes) void node.stop().then(() => (stopped += 1));
    await schedule.run(() => stopped === this.#nodes.length);
    this.#audit.finish();
    this.#leases?.finish();
  }

  #isQuiet(): boolean {
    return this.#oracle.running === 0 && this.#nodes.every(({ serving }) => serving !== undefined);
  }

  async #pass(milliseconds: number): Promise<void> {
    const until = this.#schedule.now + milliseconds;
    await this.#schedule.run(() => this.#schedule.now >= until);
  }

  /** A process's own idea of an account's balance. */
  async #compareMemory({ serving }: Node): Promise<void> {
    for (const { id } of this.#profile.accounts) {
      const told: bigint[] = [];
      void serving!.ledger.balance(id).then((balance) => told.push(balance));
      await this.#schedule.run(() => told.length > 0);
      const stored = this.#ledger.accounts.get(id)?.balance ?? 0n;
      if (told[0] !== stored) this.#violations.add('M1', id, `memory says ${told[0]}, the database ${stored}`);
    }
  }

  // ------------------------------------------------------------------------------------------------------------ wiring

  #newNode(index: number): Node {
    return new Node({
      index,
      schedule: this.#schedule,
      chance: this.#chance,
      oracle: this.#oracle,
      store: this.#store,
      shared: this.#profile.shared,
      keys: this.#keys,
      faults: this.#faults,
      billing: this.#profile.billing,
      mutant: this.#mutant,
      announce: (topic, subject) => this.#announce(topic, subject),
      onRecovered: (node) => this.#audit.recovered(node.index),
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
