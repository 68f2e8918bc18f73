/** A machine that runs one gateway process after another: it starts them, kills them, and keeps their disk. */
import type { Store } from '../../plugins/billing/store.ts';
import { Chance } from './chance.ts';
import { type DatabaseFaults, DatabaseLink } from './database.ts';
import { type CrashKind, Disk } from './disk.ts';
import type { Readings } from './memory-budgets.ts';
import { type CallerTable, memoryStores } from './memory-callers.ts';
import { type KeyTable, MemoryKeys } from './memory-keys.ts';
import { memoryCodes, type ShopTables } from './memory-shop.ts';
import type { Mutant } from './mutants.ts';
import type { Oracle } from './oracle.ts';
import { Process } from './process.ts';
import { type AccountProfile, type HedgeProfile, type Profile, providerSectionsOf, routeSectionOf } from './profile.ts';
import type { Life, Schedule } from './schedule.ts';
import { accountsIn, plansOf } from './shop-services.ts';
import type { TaskWorld } from './task-world.ts';
import { admitted, forward, fromCache, textsOf } from './visit.ts';

export interface NodeOptions {
  readonly index: number;
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly oracle: Oracle;
  readonly store: Store;
  readonly shared: boolean;
  readonly keys: KeyTable;
  readonly callers: CallerTable | undefined;
  readonly tables: ShopTables;
  readonly tasks: TaskWorld | undefined;
  readonly accounts: readonly AccountProfile[];
  readonly faults: DatabaseFaults;
  readonly billing: Profile['billing'];
  readonly hedge: HedgeProfile | undefined;
  readonly bridgeMs: number;
  readonly guards: Chance | undefined;
  readonly mutant: Mutant;
  readonly announce: (topic: string, subject: string) => Promise<void>;
  /** A process of this node serves now; all that an earlier one left is in the ledger. */
  readonly onRecovered: (node: Node) => void;
}

export class Node {
  readonly index: number;
  readonly disk: Disk;
  /** Wall clock at virtual time 0, and how wrong this node's is. */
  wallMs = 1_800_000_000_000;
  skewMs = 0;
  /** Nothing goes to the database and comes from it. */
  isCutOff = false;
  /** The process that serves, if one does. */
  serving: Process | undefined;
  starts = 0;
  /** The journal of the process that was started last. */
  journal: string | undefined;
  readonly #options: NodeOptions;
  #life: Life | undefined;
  #process: Process | undefined;
  #lastFailure: unknown;
  #failedStarts = 0;

  constructor(options: NodeOptions) {
    this.#options = options;
    this.index = options.index;
    this.disk = new Disk(options.schedule, options.chance);
  }

  /** What a clock on its wall says, in milliseconds. */
  get wallClock(): number {
    return Math.floor(this.wallMs + this.skewMs + this.#options.schedule.now);
  }

  /** Something has changed: the process that serves hears of it, and one that is being started. */
  hear(topic: string, subject: string): void {
    this.#options.schedule.current = this.#life;
    this.#process?.hear(topic, subject);
  }

  /** The database can be reached from here. */
  get canRead(): boolean {
    return !this.isCutOff && !this.#options.faults.down;
  }

  get lastFailure(): unknown {
    return this.#lastFailure;
  }

  /** Starts of a process that have failed one after another. */
  get failedStarts(): number {
    return this.#failedStarts;
  }

  boot(): void {
    const { schedule, oracle, mutant, chance, store, keys, tables, tasks, accounts, faults, shared, callers, hedge } =
      this.#options;
    const life: Life = { alive: true };
    this.#life = life;
    this.starts += 1;
    oracle.begun(life);
    const isCut = () => this.isCutOff;
    const { budgets } = oracle.callers;
    const readings: Readings = {
      unread: (account) => budgets.unread(this.index, account),
      read: (account) => budgets.read(this.index, account),
    };
    const way = { isCut, readings, leaptMs: () => this.wallMs };
    const link = new DatabaseLink({ schedule, chance, store, faults, life, shared, ...way });
    const process = new Process({
      schedule,
      chance: new Chance(chance.next(), this.index),
      life,
      directory: `/node-${this.index}`,
      files: mutant.files?.(this.disk.filesOf(life), chance) ?? this.disk.filesOf(life),
      store: mutant.link?.(link, chance) ?? link,
      shared,
      keysOf: (lifetimes) => {
        const rows = new MemoryKeys(keys, link, `node-${this.index}`, lifetimes);
        mutant.keys?.(rows);
        return rows;
      },
      codes: memoryCodes(tables, link),
      tasks: tasks?.groundOf(life, link),
      callers: callers && (mutant.callers?.(memoryStores(callers, link)) ?? memoryStores(callers, link)),
      accounts: accountsIn(tables),
      plans: plansOf(accounts),
      billing: mutant.billing?.(this.#options.billing) ?? this.#options.billing,
      providers: providerSectionsOf(hedge),
      route: mutant.route?.(routeSectionOf(hedge)) ?? routeSectionOf(hedge),
      wallClock: () => this.wallClock,
      announce: this.#options.announce,
      healthy: () => link.isOpen,
      awayMs: () => link.awayMs,
      bridgeMs: this.#options.bridgeMs,
      onAdmitted: admitted,
      guards: this.#options.guards,
      textsOf,
      fromCache,
      forward: mutant.forward ?? forward,
      onWork: (name) => {
        if (name === 'note progress' && process.isReady) oracle.noting(life, this.disk.writes);
      },
    });
    this.#process = process;
    process.start().then(
      () => {
        if (!life.alive) return;
        this.serving = process;
        this.journal = link.journal;
        this.#failedStarts = 0;
        this.#options.onRecovered(this);
      },
      (error: unknown) => {
        if (!life.alive) return;
        this.#lastFailure = error;
        this.#failedStarts += 1;
        this.crash('process', 100 * Math.min(this.#failedStarts, 20));
      },
    );
  }

  /** Kills the process, if one runs, and starts another after a while. */
  crash(kind: CrashKind, restartMs: number): void {
    const life = this.#life;
    if (life === undefined) return;
    this.#die(life, kind);
    this.#options.schedule.after(restartMs, undefined, 'restart', () => this.boot());
  }

  #die(life: Life, kind: CrashKind): void {
    this.#options.oracle.died(life, this.index, kind, this.disk);
    life.alive = false;
    this.#life = undefined;
    this.#process = undefined;
    this.serving = undefined;
    this.disk.crash(kind);
  }

  /** An orderly stop, after which the process is gone. */
  async stop(): Promise<void> {
    const { serving } = this;
    this.serving = undefined;
    await serving?.stop();
    if (this.#life !== undefined) this.#die(this.#life, 'process');
  }
}
