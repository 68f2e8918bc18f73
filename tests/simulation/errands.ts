/** What people beside the callers want of some gateway: they ask until they have an answer, and now and then once more. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { Chance } from './chance.ts';
import type { Node } from './node.ts';
import type { Process } from './process.ts';
import type { Schedule } from './schedule.ts';

export interface Errand<Answer> {
  readonly label: string;
  readonly work: (process: Process) => Promise<Answer>;
  /** Somebody learned that it is done. */
  readonly reported: (answer: Answer) => void;
  /** It will not be done, and why; absent: it is asked for until it is. */
  readonly refused?: (error: GatewayError) => void;
  /** No one knows whether it was done; absent: it is asked for again. */
  readonly unknown?: () => void;
}

/** Refusals that asking again does not change. */
const finalKinds = new Set(['insufficient_balance', 'not_found', 'conflict', 'invalid_request']);
const patienceMs = 5_000;

export class Errands {
  readonly #schedule: Schedule;
  readonly #chance: Chance;
  readonly #nodes: readonly Node[];
  #open = 0;

  constructor(schedule: Schedule, chance: Chance, nodes: readonly Node[]) {
    this.#schedule = schedule;
    this.#chance = chance;
    this.#nodes = nodes;
  }

  run<Answer>(errand: Errand<Answer>): void {
    this.#open += 1;
    this.#try(errand);
  }

  /** What is still asked for. */
  get open(): number {
    return this.#open;
  }

  #try<Answer>(errand: Errand<Answer>): void {
    const { serving } = this.#chance.pick(this.#nodes);
    if (serving === undefined) {
      this.#again(errand);
      return;
    }
    let isOver = false;
    const end = (work: () => void) => {
      if (isOver) return;
      isOver = true;
      work();
    };
    this.#schedule.current = serving.life;
    errand.work(serving).then(
      (answer) => end(() => this.#done(errand, answer)),
      (error: unknown) => end(() => this.#failed(errand, error)),
    );
    // A process that has died never answers.
    const label = `${errand.label} timed out`;
    this.#schedule.after(patienceMs, undefined, label, () => end(() => this.#failed(errand, undefined)));
  }

  #done<Answer>(errand: Errand<Answer>, answer: Answer): void {
    errand.reported(answer);
    // Some are sent twice; but not what has no name by which it would be known again.
    if (errand.unknown === undefined && this.#chance.oneIn(10)) this.#again(errand);
    else this.#open -= 1;
  }

  #failed<Answer>(errand: Errand<Answer>, error: unknown): void {
    const { refused, unknown } = errand;
    const isFinal = error instanceof GatewayError && finalKinds.has(error.kind);
    if ((!isFinal || refused === undefined) && unknown === undefined) {
      this.#again(errand);
      return;
    }
    this.#open -= 1;
    if (isFinal && refused !== undefined) refused(error);
    else unknown?.();
  }

  #again<Answer>(errand: Errand<Answer>): void {
    this.#schedule.after(this.#chance.delay(300), undefined, `${errand.label} again`, () => this.#try(errand));
  }
}
