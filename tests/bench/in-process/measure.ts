/** Measures one subject in a process of its own: processor time of this thread, bytes on the heap, promises and survivors, for each answer. */
import { subscribe } from 'node:diagnostics_channel';
import type { Server } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { getHeapStatistics, promiseHooks } from 'node:v8';
import { createLog } from '../../../core/gateway/log.ts';
import { ClientSocket } from './client-socket.ts';
import { createForwarder } from './forwarder.ts';
import { startGateway } from './gateways.ts';
import { type Subject, type SubjectName, subjects } from './subjects.ts';
import { answerBy } from './vendor.ts';

/** For each answer, or chunk of one. */
export interface Footprint {
  readonly microseconds: number;
  readonly bytes: number;
  readonly promises: number;
}

const { threadCpuUsage } = process as unknown as { threadCpuUsage(): { user: number; system: number } };
const clients = 16;

/** The work that a gateway repeats by the clock, collected so that it is done after a number of answers. */
const repeated = new Map<unknown, () => unknown>();

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

async function start({ kind }: Subject): Promise<string> {
  if (kind === 'bare forwarder') {
    server = createForwarder(1);
    return 'none';
  }
  collectIntervals();
  return (
    await startGateway(
      kind,
      1,
      createLog('info', () => {}),
    )
  ).key;
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
  ask(done: () => void): void {
    this.#missing = clients;
    this.#done = done;
    for (const socket of this.#sockets) socket.ask(this.#request);
  }
}

/** So many rounds, and then what is repeated by the clock. */
function rounds(all: Clients, count: number): Promise<void> {
  return new Promise((resolve) => {
    let left = count;
    const next = () => {
      if (left-- > 0) all.ask(next);
      else resolve();
    };
    next();
  });
}

async function repeatWork(): Promise<void> {
  for (const work of repeated.values()) work();
  for (let turns = 0; turns < 20; turns++) await turn();
}

function cpuUs(): number {
  const { user, system } = threadCpuUsage.call(process);
  return user + system;
}

/** The least of several windows: what else happens in a process now and then only adds. */
function least(footprints: readonly Footprint[]): Footprint {
  const leastOf = (name: keyof Footprint) => Math.min(...footprints.map((footprint) => footprint[name]));
  return { microseconds: leastOf('microseconds'), bytes: leastOf('bytes'), promises: leastOf('promises') };
}

async function measure(all: Clients, count: number, units: number): Promise<Footprint> {
  globalThis.gc!();
  const answers = count * clients * units;
  const cpu = cpuUs();
  const bytes = getHeapStatistics().total_allocated_bytes;
  await rounds(all, count);
  const allocated = getHeapStatistics().total_allocated_bytes - bytes;
  const microseconds = cpuUs() - cpu;
  let promises = 0;
  const stopCounting = promiseHooks.onInit(() => {
    promises++;
  }) as unknown as () => void;
  await rounds(all, count);
  stopCounting();
  await repeatWork();
  return { microseconds: microseconds / answers, bytes: allocated / answers, promises: promises / answers };
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

async function main(): Promise<void> {
  const [name, warmUp, windows, what] = process.argv.slice(2);
  const subject: Subject = subjects[name as SubjectName];
  const key = await start(subject);
  answerBy(subject.script);
  const all = new Clients(subject, key);
  const perWindow = Math.ceil(480 / clients / subject.units);
  await rounds(all, Math.ceil(Number(warmUp) / clients / subject.units));
  await repeatWork();
  if (what === 'survivors') {
    const found: number[] = [];
    for (let window = 0; window < Number(windows); window++) found.push(await survivors(all, 2 * perWindow));
    process.send!(found, () => process.exit(0));
    return;
  }
  const footprints: Footprint[] = [];
  for (let window = 0; window < Number(windows); window++)
    footprints.push(await measure(all, perWindow, subject.units));
  process.send!(least(footprints), () => process.exit(0));
}

await main();
