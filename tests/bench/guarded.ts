/** `node tests/bench/guarded.ts` (three minutes): what all known patterns cost a streamed chunk, in pairs of loads with and without them. */
import { setTimeout as pause } from 'node:timers/promises';
import type { CrowdLoad, CrowdResult } from './crowd-load.ts';
import type { LoadResult } from './load.ts';
import { median } from './measure.ts';
import { chunksPerSecond } from './pacer.ts';
import { load, measuredCore, otherCore, processorMs, type Started, settled, start, stop } from './processes.ts';
import { type ProtocolName, wordsOf } from './words.ts';

interface Sides {
  readonly plain: Started;
  readonly guarded: Started;
}

/** Processor time of one chunk, in microseconds. */
type Cost = (side: Started, client: ProtocolName, upstream: ProtocolName) => Promise<number>;

const chunks = 400;
const seconds = Number(process.env['BENCH_SECONDS'] ?? 2);
const crowdStreams = 200;
const crowdOpeningSeconds = 1;
const pairs = Number(process.env['BENCH_PAIRS'] ?? 7);

/** The vendor sends as fast as it can, so that frames come glued together. */
async function glued(side: Started, client: ProtocolName, upstream: ProtocolName): Promise<number> {
  const requested = wordsOf(client, upstream).request(`chunks=${chunks} ${'a'.repeat(900)}`);
  const before = processorMs(side);
  const { port, key } = side;
  const result = await load<LoadResult>({ port, key, ...requested, connections: 16, seconds });
  await settled(side);
  if (result.failures > 0) throw new Error(`${result.failures} failures`);
  return ((processorMs(side) - before) * 1_000) / (result.requests * chunks);
}

/** Each chunk comes alone in its packet. All of the streams' time counts, with their requests. */
async function alone(side: Started, client: ProtocolName, upstream: ProtocolName): Promise<number> {
  const count = (crowdOpeningSeconds + seconds) * chunksPerSecond;
  const requested = wordsOf(client, upstream).request(`chunks=${count} paced`);
  const options: CrowdLoad = { port: side.port, key: side.key, ...requested, connections: crowdStreams };
  const before = processorMs(side);
  const { failures } = await load<CrowdResult>(options, 'crowd-load.ts');
  await settled(side);
  if (failures > 0) throw new Error(`${failures} failures`);
  return ((processorMs(side) - before) * 1_000) / (crowdStreams * count);
}

const ways = { relayed: ['chat', 'chat'], translated: ['chat', 'messages'] } as const;
const kinds: Readonly<Record<string, Cost>> = { 'glued together': glued, 'each alone in its packet': alone };

/** Each pair is one load of either side, one right behind the other; which one is first changes from pair to pair. */
export async function guardedStreams({ plain, guarded }: Sides): Promise<void> {
  console.log(
    '\nStreamed chunks of 120 characters with all known patterns, of the same without; processor time, in pairs',
  );
  for (const [way, [client, upstream]] of Object.entries(ways)) {
    for (let warmUps = 0; warmUps < 2; warmUps++)
      for (const side of [plain, guarded]) await glued(side, client, upstream);
    for (const [kind, cost] of Object.entries(kinds)) {
      const found: { readonly without: number; readonly with: number }[] = [];
      for (let pair = 0; pair < pairs; pair++) {
        const first = await cost(pair % 2 === 0 ? plain : guarded, client, upstream);
        const second = await cost(pair % 2 === 0 ? guarded : plain, client, upstream);
        found.push(pair % 2 === 0 ? { without: first, with: second } : { without: second, with: first });
      }
      report(`${way}, ${kind}`, found);
    }
  }
}

function report(name: string, found: readonly { readonly without: number; readonly with: number }[]): void {
  const ratios = found.map((one) => one.with / one.without).sort((left, right) => left - right);
  const [without, with_] = [median(found.map((one) => one.without)), median(found.map((one) => one.with))];
  console.log(
    `  ${name.padEnd(38)} ${median(ratios).toFixed(2)} times (${ratios[0]!.toFixed(2)} to ${ratios.at(-1)!.toFixed(2)}), ${with_.toFixed(2)} of ${without.toFixed(2)} µs`,
  );
}

if (import.meta.main) {
  const upstream = await start('upstream.ts', [], otherCore);
  const [plain, guarded] = [
    await start('gateway.ts', [String(upstream.port), 'full'], measuredCore),
    await start('gateway.ts', [String(upstream.port), 'guarded'], measuredCore),
  ];
  await guardedStreams({ plain, guarded });
  for (const started of [plain, guarded, upstream]) stop(started);
  await pause(100);
  process.exit(0);
}
