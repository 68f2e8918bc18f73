/** `npm run bench`: what the gateway costs beside a bare forwarder and nginx, as ratios within one run. The method is in README.md. */
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { LoadResult } from './load.ts';
import {
  hasNginx,
  load,
  measuredCore,
  otherCore,
  processorMs,
  residentKiB,
  type Started,
  start,
  startNginx,
  stop,
} from './processes.ts';

const path = '/v1/chat/completions';
const prompt = 'a'.repeat(900);
const whole = JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: prompt }] });
const streamOf = (chunks: number) =>
  JSON.stringify({
    model: 'bench',
    stream: true,
    messages: [{ role: 'user', content: `chunks=${chunks} ${prompt}` }],
  }).replace('"stream":true', '"stream":true,"stream_options":{"include_usage":true}');
const held = JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content: 'hold' }] });
const seconds = Number(process.env['BENCH_SECONDS'] ?? 4);
const rounds = 3;

interface Cost {
  perSecond: number;
  microsecondsEach: number;
}

const upstream = await start('upstream.ts', [], otherCore);
const subjects: Record<string, Started> = {
  'bare forwarder': await start('bare.ts', [String(upstream.port)], measuredCore),
  'passthrough gateway': await start('gateway.ts', [String(upstream.port), 'passthrough'], measuredCore),
  'main gateway': await start('gateway.ts', [String(upstream.port), 'full'], measuredCore),
  ...(hasNginx ? { nginx: await startNginx(upstream.port) } : {}),
};

/** Best of several rounds, subjects in turn, so that a disturbance of the machine hits no single one. */
async function compare(body: string, unitsPerRequest: number, connections: number): Promise<Record<string, Cost>> {
  const best: Record<string, Cost> = {};
  for (let round = 0; round <= rounds; round++) {
    for (const [name, subject] of Object.entries(subjects)) {
      const before = processorMs(subject, name === 'nginx');
      const result = await load<LoadResult>({
        port: subject.port,
        key: subject.key,
        path,
        body,
        connections,
        seconds: round === 0 ? 2 : seconds,
      });
      if (result.failures > 0) throw new Error(`${name}: ${result.failures} failures`);
      const units = result.requests * unitsPerRequest;
      const cost = {
        perSecond: units / seconds,
        microsecondsEach: ((processorMs(subject, name === 'nginx') - before) * 1_000) / units,
      };
      if (round > 0 && (best[name] === undefined || cost.microsecondsEach < best[name].microsecondsEach))
        best[name] = cost;
    }
  }
  return best;
}

function report(title: string, costs: Record<string, Cost>, against: string): void {
  console.log(`\n${title}`);
  const reference = costs[against];
  for (const [name, { perSecond, microsecondsEach }] of Object.entries(costs)) {
    const ratio =
      reference === undefined ? '' : `, ${(reference.microsecondsEach / microsecondsEach).toFixed(2)} of ${against}`;
    console.log(
      `  ${name.padEnd(20)} ${Math.round(perSecond).toString().padStart(8)}/s, ${microsecondsEach.toFixed(1).padStart(6)} µs of one core each${ratio}`,
    );
  }
}

async function addedFirstByte(): Promise<void> {
  const times: Record<string, number[]> = { direct: [], 'main gateway': [] };
  for (let round = 0; round < rounds; round++) {
    for (const [name, { port, key }] of Object.entries({
      direct: upstream,
      'main gateway': subjects['main gateway']!,
    })) {
      times[name]!.push(...(await load<number[]>({ port, key, path, body: streamOf(4), firstBytes: 300 })));
    }
  }
  const [direct, gateway] = [median(times['direct']!), median(times['main gateway']!)];
  console.log(
    `\nFirst byte of a stream, median of ${times['direct']!.length}: ${(gateway - direct).toFixed(2)} ms added (direct ${direct.toFixed(2)}, gateway ${gateway.toFixed(2)})`,
  );
}

/** The growth from `first` open streams to `first + count`: what a process grows by once is not the streams'. */
async function idleStreams(first: number, count: number): Promise<void> {
  const gateway = await start('gateway.ts', [String(upstream.port), 'full'], measuredCore);
  const sockets: Socket[] = [];
  const open = async (more: number) => {
    for (let index = 0; index < more; index++) {
      sockets.push(openStream(gateway));
      if (index % 50 === 49) await pause(20);
    }
    await pause(3_000);
    return residentKiB(gateway);
  };
  const before = await open(first);
  const growth = (await open(count)) - before;
  console.log(
    `\nMemory: ${(growth / count).toFixed(1)} KiB for each of ${count} open, silent streams beyond the first ${first} (growth of the resident set)`,
  );
  for (const socket of sockets) socket.destroy();
  stop(gateway);
}

function openStream({ port, key }: Started): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${held.length}\r\n\r\n${held}`,
  );
  return socket;
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)]!;
}

const only = process.env['BENCH_ONLY'] ?? 'whole,streams,first-byte,memory';
if (only.includes('whole')) {
  report('Whole answers: 1 KB up, 0.8 KB down, 32 connections', await compare(whole, 1, 32), 'bare forwarder');
}
if (only.includes('streams')) {
  const chunks = 400;
  const title = `Streamed chunks of 250 bytes: ${chunks} in each stream, 16 streams at a time`;
  report(title, await compare(streamOf(chunks), chunks, 16), hasNginx ? 'nginx' : 'bare forwarder');
}
if (only.includes('first-byte')) await addedFirstByte();
if (only.includes('memory')) await idleStreams(1_000, 2_000);
for (const subject of [...Object.values(subjects), upstream]) stop(subject);
