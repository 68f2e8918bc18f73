/** The primary: keeps so many workers serving, replaces them, and passes on what it is told. It answers nobody itself. */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { readGatewayFile } from './config.ts';
import type { Log } from './contract.ts';
import { placesOf } from './crew.ts';
import { refuseUnshared, unfit } from './dry-run.ts';
import { createLog } from './log.ts';
import { refuseTwins } from './serving.ts';
import { returnUndelivered } from './undelivered.ts';
import { crewEnvironment, type Order, type Report } from './worker.ts';

interface Member {
  readonly worker: Worker;
  readonly place: number;
  /** Resolves with false when it ends before it serves. */
  readonly serves: Promise<boolean>;
  state: 'starting' | 'serving' | 'leaving';
  /** When it began to serve, monotonic milliseconds. */
  since: number;
  /** How often the files had been taken up when it read them. */
  readonly changes: number;
}

/** Ends in a row, before or soon after the start, after which a place is given up if nobody serves elsewhere. */
const mostFailures = 5;
const firstDelayMs = 250;
const longestDelayMs = 30_000;
/** Whoever has served for so long was well. */
const wellAfterMs = 10_000;

export class Primary {
  readonly #files: readonly string[];
  readonly #count: number;
  readonly #log: Log;
  readonly #directories: ReadonlySet<string>;
  readonly #members = new Set<Member>();
  /** Places whose directories somebody uses, or is about to use. */
  readonly #places = new Set<number>();
  readonly #failures = new Map<number, number>();
  #hasServed = false;
  #changes = 0;
  #stopping = false;
  #restarting = false;
  #restartAgain = false;
  #giveUp: (error: Error) => void = () => {};

  /** Throws a ConfigError where a file cannot be read. */
  constructor(files: readonly string[], count: number) {
    this.#files = files;
    this.#count = count;
    const read = files.map((file) => readGatewayFile(file));
    this.#log = createLog(read[0]!.settings.log);
    this.#directories = new Set(read.map(({ directory }) => directory));
  }

  /** Rejects when the gateways cannot be served, now or later; otherwise the process ends with `stop`. */
  async run(): Promise<never> {
    refuseTwins(this.#files);
    await refuseUnshared(this.#files);
    // Connections are handed out in turn, and nobody's are lost with a worker that stops accepting.
    cluster.schedulingPolicy = cluster.SCHED_RR;
    const gaveUp = new Promise<never>((_resolve, reject) => {
      this.#giveUp = reject;
    });
    void this.#begin();
    return gaveUp.catch((error: unknown) => {
      this.kill();
      throw error;
    });
  }

  /** Tells all to end in order, and ends when they have. */
  async stop(signal: string): Promise<void> {
    this.#stopping = true;
    this.#log.info({ signal, workers: this.#members.size }, 'stopping');
    this.#tell({ order: 'stop', signal });
    this.#endIfAlone();
  }

  /** Ends all at once. */
  kill(): void {
    this.#stopping = true;
    for (const { worker } of this.#members) worker.process.kill('SIGKILL');
  }

  /** Has the files that are in order taken up by every worker. */
  async reload(): Promise<void> {
    const refused = await unfit(this.#files, this.#log);
    const files = this.#files.filter((file) => !refused.includes(file));
    if (files.length > 0) this.#changed(files);
  }

  /** Replaces the workers one by one; once more when it is asked for meanwhile. */
  restart(): void {
    this.#restartAgain = this.#restarting;
    if (this.#restarting || this.#stopping) return;
    this.#restarting = true;
    this.#replaceAll()
      .catch((error: unknown) => this.#log.error({ error }, 'the workers could not be replaced'))
      .finally(() => {
        this.#restarting = false;
        if (this.#restartAgain) this.restart();
      });
  }

  /** The first one alone: it makes what is made once. Then the others, and whatever earlier runs have left in further places. */
  async #begin(): Promise<void> {
    const places = Array.from({ length: this.#count }, (_, index) => index + 1);
    for (const place of places) this.#places.add(place);
    if ((await this.#fill(1)) === undefined) return;
    await Promise.all(places.slice(1).map((place) => this.#fill(place)));
    for (const place of this.#leftPlaces()) {
      if (this.#stopping || this.#places.has(place)) continue;
      this.#places.add(place);
      await this.#recover(place);
    }
  }

  /** Places that were used when there were more workers, or while they were replaced; their journals may hold something. */
  #leftPlaces(): Set<number> {
    // Whoever keeps nothing has no directory.
    return new Set([...this.#directories].filter(existsSync).flatMap((directory) => placesOf(readdirSync(directory))));
  }

  /** Somebody takes the place's journal up, brings it to its end, and leaves again. */
  async #recover(place: number): Promise<void> {
    const member = await this.#fill(place);
    if (member !== undefined) this.#retire(member);
  }

  /** Starts a worker in this place again and again until one serves. undefined: all is to end. */
  async #fill(place: number): Promise<Member | undefined> {
    while (!this.#stopping) {
      const member = this.#fork(place);
      if (await member.serves) return member;
      if (this.#stopping) break;
      const failures = this.#noteFailure(place);
      if (failures >= mostFailures && this.#serving().length === 0) {
        this.#giveUp(new Error(`No worker can be started: ${failures} in a row have ended at their start, see above.`));
        break;
      }
      await pause(delayOf(failures));
    }
    return undefined;
  }

  #fork(place: number): Member {
    const crew = { place, size: this.#count, isFirst: !this.#hasServed };
    const worker = cluster.fork(crewEnvironment(crew));
    returnUndelivered(worker);
    let settle: (serves: boolean) => void;
    const serves = new Promise<boolean>((resolve) => {
      settle = resolve;
    });
    const member: Member = { worker, place, serves, state: 'starting', since: 0, changes: this.#changes };
    this.#members.add(member);
    worker.on('message', (message: Report) => {
      if (message.report === 'saved') this.#changed([message.file], member);
      else if (message.report === 'serving') {
        this.#welcome(member);
        settle(true);
      }
    });
    worker.once('exit', (code: number | null, signal: string | null) => {
      settle(false);
      this.#ended(member, code ?? signal ?? 'unknown');
    });
    return member;
  }

  #welcome(member: Member): void {
    member.state = 'serving';
    member.since = performance.now();
    this.#hasServed = true;
    this.#log.info({ worker: member.place, pid: member.worker.process.pid }, 'a worker serves');
    if (this.#stopping) return;
    // The files may have been taken up by the others while it started with what was there before.
    if (member.changes !== this.#changes) this.#send(member, { order: 'reload', files: this.#files });
  }

  #ended(member: Member, end: number | string): void {
    const { state, place, since } = member;
    this.#members.delete(member);
    if (this.#stopping) {
      this.#endIfAlone();
      return;
    }
    if (state === 'leaving' && end === 0) {
      this.#places.delete(place);
      return;
    }
    this.#log[end === 0 ? 'warn' : 'error']({ worker: place, end, state }, 'a worker has ended unasked');
    if (state === 'leaving') void this.#recover(place);
    else if (state === 'serving') {
      if (performance.now() - since > wellAfterMs) this.#failures.delete(place);
      void this.#replaceDead(place);
    }
  }

  /** The successor has the place of the dead one, and with it its journal. The first end is made good at once. */
  async #replaceDead(place: number): Promise<void> {
    const failures = this.#noteFailure(place);
    if (failures > 1) await pause(delayOf(failures - 1));
    await this.#fill(place);
  }

  async #replaceAll(): Promise<void> {
    if ((await unfit(this.#files, this.#log)).length > 0) return;
    await refuseUnshared(this.#files);
    const old = this.#serving();
    this.#log.info({ workers: old.length }, 'the workers are being replaced');
    for (const member of old) {
      if (member.state !== 'serving') continue;
      // At most twice as many as serve, and never two with one journal.
      while (this.#leaving().length >= this.#count) await once(cluster, 'exit');
      if (this.#stopping || !(await this.#replace(member))) return;
    }
    this.#log.info({ workers: this.#serving().length }, 'the workers are replaced');
  }

  /** The new one serves before the old one stops accepting. false: it could not be started, and the old one goes on. */
  async #replace(old: Member): Promise<boolean> {
    const place = this.#freePlace();
    this.#places.add(place);
    const fresh = this.#fork(place);
    if (await fresh.serves) {
      // Whoever died meanwhile has a successor of its own.
      this.#retire(old.state === 'serving' && this.#members.has(old) ? old : fresh);
      return true;
    }
    this.#places.delete(place);
    if (!this.#stopping) this.#log.error({ worker: place }, 'a new worker did not start: those that serve go on');
    return false;
  }

  #freePlace(): number {
    let place = 1;
    while (this.#places.has(place)) place++;
    return place;
  }

  #retire(member: Member): void {
    member.state = 'leaving';
    this.#send(member, { order: 'retire' });
  }

  #changed(files: readonly string[], by?: Member): void {
    this.#changes++;
    for (const member of this.#serving()) if (member !== by) this.#send(member, { order: 'reload', files });
  }

  #tell(order: Order): void {
    for (const member of this.#members) this.#send(member, order);
  }

  #send({ worker }: Member, order: Order): void {
    if (worker.isConnected()) worker.send(order);
  }

  #serving(): Member[] {
    return [...this.#members].filter(({ state }) => state === 'serving');
  }

  #leaving(): Member[] {
    return [...this.#members].filter(({ state }) => state === 'leaving');
  }

  #noteFailure(place: number): number {
    const failures = (this.#failures.get(place) ?? 0) + 1;
    this.#failures.set(place, failures);
    return failures;
  }

  #endIfAlone(): void {
    if (this.#members.size === 0) process.exit(0);
  }
}

function delayOf(failures: number): number {
  return Math.min(longestDelayMs, firstDelayMs * 2 ** (failures - 1));
}
