/** What an oracle found wrong. */
import type { Schedule } from './schedule.ts';

export interface Violation {
  /** `M1` … as the money rules are numbered; `limit`, `route` and `start` beside them. */
  readonly rule: string;
  readonly what: string;
  /** Account, request or row at fault. */
  readonly subject: string;
  readonly atMs: number;
}

const most = 20;

export class Violations {
  readonly list: Violation[] = [];
  readonly #schedule: Schedule;

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  add(rule: string, subject: string, what: string): void {
    if (this.list.length < most) this.list.push({ rule, what, subject, atMs: Math.round(this.#schedule.now) });
  }
}
