/** Everybody pauses for a while, and then the database is away: accounts live on what processes have kept of them. */
import type { Chance } from './chance.ts';
import type { Again, Mishaps } from './mishaps.ts';
import type { Node } from './node.ts';
import type { Schedule } from './schedule.ts';

export interface BridgeProfile {
  /** `storage.bridge`. */
  readonly bridgeMs: number;
  /** Between two lulls. */
  readonly lullMeanMs: number;
  readonly outageMeanMs: number;
  /** Accounts have something to live on. */
  readonly areRich: boolean;
}

/** In a quarter of these worlds outages are not bridged, and there is no lull. */
export function drawBridge(chance: Chance): BridgeProfile | undefined {
  if (chance.oneIn(4)) return undefined;
  return {
    bridgeMs: chance.pick([500, 4_000, 120_000]),
    lullMeanMs: chance.pick([100, 1_500]),
    outageMeanMs: chance.pick([1_000, 6_000]),
    areRich: chance.oneIn(2),
  };
}

/** An account that has been idle for so long keeps no more than what bridges an outage. */
const idleMs = 10_000;

export interface LullsOptions {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly profile: BridgeProfile | undefined;
  readonly nodes: readonly Node[];
  readonly mishaps: Mishaps;
  /** Somebody wants more of an account than is free, so that processes are to return what they keep of it. */
  readonly recall: () => void;
  /** Somebody comes still. */
  readonly isOpen: () => boolean;
}

export class Lulls {
  #until = 0;
  readonly #options: LullsOptions;

  constructor(options: LullsOptions) {
    this.#options = options;
  }

  begin(again: Again): void {
    const { profile } = this.#options;
    again('lull', profile?.lullMeanMs ?? Number.POSITIVE_INFINITY, () => this.#pause(profile!));
  }

  /** How long nothing happens any more. */
  get leftMs(): number {
    return Math.max(0, this.#until - this.#options.schedule.now);
  }

  #pause({ outageMeanMs }: BridgeProfile): void {
    const { schedule, chance, mishaps, isOpen, recall } = this.#options;
    if (this.leftMs > 0) return;
    const lastsMs = idleMs + 500 + chance.delay(2_000);
    this.#until = schedule.now + lastsMs;
    if (chance.oneIn(2)) schedule.after(lastsMs - 400, undefined, 'recall in a lull', () => isOpen() && recall());
    // Some come back before the database goes away, and recall what another node has kept.
    schedule.after(lastsMs + chance.pick([0, chance.delay(200)]), undefined, 'outage after a lull', () => {
      if (!isOpen()) return;
      mishaps.outage(outageMeanMs);
      if (chance.oneIn(2))
        schedule.after(chance.delay(outageMeanMs), undefined, 'dies in an outage', () => this.#die());
    });
  }

  #die(): void {
    const { chance, nodes, mishaps, isOpen } = this.#options;
    if (isOpen()) mishaps.crash(chance.pick(nodes));
  }
}
