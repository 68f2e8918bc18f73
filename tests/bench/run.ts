/** `npm run bench`: what the gateway costs beside a bare forwarder and nginx, as ratios within one run. The method is in README.md. */
import { execFileSync } from 'node:child_process';
import { on } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { descriptorLimit } from '../../core/gateway/descriptors.ts';
import { crowd } from './crowd.ts';
import { guardedStreams } from './guarded.ts';
import { refusalOf, runParts } from './idle.ts';
import { reportFootprints } from './in-process/footprints.ts';
import { largeBody } from './large-body.ts';
import { compare, median, report, type Subject } from './measure.ts';
import {
  answerOf,
  hasNginx,
  load,
  measuredCore,
  otherCore,
  residentKiB,
  type Started,
  start,
  startNginx,
  stop,
} from './processes.ts';
import { translatedStreams } from './translated.ts';
import { modelOf, wordsOf } from './words.ts';
import { twoWorkers } from './workers.ts';

const prompt = 'a'.repeat(900);
const streamOf = (wish: string) => wordsOf('chat').request(wish);
const { path } = streamOf('');
const whole = JSON.stringify({ model: modelOf('chat'), messages: [{ role: 'user', content: prompt }] });

endRefused(await refusalOf('all parts'));
const upstream = await start('upstream.ts', [], otherCore);
const gateway = await start('gateway.ts', [String(upstream.port), 'full'], measuredCore);
const bare = await start('bare.ts', [String(upstream.port)], measuredCore);
const others: Record<string, Started> = {
  'bare forwarder': bare,
  'passthrough gateway': await start('gateway.ts', [String(upstream.port), 'passthrough'], measuredCore),
  ...(hasNginx ? { nginx: await startNginx(upstream.port) } : {}),
};

/** Servers that still run end with this process. */
function endRefused(refusal: string | undefined): void {
  if (refusal === undefined) return;
  console.error(refusal);
  process.exit(1);
}

function subjects(body: string): Record<string, Subject> {
  const all = Object.entries({ ...others, 'main gateway': gateway });
  return Object.fromEntries(all.map(([name, started]) => [name, { started, path, body }]));
}

async function addedFirstByte(): Promise<void> {
  const times: Record<'direct' | 'gateway', number[]> = { direct: [], gateway: [] };
  const short = streamOf(`chunks=2 paced ${prompt}`);
  // What is measured is a gateway that has served for a while, as in the other parts.
  const { port, key } = gateway;
  for (let warmUps = 0; warmUps < 5; warmUps++)
    await load({ port, key, ...streamOf(`chunks=4 ${prompt}`), connections: 16, seconds: 4 });
  for (let round = 0; round < 3; round++) {
    for (const [name, { port, key }] of [['direct', upstream] as const, ['gateway', gateway] as const]) {
      times[name].push(...(await load<number[]>({ port, key, ...short, firstBytes: 300 })));
    }
  }
  const [direct, through] = [median(times.direct), median(times.gateway)];
  console.log(
    `\nFirst byte of a stream, median of ${times.direct.length}: ${(through - direct).toFixed(2)} ms added (direct ${direct.toFixed(2)}, gateway ${through.toFixed(2)})`,
  );
}

/**
 * The growth of fresh processes from `first` open, silent streams to `first + count`, as what a process grows by once is not the
 * streams'; garbage is collected before either look.
 */
async function silentStreams(first: number, count: number): Promise<void> {
  console.log(
    `\nResident memory of an open, silent stream: ${count} beyond the first ${first}, after a full collection`,
  );
  const port = String(upstream.port);
  for (const [name, module, words] of [
    ['bare forwarder', 'bare.ts', [port]],
    ['passthrough gateway', 'gateway.ts', [port, 'passthrough']],
    ['main gateway', 'gateway.ts', [port, 'full', 'lag']],
  ] as const) {
    const fresh = await start(module, words, measuredCore);
    const sockets: Socket[] = [];
    const open = async (more: number) => {
      for (let left = more; left > 0; left -= 50)
        sockets.push(...(await Promise.all(Array.from({ length: Math.min(left, 50) }, () => openStream(fresh)))));
      await pause(1_000);
      await answerOf(fresh, 'collect');
      return residentKiB(fresh);
    };
    const before = await open(first);
    const growth = (await open(count)) - before;
    console.log(`  ${name.padEnd(20)} ${(growth / count).toFixed(1).padStart(6)} KiB each`);
    if (name === 'main gateway') {
      await answerOf(fresh);
      await pause(3_000);
      const lag = await answerOf(fresh);
      console.log(`  99 of 100 turns of it begin within ${lag.toFixed(1)} ms while ${first + count} are open`);
    }
    for (const socket of sockets) socket.destroy();
    stop(fresh);
  }
}

/** As many silent streams as this process, the vendor and the gateway, which has two sockets for each, may open; at most 10,000. */
function mostStreams(): number {
  return Math.min(10_000, Math.floor(((descriptorLimit() ?? 20_000) - 1_000) / 2));
}

/** Resolves with the socket once the stream's first event has come. */
async function openStream({ port, key }: Started): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  const { body } = streamOf('hold');
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  let text = '';
  for await (const [chunk] of on(socket, 'data')) {
    text += chunk;
    if (text.includes('data:')) break;
  }
  if (!text.startsWith('HTTP/1.1 200')) throw new Error(text);
  socket.on('error', () => {});
  return socket;
}

const chunks = 400;

async function wholeAnswers(): Promise<void> {
  const everything = await start('gateway.ts', [String(upstream.port), 'full'], measuredCore, true);
  const costs = await compare({ ...subjects(whole), everything: { started: everything, path, body: whole } }, 1, 32);
  stop(everything);
  report('Whole answers: 1 KB up, 0.8 KB down, 32 connections', costs, () => ['bare forwarder']);
}

async function streams(): Promise<void> {
  const costs = await compare(subjects(streamOf(`chunks=${chunks} ${prompt}`).body), chunks, 16);
  const title = `Streamed chunks of 250 bytes: ${chunks} in each stream, 16 streams at a time`;
  report(title, costs, () => ['bare forwarder', ...(hasNginx ? ['nginx'] : [])]);
}

async function guarded(): Promise<void> {
  const started = await start('gateway.ts', [String(upstream.port), 'guarded'], measuredCore);
  await guardedStreams({ plain: gateway, guarded: started });
  stop(started);
}

function starts(): void {
  console.log('\nStart-up of both demo gateways, ms');
  execFileSync(process.execPath, [join(import.meta.dirname, 'start-up.ts'), '--runs', '3'], { stdio: 'inherit' });
}

const parts = {
  'in-process': () => reportFootprints(30_000),
  whole: wholeAnswers,
  streams,
  translated: () => translatedStreams(gateway, bare, chunks, prompt),
  guarded,
  crowd: () => crowd(gateway, bare, upstream),
  'first-byte': addedFirstByte,
  memory: () => silentStreams(1_000, mostStreams() - 1_000),
  body: () => largeBody(upstream),
};
/** What starts servers of its own, once the others have ended. */
const apart = { start: starts, workers: () => twoWorkers(6, 7) };

function asked(all: Readonly<Record<string, () => unknown>>) {
  const only = process.env['BENCH_ONLY']?.split(',');
  return Object.fromEntries(Object.entries(all).filter(([name]) => only?.includes(name) !== false));
}

const stopped = await runParts(asked(parts));
for (const started of [...Object.values(others), gateway, upstream]) stop(started);
endRefused(stopped ?? (await runParts(asked(apart))));
