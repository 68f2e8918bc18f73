/** Rolling restarts and reloads while clients call, and what all sides say of it afterwards. */
import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Drop, RollingClients } from './clients.ts';
import type { Stage } from './stage.ts';

export interface Rolled {
  readonly drops: readonly Drop[];
  readonly violations: readonly string[];
  /** Sentences with figures. */
  readonly account: readonly string[];
  readonly answers: number;
  readonly farewells: number;
}

export interface RollingOptions {
  readonly restarts: number;
  readonly reloads: number;
  readonly clients: number;
  readonly report?: (sentence: string) => void;
}

/** On a stage that serves; nothing serves afterwards. */
export async function roll(
  stage: Stage,
  { restarts, reloads, clients: count, report }: RollingOptions,
): Promise<Rolled> {
  const beganAt = performance.now();
  const clients = new RollingClients(stage.port, stage.keys, count);
  const tookMs: number[] = [];
  for (let turn = 0; turn < Math.max(restarts, reloads); turn++) {
    await pause(randomInt(300));
    if (turn < reloads) await stage.reload();
    if (turn < restarts) {
      const from = performance.now();
      await stage.restart();
      tookMs.push(performance.now() - from);
    }
    report?.(`${turn + 1}: ${clients.acknowledged.length} answers, ${clients.drops.length} drops`);
  }
  await pause(500);
  await clients.stop();
  await stage.stop();
  const { account, violations } = await stage.judge(clients);
  const middle = tookMs.toSorted((one, other) => one - other)[Math.floor(tookMs.length / 2)] ?? 0;
  const seconds = (performance.now() - beganAt) / 1_000;
  return {
    drops: clients.drops,
    violations,
    answers: clients.acknowledged.length,
    farewells: clients.farewells,
    account: [
      `${restarts} rolling restarts and ${reloads} reloads in ${Math.round(seconds)} s; a restart of all workers took ${(middle / 1_000).toFixed(1)} s in the middle`,
      `${clients.acknowledged.length} answers on ${clients.connections} connections, ${clients.farewells} of which were asked to end, ${clients.drops.length} drops`,
      ...account,
    ],
  };
}
