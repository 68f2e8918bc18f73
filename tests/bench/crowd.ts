/** A thousand streams at the pace of tokens: what share of one core they take, and how late their chunks come. */
import type { CrowdLoad, CrowdResult } from './crowd-load.ts';
import { median } from './measure.ts';
import { chunksPerSecond } from './pacer.ts';
import { load, processorMs, type Started } from './processes.ts';
import { type ProtocolName, wordsOf } from './words.ts';

const streams = 1_000;
const seconds = 2 * Number(process.env['BENCH_SECONDS'] ?? 4);
const rounds = 2;

/** Relayed, then translated. */
const pairs: readonly (readonly [client: ProtocolName, upstream: ProtocolName])[] = [
  ['chat', 'chat'],
  ['messages', 'chat'],
  ['chat', 'messages'],
  ['responses', 'chat'],
];

/** One figure for a stream's whole life: opening and closing it are in it. */
export async function crowd(gateway: Started, upstream: Started): Promise<void> {
  console.log(`\n${streams} streams at once, ${chunksPerSecond} chunks a second each, for ${seconds} s`);
  const direct = await ask(upstream, 'chat', 'chat');
  console.log(`  ${'no gateway'.padEnd(22)} chunks come ${late(direct)}`);
  for (let round = 0; round < rounds; round++) {
    for (const [client, name] of pairs) {
      const before = processorMs(gateway);
      const result = await ask(gateway, client, name);
      const share = (processorMs(gateway) - before) / result.milliseconds;
      const pace = (streams * seconds * chunksPerSecond) / (result.milliseconds / 1_000);
      console.log(
        `  ${`${client} from ${name}`.padEnd(22)} ${share.toFixed(2)} of one core at ${Math.round(pace)} chunks/s; chunks come ${late(result)}`,
      );
    }
  }
}

async function ask({ port, key }: Started, client: ProtocolName, upstream: ProtocolName): Promise<CrowdResult> {
  const asked = wordsOf(client, upstream).ask(`chunks=${seconds * chunksPerSecond} paced`);
  const options: CrowdLoad = { port, key, ...asked, connections: streams };
  const result = await load<CrowdResult>(options, 'crowd-load.ts');
  if (result.failures > 0) throw new Error(`${client} from ${upstream}: ${result.failures} failures`);
  return result;
}

function late({ lateMs }: CrowdResult): string {
  const worst = lateMs.toSorted((left, right) => left - right)[Math.floor(lateMs.length * 0.99)]!;
  return `${median(lateMs).toFixed(1)} ms after they were written, 99 of 100 within ${worst.toFixed(1)} ms`;
}
