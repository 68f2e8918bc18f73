/** The workers: take due tasks, run their next step, renew the lease meanwhile. Any number of processes may run one. */
import { setTimeout as pause } from 'node:timers/promises';
import { GatewayError } from '../../../core/contract/errors.ts';
import { whileRenewed } from '../../common/kit/jobs/leases.ts';
import { Workers } from '../../common/kit/jobs/workers.ts';
import { orderFields } from '../../common/wire/trace.ts';
import { copy } from './copy.ts';
import { Creation } from './create.ts';
import type { Tools, WorkerContext } from './dependencies.ts';
import { endUncharged } from './final-states.ts';
import type { Live } from './live.ts';
import { endUnknown, expired, poll } from './poll.ts';
import type { From, StoredTask } from './rows.ts';
import { unknownOutcome } from './verdict.ts';

const fullMs = 5_000;

export class Engine {
  readonly #tools: Tools;
  readonly #workers: Workers<StoredTask>;
  readonly #streamed = new Set<Promise<void>>();
  #streamingClients = 0;
  readonly #stopping = new AbortController();
  readonly #onWake: () => void;

  /** `onWake` is called when this process may have made a task due. */
  constructor(tools: Tools, workers: number, onWake: () => void = () => {}) {
    this.#tools = tools;
    this.#onWake = onWake;
    const { rows, random, timing } = tools;
    this.#workers = new Workers({
      places: workers,
      random,
      take: (lease, limit) => rows.take(lease, limit, timing.leaseMs),
      work: (task, lease) => this.#work(task, lease),
      freed: () => this.wake(),
    });
  }

  /** Tasks that this process works on. */
  get active(): number {
    return this.#workers.active;
  }

  /** Reserves capacity for one streaming client; returns its release. Throws overloaded if `most` clients stream already. */
  admit(most: number): () => void {
    if (Math.max(this.#streamingClients, this.#streamed.size) >= most) {
      const details = { retryAfterMs: fullMs };
      throw new GatewayError('overloaded', 'Too many images are being streamed at the moment.', details);
    }
    this.#streamingClients += 1;
    return () => {
      this.#streamingClients -= 1;
    };
  }

  /** Takes due tasks for the free workers. Resolves when they are taken, not when they are done. */
  turn(): Promise<void> {
    return this.#workers.turn();
  }

  /** Like `turn`, without waiting; errors are logged. */
  wake(): void {
    this.#onWake();
    this.turn().catch((error: unknown) => {
      this.#tools.log.error({ error }, 'due tasks could not be taken; trying again');
    });
  }

  /**
   * Runs the next step of a task that was placed with this lease, for a client that streams it. It uses no worker, as
   * the client's own connection bounds it. Resolves when the step is done.
   */
  runStreamed(task: StoredTask, lease: string, live: Live): Promise<void> {
    const work = this.#work(task, lease, live).finally(() => {
      this.#streamed.delete(work);
      live.end();
      this.wake();
    });
    this.#streamed.add(work);
    return work;
  }

  async #work(task: StoredTask, lease: string, live?: Live): Promise<void> {
    const { rows, log, timing } = this.#tools;
    const renew = () =>
      rows.renew(task.id, lease, timing.leaseMs).catch((error: unknown) => {
        log.warn({ ...orderFields(task), error, task: task.id }, 'the lease of a task could not be renewed');
      });
    const { signal } = this.#stopping;
    const worker = live === undefined ? { lease, signal } : { lease, signal, live };
    try {
      await whileRenewed(timing.leaseMs / 3, renew, () => step(this.#tools, task, worker));
    } catch (error) {
      // The lease expires, and another worker continues from the row.
      log.error({ ...orderFields(task), error, task: task.id, state: task.state }, 'a step of a task failed');
    }
  }

  /** Waits for running steps up to `withinMs`; then aborts them. Other processes continue them when their leases expire. */
  async stop(withinMs: number): Promise<void> {
    const all = Promise.allSettled([this.#workers.stop(), ...this.#streamed]);
    const done = new AbortController();
    const late = pause(withinMs, undefined, { signal: done.signal }).catch(() => {});
    await Promise.race([all, late]);
    done.abort();
    this.#stopping.abort(new Error('the gateway stops'));
    await Promise.allSettled([all, ...this.#streamed]);
  }
}

/** Runs one step of a task, by its row alone. */
async function step(tools: Tools, task: StoredTask, worker: WorkerContext): Promise<void> {
  const from: From = { states: [task.state], by: { lease: worker.lease } };
  switch (task.state) {
    case 'queued':
    case 'creating': {
      // A worker sent it and was lost, or is slow: it is never sent again.
      if (task.attempts.at(-1)?.result === 'running') return reconcile(tools, task, from);
      if (task.leftMs > 0) return new Creation(tools, task, worker).run();
      await endUncharged(tools, task, from, { state: 'failed', error: expired, attempts: task.attempts });
      return;
    }
    case 'reconciling':
      return endUnknown(tools, task, from, unknownOutcome);
    case 'running':
      return poll(tools, task, worker);
    case 'copying':
      return copy(tools, task, worker);
    default:
  }
}

/** The worker that sent it may only be slow: its outcome is accepted for a while. */
async function reconcile({ rows, timing, log }: Tools, task: StoredTask, from: From): Promise<void> {
  log.warn({ ...orderFields(task), task: task.id }, 'the worker that sent a task to its vendor was lost');
  await rows.move(task.id, from, { state: 'reconciling', dueMs: timing.reconcileMs });
}
