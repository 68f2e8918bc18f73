/** All of a world that tasks stand on: their tables, the vendors that make them, and the clients who order them. */
import type { Chance } from './chance.ts';
import type { DatabaseLink } from './database.ts';
import type { MemoryLedger } from './memory-ledger.ts';
import { memoryTasks, TaskTable } from './memory-tasks.ts';
import type { Mutant } from './mutants.ts';
import type { Oracle } from './oracle.ts';
import { Orders, type OrdersOptions } from './orders.ts';
import type { TaskProfile } from './profile.ts';
import type { Life, Schedule } from './schedule.ts';
import { Studio } from './studio.ts';
import { filesOf, type TaskGround } from './task-room.ts';

export interface TaskWorldOptions {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly oracle: Oracle;
  readonly profile: TaskProfile;
  readonly troublePercent: number;
  readonly mutant: Mutant;
}

export class TaskWorld {
  readonly #options: TaskWorldOptions;
  readonly #table: TaskTable;
  readonly #studio: Studio;
  readonly #filesTrouble: { oneIn: number };
  #orders: Orders | undefined;

  constructor(options: TaskWorldOptions) {
    const { schedule, chance, oracle, profile, troublePercent, mutant } = options;
    this.#options = options;
    this.#table = new TaskTable(() => schedule.now);
    this.#table.onWrite = (before, after) => oracle.tasks.wrote(before, after, this.#table.now());
    mutant.taskTable?.(this.#table);
    const onOrder = (name: string, mayRun: boolean) => oracle.tasks.received(name, mayRun);
    this.#studio = new Studio({ schedule, chance, troublePercent, onOrder });
    this.#filesTrouble = { oneIn: profile.filesFaultOneIn };
  }

  /** Clients come once there are nodes. */
  open(given: Omit<OrdersOptions, 'schedule' | 'chance' | 'oracle'>): void {
    const { schedule, chance, oracle } = this.#options;
    this.#orders = new Orders({ ...given, schedule, chance, oracle });
  }

  get orders(): Orders {
    return this.#orders!;
  }

  /** One process's way to all of it. */
  groundOf(life: Life, link: DatabaseLink): TaskGround {
    const { schedule, chance, profile, mutant } = this.#options;
    const rows = memoryTasks(this.#table, link);
    const vendors = this.#studio.vendorsOf(life);
    return {
      rows: mutant.taskRows?.(rows, chance) ?? rows,
      vendors: mutant.taskVendors?.(vendors) ?? vendors,
      files: filesOf(schedule, chance, this.#filesTrouble),
      catalog: this.orders.catalog,
      timing: profile.timing,
      workers: profile.workers,
    };
  }

  /** The database's clock runs ahead, as after a stall of everything: leases look forsaken whose workers live. */
  leap(milliseconds: number): void {
    this.#table.leaptMs += milliseconds;
  }

  /** What is ordered is made from here on, as far as its vendors go. */
  calm(): void {
    this.#filesTrouble.oneIn = 0;
  }

  get placed(): number {
    return this.#table.tasks.size;
  }

  get isQuiet(): boolean {
    return this.#table.open.size === 0;
  }

  finish(ledger: MemoryLedger): void {
    this.#options.oracle.tasks.finish(ledger, this.#table, this.#studio);
  }
}
