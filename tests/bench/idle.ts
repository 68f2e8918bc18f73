/** Whether the machine has nothing else to do: says its load before each part of a benchmark, and refuses figures of a busy one. */
import { loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';

/** Processes that run or wait for a core, on the average of the last minute. */
const highestLoad = 1;
/** The load that a part has made itself is gone by then: four processes fade below one in a minute and a half. */
const fadesWithinMs = 120_000;
const lookMs = 5_000;

export interface Machine {
  load(): number;
  pause(milliseconds: number): Promise<unknown>;
  say(line: string): void;
  /** Whether a busy machine is measured too. */
  readonly isBusyAllowed: boolean;
}

const thisMachine: Machine = {
  load: () => loadavg()[0]!,
  pause,
  say: console.log,
  isBusyAllowed: process.env['BENCH_BUSY'] === '1',
};

/** Runs parts one after another; gives the sentence for which the rest was not measured. */
export async function runParts(
  parts: Readonly<Record<string, () => unknown>>,
  machine = thisMachine,
): Promise<string | undefined> {
  for (const [name, run] of Object.entries(parts)) {
    const refusal = await refusalOf(name, fadesWithinMs, machine);
    if (refusal !== undefined) return refusal;
    await run();
  }
  return undefined;
}

/** undefined: the machine is idle, or becomes so within this time, or need not be. */
export async function refusalOf(part: string, withinMs = 0, machine = thisMachine): Promise<string | undefined> {
  let load = machine.load();
  for (let waitedMs = 0; load > highestLoad && waitedMs < withinMs && !machine.isBusyAllowed; waitedMs += lookMs) {
    await machine.pause(lookMs);
    load = machine.load();
  }
  machine.say(`\nload of the machine before ${part}: ${load.toFixed(2)}`);
  if (load <= highestLoad || machine.isBusyAllowed) return undefined;
  return `The load of this machine is ${load.toFixed(2)}: figures of ${part} would mean nothing above ${highestLoad.toFixed(1)}; BENCH_BUSY=1 measures all the same.`;
}
