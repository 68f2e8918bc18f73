/** What goes wrong in a world: crashes, disks, outages, clocks that step, and time that goes by. */
import type { Arrivals } from './arrivals.ts';
import type { Chance } from './chance.ts';
import type { DatabaseFaults } from './database.ts';
import type { KeyTable } from './memory-keys.ts';
import type { Node } from './node.ts';
import type { Oracle } from './oracle.ts';
import type { Profile } from './profile.ts';
import type { Schedule } from './schedule.ts';
import type { TaskWorld } from './task-world.ts';

export interface MishapsOptions {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly profile: Profile;
  readonly oracle: Oracle;
  readonly nodes: readonly Node[];
  readonly faults: DatabaseFaults;
  readonly keys: KeyTable;
  readonly tasks: TaskWorld | undefined;
  readonly arrivals: Arrivals;
}

/** Has something happen every so often. */
export type Again = (label: string, meanMs: number, work: () => void) => void;

/** The lease of a keyed call, and a little. */
const leaseOverMs = 70_000;

export class Mishaps {
  crashes = 0;
  readonly #options: MishapsOptions;

  constructor(options: MishapsOptions) {
    this.#options = options;
  }

  begin(again: Again): void {
    const { chance, profile, nodes } = this.#options;
    again('crash', profile.crashMeanMs, () => this.crash(chance.pick(nodes)));
    again('disk fault', profile.diskMeanMs, () => this.#hurtDisk(chance.pick(nodes)));
    again('outage', profile.outageMeanMs, () => this.outage(800));
    again('clock step', profile.clockStepMeanMs, () => this.#stepClock(chance.pick(nodes)));
    again('leap in time', profile.leapMeanMs, () => this.#leap());
  }

  crash(node: Node): void {
    const { chance, profile } = this.#options;
    this.crashes += 1;
    const kind = profile.powerCuts && chance.oneIn(2) ? 'power' : 'process';
    node.crash(kind, chance.delay(300));
  }

  /** A node dies while a vendor works on what it has just sent, and is away for long. */
  strike(node: Node): void {
    const { schedule, chance, keys, arrivals } = this.#options;
    schedule.after(chance.delay(12), undefined, 'struck', () => {
      const cutOff = arrivals.runningAt(node.index);
      this.crashes += 1;
      node.crash('process', 200 + chance.delay(800));
      keys.runOut(`node-${node.index}`);
      this.#missed(cutOff);
    });
  }

  /** The one that had a keyed call there asks again at once, elsewhere. */
  #missed(cutOff: ReturnType<Arrivals['runningAt']>): void {
    const { schedule, chance, arrivals } = this.#options;
    for (const call of cutOff) {
      schedule.after(chance.delay(100), undefined, 'asked elsewhere', () => arrivals.sendAgain(call));
    }
  }

  #hurtDisk({ disk }: Node): void {
    const { schedule, chance } = this.#options;
    if (chance.oneIn(2)) disk.faults.roomBytes = chance.below(2_000);
    else disk.faults.syncFails = true;
    schedule.after(chance.delay(500), undefined, 'disk mended', () => {
      Object.assign(disk.faults, { roomBytes: undefined, syncFails: false });
    });
  }

  outage(meanMs: number): void {
    const { schedule, chance, faults, nodes, oracle } = this.#options;
    faults.down = true;
    const back = nodes.map(({ index }) => oracle.callers.away(index));
    schedule.after(chance.delay(meanMs), undefined, 'database back', () => {
      faults.down = false;
      for (const report of back) report();
    });
  }

  #stepClock(node: Node): void {
    const { chance } = this.#options;
    // Grants lapse by the clock: nodes are held to agree within minutes.
    const reachMs = chance.pick([500, 60_000, 240_000]);
    node.skewMs = chance.between(-reachMs, reachMs);
  }

  /** For everybody at once; what monotonic clocks measure stands still meanwhile. */
  #leap(): void {
    const { chance, nodes, keys, tasks, profile } = this.#options;
    const hours = chance.between(0, chance.pick(profile.leapHours));
    for (const node of nodes) node.wallMs += hours * 3_600_000;
    // As after a stall of everything: keyed calls look forsaken whose processes live. No key gets older than it may.
    keys.leaptMs += chance.pick([0, leaseOverMs]);
    tasks?.leap(chance.pick([0, 700]));
  }
}
