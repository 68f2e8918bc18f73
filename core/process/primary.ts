/**
 * The primary process: keeps a number of workers serving, replaces them, and forwards reloads and signals.
 *
 * It listens and distributes connections in turn (node:cluster); nothing else passes through it. Each worker index has a
 * directory: index 1 the data directory itself, so that one process and several can follow one another on one journal,
 * index K `worker-K` below it. A worker recovers the journal of its index; the journal's kernel lock allows one process.
 *
 * A restart starts a new worker with a free index. When it serves, the old one stops accepting, answers with `connection:
 * close`, waits for idle connections (75 s), then drains. The next replacement does not wait for that, so a restart takes up
 * to twice the memory and connections. A dead worker is replaced at once, repeated failures with growing delay.
 */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../contract/host-tools.ts';
import { workerIndexesOf } from '../contract/process-group.ts';
import { readGatewayFile } from '../gateway/config.ts';
import { createLog } from '../gateway/log.ts';
import { findInvalidFiles, refuseSingleProcess } from './dry-run.ts';
import { returnOrphanedConnection } from './orphaned-connections.ts';
import { refuseDuplicates } from './serving.ts';
import { type Order, processGroupEnvironment, type Report } from './worker.ts';

interface Member {
  readonly worker: Worker;
  readonly workerIndex: number;
  /** Resolves with false when the worker ends before it serves. */
  readonly serves: Promise<boolean>;
  state: 'starting' | 'serving' | 'leaving';
  /** Start of serving, monotonic milliseconds. */
  since: number;
  /** The primary's count of reloads when the worker started. */
  readonly changes: number;
}

/** Consecutive early exits after which the primary gives up if no worker serves. */
const maxFailures = 5;
const firstDelayMs = 250;
const longestDelayMs = 30_000;
/** After serving this long a worker's exit does not count as early. */
const healthyAfterMs = 10_000;

export class Primary {
  readonly #files: readonly string[];
  readonly #count: number;
  readonly #log: Log;
  readonly #directories: ReadonlySet<string>;
  readonly #members = new Set<Member>();
  /** Worker indexes in use or about to be. */
  readonly #usedIndexes = new Set<number>();
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

  /** Rejects when the gateways cannot be served; otherwise the process ends with `stop`. */
  async run(): Promise<never> {
    refuseDuplicates(this.#files);
    await refuseSingleProcess(this.#files);
    // Round robin, so that no connection is lost with a worker that stops accepting.
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

  /** Stops all workers gracefully; the process ends after the last one. */
  async stop(signal: string): Promise<void> {
    this.#stopping = true;
    this.#log.info({ signal, workers: this.#members.size }, 'stopping');
    this.#notify({ order: 'stop', signal });
    this.#exitIfEmpty();
  }

  /** Kills all workers. */
  kill(): void {
    this.#stopping = true;
    for (const { worker } of this.#members) worker.process.kill('SIGKILL');
  }

  /** Reloads the valid files in every worker. */
  async reload(): Promise<void> {
    const refused = await findInvalidFiles(this.#files, this.#log);
    const files = this.#files.filter((file) => !refused.includes(file));
    if (files.length > 0) this.#changed(files);
  }

  /** Replaces the workers one by one; again if called meanwhile. */
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

  /** Starts worker 1 alone, since it creates what exists once, then the others; then recovers directories of earlier runs. */
  async #begin(): Promise<void> {
    const workerIndexes = Array.from({ length: this.#count }, (_, index) => index + 1);
    for (const workerIndex of workerIndexes) this.#usedIndexes.add(workerIndex);
    if ((await this.#fill(1)) === undefined) return;
    await Promise.all(workerIndexes.slice(1).map((workerIndex) => this.#fill(workerIndex)));
    for (const workerIndex of this.#recordedIndexes()) {
      if (this.#stopping || this.#usedIndexes.has(workerIndex)) continue;
      this.#usedIndexes.add(workerIndex);
      await this.#recover(workerIndex);
    }
  }

  /** Worker indexes with a directory: earlier workers' journals may contain unsettled records. */
  #recordedIndexes(): Set<number> {
    return new Set(
      [...this.#directories].filter(existsSync).flatMap((directory) => workerIndexesOf(readdirSync(directory))),
    );
  }

  /** Runs a worker that recovers the index's journal, and retires it. */
  async #recover(workerIndex: number): Promise<void> {
    const member = await this.#fill(workerIndex);
    if (member !== undefined) this.#retire(member);
  }

  /** Starts workers with this index until one serves. undefined: the primary is stopping. */
  async #fill(workerIndex: number): Promise<Member | undefined> {
    while (!this.#stopping) {
      const member = this.#fork(workerIndex);
      if (await member.serves) return member;
      if (this.#stopping) break;
      const failures = this.#countFailure(workerIndex);
      if (failures >= maxFailures && this.#serving().length === 0) {
        this.#giveUp(new Error(`No worker can be started: ${failures} in a row have ended at their start, see above.`));
        break;
      }
      await pause(restartDelayMs(failures));
    }
    return undefined;
  }

  #fork(workerIndex: number): Member {
    const processGroup = { workerIndex: workerIndex, size: this.#count, isFirst: !this.#hasServed };
    const worker = cluster.fork(processGroupEnvironment(processGroup));
    returnOrphanedConnection(worker);
    let settle: (serves: boolean) => void;
    const serves = new Promise<boolean>((resolve) => {
      settle = resolve;
    });
    const member: Member = {
      worker,
      workerIndex: workerIndex,
      serves,
      state: 'starting',
      since: 0,
      changes: this.#changes,
    };
    this.#members.add(member);
    worker.on('message', (message: Report) => {
      if (message.report === 'saved') this.#changed([message.file], member);
      else if (message.report === 'serving') {
        this.#markServing(member);
        settle(true);
      }
    });
    worker.once('exit', (code: number | null, signal: string | null) => {
      settle(false);
      this.#handleExit(member, code ?? signal ?? 'unknown');
    });
    return member;
  }

  #markServing(member: Member): void {
    member.state = 'serving';
    member.since = performance.now();
    this.#hasServed = true;
    this.#log.info({ worker: member.workerIndex, pid: member.worker.process.pid }, 'a worker serves');
    if (this.#stopping) return;
    // The others may have reloaded the files since it read them.
    if (member.changes !== this.#changes) this.#send(member, { order: 'reload', files: this.#files });
  }

  #handleExit(member: Member, end: number | string): void {
    const { state, workerIndex, since } = member;
    this.#members.delete(member);
    if (this.#stopping) {
      this.#exitIfEmpty();
      return;
    }
    if (state === 'leaving' && end === 0) {
      this.#usedIndexes.delete(workerIndex);
      return;
    }
    this.#log[end === 0 ? 'warn' : 'error']({ worker: workerIndex, end, state }, 'a worker has ended unexpectedly');
    if (state === 'leaving') void this.#recover(workerIndex);
    else if (state === 'serving') {
      if (performance.now() - since > healthyAfterMs) this.#failures.delete(workerIndex);
      void this.#replaceDead(workerIndex);
    }
  }

  /** Starts a successor with the same index, and so the same journal; at once after the first failure. */
  async #replaceDead(workerIndex: number): Promise<void> {
    const failures = this.#countFailure(workerIndex);
    if (failures > 1) await pause(restartDelayMs(failures - 1));
    await this.#fill(workerIndex);
  }

  async #replaceAll(): Promise<void> {
    if ((await findInvalidFiles(this.#files, this.#log)).length > 0) return;
    await refuseSingleProcess(this.#files);
    const old = this.#serving();
    this.#log.info({ workers: old.length }, 'the workers are being replaced');
    for (const member of old) {
      if (member.state !== 'serving') continue;
      // At most twice the number of workers at a time.
      while (this.#leaving().length >= this.#count) await once(cluster, 'exit');
      if (this.#stopping || !(await this.#replace(member))) return;
    }
    this.#log.info({ workers: this.#serving().length }, 'the workers are replaced');
  }

  /** Starts a new worker before the old one stops accepting. false: it did not start, and the old one stays. */
  async #replace(old: Member): Promise<boolean> {
    const workerIndex = this.#freeIndex();
    this.#usedIndexes.add(workerIndex);
    const replacement = this.#fork(workerIndex);
    if (await replacement.serves) {
      // If the old one died meanwhile it has a successor already.
      this.#retire(old.state === 'serving' && this.#members.has(old) ? old : replacement);
      return true;
    }
    this.#usedIndexes.delete(workerIndex);
    if (!this.#stopping)
      this.#log.error({ worker: workerIndex }, 'a new worker did not start: the old ones keep serving');
    return false;
  }

  #freeIndex(): number {
    let workerIndex = 1;
    while (this.#usedIndexes.has(workerIndex)) workerIndex++;
    return workerIndex;
  }

  #retire(member: Member): void {
    member.state = 'leaving';
    this.#send(member, { order: 'retire' });
  }

  #changed(files: readonly string[], by?: Member): void {
    this.#changes++;
    for (const member of this.#serving()) if (member !== by) this.#send(member, { order: 'reload', files });
  }

  #notify(order: Order): void {
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

  #countFailure(workerIndex: number): number {
    const failures = (this.#failures.get(workerIndex) ?? 0) + 1;
    this.#failures.set(workerIndex, failures);
    return failures;
  }

  #exitIfEmpty(): void {
    if (this.#members.size === 0) process.exit(0);
  }
}

function restartDelayMs(failures: number): number {
  return Math.min(longestDelayMs, firstDelayMs * 2 ** (failures - 1));
}
