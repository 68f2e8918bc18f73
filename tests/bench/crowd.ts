/** A thousand streams at the pace of tokens: what share of one core they take, and how late their chunks come. */
import { setTimeout as pause } from 'node:timers/promises';
import { type CrowdLoad, type CrowdResult, lookedAt } from './crowd-load.ts';
import { median } from './measure.ts';
import { chunksPerSecond } from './pacer.ts';
import { load, processorMs, type Started } from './processes.ts';
import { type ProtocolName, wordsOf } from './words.ts';

const streams = 1_000;
const seconds = Number(process.env['BENCH_SECONDS'] ?? 4);
/** Until all streams run, and after the measurement until the first of them ends. */
const openingSeconds = 4;
const closingSeconds = 1;
const rounds = 2;

/** Relayed, then translated. */
const pairs: readonly (readonly [client: ProtocolName, upstream: ProtocolName])[] = [
  ['chat', 'chat'],
  ['messages', 'chat'],
  ['chat', 'messages'],
  ['responses', 'chat'],
];

export async function crowd(gateway: Started, bare: Started, upstream: Started): Promise<void> {
  console.log(`\n${streams} streams at once, ${chunksPerSecond} chunks a second each`);
  await measure('no gateway', upstream, 'chat', 'chat');
  for (let round = 0; round < rounds; round++) {
    await measure('bare forwarder', bare, 'chat', 'chat');
    for (const [client, name] of pairs) await measure(`${client} from ${name}`, gateway, client, name);
  }
}

/** Measures the time in which all streams run. */
async function measure(name: string, requested: Started, client: ProtocolName, upstream: ProtocolName): Promise<void> {
  const answers = send(requested, client, upstream);
  await pause(openingSeconds * 1_000);
  const [startedAt, usedBefore] = [performance.now(), processorMs(requested)];
  const from = process.hrtime.bigint();
  await pause(seconds * 1_000);
  const share = (processorMs(requested) - usedBefore) / (performance.now() - startedAt);
  const to = process.hrtime.bigint();
  const { failures, chunks } = await answers;
  if (failures > 0) throw new Error(`${name}: ${failures} failures`);
  const seen = chunks.filter(({ at }) => at >= Number(from / 1_000n) && at < Number(to / 1_000n));
  const pace = Math.round((seen.length * lookedAt) / (Number(to - from) / 1e9));
  const late = seen.map(({ late }) => late / 1_000).sort((left, right) => left - right);
  const slow = late[Math.floor(late.length * 0.99)] ?? Number.NaN;
  console.log(
    `  ${name.padEnd(22)} ${share.toFixed(2)} of one core for ${pace} chunks/s; they come ${median(late).toFixed(1)} ms after they were written, 99 of 100 within ${slow.toFixed(1)} ms`,
  );
}

function send({ port, key }: Started, client: ProtocolName, upstream: ProtocolName): Promise<CrowdResult> {
  const chunks = (openingSeconds + seconds + closingSeconds) * chunksPerSecond;
  const options: CrowdLoad = {
    port,
    key,
    ...wordsOf(client, upstream).request(`chunks=${chunks} paced`),
    connections: streams,
  };
  return load<CrowdResult>(options, 'crowd-load.ts');
}
