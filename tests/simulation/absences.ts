/** Until when something that has changed may still be taken for true at a node: for a moment, and while the node cannot learn of it. */
import type { Schedule } from './schedule.ts';

/** A change is known everywhere so soon after its commit, wherever the database can be reached. */
const knownWithinMs = 1_000;

interface Absence {
  readonly from: number;
  to: number;
}

export class Absences {
  readonly #schedule: Schedule;
  /** By who was away. */
  readonly #known = new Map<string, Absence[]>();

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  /** It cannot learn of anything until `back` is called. */
  begin(who: string): () => void {
    const absence: Absence = { from: this.#schedule.now, to: Number.POSITIVE_INFINITY };
    this.#known.set(who, [...(this.#known.get(who) ?? []), absence]);
    return () => {
      absence.to = this.#schedule.now;
    };
  }

  /** Whether any of these names of it may not have learned yet what has changed at `changedAt`. */
  mayNotKnow(names: readonly string[], changedAt: number): boolean {
    let until = changedAt + knownWithinMs;
    const absences = names.flatMap((name) => this.#known.get(name) ?? []);
    for (const { from, to } of absences.sort((left, right) => left.from - right.from))
      if (from < until && to + knownWithinMs > until) until = to + knownWithinMs;
    return this.#schedule.now <= until;
  }
}

export const nodeName = (node: number): string => `node ${node}`;
