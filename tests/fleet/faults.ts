/** What goes wrong in a fleet, one thing after the other; each resolves when the fleet is whole again. */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../helpers/until.ts';
import type { Stage } from './stage.ts';

export interface Fault {
  readonly name: string;
  /** Part of the short form as well. */
  readonly isShort?: true;
  /** Requests that begin later than this cost no client an answer. */
  readonly isFreeAfterMs?: number;
  run(stage: Stage): Promise<void>;
}

export const faults: readonly Fault[] = [
  // Accounts pause for longer than ten seconds before the database is away.
  { name: 'Redis hangs, is away, comes back empty', isShort: true, isFreeAfterMs: 0, run: loseCounters },
  { name: 'PostgreSQL away for 6 s', isShort: true, run: (stage) => loseDatabase(stage, 6_000) },
  { name: 'PostgreSQL away for 90 s', run: (stage) => loseDatabase(stage, 90_000) },
  { name: 'rolling restart', isShort: true, isFreeAfterMs: 0, run: restartAll },
  { name: 'prices raised', isFreeAfterMs: 0, run: raisePrices },
  { name: 'kill -9 of a gateway', isShort: true, isFreeAfterMs: 1_000, run: kill },
  { name: 'a gateway gone for ever', isFreeAfterMs: 1_000, run: replaceNode },
];

/** As docker/README.md says: the next one when the last one is ready. */
async function restartAll({ parts: { fleet } }: Stage): Promise<void> {
  for (const node of fleet.nodes) {
    await node.end('SIGTERM');
    await node.start();
  }
  await pause(500);
}

async function kill({ parts: { fleet } }: Stage): Promise<void> {
  const [node] = fleet.nodes;
  await node!.end('SIGKILL');
  await pause(2_000);
  await node!.start();
  await pause(1_000);
}

/** Until it is back, each account that has paused calls now and then. */
async function loseDatabase(stage: Stage, ms: number): Promise<void> {
  const { postgres, fleet } = stage.parts;
  await postgres.crash();
  for (const until = performance.now() + ms; performance.now() < until; ) {
    await stage.askPaused();
    await pause(500);
  }
  await postgres.start();
  const isReady = async ({ origin }: { origin: string }) =>
    (await fetch(`${origin}/readyz`).catch(() => undefined))?.status === 200;
  await until('all gateways are ready', async () => (await Promise.all(fleet.nodes.map(isReady))).every(Boolean));
  await pause(3_000);
}

async function loseCounters({ parts: { redis } }: Stage): Promise<void> {
  redis.pause();
  await pause(2_000);
  redis.resume();
  await redis.kill();
  await pause(4_000);
  await redis.restart();
  await pause(1_000);
  redis.command('flushall');
  await pause(1_000);
}

async function raisePrices(stage: Stage): Promise<void> {
  await stage.raisePrices();
  // A gateway takes its file up within a second, a busy one later.
  await pause(8_000);
  stage.raised!.to = Date.now();
  await pause(4_000);
}

/** Its machine is gone and its disk was saved: what its journal has is charged, what it had leased is given back, another one takes its place. */
async function replaceNode(stage: Stage): Promise<void> {
  const { fleet } = stage.parts;
  const node = fleet.nodes[1]!;
  await node.end('SIGKILL');
  const saved = `${node.directory}-saved`;
  renameSync(node.directory, saved);
  await node.start();
  await fleet.runAsCommand(async ({ gateway: { gateway } }) => {
    const run = async (name: string, values: Record<string, string> = {}) =>
      (await gateway.commands.find((each) => each.name === name)!.run(values)).json;
    const directory = join(saved, 'journal', fleet.store.schema);
    const salvaged = (await run('journal salvage', { directory })) as { journal: string; open: object[] };
    const { journal: name, open } = salvaged;
    stage.salvaged += open.length;
    const isLeft = async () => ((await run('leases')) as { node: string }[]).some((each) => each.node === name);
    // A lease ends three minutes after the node was seen last.
    const isReleased = () =>
      run('leases release', { node: name }).then(
        () => true,
        () => false,
      );
    if (await isLeft()) await until(`the leases of ${name} are given back`, isReleased, 240_000);
  });
  await pause(3_000);
}
