/**
 * A small world of a database that is put back to an older state while directories keep their journals and what they remember: real
 * watches (`plugins/billing/restores`) on a database in memory. Returns what was wrong; one seed is one history.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Movement } from '../../plugins/billing/ledger/entries.ts';
import type { Restore, RestoreRows } from '../../plugins/billing/restores/rows.ts';
import { RestoreWatch } from '../../plugins/billing/restores/watch.ts';
import { type FakeHost, fakeHost } from '../helpers/fakes.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { Chance } from './chance.ts';

/** What a dump has of the database. */
interface State {
  movements: Movement[];
  /** By journal: ended calls that are applied, and the last run that has claimed it. */
  cursors: Map<string, { applied: number; run: number }>;
  restores: (Restore & { accepted: boolean })[];
}

interface Machine {
  readonly name: string;
  readonly directory: string;
  /** Ended calls in its journal, and the run that has written the last of them. */
  ended: number;
  endedBy: number;
  run: number;
  /** References that its process was reported to be in the database. */
  readonly acknowledged: Set<string>;
  process: { readonly host: FakeHost; readonly watch: RestoreWatch } | undefined;
}

/** Changes how a process reads and writes what the database says of itself. */
export type RestoreMutant = (rows: RestoreRows) => RestoreRows;

const clone = ({ movements, cursors, restores }: State): State => ({
  movements: [...movements],
  cursors: new Map(Array.from(cursors, ([name, cursor]) => [name, { ...cursor }])),
  restores: restores.map((each) => ({ ...each })),
});

export async function simulateRestores(seed: number, steps: number, mutant: RestoreMutant = (rows) => rows) {
  const world = new RestoreWorld(seed, mutant);
  try {
    for (let step = 0; step < steps && world.faults.length === 0; step += 1) await world.step();
    return { faults: world.faults, restored: world.restored, refused: world.refused };
  } finally {
    world.close();
  }
}

class RestoreWorld {
  readonly faults: string[] = [];
  restored = 0;
  refused = 0;
  readonly #chance: Chance;
  readonly #mutant: RestoreMutant;
  readonly #root = temporaryDirectory('restores-');
  readonly #machines: Machine[];
  #state: State = { movements: [], cursors: new Map(), restores: [] };
  #dump: State = clone(this.#state);
  #elapsedMs = 0;
  #count = 0;
  /** What the database lacks since it was put back, as far as a process that was reported of it has been started since. */
  readonly #missing = new Set<string>();
  #isCallLost = false;

  constructor(seed: number, mutant: RestoreMutant) {
    this.#chance = new Chance(seed);
    this.#mutant = mutant;
    this.#machines = Array.from({ length: this.#chance.between(1, 2) }, (_, index) => {
      const directory = join(this.#root, `node-${index}`);
      mkdirSync(join(directory, 'journal'), { recursive: true });
      writeFileSync(join(directory, 'journal', 'name'), `journal-${index}`);
      const [name, acknowledged] = [`journal-${index}`, new Set<string>()];
      return { name, directory, ended: 0, endedBy: 0, run: 0, acknowledged, process: undefined };
    });
  }

  close(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }

  async step(): Promise<void> {
    const chance = this.#chance;
    this.#pass(chance.between(1, 20_000));
    const machine = chance.pick(this.#machines);
    if (machine.process === undefined) return this.#start(machine);
    const does = chance.weighted([8, 6, 4, 2, 2, 1, 1]);
    if (does === 0) await this.#credit(machine);
    else if (does === 1) this.#call(machine);
    else if (does === 2) this.#apply(machine);
    else if (does === 3) await this.#stop(machine);
    else if (does === 4) this.#dump = clone(this.#state);
    else if (does === 5) await this.#putBack();
    else await this.#accept();
    await this.#check();
  }

  #pass(milliseconds: number): void {
    this.#elapsedMs += milliseconds;
    for (const { process } of this.#machines) process?.host.advance(milliseconds);
  }

  #now(machine: Machine): number {
    return machine.process!.host.clock.now();
  }

  /** As `openBillingRuntime`: the journal is claimed, the watch looks, and what is in the journal is applied. */
  async #start(machine: Machine): Promise<void> {
    const { name, directory } = machine;
    const host = fakeHost({ directory, schema: 'main' });
    host.advance(this.#elapsedMs);
    const watch = new RestoreWatch({ host, rows: this.#mutant(this.#rows()), journal: join(directory, 'journal') });
    const known = this.#state.cursors.get(name) ?? { applied: 0, run: 0 };
    machine.run = Math.max(machine.run, known.run) + 1;
    const isAhead = machine.ended > 0 && machine.endedBy > known.run;
    this.#state.cursors.set(name, { ...known, run: machine.run });
    for (const reference of machine.acknowledged)
      if (!this.#has(reference) && !this.#isAccepted(reference)) this.#missing.add(reference);
    if (isAhead) this.#isCallLost = true;
    await watch.begin({ journal: name, applied: known.applied, isAhead, calls: machine.ended - known.applied });
    machine.process = { host, watch };
    this.#state.cursors.get(name)!.applied = machine.ended;
  }

  async #stop(machine: Machine): Promise<void> {
    const isClean = this.#chance.oneIn(2);
    if (isClean) {
      this.#apply(machine);
      machine.process!.watch.applied(machine.ended, true);
    }
    // What it does last it has done.
    await new Promise(setImmediate);
    machine.process = undefined;
  }

  /** Money that comes in, as the ledger service does it. */
  async #credit(machine: Machine): Promise<void> {
    const { watch } = machine.process!;
    try {
      await watch.admit();
    } catch {
      this.refused += 1;
      if (this.#missing.size === 0 && !this.#isCallLost && this.restored === 0)
        this.faults.push('money was refused, and the database was never put back');
      return;
    }
    if (this.#missing.size > 0) this.faults.push(`money came in while ${[...this.#missing][0]} is missing`);
    if (this.#isCallLost)
      this.faults.push('money came in although the journal has calls of runs that the database lacks');
    const reference = `payment-${++this.#count}`;
    const movement = {
      reference,
      account: 'alice',
      kind: 'CREDIT',
      amount: '7',
      reason: 'top-up',
      at: this.#now(machine),
    };
    this.#state.movements.push(movement);
    // No one was reported of it when its process dies here.
    if (this.#chance.oneIn(10)) machine.process = undefined;
    else {
      await watch.add([movement]);
      machine.acknowledged.add(reference);
    }
  }

  #call(machine: Machine): void {
    machine.ended += 1;
    machine.endedBy = machine.run;
  }

  #apply(machine: Machine): void {
    this.#state.cursors.get(machine.name)!.applied = machine.ended;
    machine.process!.watch.applied(machine.ended);
  }

  /** All gateways are stopped, or killed, before. */
  async #putBack(): Promise<void> {
    for (const machine of this.#machines) if (machine.process !== undefined) await this.#stop(machine);
    this.#state = clone(this.#dump);
    this.restored += 1;
    // Who starts next finds out; what was accepted since the dump is to be accepted again.
    this.#missing.clear();
    this.#isCallLost = false;
  }

  async #accept(): Promise<void> {
    if (this.#machines.some(({ process }) => process === undefined)) return;
    for (const each of this.#state.restores) each.accepted = true;
    this.#missing.clear();
    this.#isCallLost = false;
  }

  /** What waits names all that is missing, and nothing that is there. */
  async #check(): Promise<void> {
    const waiting = this.#state.restores.filter(({ accepted }) => !accepted);
    const named = new Set(waiting.flatMap(({ lost }) => lost.map(({ reference }) => reference)));
    for (const reference of this.#missing)
      if (!named.has(reference)) this.faults.push(`${reference} is missing and not listed`);
    for (const reference of named) if (this.#has(reference)) this.faults.push(`${reference} is listed, and is there`);
    if (this.restored === 0 && waiting.length > 0) this.faults.push('a restoration learns that never was');
  }

  #has(reference: string): boolean {
    return this.#state.movements.some((each) => each.reference === reference);
  }

  #isAccepted(reference: string): boolean {
    const accepted = this.#state.restores.filter((each) => each.accepted);
    return accepted.some(({ lost }) => lost.some((each) => each.reference === reference));
  }

  #rows(): RestoreRows {
    return {
      identity: async () => 'database',
      movementsSince: async (at, limit) => this.#state.movements.filter((each) => each.at >= at).slice(-limit),
      lacking: async (references) => new Set(references.filter((reference) => !this.#has(reference))),
      newest: async () => this.#state.movements.at(-1)?.at,
      note: async (found) => {
        const { restores } = this.#state;
        const index = restores.findIndex(({ journal, accepted }) => journal === found.journal && !accepted);
        if (index < 0) restores.push({ ...found, accepted: false });
        else restores[index] = { ...restores[index]!, lost: found.lost };
      },
      list: async (state) => this.#state.restores.filter(({ accepted }) => accepted === (state === 'accepted')),
      silent: async () => [],
      accept: async () => 0,
    };
  }
}
