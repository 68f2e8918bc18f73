/** Measures one subject in a process of its own: processor time of this thread, bytes on the heap, promises and survivors, for each answer. */
import { subscribe } from 'node:diagnostics_channel';
import type { Server } from 'node:http';
import { Session } from 'node:inspector/promises';
import { join, relative } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { getHeapStatistics, promiseHooks } from 'node:v8';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { createLog } from '../../../core/gateway/log.ts';
import { systemClock } from '../../../core/gateway/system.ts';
import { ClientSocket } from './client-socket.ts';
import { createForwarder } from './forwarder.ts';
import { type BenchGateway, startGateway } from './gateways.ts';
import { type Subject, type SubjectName, subjects } from './subjects.ts';
import { answerBy } from './vendor.ts';

/** For each answer, or chunk of one. */
export interface Counts {
  readonly bytes: number;
  readonly promises: number;
}

/** A function of the product that each request enters; calls for each answer. */
export interface Entered {
  readonly file: string;
  readonly name: string;
  readonly calls: number;
}

/**
 * `time`: microseconds of processor for each answer; `survivors`: bytes that are still there after young collections; `functions`: what
 * requests of one client after another enter, without the work that is repeated by the clock.
 */
export type What = 'counts' | 'time' | 'survivors' | 'functions';

const { threadCpuUsage } = process as unknown as { threadCpuUsage(): { user: number; system: number } };
const [subjectName, warmUp, windows, what] = process.argv.slice(2) as [SubjectName, string, string, What];
const clients = what === 'functions' ? 1 : 16;

/** The work that a gateway repeats by the clock, collected so that it is done after a number of answers. */
const repeated = new Map<unknown, () => unknown>();
/** The gateway's clock is so much ahead. */
let skippedMs = 0;
const clock: Clock = { now: systemClock.now, monotonic: () => systemClock.monotonic() + skippedMs };

function collectIntervals(): void {
  globalThis.setInterval = ((work: () => unknown) => {
    const timer = setTimeout(() => {}, 0);
    timer.unref();
    repeated.set(timer, work);
    return timer;
  }) as unknown as typeof setInterval;
  const { clearInterval } = globalThis;
  globalThis.clearInterval = (timer) => {
    repeated.delete(timer);
    clearInterval(timer);
  };
}

let server: Server | undefined;
subscribe('tracing:net.server.listen:asyncStart', (message) => {
  server ??= (message as { server: Server }).server;
});

async function start({ kind }: Subject): Promise<Pick<BenchGateway, 'key' | 'stop'>> {
  if (kind === 'bare forwarder') {
    server = createForwarder(1);
    return { key: 'none', stop: async () => {} };
  }
  collectIntervals();
  return startGateway(kind, 1, { clock, log: createLog('info', () => {}) });
}

class Clients {
  readonly #sockets: readonly ClientSocket[];
  readonly #request: Buffer;
  #missing = 0;
  #done: (() => void) | undefined;

  constructor({ path, body, end }: Subject, key: string) {
    this.#request = Buffer.from(
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    const mark = Buffer.from(end);
    this.#sockets = Array.from({ length: clients }, () => new ClientSocket(server!, mark, this.#answered));
  }

  readonly #answered = (): void => {
    this.#missing--;
    if (this.#missing === 0) setImmediate(this.#done!);
  };

  /** Each client asks once; `done` is called when all have their answers. */
  send(done: () => void): void {
    this.#missing = clients;
    this.#done = done;
    for (const socket of this.#sockets) socket.send(this.#request);
  }
}

/** So many rounds, and then what is repeated by the clock. */
function rounds(all: Clients, count: number): Promise<void> {
  return new Promise((resolve) => {
    let left = count;
    const next = () => {
      if (left-- > 0) all.send(next);
      else resolve();
    };
    next();
  });
}

/** All of it is done when this resolves, also what waits for its beat or for the database, however slow that is. */
async function repeatWork(): Promise<void> {
  skippedMs += 1_000;
  await Promise.all([...repeated.values()].map((work) => work()));
  for (let turns = 0; turns < 20; turns++) await turn();
}

function cpuUs(): number {
  const { user, system } = threadCpuUsage.call(process);
  return user + system;
}

/** Processor time of each answer. No full collection: it would drop the optimized code of what is not in use at that moment. */
async function time(all: Clients, count: number, units: number): Promise<number> {
  globalThis.gc!({ type: 'minor' });
  const before = cpuUs();
  await rounds(all, count);
  const found = (cpuUs() - before) / (count * clients * units);
  await repeatWork();
  return found;
}

/** Apart from the time: once promises were counted, V8 keeps slower ones. */
async function counts(all: Clients, count: number, units: number): Promise<Counts> {
  globalThis.gc!();
  const answers = count * clients * units;
  const before = getHeapStatistics().total_allocated_bytes;
  await rounds(all, count);
  await repeatWork();
  const allocated = getHeapStatistics().total_allocated_bytes - before;
  let promises = 0;
  const stopCounting = promiseHooks.onInit(() => {
    promises++;
  }) as unknown as () => void;
  await rounds(all, count);
  stopCounting();
  await repeatWork();
  return { bytes: allocated / answers, promises: promises / answers };
}

/** Bytes for each answer that are still there after collections of the young generation, though all answers were given. */
async function survivors(all: Clients, count: number): Promise<number> {
  const before = heapAfterYoung();
  await rounds(all, count);
  await repeatWork();
  return (heapAfterYoung() - before) / (count * clients);
}

/** After two collections: what survives two of them is kept until a full one. */
function heapAfterYoung(): number {
  globalThis.gc!({ type: 'minor' });
  globalThis.gc!({ type: 'minor' });
  return getHeapStatistics().used_heap_size;
}

async function functions(all: Clients, count: number): Promise<Entered[]> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  // A function that runs while the profiler starts counts from its next call on.
  await rounds(all, 2);
  await session.post('Profiler.takePreciseCoverage');
  await rounds(all, count);
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  return result
    .filter(({ url }) => url.startsWith('file:') && !url.includes('/node_modules/'))
    .map(({ url, functions: found }) => ({ file: relative(root, fileURLToPath(url)), found }))
    .filter(({ file }) => /^(?:core|plugins)\//.test(file))
    .flatMap(({ file, found }) =>
      found.map(({ functionName: name, ranges }) => ({ file, name, calls: ranges[0]!.count / count })),
    )
    .filter(({ calls }) => calls >= 0.5);
}

const root = join(import.meta.dirname, '../../..');
const countedAnswers = 480;
/** So many that the clock of the thread's processor time, which may tick every few milliseconds, is fine enough. */
const timedAnswers = 2_400;

async function main(): Promise<void> {
  const subject: Subject = subjects[subjectName];
  const { units } = subject;
  const { key, stop } = await start(subject);
  answerBy(subject.script);
  const all = new Clients(subject, key);
  const roundsOf = (answers: number) => Math.ceil(answers / clients / units);
  for (let answers = 0; answers < Number(warmUp); answers += timedAnswers) {
    await rounds(all, roundsOf(Math.min(timedAnswers, Number(warmUp))));
    await repeatWork();
  }
  const found: (number | Counts | Entered[])[] = [];
  for (let window = 0; window < Number(windows); window++) {
    if (what === 'survivors') found.push(await survivors(all, 2 * roundsOf(countedAnswers)));
    else if (what === 'time') found.push(await time(all, roundsOf(timedAnswers), units));
    else if (what === 'functions') found.push(await functions(all, 50));
    else found.push(await counts(all, roundsOf(countedAnswers), units));
  }
  await stop();
  process.send!(found, () => process.exit(0));
}

await main();
